"""What a learned world model is made of and how it is trained, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bathysphere.domains.sokoban.generator import GeneratorConfig
from bathysphere.errors import BathysphereError


@dataclass(frozen=True)
class ModelConfig:
    """The network that predicts the next board, and whether a step solves it."""

    kind: Literal["local", "paper"] = "local"
    """local: one look at the board for all actions, with a filter just wide enough for a push; paper: the authors' two
    filters of 64 channels, once for every action."""
    cells: Literal["softmax", "sigmoid"] = "softmax"
    """How a cell's code is read: the likeliest (softmax), or seven independent sigmoids, each rounded (the authors'
    code), so that a cell may be nothing or two things at once."""
    channels: int = 16
    """Channels of every filter; local has as many again for each further action. The authors' network has 64."""

    def __post_init__(self) -> None:
        for name, allowed in (("kind", ("local", "paper")), ("cells", ("softmax", "sigmoid"))):
            if getattr(self, name) not in allowed:
                raise BathysphereError(f"{name} is {getattr(self, name)!r}; expected {' or '.join(allowed)}.")
        if self.channels < 1:
            raise BathysphereError(f"channels is {self.channels}; expected at least 1.")


@dataclass(frozen=True)
class DataConfig:
    """Random episodes: uniform actions until the board is solved or after `max_steps`."""

    height: int = 10
    """Rows of the boards, border walls included."""
    width: int = 10
    """Columns of the boards, border walls included."""
    max_boxes: int = 4
    """Every board has 1 to this many boxes, each number as likely as the others."""
    boards: int = 4000
    """Boards to learn from."""
    episodes: int = 6
    """Random episodes on each board. The authors' code has 390,000 boards with one episode each."""
    max_steps: int = 40
    """Most steps of an episode."""
    solved_copies: int = 100
    """Extra copies of every transition that solves its board; they are rare."""
    held_out: int = 200
    """Further boards, with as many episodes each, that only reports see."""
    seed: int = 0
    """Decides boards and actions, and later the initial weights and the order of the data."""

    def __post_init__(self) -> None:
        for name, least in (
            ("max_boxes", 1),
            ("boards", 1),
            ("episodes", 1),
            ("max_steps", 1),
            ("solved_copies", 0),
            ("held_out", 1),
            ("seed", 0),
        ):
            if getattr(self, name) < least:
                raise BathysphereError(f"{name} is {getattr(self, name)}; expected at least {least}.")
        self.generator(self.max_boxes)  # says if they do not fit

    def generator(self, num_boxes: int) -> GeneratorConfig:
        """Returns how boards with that many boxes are made."""
        return GeneratorConfig(height=self.height, width=self.width, num_boxes=num_boxes)


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that decides how a model is trained."""

    model: ModelConfig = field(default_factory=ModelConfig)
    """The network."""
    data: DataConfig = field(default_factory=DataConfig)
    """What it learns from."""
    batch_size: int = 128
    """Transitions per update."""
    learning_rate: float = 5e-3
    """Of Adam, at the start."""
    changed_weight: float = 3.0
    """Weight, in the loss, of cells that the step changes, at most three of a hundred; the authors' is 1."""
    schedule: Literal["linear", "epochs"] = "linear"
    """How the learning rate falls: to nothing at the last update (linear), or with every pass over the data as
    rate / (1 + 0.1 * passes) (epochs, the authors')."""
    updates: int = 15_000
    """Updates to make."""
    seconds: float | None = None
    """Stop earlier, after that much training."""
    frames_right: float | None = None
    """Stop earlier, when that share of whole boards is right in a report."""
    report_every: int = 1_000
    """Updates between two reports on held-out boards."""

    def __post_init__(self) -> None:
        for name in ("batch_size", "updates", "report_every"):
            if getattr(self, name) < 1:
                raise BathysphereError(f"{name} is {getattr(self, name)}; expected at least 1.")
        for name in ("learning_rate", "changed_weight"):
            if not getattr(self, name) > 0:
                raise BathysphereError(f"{name} is {getattr(self, name)}; expected more than 0.")
        if self.schedule not in ("linear", "epochs"):
            raise BathysphereError(f"schedule is {self.schedule!r}; expected linear or epochs.")
        if self.seconds is not None and self.seconds <= 0:
            raise BathysphereError(f"seconds is {self.seconds}; expected more than 0 (or none).")
        if self.frames_right is not None and not 0 < self.frames_right <= 1:
            raise BathysphereError(f"frames_right is {self.frames_right}; expected a share in (0, 1] (or none).")


# What may change when training is resumed; all else decides the weights.
# With more updates a linear schedule is stretched, so the learning rate rises again.
FREE = ("updates", "seconds", "frames_right", "report_every")

# Fields of version 0.1, and what they are called now.
OLD_NAMES = {"data.games": "data.episodes", "data.moves": "data.max_steps"}

RECIPES: dict[str, TrainingConfig] = {
    "local": TrainingConfig(),
    # The authors stop after three passes over 390,000 episodes, about a million updates.
    "paper": TrainingConfig(
        model=ModelConfig(kind="paper", cells="sigmoid", channels=64),
        batch_size=50,
        learning_rate=5e-5,
        changed_weight=1.0,
        schedule="epochs",
        updates=1_000_000,
        report_every=10_000,
    ),
}
