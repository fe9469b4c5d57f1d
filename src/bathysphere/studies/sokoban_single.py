"""The paper's single-board Sokoban: on how many boards a run that sees nothing else finds a solution."""

from __future__ import annotations

from dataclasses import replace

from bathysphere.config.run import RunConfig
from bathysphere.domains import SokobanConfig
from bathysphere.studies.figures import estimates
from bathysphere.studies.study import Budget, Metric, PaperNumber, Setting, Study

_TEXT = "section on single-board Sokoban"


def by_board(config: RunConfig, number: int) -> RunConfig:
    """Run number i of every setting has boards of its own, from board i on."""
    assert isinstance(config.domain, SokobanConfig)
    return replace(config, seed=number, domain=replace(config.domain, board_seed=number))


def _setting(name: str, title: str, preset: str, side: int) -> Setting:
    board = {"domain": {"generator": {"height": side, "width": side}}}
    return Setting(f"{name}-{side}x{side}", f"{title}, {side}×{side}", preset, board)


SOKOBAN_SINGLE = Study(
    name="sokoban-single",
    title="Single-board Sokoban: solving a board that is all one knows",
    source=_TEXT,
    about=(
        "Each run plays one random board with four boxes until it wins once or the budget ends. All settings get the "
        "same boards (the paper's are not known). The paper's 250 boards are 10×10; it does not say how many 8×8 "
        "ones it used. The last settings are this package's own preset."
    ),
    settings=tuple(
        _setting(name, title, preset, side)
        for side in (10, 8)
        for name, title, preset in (
            ("no-ensemble", "no ensemble", "paper/sokoban-single-no-ensemble"),
            ("ensemble", "ensemble", "paper/sokoban-single"),
            ("ours", "preset sokoban-single", "sokoban-single"),
        )
    ),
    metrics=(
        Metric("solved", "boards solved", "share", lambda r: float(r["first_solved_step"] is not None)),
        Metric(
            "first-solution",
            "median steps to the first solution (solved boards)",
            "median",
            lambda r: r["first_solved_step"],
        ),
    ),
    budgets={
        "small": Budget("Up to 150,000 steps a board, a fifteenth of the paper's.", 40, {"steps": 150_000}),
        "paper": Budget("Up to 2.3M steps a board: 100,000 for each of 23 workers.", 250, {"steps": 2_300_000}),
    },
    figure=estimates,
    paper={
        ("no-ensemble-10x10", "solved"): PaperNumber(0.50, "50%", _TEXT),
        ("ensemble-10x10", "solved"): PaperNumber(0.73, "73%", _TEXT),
        ("no-ensemble-8x8", "solved"): PaperNumber(0.64, "64%", _TEXT),
        ("ensemble-8x8", "solved"): PaperNumber(0.94, "94%", _TEXT),
    },
    vary=by_board,
)
