"""The paper's Toy Montezuma's Revenge: how many runs find the treasure, and how many rooms they see."""

from __future__ import annotations

from bathysphere.studies.figures import estimates
from bathysphere.studies.study import Budget, Metric, PaperNumber, Picture, Setting, Study

_TABLE_1 = "Table 1"
_TABLE_MASKS = "appendix, table on masks"

METRICS = (
    Metric("solved", "runs that found a solution", "share", lambda r: float(r["first_solved_step"] is not None)),
    Metric("rooms", "rooms visited", "mean", lambda r: r["rooms_visited"]),
    Metric("first-room", "runs that never left the first room", "share", lambda r: float(r["rooms_visited"] == 1)),
    Metric(
        "first-solution", "median steps to the first solution (solved runs)", "median", lambda r: r["first_solved_step"]
    ),
)

_STOP = {"stop": {"on_first_win": True}}
BUDGETS: dict[str, Budget] = {
    "small": Budget("Up to 400,000 steps a run, a third of the paper's.", 5, {"steps": 400_000, **_STOP}),
    "paper": Budget("Up to 1.2M steps a run.", 30, {"steps": 1_200_000, **_STOP}),
}


def _numbers(setting: str, solved: int, runs: int, rooms: float, source: str) -> dict[tuple[str, str], PaperNumber]:
    return {
        (setting, "solved"): PaperNumber(solved / runs, f"{solved}/{runs}", source),
        (setting, "rooms"): PaperNumber(rooms, f"{rooms}", source),
    }


def _picture(setting: str, caption: str) -> Picture:
    return Picture(setting, "", "rooms.png", f"{caption}: visits to every cell, and what the ensemble does not know.")


TOY_MONTEZUMA = Study(
    name="toy-montezuma",
    title="Toy Montezuma's Revenge: an ensemble that seeks what it does not know",
    source=_TABLE_1,
    about=(
        "24 rooms, one reward at least 232 steps away. One value function, an ensemble that ignores its disagreement "
        "(κ = 0), and one that seeks it (κ = 3). A run ends with its first solution or its budget; rooms are counted "
        "until then (the paper does not say whether its runs went on). The last setting is this package's own preset."
    ),
    settings=(
        Setting("no-ensemble", "no ensemble", "paper/toy-montezuma-no-ensemble"),
        Setting("no-std", "ensemble, no std", "paper/toy-montezuma-kappa-0"),
        Setting("std", "ensemble, std", "paper/toy-montezuma"),
        Setting("ours", "preset toy-montezuma", "toy-montezuma"),
    ),
    metrics=METRICS,
    budgets=BUDGETS,
    figure=estimates,
    paper={
        **_numbers("no-ensemble", 0, 43, 4.7, _TABLE_1),
        ("no-ensemble", "first-room"): PaperNumber(30 / 43, "30/43", "section on Toy Montezuma's Revenge"),
        **_numbers("no-std", 2, 40, 5.8, _TABLE_1),
        **_numbers("std", 30, 37, 17.5, _TABLE_1),
    },
    pictures=(
        _picture("no-ensemble", "One run without an ensemble"),
        _picture("std", "One run with an ensemble and its std"),
    ),
)

MASKS = Study(
    name="toy-montezuma-masks",
    title="Toy Montezuma's Revenge with and without masks",
    source=_TABLE_MASKS,
    about="With masks each episode trains one member of the ensemble, without them all (κ = 3 in both).",
    settings=(
        Setting("no-mask", "without mask", "paper/toy-montezuma", {"learning": {"mask": {"kind": "none"}}}),
        Setting("mask", "with mask", "paper/toy-montezuma"),
    ),
    metrics=METRICS,
    budgets=BUDGETS,
    figure=estimates,
    paper={
        **_numbers("no-mask", 22, 50, 13.0, _TABLE_MASKS),
        **_numbers("mask", 30, 37, 17.5, _TABLE_MASKS),
    },
)
