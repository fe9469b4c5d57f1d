"""Everything about best-first search that a user may set."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bathysphere.errors import BathysphereError
from bathysphere.planning.best_first.orders import find_order
from bathysphere.planning.config import PlannerSettings
from bathysphere.planning.graph.risk import find_risk_measure


@dataclass(frozen=True)
class BestFirstConfig(PlannerSettings):
    """How a whole plan is searched for. docs/reference/planners.md has the mathematics."""

    order: str = "steps"
    """Which state is expanded next: steps (weighted A*, steps made plus weight times steps to go), value (weighted A*
    in value), levin, phs (both need values with a policy), or your own."""
    weight: float = 2.0
    """Of what is still to come against what is behind, in orders steps and value: 0 is breadth-first search, 1 is A*,
    more is greedier. At least 0."""
    risk: str = "mean_std"
    """Risk measure that makes one value of the members': mean_std, mean_variance, second_moment, exponential, or your
    own. Those that compare actions, such as vote, cannot order states."""
    risk_coef: float = 0.0
    """Weight of uncertainty in the risk measure: > 0 seeks it, < 0 avoids it, 0 is risk-neutral."""
    model_risk: float = 0.0
    """What a model does not know (memory, relevance, ensemble) counts for so many standard deviations of its spread
    more to every member: > 0 seeks it, < 0 avoids it, besides what the risk measure does."""
    goal_reward: float | None = None
    """What success pays, in the order steps; the domain's own figure if not given, or 1 without one."""
    reopen: bool = False
    """Expand a state once more when a better way to it is found. Needed for shortest plans; costs no call of the model
    or the network."""
    prune: bool = True
    """Leave out states that the domain knows to be hopeless (domains that offer it)."""
    width: int = 1
    """States expanded at once in each search: more keeps the network busy when few searches run, and wastes some."""
    max_expansions: int = 1000
    """Expansions after which a search ends with the best plan so far."""
    max_states: int | None = None
    """Distinct states after which a search ends; no limit if not given."""
    max_seconds: float | None = None
    """Seconds after which a search ends; no limit if not given. What is found then depends on the machine."""
    memory_limit_mb: int = 4096
    """Megabytes that all searches together may take; the largest one ends when they do not suffice."""

    def __post_init__(self) -> None:
        super().__post_init__()
        find_order(self.order)
        if find_risk_measure(self.risk).kind != "separable":
            raise BathysphereError(
                f"search.risk is {self.risk}, which compares the actions of one state; an open list is ordered by a "
                "measure of one state: mean_std, mean_variance, second_moment, exponential or your own."
            )
        for name in ("weight", "risk_coef", "model_risk"):
            if not math.isfinite(getattr(self, name)):
                raise BathysphereError(f"search.{name} is {getattr(self, name)}; expected a finite number.")
        if self.weight < 0:
            raise BathysphereError(
                f"search.weight is {self.weight}; expected at least 0, which is breadth-first search."
            )
        if self.goal_reward is not None and not 0 < self.goal_reward < math.inf:
            raise BathysphereError(f"search.goal_reward is {self.goal_reward}; expected more than 0 (or none).")
        if self.discount == 1.0 and self.order in ("steps", "phs"):
            raise BathysphereError(
                f"search.order {self.order} reads steps to go off a value that falls with them, so search.discount "
                "must be below 1. Use search.order value, or another discount."
            )
        for name in ("width", "max_expansions", "max_states", "memory_limit_mb"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise BathysphereError(f"search.{name} is {number}; expected at least 1.")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise BathysphereError(f"search.max_seconds is {self.max_seconds}; expected more than 0 (or none).")
