"""The paper's multi-board Sokoban: learning to solve boards that are new every episode, and its ablations."""

from __future__ import annotations

from bathysphere.studies.curves import COLUMNS, explored, learning_curves, win_rates
from bathysphere.studies.study import Budget, Changes, Metric, PaperNumber, Record, Setting, Study

_SECTION = "section on multi-board Sokoban"
_OURS, _PAPER = "sokoban", "paper/sokoban"


def _first(record: Record, column: str, share: float) -> float | None:
    """Returns what a column of a run's curve was when its win rate first reached a share; None if it never did."""
    return next((place for place, rate in zip(*win_rates(record, column), strict=True) if rate >= share), None)


def _steps_to(percent: int) -> Metric:
    return Metric(
        f"steps-{percent}",
        f"median steps until {percent}% are won (runs that get there)",
        "median",
        lambda record: _first(record, "env_steps", percent / 100),
    )


def _explored(record: Record) -> float | None:
    _, sizes = explored(record)
    return sizes[-1] if len(sizes) else None


_WIN_RATE = Metric(
    "win-rate", "win rate at the end, last 1000 episodes (%)", "mean", lambda record: 100 * record["win_rate_1000"]
)
_GRAPH = Metric("graph", "states explored in an episode at the end, last 300 episodes", "mean", _explored)
_ABLATION_METRICS = (_WIN_RATE, _steps_to(50), _steps_to(80), _GRAPH)

_PAPER_BUDGET = Budget("10M steps a run, as in the paper.", 10, {"steps": 10_000_000})
_ABLATION_BUDGETS: dict[str, Budget] = {
    "small": Budget(
        "100,000 steps a run of this package's preset sokoban, which learns faster than the paper's settings.",
        2,
        {"steps": 100_000},
        presets={_PAPER: _OURS},
    ),
    "paper": _PAPER_BUDGET,
}
_BASE = (
    "The paper budget varies the paper's settings; the small one varies this package's preset sokoban, whose members "
    "are heads of one network and rank actions by their mean, because three of the paper's networks would need days."
)

SOKOBAN_MULTI = Study(
    name="sokoban-multi",
    title="Multi-board Sokoban: boards that are new every episode",
    source=f"{_SECTION}, figure of learning curves",
    about=(
        "10×10 boards with four boxes, a new one every episode, planned with the true rules. One value function, three "
        "that vote, and this package's own preset. The paper finds that voting helps, and that episodes explore most "
        "at a win rate of about 40%, or 10,000 episodes. Win rates are of the exploring episodes themselves."
    ),
    settings=(
        Setting("no-ensemble", "no ensemble", f"{_PAPER}-no-ensemble"),
        Setting("ensemble", "ensemble, K = 3", _PAPER),
        Setting("ours", "preset sokoban", _OURS),
    ),
    metrics=(
        _WIN_RATE,
        Metric(
            "games-40",
            "median episodes until 40% are won (runs that get there)",
            "median",
            lambda record: _first(record, "episodes", 0.4),
        ),
        _steps_to(50),
        _steps_to(80),
        _steps_to(89),
        _GRAPH,
    ),
    budgets={
        "small": Budget("1M steps a run, a tenth of the paper's, one run each.", 1, {"steps": 1_000_000}),
        "paper": _PAPER_BUDGET,
    },
    figure=learning_curves,
    paper={
        ("no-ensemble", "win-rate"): PaperNumber(84.7, "84.7%", _SECTION),
        ("ensemble", "win-rate"): PaperNumber(89.0, "89.0%", _SECTION),
        ("ensemble", "games-40"): PaperNumber(10_000, "about 10,000", _SECTION),
    },
    curve=COLUMNS,
)


def _ablation(name: str, title: str, source: str, about: str, settings: dict[str, tuple[str, Changes]]) -> Study:
    """Returns a study of one thing that is varied: settings are titles and changes by name."""
    return Study(
        name=f"sokoban-{name}",
        title=f"Multi-board Sokoban {title}",
        source=f"appendix, figure on {source}",
        about=f"{about} {_BASE}",
        settings=tuple(Setting(key, shown, _PAPER, changes) for key, (shown, changes) in settings.items()),
        metrics=_ABLATION_METRICS,
        budgets=_ABLATION_BUDGETS,
        figure=learning_curves,
        curve=COLUMNS,
    )


ENSEMBLE_SIZE = _ablation(
    "ensemble-size",
    "with ensembles of different sizes",
    "ensemble sizes",
    "K members that vote, each learning from 32 entries of every batch; a single one is the agent without an ensemble. "
    "The paper finds that three improve on none, and that 3, 5 and 7 perform alike.",
    {
        f"members-{k}": (f"K = {k}", {"values": {"num_members": k}, "learning": {"batch_size": 32 * k}})
        for k in (1, 3, 5, 7)
    },
)

TARGETS = _ablation(
    "targets",
    "with different training targets",
    "value targets",
    "Values learn from the planner's own values (bootstrap) or from what really followed (factual; here the discounted "
    "rewards, as the paper does not say which of the authors' variants it used), or from the mean of both. The paper "
    "finds bootstrap better, and this package's preset has it.",
    {
        "factual": ("factual", {"learning": {"target": "factual_rewards"}}),
        "bootstrap": ("bootstrap", {"learning": {"target": "bootstrap"}}),
        "mixed": ("mean of both", {"learning": {"target": "mixed"}}),
    },
)

PASSES = _ablation(
    "passes",
    "with more and less planning",
    "planning passes",
    "Planning passes before every step, 10 elsewhere in the paper. It calls their number perhaps the most important "
    "parameter of the planner, better and dearer the more there are; the numbers in its figure are not in its text, so "
    "those around the usual one were chosen here. 40 is what this package's preset has.",
    {f"passes-{p}": (f"{p} passes", {"search": {"passes": p}}) for p in (5, 10, 20, 40)},
)

STEP_LIMIT = _ablation(
    "step-limit",
    "with shorter and longer episodes",
    "step limits",
    "Steps after which an episode of training is given up. The paper finds that more slow learning down at first and "
    "help later, and that 200, about four times the usual solution, is best; the other limits in its figure are not in "
    "its text, so half and twice as many were chosen here. This package's preset has 100.",
    {f"limit-{m}": (f"{m} steps", {"domain": {"max_steps": m}, "learning": {"max_steps": m}}) for m in (100, 200, 400)},
)
