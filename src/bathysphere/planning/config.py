"""Everything about the search that a user may set."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from bathysphere.errors import BathysphereError
from bathysphere.planning.graph.risk import find_bonus, find_risk_measure

_NUMBERS = (
    "risk_coef",
    "bonus_coef",
    "prior_coef",
    "model_risk",
    "final_risk_coef",
    "dead_end_value",
    "episode_penalty",
    "path_penalty",
)
MOST_PASSES = 10**9  # before a step; compiled code counts with them


@dataclass(frozen=True)
class PlannerSettings:
    """What every planner's config has; the configs of planners extend it."""

    values_of: ClassVar[Literal["states", "actions"]] = "states"  # what members estimate

    discount: float = 0.99
    """Factor on the value of the next state, in (0, 1]."""
    max_steps: int | None = None
    """Steps before an episode is cut off (truncated); the domain's own limit if not given."""

    def for_training(self, max_steps: int) -> Self:
        """Returns the config with which episodes of training are planned."""
        return replace(self, max_steps=max_steps)

    def __post_init__(self) -> None:
        if self.max_steps is not None and self.max_steps < 1:
            raise BathysphereError(f"search.max_steps is {self.max_steps}; expected at least 1 (or none).")
        if not 0.0 < self.discount <= 1.0:
            raise BathysphereError(f"search.discount is {self.discount}; expected a number in (0, 1].")


@dataclass(frozen=True)
class SearchConfig(PlannerSettings):
    """How an episode is planned step by step. The mathematics of every field is in docs/reference/planner.md."""

    passes: int = 10
    """Select-expand-back-up passes before every step."""
    risk: str = "mean_std"
    """Risk measure that ranks actions: mean_std, mean_variance, second_moment, exponential, vote, vote_once,
    or your own."""
    risk_coef: float = 0.0
    """Weight of uncertainty in the risk measure: > 0 seeks it, < 0 avoids it, 0 is risk-neutral. The paper's kappa:
    50 in Deep-sea, 3 in Toy Montezuma; in single-board Sokoban the paper says 9, the authors' code 3."""
    num_subsampled: int | None = None
    """Members drawn at the start of each episode to rank actions; all of them if not given. Backups and
    targets always use all."""
    bonus: str = "none"
    """Visit-count bonus added to a child's value: none, ucb1, ucb_v or moss."""
    bonus_coef: float = 1.0
    """Weight of the visit-count bonus."""
    prior_coef: float = 0.0
    """Weight of the values' policy while planning, at least 0: actions that it thinks likely are tried first, the less
    the more often they have been tried. The step itself is chosen without it. Above 0 it needs values with a policy."""
    model_risk: float = 0.0
    """What a model does not know (memory, relevance, ensemble) counts for so many standard deviations of its spread
    more to every member: > 0 seeks it, < 0 avoids it, besides what the risk measure does."""
    final_risk: str | None = None
    """Risk measure for the step itself, after planning; the same as `risk` if not given."""
    final_risk_coef: float | None = None
    """Weight of uncertainty for the step itself; the same as `risk_coef` if not given."""
    final_bonus: bool = True
    """Whether the visit-count bonus also counts for the step itself."""
    final_ties: Literal["highest", "random"] = "highest"
    """Equal scores for the step itself: the highest action number (the authors' code without voting) or a
    random one (the authors' code with voting)."""

    avoid_loops: bool = True
    """Never select a state twice in one pass, and never step to the state one is in."""
    dead_end_value: float | None = -1.0
    """Value of a node all of whose children are on the path; its own mean if None. In single-board Sokoban the paper
    says -2, the authors' code has -1."""
    episode_penalty: float = 0.0
    """Subtracted from a state's score for every step that started there (the paper's penalty_e)."""
    path_penalty: float = 0.0
    """Subtracted from a state's score for every time it is on the path being selected (the paper's
    penalty_p)."""
    transpositions: bool = True
    """Share statistics between equal states of one episode; off, every tree node is a state of its own."""
    merge_nodes: bool = False
    """Expand a state once for all: a pass walks on through states whose children the graph knows, to a leaf that is
    new. Off, as in the authors' code, each tree node that holds such a state ends a pass first. Needs `avoid_loops`."""
    prune: bool = False
    """States that the domain knows to be hopeless are worth 0 to every member, whatever the network says (domains that
    offer it)."""
    patience: float = 0.0
    """Share of an episode's steps that may be spent on thinking, in [0, 1). While the graph holds no success, a step
    that cannot be taken back at once is put off by one that can. Needs `merge_nodes`. Training episodes do without."""
    memory_limit_mb: int = 8192
    """Megabytes the arenas of all episodes together may take."""

    def for_training(self, max_steps: int) -> Self:
        """Returns the config for episodes of training: without waits, which would fill the replay with one state."""
        return replace(self, max_steps=max_steps, patience=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        find_risk_measure(self.risk)
        if self.final_risk is not None:
            find_risk_measure(self.final_risk)
        find_bonus(self.bonus)
        if not 1 <= self.passes <= MOST_PASSES:
            raise BathysphereError(f"search.passes is {self.passes}; expected 1 to {MOST_PASSES:,}.")
        if self.num_subsampled is not None and self.num_subsampled < 1:
            raise BathysphereError(f"search.num_subsampled is {self.num_subsampled}; expected at least 1 (or none).")
        if self.final_ties not in ("highest", "random"):
            raise BathysphereError(f"search.final_ties is {self.final_ties!r}; expected 'highest' or 'random'.")
        if self.memory_limit_mb < 1:
            raise BathysphereError(f"search.memory_limit_mb is {self.memory_limit_mb}; expected at least 1 megabyte.")
        for name in _NUMBERS:
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise BathysphereError(f"search.{name} is {number}; expected a finite number.")
        if self.prior_coef < 0.0:
            raise BathysphereError(f"search.prior_coef is {self.prior_coef}; expected at least 0, which is off.")
        if not 0.0 <= self.patience < 1.0:
            raise BathysphereError(f"search.patience is {self.patience}; expected a number in [0, 1).")
        if self.merge_nodes and not self.avoid_loops:
            raise BathysphereError("search.merge_nodes needs search.avoid_loops; otherwise a pass may never end.")
        if self.patience and not self.merge_nodes:
            raise BathysphereError(
                "search.patience needs search.merge_nodes; otherwise the passes of a step that waits only rebuild the "
                "tree of the step before."
            )
        if self.avoid_loops and not self.transpositions:
            raise BathysphereError(
                "search.avoid_loops recognises a state by the transposition table, which "
                "search.transpositions=False turns off. Turn off both or neither."
            )
