"""A world model in one file: weights in half precision, what they predict, and a card. Reading it runs no code.

It is a safetensors file whose metadata hold one JSON object, the header, with a fingerprint of the weights.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bathysphere.domains import Sokoban
from bathysphere.domains.base import Domain
from bathysphere.domains.sokoban.rules import NUM_CODES
from bathysphere.errors import BathysphereError
from bathysphere.models.config import ModelConfig
from bathysphere.models.shipped import shipped
from bathysphere.runs.agent_file import SUFFIX, halved, weights_fingerprint
from bathysphere.runs.files import write_file
from bathysphere.runs.serialise import read_as
from bathysphere.values.batch import Arrays

FORMAT = 1
_KEY, _CARD = "bathysphere.model", "bathysphere.model.card"


@dataclass(frozen=True)
class World:
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
    """Names of the moves, in order."""

    @classmethod
    def of(cls, domain: Domain) -> World:
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
    world: World
    weights: str
    """Fingerprint of the weights."""


@dataclass(frozen=True)
class ModelFile:
    """What is in a file."""

    config: ModelConfig
    world: World
    card: dict[str, Any]  # how it was trained, and what was measured of it
    weights: Arrays  # float32, whatever their precision in the file

    def check_fits(self, domain: Domain, source: str) -> None:
        """Refuses a domain whose boards or moves are not those the model was trained on."""
        mine, theirs = self.world, World.of(domain)
        if (mine.height, mine.width) != (theirs.height, theirs.width):
            raise BathysphereError(
                f"The model {source} predicts boards of {mine.height}x{mine.width} cells, but this world's have "
                f"{theirs.height}x{theirs.width}. Train one for them: bathysphere model train "
                f"--height {theirs.height} --width {theirs.width}"
            )
        if mine.actions != theirs.actions or mine.num_codes != theirs.num_codes or mine.name != theirs.name:
            raise BathysphereError(
                f"The model {source} predicts {mine.num_codes} cell codes and the moves {', '.join(mine.actions)} of "
                f"{mine.name}; this world has {theirs.num_codes} and {', '.join(theirs.actions)} of {theirs.name}. "
                "Train a new one: bathysphere model train"
            )


def write_model(path: Path, file: ModelFile) -> None:
    """Writes a model file, atomically, with weights in half precision."""
    from safetensors.numpy import save

    if path.suffix != SUFFIX:
        raise BathysphereError(f"A model file is called something{SUFFIX}; got {path}.")
    weights = halved(file.weights)
    header = Header(FORMAT, version("bathysphere"), file.config, file.world, weights_fingerprint(weights))
    metadata = {_KEY: json.dumps(asdict(header)), _CARD: json.dumps(file.card)}
    write_file(path, save(weights, metadata=metadata))


def find_model(source: str) -> Path:
    """Returns the file `source`, or if there is none the shipped model of that name."""
    path = Path(source)
    return path if path.exists() else shipped().get(source, path)


def read_model(source: str | Path) -> ModelFile:
    """Reads and checks a model: the name of a shipped one, or a file."""
    path = find_model(str(source))
    if not path.is_file():
        raise BathysphereError(
            f"There is no model {source}. Give a model file, or the name of a shipped model: {', '.join(shipped())}."
        )
    (header, card), arrays = open_file(path, (_KEY, _CARD), "a world model")
    if header.get("format") != FORMAT:
        raise BathysphereError(
            f"{path} has format {header.get('format')} (bathysphere {header.get('bathysphere')}); this version reads "
            f"format {FORMAT}. Use the version that wrote it, or train a new model: bathysphere model train"
        )
    if header.get("weights") != weights_fingerprint(arrays):
        raise BathysphereError(f"{path} is damaged: its weights are not what was saved (SHA-256 differs).")
    try:
        about = read_as(Header, header)
    except BathysphereError as error:
        raise BathysphereError(f"{path} cannot be used. {error}") from error
    weights: Arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    return ModelFile(about.config, about.world, card, weights)


def open_file(path: Path, keys: tuple[str, ...], what: str) -> tuple[list[dict[str, Any]], Arrays]:
    """Reads a safetensors file without trusting it.

    Args:
      path: the file.
      keys: entries of its metadata that hold a JSON object each.
      what: the file should be, for messages.

    Returns:
      Those objects, and the arrays.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        objects = [json.loads(metadata[key]) for key in keys if key in metadata]
    except OSError as error:
        raise BathysphereError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (SafetensorError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise BathysphereError(f"{path} is not {what}, or it is damaged: {error}.") from error
    if len(objects) < len(keys) or not all(isinstance(entry, dict) for entry in objects):
        raise BathysphereError(f"{path} is a safetensors file, but not {what}.")
    return objects, arrays
