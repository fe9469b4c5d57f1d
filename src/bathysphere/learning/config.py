"""How finished games become updates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bathysphere.errors import BathysphereError
from bathysphere.learning.masks import MaskConfig
from bathysphere.learning.replay import ReplayConfig
from bathysphere.learning.targets import TargetKind


@dataclass(frozen=True)
class LearningConfig:
    """The learner: what it learns from, and how often."""

    max_steps: int | None = None
    """Games of training are cut off after this many moves, if those of the trained agent are not cut off before. A game
    that is lost early teaches no more by being played on, and its moves are better spent on the next one."""
    steady_values: bool = False
    """Plan each game with the values of its beginning, as the authors' workers do. Otherwise all games are planned with
    the newest, which is faster: one call of the network serves them all."""
    target: TargetKind = "bootstrap"
    """Value a state should have had: the planner's at the end of the game, one for all members (bootstrap,
    the paper's), at least the return of a solved game (bootstrap_best), half of either (mixed), each member's own
    (bootstrap_members), or what really followed (factual...)."""
    hindsight: float = 0.0
    """Probability that an unsolved game is relabelled towards what it did reach (domains that offer it)."""
    hindsight_as: Literal["unsolved", "solved"] = "unsolved"
    """Class in which replay keeps relabelled games: as they ended (the authors' code), or as what they are now."""
    symmetries: bool = False
    """Replace every state that is learnt from by one of equal value (domains that offer it)."""
    batch_size: int = 32
    """Entries per update, solved and unsolved together."""
    steps_per_update: float = 10.0
    """Real steps of finished games per update; updates that fell due before `min_games` are caught up."""
    min_games: int = 100
    """No update before more games than this are finished."""
    mask: MaskConfig = field(default_factory=MaskConfig)
    """How training data are shared out among the members."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """What is kept and how it is drawn."""

    def __post_init__(self) -> None:
        if self.max_steps is not None and self.max_steps < 1:
            raise BathysphereError(f"learning.max_steps is {self.max_steps}; expected at least 1 (or none).")
        if self.batch_size < 1:
            raise BathysphereError(f"learning.batch_size is {self.batch_size}; expected at least 1.")
        if self.steps_per_update <= 0:
            raise BathysphereError(f"learning.steps_per_update is {self.steps_per_update}; expected more than 0.")
        if not 0 <= self.hindsight <= 1:
            raise BathysphereError(f"learning.hindsight is {self.hindsight}; expected a probability.")
