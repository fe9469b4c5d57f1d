"""How finished episodes become updates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bathysphere.errors import BathysphereError
from bathysphere.learning.masks import MaskConfig
from bathysphere.learning.replay import ReplayConfig
from bathysphere.learning.targets import TargetKind

LEAST_STEPS = 0.001  # per update
MOST_STEPS = 10**6  # that are summed for a target


@dataclass(frozen=True)
class LearningConfig:
    """The learner: what it learns from, and how often."""

    max_steps: int | None = None
    """Episodes of training are cut off after this many steps, if the search does not cut them off before. An episode
    that is lost early teaches no more by being played on, and its steps are better spent on the next one."""
    steady_values: bool = False
    """Plan each episode with the values of its beginning, as the authors' workers do. Otherwise all are planned with
    the newest, which is faster: one call of the network serves them all."""
    target: TargetKind = "bootstrap"
    """Value a state should have had: the planner's at the end of the episode, one for all members (bootstrap,
    the paper's), at least the return of a solved episode (bootstrap_best), half of either (mixed), each member's own
    (bootstrap_members), what the best continuation in the search's graph is worth (graph), each member's own look one
    step ahead by the model when the batch is drawn (lookahead), or what really followed (factual...)."""
    num_steps: int = 1
    """Planner none: rewards that are summed before a member's own values of actions take over (n-step targets);
    `target` is for planners."""
    renew_every: int = 16
    """Planner none, and target lookahead: updates between two looks at the newest values for targets."""
    graph_states: int = 0
    """Further states of each episode's search to learn from, at most; not more than an episode may have steps."""
    hindsight: float = 0.0
    """Probability that an unsolved episode is relabelled towards what it did reach (domains that offer it)."""
    hindsight_as: Literal["unsolved", "solved"] = "unsolved"
    """Class in which replay keeps relabelled episodes: as they ended (the authors' code), or as what they are now."""
    symmetries: bool = False
    """Replace every state that is learnt from by one of equal value (domains that offer it)."""
    batch_size: int = 32
    """Entries per update, solved and unsolved together."""
    steps_per_update: float = 10.0
    """Steps of finished episodes per update; updates that fell due before `min_episodes` are caught up."""
    min_episodes: int = 100
    """No update before more episodes than this are finished."""
    mask: MaskConfig = field(default_factory=MaskConfig)
    """How training data are shared out among the members."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """What is kept and how it is drawn."""

    def __post_init__(self) -> None:
        if self.max_steps is not None and self.max_steps < 1:
            raise BathysphereError(f"learning.max_steps is {self.max_steps}; expected at least 1 (or none).")
        if not 1 <= self.num_steps <= MOST_STEPS or self.renew_every < 1:
            raise BathysphereError(
                f"learning.num_steps is {self.num_steps} and learning.renew_every {self.renew_every}; expected at "
                f"least 1, and at most {MOST_STEPS:,} steps."
            )
        if self.graph_states < 0:
            raise BathysphereError(f"learning.graph_states is {self.graph_states}; expected at least 0.")
        if self.batch_size < 1:
            raise BathysphereError(f"learning.batch_size is {self.batch_size}; expected at least 1.")
        if not self.steps_per_update >= LEAST_STEPS:
            raise BathysphereError(
                f"learning.steps_per_update is {self.steps_per_update}; expected at least {LEAST_STEPS}, which is a "
                "thousand updates a step."
            )
        if not 0 <= self.hindsight <= 1:
            raise BathysphereError(f"learning.hindsight is {self.hindsight}; expected a probability.")
