"""Checkpoints: a folder per moment, complete or absent, checked before use.

`weights.safetensors` holds the ensemble (what an agent needs), `state.safetensors` everything else a resumed
run needs, `meta.json` what they are and their fingerprints. No file can run code when it is read.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.errors import BathysphereError
from bathysphere.storage.files import read_json, sync_folder, write_synced, writing
from bathysphere.storage.state import MOST, Arrays
from bathysphere.storage.tensors import header_fingerprint, load_arrays

FORMAT = 1
WEIGHTS, STATE, META = "weights.safetensors", "state.safetensors", "meta.json"
_FILES = (WEIGHTS, STATE)


class Checkpoint(NamedTuple):
    """What was saved at one moment."""

    arrays: Arrays
    env_steps: int
    seconds: float  # of training until then


class CheckpointStore:
    """The checkpoints of one run.

    Args:
      folder: where they are.
      config_hash: of the run; checkpoints of any other are refused.
      keep: the newest that many are kept.
      saved_hash: another that is accepted: of the config as an earlier version saved it, with fewer fields.
    """

    def __init__(self, folder: Path, config_hash: str, keep: int = 2, saved_hash: str | None = None) -> None:
        self.folder, self._config_hash, self._keep = folder, config_hash, keep
        self._accepted = (config_hash, saved_hash)

    def paths(self) -> list[Path]:
        """Returns the checkpoints there are, oldest first, good or not."""
        return sorted(self.folder.glob("step-*"))

    def newest(self) -> Path:
        """Returns the newest checkpoint, good or not; raises if there is none."""
        if not (paths := self.paths()):
            run = self.folder.parent
            raise BathysphereError(f"{run} has no checkpoint yet. Train it: bathysphere train --resume {run}")
        return paths[-1]

    def save(self, arrays: Mapping[str, NDArray[Any]], env_steps: int, seconds: float) -> Path:
        """Writes a checkpoint and deletes the ones that are too old.

        It is written under another name and then renamed, so that a crash leaves nothing half-written behind.
        """
        path = self.folder / f"step-{env_steps:012d}"
        if path.exists() and self._is_good(path):
            return path
        self._clean()
        temporary = self.folder / f".new-{path.name}"
        last = self.paths()
        kept = f"The last checkpoint, {last[-1].name}, is intact." if last else "There is no checkpoint yet."
        try:
            with writing(path, f"{kept} Free some space and continue with --resume."):
                self._write(temporary, arrays, env_steps, seconds)
                if path.exists():  # and is damaged
                    shutil.rmtree(path)
                temporary.rename(path)
                sync_folder(self.folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        for old in self.paths()[: -self._keep]:
            # Renamed first: a checkpoint that is half deleted must not look like one.
            old.rename(self.folder / f".old-{old.name}")
        self._clean()
        return path

    def load(self, *, fallback: bool = False) -> Checkpoint | None:
        """Returns the newest checkpoint, or None if there is none.

        Args:
          fallback: use the newest good one if the newest is damaged, and set the bad ones aside, as
            `bad-step-...`.
        """
        problems = []
        for path in reversed(self.paths()):
            try:
                checkpoint = self.read(path)
            except BathysphereError as error:
                if not fallback:
                    raise BathysphereError(
                        f"{error} Add --fallback to use the last good checkpoint of the run instead."
                    ) from error
                problems.append((path, error))
                continue
            for bad, _ in problems:
                shutil.rmtree(self.folder / f"bad-{bad.name}", ignore_errors=True)
                bad.rename(self.folder / f"bad-{bad.name}")
            return checkpoint
        if problems:
            raise BathysphereError(f"No checkpoint in {self.folder} is good. The newest: {problems[0][1]}")
        return None

    def read(self, path: Path) -> Checkpoint:
        """Reads and checks one checkpoint."""
        meta = self.read_meta(path)
        arrays: Arrays = {}
        for name in _FILES:
            arrays |= load_arrays(_read_checked(path / name, meta["files"][name]), path / name)
        return Checkpoint(arrays, meta["env_steps"], meta["seconds"])

    def read_weights(self, path: Path) -> Arrays:
        """Reads and checks the ensemble only."""
        expected = self.read_meta(path)["files"][WEIGHTS]
        return load_arrays(_read_checked(path / WEIGHTS, expected), path / WEIGHTS)

    def _is_good(self, path: Path) -> bool:
        try:
            self.read(path)
        except BathysphereError:
            return False
        return True

    def _clean(self) -> None:
        """Removes what a crash left half-written or half-deleted."""
        for rest in (*self.folder.glob(".new-*"), *self.folder.glob(".old-*")):
            shutil.rmtree(rest, ignore_errors=True)

    def _write(self, folder: Path, arrays: Mapping[str, NDArray[Any]], env_steps: int, seconds: float) -> None:
        from safetensors.numpy import save

        folder.mkdir(parents=True)
        files = {}
        for name, is_weights in ((WEIGHTS, True), (STATE, False)):
            part = {k: np.asarray(v, order="C") for k, v in arrays.items() if k.startswith("values.") == is_weights}
            content = save(part)
            write_synced(folder / name, content)
            files[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        meta = {
            "format": FORMAT,
            "bathysphere": version("bathysphere"),
            "config_hash": self._config_hash,
            "env_steps": env_steps,
            "seconds": seconds,
            "files": files,
        }
        text = json.dumps({**meta, "sha256": header_fingerprint(meta)}, indent=2) + "\n"
        write_synced(folder / META, text.encode())
        sync_folder(folder)

    def read_meta(self, path: Path) -> dict[str, Any]:
        """Reads and checks what a checkpoint says about itself."""
        meta = read_json(path / META)
        if not isinstance(meta, dict) or meta.get("sha256") != header_fingerprint(meta):
            raise BathysphereError(f"Checkpoint {path} is damaged: its meta.json was changed.")
        if meta.get("format") != FORMAT:
            raise BathysphereError(
                f"Checkpoint {path} has format {meta.get('format')} (bathysphere {meta.get('bathysphere')}); "
                f"this version reads format {FORMAT}. Use the version that wrote it."
            )
        if not _is_whole(meta):
            raise BathysphereError(f"Checkpoint {path} is damaged: its meta.json is not what any version writes.")
        if meta["config_hash"] not in self._accepted:
            raise BathysphereError(
                f"Checkpoint {path} belongs to a run with other settings than this run's config.json "
                f"(it was written by bathysphere {meta['bathysphere']})."
            )
        return meta


def _is_whole(meta: dict[str, Any]) -> bool:
    """Tells whether all is there that readers of `meta.json` rely on."""
    steps, seconds, files = meta.get("env_steps"), meta.get("seconds"), meta.get("files")
    return (
        all(isinstance(meta.get(name), str) for name in ("bathysphere", "config_hash"))
        and (isinstance(steps, int) and 0 <= steps < MOST)
        and (isinstance(seconds, int | float) and 0 <= seconds < MOST)
        and isinstance(files, dict)
        and all(isinstance(files.get(name), dict) and files[name].keys() >= {"bytes", "sha256"} for name in _FILES)
    )


def _read_checked(path: Path, expected: dict[str, Any]) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BathysphereError(f"Cannot read {path}: {error.strerror or error}.") from error
    if len(content) != expected["bytes"]:
        raise BathysphereError(f"{path} is damaged: it has {len(content)} bytes instead of {expected['bytes']}.")
    if hashlib.sha256(content).hexdigest() != expected["sha256"]:
        raise BathysphereError(f"{path} is damaged: its content is not what was saved (SHA-256 differs).")
    return content
