"""A study in two stages: `python -m tests.studies.tiny_stages OUT [OPTIONS]` runs it."""

import os
import sys

from bathysphere.cli import main
from bathysphere.studies import STUDIES
from bathysphere.studies.curves import COLUMNS, learning_curves
from bathysphere.studies.study import Budget, Metric, Setting, Study, Towers
from tests.studies.tiny import stop_in_between

GAMES = 6
SMALL = {
    "domain": {"generator": {"height": 6, "width": 6, "num_boxes": 1}, "num_boards": 2, "max_steps": 15},
    "values": {"conv_layers": 1, "conv_channels": 3, "dense": 4},
    "learning": {"min_episodes": 3, "steps_per_update": 10, "replay": {"capacity": 100}},
    "optimiser": {"name": "adam", "learning_rate": 1e-3, "eps": 1e-8},
    "stop": {"win_rate": None},
    "checkpoint": {"seconds": 0.05},
    "batch": 4,
}
BELOW = Setting("below", "below", "paper/sokoban-tower", SMALL)
BROKEN = Setting("below", "below", "paper/sokoban-tower", {**SMALL, "optimiser": {"name": "delta"}})
ABOVE = Setting("above", "above", "paper/sokoban-tower", SMALL, Towers("below", 1))


def make_study(*settings: Setting) -> Study:
    return Study(
        name="stages",
        title="A study in stages",
        source="nowhere",
        about="Small boards.",
        settings=settings,
        metrics=(
            Metric("won", "won", "mean", lambda r: r["evaluation_win_rate"], ("above",)),
            Metric("steps", "steps", "mean", lambda r: r["env_steps"], ("below",)),
        ),
        budgets={"small": Budget("Tiny.", 1, {"steps": 600}, evaluation=GAMES)},
        figure=learning_curves,
        curve=COLUMNS,
    )


STAGES = make_study(ABOVE, BELOW)

if __name__ == "__main__":
    STUDIES["stages"] = STAGES
    if "STOP_WITH" in os.environ:
        stop_in_between()
    sys.exit(main(["reproduce", "stages", "--out", *sys.argv[1:]]))
