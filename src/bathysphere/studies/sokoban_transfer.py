"""The paper's transfer: value functions of a few boards, frozen and put together, on boards they have never seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bathysphere.studies.figures import estimates
from bathysphere.studies.sokoban_single import by_board
from bathysphere.studies.study import Budget, Metric, PaperNumber, Record, Setting, Study, Towers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TABLE = "table on transfer"
_PRESET = "paper/sokoban-tower"
_DEPTHS = (5, 4)
_AGGREGATORS = {"linear": "weighted sum", "hidden": "hidden layer"}


def _settings(depth: int) -> tuple[Setting, ...]:
    """Returns what is compared for networks of `depth` convolutions."""
    shown = f"{depth} layers"

    def setting(name: str, title: str, count: int = 0, learns: bool = False, aggregator: str = "linear") -> Setting:
        changes: dict[str, Any] = {
            "domain": {"num_boards": None},
            "values": {"conv_layers": depth, "aggregator": aggregator},
            "optimiser": {"l2": 0.0},
            # A run whose values are tried as they are ends with its first episodes, before it learns.
            "stop": {"win_rate": None, "episodes": None if learns else 1},
        }
        towers = Towers(f"tower-{depth}", count) if count else None
        return Setting(f"{name}-{depth}", f"{title}, {shown}", _PRESET, changes, towers)

    return (
        Setting(f"tower-{depth}", f"pre-training, {shown}", _PRESET, {"values": {"conv_layers": depth}}),
        setting("random", "random"),
        setting("as-it-is-1", "1 tower as it is", 1),
        *(
            setting(f"{kind}-{count}", f"{count} {'tower' if count == 1 else 'towers'}, {title}", count, True, kind)
            for kind, title in _AGGREGATORS.items()
            for count in (1, 2, 3)
        ),
    )


_SETTINGS = tuple(setting for depth in _DEPTHS for setting in _settings(depth))
_TRAINED = tuple(setting.name for setting in _SETTINGS if setting.name.startswith("tower-"))
_TRIED = tuple(setting.name for setting in _SETTINGS if setting.name not in _TRAINED)
_LEARNING = tuple(name for name in _TRIED if name.startswith(tuple(_AGGREGATORS)))


def _paper() -> dict[tuple[str, str], PaperNumber]:
    numbers = {}
    for depth, percents in ((5, (0.7, 4.9, 7.1, 8.5)), (4, (0.7, 4.3, 5.6, 7.3))):
        names = (("random",), ("as-it-is-1",), ("linear-2", "hidden-2"), ("linear-3", "hidden-3"))
        for percent, alike in zip(percents, names, strict=True):
            for name in alike:
                numbers[f"{name}-{depth}", "win-rate"] = PaperNumber(percent, f"{percent}%", _TABLE)
    return numbers


def _figure(study: Study, records: list[Record]) -> Figure:
    """Draws how well unseen boards are solved; pre-training is in the table only."""
    tried = tuple(setting for setting in study.settings if setting.name in _TRIED)
    return estimates(replace(study, settings=tried, metrics=study.metrics[:1]), records)


SOKOBAN_TRANSFER = Study(
    name="sokoban-transfer",
    title="Sokoban: what value functions of a few boards know about others",
    source=_TABLE,
    about=(
        "A value function (a tower) learns ten boards, with hindsight, until it wins 90% of its episodes. Then 1, 2 or "
        "3 such towers are frozen, and an aggregator of their values learns on boards that are new every episode: a "
        "weighted sum, as in the authors' code, or one hidden layer, as the paper says, whose numbers are therefore "
        "beside both. All are tried, without learning, on the same boards that none has seen, beside a network with "
        "random weights and a tower as it is. Run i uses towers i, i + 1 and i + 2, so that neighbouring runs share "
        "some and the intervals of 2 and 3 towers are a little too narrow. The paper finds that every further tower "
        "helps, and that deeper networks transfer better."
    ),
    settings=_SETTINGS,
    metrics=(
        Metric(
            "win-rate", "unseen boards solved (%)", "mean", lambda record: 100 * record["evaluation_win_rate"], _TRIED
        ),
        Metric(
            "pre-trained",
            "pre-training that came to win 90%",
            "share",
            lambda record: float(record["stopped_by"] == "win_rate"),
            _TRAINED,
        ),
        Metric("pre-training", "median steps of pre-training", "median", lambda record: record["env_steps"], _TRAINED),
    ),
    budgets={
        "small": Budget(
            "Smaller than the paper's in everything: boards of 7×7 with 2 boxes and 40 steps, networks of 16 channels "
            "and 64 units, Adam with one update of 64 per 40 steps, up to 100,000 steps of pre-training and 12,800 of "
            "the aggregator; each run is tried on 200 boards.",
            10,
            {
                "steps": 100_000,
                "batch": 64,
                "domain": {"generator": {"height": 7, "width": 7, "num_boxes": 2}, "max_steps": 40},
                "values": {"conv_channels": 16, "dense": 64},
                "optimiser": {"name": "adam", "learning_rate": 2e-3, "eps": 1e-8},
                "learning": {"batch_size": 64, "steps_per_update": 40.0, "replay": {"capacity": 5000}},
            },
            only={name: {"steps": 12_800} for name in _LEARNING},
            evaluation=200,
        ),
        "paper": Budget(
            "Up to 2.3M steps of pre-training and of the aggregator: 100,000 for each of 23 workers. Each run is tried "
            "on 1,000 boards.",
            20,
            {"steps": 2_300_000},
            evaluation=1000,
        ),
    },
    figure=_figure,
    paper=_paper(),
    vary=by_board,
)
