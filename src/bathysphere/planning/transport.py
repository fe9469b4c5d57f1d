"""What travels between processes: parts of a run on the way there, episodes and errors on the way back."""

from __future__ import annotations

import importlib
import pickle
import traceback
from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np

from bathysphere.errors import BathysphereError
from bathysphere.planning.config import PlannerSettings
from bathysphere.planning.episode import Episode
from bathysphere.planning.graph.risk import modules_of_measures

_MEASURES = ("risk", "final_risk")  # fields of a planner's config that name risk measures


def pickled(things: Any, dumps: Callable[[Any], bytes] | None = None) -> bytes:
    """Returns `things` in the form in which they travel to another process; `dumps` pickles them in another way."""
    try:
        return pickle.dumps(things, pickle.HIGHEST_PROTOCOL) if dumps is None else dumps(things)
    except Exception as error:  # whatever a user's own class raises
        raise BathysphereError(
            f"The domain, its values or the model cannot be sent to another process: {error}. "
            "Leave out the workers, so that a single process plays."
        ) from error


def packed(config: PlannerSettings, things: Any, dumps: Callable[[Any], bytes] | None = None) -> bytes:
    """Returns `things` pickled, with the modules that must be imported before: they register what `config` names."""
    measures = [name for field in _MEASURES if (name := getattr(config, field, None)) is not None]
    return pickled((modules_of_measures(measures), pickled(things, dumps)))


def unpacked(packed: bytes) -> Any:
    """Returns what `packed` was given, in another process."""
    modules, content = pickle.loads(packed)
    for module in modules:
        importlib.import_module(module)
    return pickle.loads(content)


Folded = dict[str, Any]  # by field of Episode: a list, or of arrays one array and where each of them ends


def fold(episodes: list[Episode], *, all_members: bool = True) -> Folded:
    """Prepares episodes for a journey, their arrays laid end to end: a few long ones travel faster than many short.

    Args:
      episodes: of one planner.
      all_members: whether every member's search values travel; otherwise only their mean, which is most of the weight.
    """
    columns: Folded = {}
    for field in fields(Episode):
        column = [getattr(episode, field.name) for episode in episodes]
        if column and all(isinstance(part, np.ndarray) for part in column):
            columns[field.name] = np.concatenate(column), np.cumsum([len(part) for part in column])
        else:
            columns[field.name] = column
    if episodes and not all_members:
        values, ends = columns["search_values"]
        columns["search_values"] = values.mean(axis=1, keepdims=True), ends
    return columns


def unfold(folded: Folded) -> list[Episode]:
    """Returns the episodes that `fold` was given, each array a part of one that all of them share."""
    columns = [_parts(folded[field.name]) for field in fields(Episode)]
    return [Episode(*values) for values in zip(*columns, strict=True)]


def _parts(column: Any) -> list[Any]:
    if isinstance(column, list):
        return column
    array, ends = column
    return [array[low:high] for low, high in pairwise([0, *ends.tolist()])]


def portable(error: Exception) -> Exception:
    """Returns an exception that survives the journey to another process and still says where it arose."""
    told = "".join(traceback.format_exception(error))
    if not isinstance(error, BathysphereError):
        error.add_note(f"In a planning process:\n{told}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # a user's own class that cannot be sent
        return RuntimeError(told)
    return error
