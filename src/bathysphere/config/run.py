"""The whole of a run as plain data: frozen dataclasses, one home per fact."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from bathysphere.domains import DeepSeaConfig, DomainConfig
from bathysphere.errors import BathysphereError
from bathysphere.learning.config import LearningConfig
from bathysphere.planning import ExpectimaxConfig, PlannerSettings, SearchConfig
from bathysphere.storage.plain import check_values
from bathysphere.values.config import OptimiserConfig, ValuesConfig

MEMORY, NETWORK, ENSEMBLE, RELEVANCE = "memory", "network", "ensemble", "relevance"
LEARNT = (MEMORY, NETWORK, ENSEMBLE, RELEVANCE)  # models of a run that it learns while acting
PARTIAL = (MEMORY, RELEVANCE, ENSEMBLE)  # of them, those that know what they do not know


@dataclass(frozen=True)
class StopConfig:
    """When a run ends besides its number of steps; what is not given does not end it."""

    seconds: float | None = None
    """Seconds of training, by the clock, without those in which code is compiled."""
    on_first_win: bool = False
    """End with the first solved episode."""
    on_solved: bool = False
    """End when more than half of the latest 50 episodes are solved."""
    win_rate: float | None = None
    """End when the win rate over 1000 episodes reaches this; not before 1000 episodes."""
    mean_return: float | None = None
    """End when the mean return (sum of rewards, not discounted) of the latest 50 episodes reaches this; not before 50
    episodes. For worlds in which nothing counts as solved."""
    episodes: int | None = None
    """End after that many episodes."""

    def __post_init__(self) -> None:
        if self.seconds is not None and self.seconds <= 0:
            raise BathysphereError(f"stop.seconds is {self.seconds}; expected more than 0 (or none).")
        if self.win_rate is not None and not 0 < self.win_rate <= 1:
            raise BathysphereError(f"stop.win_rate is {self.win_rate}; expected a share in (0, 1] (or none).")
        if self.mean_return is not None and not math.isfinite(self.mean_return):
            raise BathysphereError(f"stop.mean_return is {self.mean_return}; expected a finite number (or none).")
        if self.episodes is not None and self.episodes < 1:
            raise BathysphereError(f"stop.episodes is {self.episodes}; expected at least 1 (or none).")


@dataclass(frozen=True)
class CheckpointConfig:
    """How often a run is saved."""

    seconds: float = 60.0
    """Wall-clock seconds between checkpoints; what is lost at most if the machine dies."""
    keep: int = 2
    """Checkpoints kept; older ones are deleted."""

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.keep < 1:
            raise BathysphereError(
                f"checkpoint.seconds is {self.seconds} and checkpoint.keep {self.keep}; "
                "expected more than 0 and at least 1."
            )


@dataclass(frozen=True)
class ScaleConfig:
    """Play in blocks: by other processes or machines, whose number does not change the run."""

    block: int | None = None
    """Episodes of a block, which is played by one worker with one version of the weights. None: no blocks; one process
    plays, and learns after every step."""
    distance: int = 4
    """Block b is played with the weights left by block b - distance. So many blocks can be played at the same time;
    more keep more workers busy, with older weights."""

    def __post_init__(self) -> None:
        if self.block is not None and self.block < 1:
            raise BathysphereError(f"scale.block is {self.block}; expected at least 1 (or none).")
        if self.distance < 1:
            raise BathysphereError(f"scale.distance is {self.distance}; expected at least 1.")


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run."""

    preset: str = "deep-sea"
    """Name of the preset this config began as."""
    seed: int = 0
    """Decides everything random. Same config, same seed, same kind of processor: same run."""
    steps: int = 1_000_000
    """Environment steps to train for."""
    batch: int = 32
    """Episodes played at once, in lock step. More is faster, and further from one-at-a-time learning."""
    workers: int = 1
    """Planners that share the batch and take turns, in runs of earlier versions. New runs have one; to use many cores,
    play in blocks (scale)."""
    log_every: int = 1000
    """Environment steps between two rows of the metrics; in the first 1000 steps at most 100."""
    device: str = "cpu"
    """Where networks run: cpu, cuda, mps or auto."""
    domain: DomainConfig = field(default_factory=DeepSeaConfig)
    """The world."""
    model: str | None = None
    """What planning believes happens: a learned model, by the name of a shipped one or its file; or one that is learnt
    while acting: memory (what has happened so far, and nothing else), relevance (a memory that believes it of all
    states that are alike in the bytes that matter), network, or ensemble (of networks, which know what they disagree
    about). None: the world's own rules. Steps that are made always follow the rules."""
    search: PlannerSettings = field(default_factory=SearchConfig)
    """How episodes are planned."""
    values: ValuesConfig = field(default_factory=ValuesConfig)
    """The ensemble of value functions."""
    towers: tuple[str, ...] = ()
    """Agents (names, files or run directories) whose values become the towers (values.num_towers); read once, when the
    run begins."""
    start_from: str | None = None
    """Agent (name, file or run directory) with whose weights the run begins; read once, when it does. None: random."""
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    """How targets change the ensemble."""
    learning: LearningConfig = field(default_factory=LearningConfig)
    """How finished episodes become updates."""
    stop: StopConfig = field(default_factory=StopConfig)
    """When the run ends early."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    """How often the run is saved."""
    scale: ScaleConfig = field(default_factory=ScaleConfig)
    """How play is divided among workers."""

    def __post_init__(self) -> None:
        check_values(self)
        if self.steps < 1:
            raise BathysphereError(f"steps is {self.steps}; expected at least 1.")
        if self.log_every < 1:
            raise BathysphereError(f"log_every is {self.log_every}; expected at least 1.")
        if not 0 <= self.seed < 2**63:
            raise BathysphereError(f"seed is {self.seed}; expected a number from 0 to 2^63 - 1.")
        if self.batch < 1:
            raise BathysphereError(f"batch is {self.batch}; expected at least 1.")
        if not 1 <= self.workers <= self.batch:
            raise BathysphereError(f"workers is {self.workers}; expected 1 to {self.batch} (the batch).")
        if self.workers > 1 and self.scale.block is not None:
            raise BathysphereError("workers and scale.block both divide the play; leave workers at 1.")
        if self.towers and len(self.towers) != self.values.num_towers:
            raise BathysphereError(
                f"towers names {len(self.towers)} runs, but values.num_towers is {self.values.num_towers}; "
                "name as many."
            )
        if self.start_from is not None and self.values.num_towers:
            raise BathysphereError("start_from and values.num_towers both say where weights come from; leave one out.")
        if getattr(self.search, "model_risk", 0.0) and not self.knows_limits:
            raise BathysphereError(
                "search.model_risk is about what a model does not know; it needs the model memory, relevance or "
                "ensemble, or network in a world with chance."
            )
        drawn = getattr(self.search, "num_subsampled", None)
        if drawn is not None and drawn > self.values.num_members:
            raise BathysphereError(
                f"search.num_subsampled is {drawn}, but values.num_members is {self.values.num_members}; "
                "only members that exist can be drawn."
            )

    @property
    def knows_limits(self) -> bool:
        """Whether the model knows what it does not know. With chance, which expectimax plans, a network does too."""
        return self.model in PARTIAL or (self.model == NETWORK and isinstance(self.search, ExpectimaxConfig))
