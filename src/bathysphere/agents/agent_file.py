"""An agent in one file: weights in half precision, the whole config and a card. Reading it runs no code.

It is a safetensors file. Its metadata hold one JSON object, the header, with a fingerprint (SHA-256) of the weights
and one of itself. What only training needs (optimiser, replay, half-played episodes) is left out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from bathysphere.agents.card import Card
from bathysphere.config.convert import to_dict
from bathysphere.config.old_names import renewed
from bathysphere.config.run import RunConfig
from bathysphere.domains.base import Categories, Features, ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.storage.plain import read_as
from bathysphere.storage.state import Arrays
from bathysphere.storage.tensors import (
    SUFFIX,
    check_format,
    check_weights,
    fingerprint,
    header_fingerprint,
    in_full,
    read_arrays,
    write_arrays,
)

FORMAT = 1
_KEY = "bathysphere.agent"


@dataclass(frozen=True)
class Header:
    """What a file says about its weights."""

    format: int
    bathysphere: str
    """Version that wrote it."""
    config: RunConfig
    shape: tuple[int, ...]
    """Of one observation."""
    num_categories: int | None
    """Of an observation's cells; None if they are plain numbers."""
    card: Card
    weights: str
    """Fingerprint of the weights."""
    sha256: str
    """Fingerprint of all the rest."""
    blank: int | None = None
    """Category of cells that may surround a board without changing it; None if there is none."""


class AgentFile(NamedTuple):
    """What is in a file."""

    config: RunConfig
    observation: ObservationSpec
    card: Card
    weights: Arrays  # float32, whatever their precision in the file
    fingerprint: str  # of the weights as they are in the file


def write(path: Path, config: RunConfig, observation: ObservationSpec, card: Card, weights: Arrays) -> None:
    """Writes an agent file, atomically; `weights` are in half precision, as `halved` returns them."""
    if path.suffix != SUFFIX:
        raise BathysphereError(f"An agent file is called something{SUFFIX}; got {path}.")
    header: dict[str, Any] = {
        "format": FORMAT,
        "bathysphere": version("bathysphere"),
        "config": to_dict(config),
        "shape": [observation.size] if isinstance(observation, Features) else list(observation.shape),
        "num_categories": None if isinstance(observation, Features) else observation.num_categories,
        "blank": None if isinstance(observation, Features) else observation.blank,
        "card": asdict(card),
        "weights": fingerprint(weights),
    }
    header["sha256"] = header_fingerprint(header)
    write_arrays(path, weights, {_KEY: header})


def read(path: Path) -> AgentFile:
    """Reads and checks an agent file."""
    (plain,), arrays = read_arrays(path, (_KEY,), "an agent")
    check_format(path, plain, FORMAT)
    if plain.get("sha256") != header_fingerprint(plain):
        raise BathysphereError(f"{path} is damaged: its header is not what was saved (SHA-256 differs).")
    check_weights(path, plain, arrays)
    try:
        header = read_as(Header, {**plain, "config": renewed(plain.get("config"))})
    except BathysphereError as error:
        raise BathysphereError(
            f"{path} cannot be used. {error} It was written by bathysphere {plain.get('bathysphere')}."
        ) from error
    if not header.shape or min(header.shape) < 1 or (header.num_categories or 1) < 1:
        raise BathysphereError(f"{path} cannot be used: no world has observations of shape {list(header.shape)}.")
    if header.num_categories is None:
        observation: ObservationSpec = Features(header.shape[0])
    else:
        observation = Categories(header.shape, header.num_categories, header.blank)
    return AgentFile(header.config, observation, header.card, in_full(arrays), header.weights)
