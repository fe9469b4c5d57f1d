"""How many single boards of Sokoban do the paper's settings solve, in how many steps? With one difference at a time.

    python benchmarks/sokoban_single.py results/sokoban-single-budget --boards 0 40 --steps 2300000 --variants program
    python benchmarks/sokoban_single.py OUT --sides 8 --boards 0 40 --steps 150000 --variants program written
    python benchmarks/sokoban_single.py results/sokoban-single-budget --render

Each row of `results.csv` is one board played until its first win or until the steps are used up. Rows that are there
already are kept, so the same command goes on where it was stopped. `--render` writes `table.md` (shares with intervals,
and every variant beside `program` on the boards that both have played) and the figure (boards solved against steps).
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bathysphere.config.presets import find_preset
from bathysphere.config.run import RunConfig
from bathysphere.learning.masks import MaskConfig
from bathysphere.plots import BLUE, INK, ORANGE, tidy
from bathysphere.runs.build import make_trainer
from bathysphere.statistics import wilson_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Change = Callable[[RunConfig], RunConfig]


def search(**fields: Any) -> Change:
    return lambda config: replace(config, search=replace(config.search, **fields))


def learning(**fields: Any) -> Change:
    return lambda config: replace(config, learning=replace(config.learning, **fields))


def by_length(config: RunConfig) -> RunConfig:
    return learning(replay=replace(config.learning.replay, sampling="length"))(config)


KAPPA_9 = search(risk_coef=9.0)
DEAD_END = search(dead_end_value=-2.0)
STEADY = learning(steady_values=True)

# The preset is as programmed: 3 std, dead ends -1, episodes drawn alike, the newest values.
VARIANTS: dict[str, tuple[Change, ...]] = {
    "program": (),
    "steady": (STEADY,),
    "kappa-9": (KAPPA_9,),
    "dead-end": (DEAD_END,),
    "by-length": (by_length,),
    "written": (KAPPA_9, DEAD_END, by_length, STEADY),
    "no-mask": (learning(mask=MaskConfig(kind="none")),),
    "update-per-2-steps": (learning(steps_per_update=2.0),),
    "200-steps": (lambda config: replace(config, domain=replace(config.domain, max_steps=200)),),
    "one-at-a-time": (lambda config: replace(config, batch=1),),
}
PRESETS = {"ensemble": "paper/sokoban-single", "no-ensemble": "paper/sokoban-single-no-ensemble"}
PAPER = {("ensemble", 10): 0.73, ("no-ensemble", 10): 0.50, ("ensemble", 8): 0.94, ("no-ensemble", 8): 0.64}


@dataclass(frozen=True)
class Row:
    setting: str
    variant: str
    side: int
    board: int
    budget: int
    first_win: int | None
    steps: int
    episodes: int
    seconds: float

    @property
    def key(self) -> tuple[str, ...]:
        return (self.setting, self.variant, str(self.side), str(self.board), str(self.budget))


def play(setting: str, variant: str, side: int, board: int, budget: int) -> Row:
    """Plays one board, which is also the seed, until its first win or the budget's end."""
    import torch

    torch.set_num_threads(1)
    config = find_preset(PRESETS[setting])
    generator = replace(config.domain.generator, height=side, width=side)
    config = replace(config, seed=board, domain=replace(config.domain, board_seed=board, generator=generator))
    for change in VARIANTS[variant]:
        config = change(config)
    trainer = make_trainer(config)
    began = time.perf_counter()
    while trainer.progress.first_solved_step is None and trainer.progress.env_steps < budget:
        trainer.advance()
    progress = trainer.progress
    seconds = round(time.perf_counter() - began, 1)
    won = progress.first_solved_step
    return Row(setting, variant, side, board, budget, won, progress.env_steps, progress.episodes, seconds)


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Row(
                row["setting"],
                row["variant"],
                int(row["side"]),
                int(row["board"]),
                int(row["budget"]),
                int(row["first_win"]) if row["first_win"] else None,
                int(row["steps"]),
                int(row["episodes"]),
                float(row["seconds"]),
            )
            for row in csv.DictReader(file)
        ]


def table(rows: list[Row]) -> str:
    """A line for each setting, side, budget and variant: share with interval, boards gained and lost by the change."""
    lines = ["| setting | variant | steps | boards | solved | beside `program`, same boards: gained, lost |"]
    lines.append("|---|---|---|---|---|---|")
    groups: dict[tuple[str, int, int, str], dict[int, bool]] = {}
    for row in rows:
        group = groups.setdefault((row.setting, row.side, row.budget, row.variant), {})
        group[row.board] = row.first_win is not None
    for (setting, side, budget, variant), boards in sorted(groups.items()):
        base = groups.get((setting, side, budget, "program"), {})
        common = boards.keys() & base.keys()
        gained = sum(boards[b] and not base[b] for b in common)
        lost = sum(base[b] and not boards[b] for b in common)
        won = sum(boards.values())
        low, high = wilson_interval(won, len(boards))
        share = f"{won} of {len(boards)}: {won / len(boards):.0%} ({low:.0%} to {high:.0%})"
        change = "" if variant == "program" else f"{gained}, {lost} of {len(common)}"
        lines.append(f"| {setting}, {side}x{side} | {variant} | {budget:,} | {len(boards)} | {share} | {change} |")
    return "\n".join(lines)


def draw(rows: list[Row]) -> Figure:
    """Draws the share of boards solved against steps, as programmed, with the paper's shares as dashed lines."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.0), layout="constrained", facecolor="white")
    for axis, side in zip(figure.subplots(1, 2, sharey=True), (10, 8), strict=True):
        for setting, colour in (("ensemble", ORANGE), ("no-ensemble", BLUE)):
            played = [row for row in rows if (row.setting, row.side, row.variant) == (setting, side, "program")]
            budget = max((row.budget for row in played), default=0)
            played = [row for row in played if row.budget == budget]
            if not played:
                continue
            wins = np.sort([row.first_win for row in played if row.first_win is not None])
            steps = np.geomspace(300, budget, 400)
            won = np.searchsorted(wins, steps, side="right")
            low, high = np.transpose([wilson_interval(int(w), len(played)) for w in won])
            axis.fill_between(steps, low, high, color=colour, alpha=0.14, linewidth=0)
            name = setting.replace("-", " ")
            axis.plot(steps, won / len(played), color=colour, label=f"{name}, {len(played)} boards")
            axis.axhline(PAPER[setting, side], color=colour, linestyle="--", linewidth=1, label=f"{name}, paper")
        axis.axvline(150_000, color=INK, linewidth=0.6, alpha=0.4)
        axis.set_xscale("log")
        axis.set_ylim(0, 1.02)
        axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axis.set_xlabel("steps", color=INK)
        axis.set_title(f"{side}x{side}: boards solved, with 95 % intervals", loc="left", fontsize=10, color=INK)
        axis.legend(frameon=False, fontsize=8, labelcolor=INK)
        tidy(axis)
    return figure


def render(folder: Path) -> None:
    """Writes the table and the figure of a folder's rows."""
    rows = read(folder / "results.csv")
    (folder / "table.md").write_text(table(rows) + "\n")
    figure = draw(rows)
    figure.savefig(folder / "figure.png", dpi=110)
    figure.savefig(folder / "figure.svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of results.csv")
    parser.add_argument("--settings", nargs="+", choices=PRESETS, default=list(PRESETS))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--sides", nargs="+", type=int, default=[8, 10])
    parser.add_argument("--boards", nargs=2, type=int, default=(0, 40), metavar=("FIRST", "END"))
    parser.add_argument("--steps", type=int, default=150_000)
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    if options.render:
        render(options.out)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    out = options.out / "results.csv"
    done = {row.key for row in read(out)}
    for board in range(*options.boards):
        for side in options.sides:
            for setting in options.settings:
                for variant in options.variants:
                    if (setting, variant, str(side), str(board), str(options.steps)) in done:
                        continue
                    row = play(setting, variant, side, board, options.steps)
                    new = not out.exists()
                    with out.open("a", newline="") as file:
                        writer = csv.DictWriter(file, list(asdict(row)))
                        if new:
                            writer.writeheader()
                        writer.writerow(asdict(row))
                    print(row, flush=True)


if __name__ == "__main__":
    main()
