"""The paper's Sokoban planned with a learned model: what it costs not to know the rules."""

from __future__ import annotations

from bathysphere.studies.curves import COLUMNS, learning_curves
from bathysphere.studies.study import Budget, Metric, PaperNumber, Record, Setting, Study

_SECTION = "section on multi-board Sokoban"
_PRESETS = {"paper/sokoban": "sokoban", "paper/sokoban-learned-model": "sokoban-learned-model"}


def _per_move(record: Record, error: str) -> float:
    """Returns the share of a run's steps about which its model made this error."""
    return float(record[f"model_{error}"] / record["env_steps"])


SOKOBAN_LEARNED_MODEL = Study(
    name="sokoban-learned-model",
    title="Multi-board Sokoban with a learned model",
    source=f"{_SECTION}, and the appendix on the model's training",
    about=(
        "The same agent plans with the true rules and with a model learned from random episodes; steps follow the "
        "rules in both. Run i of both plays the same boards, in training and afterwards. The paper finds them "
        "practically equivalent. The model is this package's own in both budgets: the authors' network takes a million "
        "updates. The small budget runs this package's preset sokoban, the paper's the paper's settings."
    ),
    settings=(
        Setting("rules", "true rules", "paper/sokoban"),
        Setting("learned", "learned model", "paper/sokoban-learned-model"),
    ),
    metrics=(
        Metric(
            "win-rate",
            "win rate at the end, last 1000 episodes, %",
            "mean",
            lambda record: 100 * record["win_rate_1000"],
        ),
        Metric("unseen", "boards solved afterwards, %", "mean", lambda record: 100 * record["evaluation_win_rate"]),
        Metric("speed", "environment steps a second", "mean", lambda record: record["env_steps_per_second"]),
        Metric(
            "boards-right",
            "boards predicted right on steps, %",
            "mean",
            lambda record: 100 * (1 - _per_move(record, "wrong_state")),
            ("learned",),
        ),
        Metric(
            "false-rewards",
            "false rewards in a million steps",
            "mean",
            lambda record: 1e6 * _per_move(record, "false_end"),
            ("learned",),
        ),
    ),
    budgets={
        "small": Budget(
            "100,000 steps a run of this package's presets, then 500 boards.",
            2,
            {"steps": 100_000},
            presets=_PRESETS,
            evaluation=500,
        ),
        "paper": Budget("10M steps a run, then 1000 boards.", 5, {"steps": 10_000_000}, evaluation=1000),
    },
    figure=learning_curves,
    paper={
        ("rules", "win-rate"): PaperNumber(89.0, "89.0%", _SECTION),
        ("learned", "boards-right"): PaperNumber(99.5, "99.5%", "appendix, training of the model"),
        ("learned", "false-rewards"): PaperNumber(1.0, "≤ 1e-6 of moves", "appendix, training of the model"),
    },
    curve=COLUMNS,
)
