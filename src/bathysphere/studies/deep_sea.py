"""The paper's Deep-sea: how many steps until it is solved, by the size N of the grid."""

from __future__ import annotations

from bathysphere.studies.figures import steps_by_size
from bathysphere.studies.study import Budget, Case, Metric, PaperNumber, Picture, Record, Setting, Study

_STEPS = 1_400_000  # a trial that needs more is an orange dot in the paper
_LARGE = 20  # the paper calls larger grids large


def _sizes(sizes: range) -> tuple[Case, ...]:
    return tuple(Case(f"N{n}", {"domain": {"size": n}}, {"size": n}) for n in sizes)


def _is_solved(record: Record) -> float:
    return float(record["solved_step"] is not None)


METRICS = (
    Metric("solved", "solved, all N", "share", _is_solved),
    Metric(
        "solved-large",
        f"solved, N > {_LARGE}",
        "share",
        lambda record: _is_solved(record) if record["size"] > _LARGE else None,
    ),
    Metric(
        "steps-large",
        f"median steps to solve N > {_LARGE} (solved runs)",
        "median",
        lambda record: record["solved_step"] if record["size"] > _LARGE else None,
    ),
)

_CHANGES = {"steps": _STEPS, "stop": {"on_solved": True}}
BUDGETS: dict[str, Budget] = {
    "small": Budget("N = 5, 10, ..., 50, up to 1.4M steps a run.", 3, _CHANGES, _sizes(range(5, 51, 5))),
    "paper": Budget("Every N from 5 to 50, up to 1.4M steps a run.", 5, _CHANGES, _sizes(range(5, 51))),
}
_SOLVED = "A run counts as solved when more than half of its latest 50 dives find the treasure."
_KAPPA_50 = Setting("kappa-50", "ensemble, κ = 50", "paper/deep-sea")

DEEP_SEA = Study(
    name="deep-sea",
    title="Deep-sea: who solves large grids",
    source="Figure 3, and the heat maps of Figure 1",
    about=(
        "One value function, an ensemble that ignores its disagreement (κ = 0) and one that seeks it (κ = 50) dive "
        "in grids of growing size. The paper finds that grids with N > 20 are solved only with κ = 50. "
        f"{_SOLVED} The last setting is this package's own preset."
    ),
    settings=(
        Setting("no-ensemble", "no ensemble", "paper/deep-sea-no-ensemble"),
        Setting("kappa-0", "ensemble, κ = 0", "paper/deep-sea-kappa-0"),
        _KAPPA_50,
        Setting("ours", "preset deep-sea", "deep-sea"),
    ),
    metrics=METRICS,
    budgets=BUDGETS,
    figure=steps_by_size,
    paper={
        (setting, "solved-large"): PaperNumber(0.0, "none", "Figure 3, caption")
        for setting in ("no-ensemble", "kappa-0")
    },
    pictures=(
        Picture(
            "kappa-50",
            "N40",
            "uncertainty.png",
            "Ensemble standard deviation in every cell of N = 40 during training with κ = 50 (the paper's Figure 1).",
        ),
    ),
)

MASKS = Study(
    name="deep-sea-masks",
    title="Deep-sea with and without masks",
    source="appendix, figure on masks",
    about=(
        "With masks each episode trains one member of the ensemble, without them all. The paper reports failures "
        f"without masks on larger boards. {_SOLVED}"
    ),
    settings=(
        Setting("no-mask", "without masks", "paper/deep-sea", {"learning": {"mask": {"kind": "none"}}}),
        Setting("mask", "with masks", "paper/deep-sea"),
    ),
    metrics=METRICS,
    budgets=BUDGETS,
    figure=steps_by_size,
)

ENSEMBLE_SIZE = Study(
    name="deep-sea-ensemble-size",
    title="Deep-sea with ensembles of different sizes",
    source="appendix, figure on ensemble sizes",
    about=(
        "K members, half of which are drawn for each episode, as 10 of 20 are elsewhere (the paper does not say). It "
        f"finds that ensembles as large as 20 are needed. {_SOLVED}"
    ),
    settings=tuple(
        Setting(
            f"members-{k}",
            f"K = {k}",
            "paper/deep-sea",
            {"values": {"num_members": k}, "search": {"num_subsampled": max(1, k // 2)}},
        )
        for k in (1, 5, 10, 20, 30)
    ),
    metrics=METRICS,
    budgets=BUDGETS,
    figure=steps_by_size,
)

TARGETS = Study(
    name="deep-sea-targets",
    title="Deep-sea with different training targets",
    source="appendix, figure on value targets",
    about=(
        "Values learn from the planner's own values (bootstrap) or from what really followed (factual; here the "
        "discounted rewards, as the paper does not say which of the authors' variants it used). The paper finds "
        f"bootstrap better. {_SOLVED}"
    ),
    settings=(
        Setting("factual", "factual", "paper/deep-sea", {"learning": {"target": "factual_rewards"}}),
        Setting("bootstrap", "bootstrap", "paper/deep-sea"),
    ),
    metrics=METRICS,
    budgets=BUDGETS,
    figure=steps_by_size,
)
