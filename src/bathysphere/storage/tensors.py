"""Arrays in safetensors files with a checked header. Reading one runs no code.

The header is JSON in the file's metadata. Fingerprints (SHA-256) in it tell a damaged file from a good one; they do not
tell who wrote it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bathysphere.errors import BathysphereError
from bathysphere.storage.files import parse_json, write_file
from bathysphere.storage.state import Arrays, check_finite

SUFFIX = ".safetensors"


def write_arrays(path: Path, arrays: Arrays, headers: Mapping[str, Any]) -> None:
    """Writes arrays, and `headers` as JSON in the metadata, atomically."""
    from safetensors.numpy import save

    write_file(path, save(arrays, metadata={key: json.dumps(header) for key, header in headers.items()}))


def read_arrays(path: Path, keys: tuple[str, ...], what: str) -> tuple[list[dict[str, Any]], Arrays]:
    """Reads a file without trusting it.

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
        headers = [parse_json(metadata[key]) for key in keys if key in metadata]
    except OSError as error:
        raise BathysphereError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (SafetensorError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise BathysphereError(f"{path} is not {what}, or it is damaged: {error}.") from error
    if len(headers) < len(keys) or not all(isinstance(header, dict) for header in headers):
        raise BathysphereError(f"{path} is a safetensors file, but not {what}.")
    return headers, arrays


def files_in(folder: Path) -> dict[str, Path]:
    """Returns the safetensors files in a folder, by their names without the suffix."""
    return {file.stem: file for file in sorted(folder.glob(f"*{SUFFIX}"))}


def load_arrays(content: bytes, path: Path) -> Arrays:
    """Returns the arrays in the bytes of a file; `path` is where they came from."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays: Arrays = load(content)
    except SafetensorError as error:
        raise BathysphereError(f"{path} is not a safetensors file: {error}.") from error
    return arrays


def check_format(path: Path, header: Mapping[str, Any], expected: int) -> None:
    """Refuses a file of another format than this version reads."""
    if header.get("format") != expected:
        raise BathysphereError(
            f"{path} has format {header.get('format')} (bathysphere {header.get('bathysphere')}); this version reads "
            f"format {expected}. Use the version that wrote it."
        )


def check_weights(path: Path, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Refuses a file whose arrays are not those that its header was written for."""
    if header.get("weights") != fingerprint(arrays):
        raise BathysphereError(f"{path} is damaged: its weights are not what was saved (SHA-256 differs).")
    try:
        check_finite(arrays)
    except BathysphereError as error:
        raise BathysphereError(f"{path} cannot be used. {error}") from error


def fingerprint(arrays: Arrays) -> str:
    """Returns a fingerprint of names, types, shapes and numbers, hexadecimal."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def header_fingerprint(header: Mapping[str, Any]) -> str:
    """Returns a fingerprint of a header, in which it is later kept as `sha256`, hexadecimal."""
    rest = {key: value for key, value in header.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


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


def in_full(weights: Arrays) -> Arrays:
    """Returns weights in the precision they are computed with (float32); integers stay as they are."""
    return {name: a.astype(np.float32) if a.dtype.kind == "f" else a for name, a in weights.items()}
