"""A world model in one file: weights in half precision, what they predict, and a card. Reading it runs no code.

It is a safetensors file whose metadata hold one JSON object, the header, with a fingerprint of the weights.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bathysphere.domains import Sokoban
from bathysphere.domains.base import Domain
from bathysphere.domains.sokoban.rules import NUM_CODES
from bathysphere.errors import BathysphereError
from bathysphere.models.config import ModelConfig
from bathysphere.storage.plain import read_as
from bathysphere.storage.state import Arrays
from bathysphere.storage.tensors import (
    SUFFIX,
    check_format,
    check_weights,
    files_in,
    fingerprint,
    halved,
    in_full,
    read_arrays,
    write_arrays,
)

FORMAT = 1
_KEY, _CARD = "bathysphere.model", "bathysphere.model.card"


@dataclass(frozen=True)
class BoardSpec:
    """What a model predicts."""

    name: str
    """Of the domain."""
    height: int
    """Rows of a board."""
    width: int
    """Columns of a board."""
    num_codes: int
    """Codes that a cell can have."""
    actions: tuple[str, ...]
    """Names of the actions, in order."""

    @classmethod
    def of(cls, domain: Domain) -> BoardSpec:
        """Returns what a model of `domain` has to predict; only Sokoban can be learned."""
        if not isinstance(domain, Sokoban):
            raise BathysphereError(
                f"Learned models predict Sokoban boards, and this world is {domain.name}. Leave out the model."
            )
        rewards = domain.config.rewards
        if rewards.box_on_target or rewards.box_off_target:
            raise BathysphereError(
                "A learned model predicts the final reward only, and this world also pays for single boxes "
                f"(box_on_target {rewards.box_on_target}, box_off_target {rewards.box_off_target}). Set both to 0, or "
                "leave out the model."
            )
        return cls(domain.name, *domain.shape, NUM_CODES, domain.action_names)


@dataclass(frozen=True)
class Header:
    """What a file says about its weights, besides the card."""

    format: int
    bathysphere: str
    """Version that wrote it."""
    config: ModelConfig
    world: BoardSpec
    weights: str
    """Fingerprint of the weights."""


@dataclass(frozen=True)
class ModelFile:
    """What is in a file."""

    config: ModelConfig
    world: BoardSpec
    card: dict[str, Any]  # how it was trained, and what was measured of it
    weights: Arrays  # float32, whatever their precision in the file

    def check_fits(self, domain: Domain, source: str) -> None:
        """Refuses a domain whose boards or actions are not those the model was trained on."""
        mine, theirs = self.world, BoardSpec.of(domain)
        if (mine.height, mine.width) != (theirs.height, theirs.width):
            raise BathysphereError(
                f"The model {source} predicts boards of {mine.height}x{mine.width} cells, but this world's have "
                f"{theirs.height}x{theirs.width}. Train one for them: bathysphere model train "
                f"--height {theirs.height} --width {theirs.width}"
            )
        if mine.actions != theirs.actions or mine.num_codes != theirs.num_codes or mine.name != theirs.name:
            raise BathysphereError(
                f"The model {source} predicts {mine.num_codes} cell codes and the actions {', '.join(mine.actions)} of "
                f"{mine.name}; this world has {theirs.num_codes} and {', '.join(theirs.actions)} of {theirs.name}. "
                "Train a new one: bathysphere model train"
            )


def write_model(path: Path, file: ModelFile) -> None:
    """Writes a model file, atomically, with weights in half precision."""
    if path.suffix != SUFFIX:
        raise BathysphereError(f"A model file is called something{SUFFIX}; got {path}.")
    weights = halved(file.weights)
    header = Header(FORMAT, version("bathysphere"), file.config, file.world, fingerprint(weights))
    write_arrays(path, weights, {_KEY: asdict(header), _CARD: file.card})


def shipped_models() -> dict[str, Path]:
    """Returns the files of the models that come with the package, by name."""
    return files_in(Path(__file__).parent)


def find_model(source: str) -> Path:
    """Returns the file `source`, or if there is none the shipped model of that name."""
    path = Path(source)
    return path if path.is_file() else shipped_models().get(source, path)


def read_model(source: str | Path) -> ModelFile:
    """Reads and checks a model: the name of a shipped one, or a file."""
    path = find_model(str(source))
    if not path.is_file():
        raise BathysphereError(
            f"There is no model {source}. Give a model file, or the name of a shipped model: "
            f"{', '.join(shipped_models())}."
        )
    (header, card), arrays = read_arrays(path, (_KEY, _CARD), "a world model")
    check_format(path, header, FORMAT)
    check_weights(path, header, arrays)
    try:
        about = read_as(Header, header)
    except BathysphereError as error:
        raise BathysphereError(f"{path} cannot be used. {error}") from error
    return ModelFile(about.config, about.world, card, in_full(arrays))
