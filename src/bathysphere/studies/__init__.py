"""Studies: the paper's tables and figures, run again and put beside the paper's own numbers."""

from __future__ import annotations

from bathysphere.errors import BathysphereError, did_you_mean
from bathysphere.studies import (
    deep_sea,
    sokoban_learned_model,
    sokoban_multi,
    sokoban_single,
    sokoban_transfer,
    toy_montezuma,
)
from bathysphere.studies.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        deep_sea.DEEP_SEA,
        deep_sea.MASKS,
        deep_sea.ENSEMBLE_SIZE,
        deep_sea.TARGETS,
        toy_montezuma.TOY_MONTEZUMA,
        toy_montezuma.MASKS,
        sokoban_single.SOKOBAN_SINGLE,
        sokoban_multi.SOKOBAN_MULTI,
        sokoban_learned_model.SOKOBAN_LEARNED_MODEL,
        sokoban_multi.ENSEMBLE_SIZE,
        sokoban_multi.TARGETS,
        sokoban_multi.PASSES,
        sokoban_multi.STEP_LIMIT,
        sokoban_transfer.SOKOBAN_TRANSFER,
    )
}


def find_study(name: str) -> Study:
    """Returns the study called `name`."""
    if name not in STUDIES:
        hint = did_you_mean(name, STUDIES)
        raise BathysphereError(f"There is no study {name!r}; choose one of {', '.join(STUDIES)}.{hint}")
    return STUDIES[name]
