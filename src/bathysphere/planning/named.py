"""Planners by the names people use, and how an agent plans with another one than in its training."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from bathysphere.errors import BathysphereError, did_you_mean
from bathysphere.planning.best_first import BestFirstConfig, ReplanConfig
from bathysphere.planning.config import PlannerSettings, SearchConfig
from bathysphere.planning.expectimax import ExpectimaxConfig
from bathysphere.planning.no_planner import NoPlannerConfig
from bathysphere.storage.plain import to_plain

_NAMED: dict[str, PlannerSettings] = {
    "mcts": SearchConfig(),
    "best-first": BestFirstConfig(),
    "levin": BestFirstConfig(order="levin"),
    "phs": BestFirstConfig(order="phs"),
    "replan": ReplanConfig(),
    "none": NoPlannerConfig(),
    "expectimax": ExpectimaxConfig(),
}


def named_planner(name: str) -> PlannerSettings:
    """Returns the settings of the planner called `name`, at their defaults."""
    if name not in _NAMED:
        raise BathysphereError(
            f"There is no planner {name!r}; choose one of {', '.join(_NAMED)}.{did_you_mean(name, _NAMED)}"
        )
    return _NAMED[name]


def planner_name(config: PlannerSettings) -> str:
    """Returns the name of the planner that has these settings."""
    if type(config) is BestFirstConfig and config.order in _NAMED:
        return config.order
    name: str = to_plain(config).get("name", "mcts")
    return name


def settings_of(config: PlannerSettings) -> Collection[str]:
    """Returns the names of what can be set about a planner."""
    names = [field.name for field in fields(config)]
    if planner_name(config) in ("levin", "phs"):  # the name is the order, and that order knows no weight
        return [name for name in names if name not in ("order", "weight")]
    return names


def changed_planner(trained: PlannerSettings, name: str | None, changes: Mapping[str, Any]) -> PlannerSettings:
    """Returns how an agent plans if some of it is to be different from its training.

    Args:
      trained: how it planned in training.
      name: of the planner; None for the trained one. Another one keeps the discount and the limit of steps, for these
        belong to the values, and has its own defaults otherwise.
      changes: what else is to be different, by name.
    """
    config = trained
    if name is not None and name != planner_name(trained):
        config = replace(named_planner(name), discount=trained.discount, max_steps=trained.max_steps)
    known = settings_of(config)
    for change in changes:
        if change not in known:
            raise BathysphereError(
                f"The planner {planner_name(config)} has no setting {change!r}; it has {', '.join(known)}."
                f"{did_you_mean(change, known)}"
            )
    return replace(config, **changes)
