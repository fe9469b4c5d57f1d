"""Writing files so that a crash leaves the old one or the new one, and a full disk leaves a sentence."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bathysphere.errors import BathysphereError

_GONE = (errno.ENOENT, errno.ESTALE)


@contextmanager
def writing(what: Path, advice: str) -> Iterator[None]:
    """Turns a failure to write (full disk, no permission) into a sentence that ends with `advice`.

    Unless the folder is gone: then there is nothing else to say.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _GONE:
            advice = "Its folder is gone: it was moved or deleted, or its disk was taken away."
        raise BathysphereError(f"Cannot write {what}: {error.strerror or error}. {advice}") from error


def write_synced(path: Path, content: bytes) -> None:
    """Writes a file and waits until the disk has it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Waits until the disk has the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, content: Any) -> None:
    """Writes JSON for people and machines, atomically."""
    write_file(path, (json.dumps(content, indent=2) + "\n").encode())


def write_file(path: Path, content: bytes) -> None:
    """Writes a file, atomically."""
    temporary = path.with_name(f".{path.name}.tmp")
    with writing(path, "Free some space or choose another folder, then try again."):
        try:
            write_synced(temporary, content)
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """Reads JSON; a missing or broken file is a BathysphereError."""
    try:
        return parse_json(path.read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BathysphereError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error
    except json.JSONDecodeError as error:
        raise BathysphereError(f"{path} is not JSON ({error.msg}, line {error.lineno}); it is damaged.") from error
    except ValueError as error:
        raise BathysphereError(f"{path} is not JSON that can be used: {error}. It is damaged.") from error


def parse_json(text: str | bytes) -> Any:
    """Returns what JSON says; whatever is wrong with it, also numbers too long or nesting too deep, is a ValueError."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("too many brackets inside each other") from error
