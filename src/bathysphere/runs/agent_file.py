"""An agent in one file: weights in half precision, the whole config and a card. Reading it runs no code.

It is a safetensors file. Its metadata hold one JSON object, the header, with a fingerprint (SHA-256) of the weights
and one of itself. What only training needs (optimiser, replay, half-played games) is left out.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bathysphere.domains.base import Categories, Features, ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.runs.card import Card
from bathysphere.runs.config import RunConfig
from bathysphere.runs.files import write_file
from bathysphere.runs.serialise import read_as, to_dict
from bathysphere.values.batch import Arrays

FORMAT = 1
SUFFIX = ".safetensors"
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


class AgentFile(NamedTuple):
    """What is in a file."""

    config: RunConfig
    observation: ObservationSpec
    card: Card
    weights: Arrays  # float32, whatever their precision in the file
    fingerprint: str  # of the weights as they are in the file


def write(path: Path, config: RunConfig, observation: ObservationSpec, card: Card, weights: Arrays) -> None:
    """Writes an agent file, atomically; `weights` are as `halved` returns them."""
    from safetensors.numpy import save

    if path.suffix != SUFFIX:
        raise BathysphereError(f"An agent file is called something{SUFFIX}; got {path}.")
    header: dict[str, Any] = {
        "format": FORMAT,
        "bathysphere": version("bathysphere"),
        "config": to_dict(config),
        "shape": [observation.size] if isinstance(observation, Features) else list(observation.shape),
        "num_categories": None if isinstance(observation, Features) else observation.num_categories,
        "card": asdict(card),
        "weights": weights_fingerprint(weights),
    }
    header["sha256"] = _header_fingerprint(header)
    write_file(path, save(weights, metadata={_KEY: json.dumps(header)}))


def read(path: Path) -> AgentFile:
    """Reads and checks an agent file."""
    arrays, text = _open(path)
    damaged = f"{path} is damaged"
    try:
        plain = json.loads(text)
    except json.JSONDecodeError as error:
        raise BathysphereError(f"{damaged}: its header is not JSON ({error.msg}).") from error
    if not isinstance(plain, dict) or "format" not in plain:
        raise BathysphereError(f"{damaged}: its header names no format.")
    if plain["format"] != FORMAT:
        raise BathysphereError(
            f"{path} has format {plain['format']} (bathysphere {plain.get('bathysphere')}); this version reads format "
            f"{FORMAT}. Use the version that wrote it."
        )
    if plain.get("sha256") != _header_fingerprint(plain):
        raise BathysphereError(f"{damaged}: its header is not what was saved (SHA-256 differs).")
    if plain.get("weights") != weights_fingerprint(arrays):
        raise BathysphereError(f"{damaged}: its weights are not what was saved (SHA-256 differs).")
    try:
        header = read_as(Header, plain)
    except BathysphereError as error:
        raise BathysphereError(
            f"{path} cannot be used. {error} It was written by bathysphere {plain.get('bathysphere')}."
        ) from error
    if header.num_categories is None:
        observation: ObservationSpec = Features(header.shape[0])
    else:
        observation = Categories(header.shape, header.num_categories)
    weights = {name: a.astype(np.float32) if a.dtype.kind == "f" else a for name, a in arrays.items()}
    return AgentFile(header.config, observation, header.card, weights, header.weights)


def weights_fingerprint(weights: Arrays) -> str:
    """Returns a fingerprint of names, types, shapes and numbers, hexadecimal."""
    digest = hashlib.sha256()
    for name, array in sorted(weights.items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def halved(weights: Arrays) -> Arrays:
    """Returns weights in half precision (float16); integers stay as they are."""
    with np.errstate(over="ignore"):
        half: Arrays = {n: a.astype(np.float16) if a.dtype.kind == "f" else a for n, a in weights.items()}
    for name, array in half.items():
        if not np.isfinite(array).all():
            raise BathysphereError(
                f"The weights {name} do not fit half precision: they are not finite, or beyond 65,504. "
                "Has training diverged? Lower the learning rate."
            )
    return half


def _open(path: Path) -> tuple[Arrays, str]:
    """Returns the arrays in a file and the text of its header."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except OSError as error:
        raise BathysphereError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (SafetensorError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise BathysphereError(f"{path} is not an agent, or it is damaged: {error}.") from error
    if _KEY not in metadata:
        raise BathysphereError(
            f"{path} is a safetensors file, but not an agent. 'bathysphere agents export RUN FILE' makes one of a run."
        )
    return arrays, metadata[_KEY]


def _header_fingerprint(header: dict[str, Any]) -> str:
    rest = {key: value for key, value in header.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
