"""Runs that are started, stopped and continued from the page: processes of the `bathysphere` command."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from bathysphere.config.presets import PRESETS
from bathysphere.domains.user_code import is_import_path
from bathysphere.domains.worlds import GYMNASIUM
from bathysphere.errors import BathysphereError
from bathysphere.studio.folder import RunsFolder

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FLAG = re.compile(
    r"--(steps|seed|batch|workers|log-every|planner|(domain|search|stop|learning|values)\.[a-z0-9.-]+)(=.*)?"
)
_LEFT = 400  # characters of what a process said last


class Trainings:
    """The runs that this studio has started. They go on when it ends.

    Args:
      folder: where they are written.
    """

    def __init__(self, folder: RunsFolder) -> None:
        self._folder = folder
        self._processes: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}  # with the file of what it says

    def start(self, what: str, options: str = "", name: str = "") -> str:
        """Starts a run and returns its name.

        Args:
          what: a preset, or a world as `train` takes it.
          options: further flags of `train`, as in a shell.
          name: of its folder; a free one is chosen if not given.
        """
        if what not in PRESETS and not is_import_path(what) and not what.startswith(GYMNASIUM):
            raise BathysphereError(f"There is no preset {what!r}. Choose one, or name a world: my_world:MyWorld.")
        flags = _checked(options)
        name = name or self._free_name(what, flags)
        if not _NAME.fullmatch(name):
            raise BathysphereError(
                f"A run cannot be called {name!r}. Use letters, digits, dots, dashes and underscores."
            )
        if (self._folder.path / name).exists():
            raise BathysphereError(f"There is a {name} already. Choose another name.")
        self._run(name, [what, *flags, "--run-dir", str(self._folder.path / name)])
        return name

    def resume(self, name: str) -> None:
        """Continues a run."""
        directory = self._folder.directory(name)
        if directory.is_running():
            raise BathysphereError(f"{name} is running already.")
        self._run(name, ["--resume", str(directory.path)])

    def stop(self, name: str) -> None:
        """Asks whatever process runs a run to save and end."""
        process, _ = self._processes.get(name, (None, None))
        pid = process.pid if process is not None and process.poll() is None else self._folder.directory(name).runner()
        if pid is None:
            raise BathysphereError(
                f"{name} is not running, or in a process that cannot be found. Stop it where it runs."
            )
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError as error:
            raise BathysphereError(f"{name} cannot be stopped from here: {error.strerror}.") from error

    def failures(self) -> dict[str, str]:
        """Returns what processes said that have failed, by run, and forgets those that have ended."""
        failed = {}
        for name, (process, said) in list(self._processes.items()):
            if process.poll() is None:
                continue
            if process.returncode not in (0, 130):
                failed[name] = (
                    said.read_text(encoding="utf-8", errors="replace").strip()[-_LEFT:] or "It ended suddenly."
                )
            said.unlink(missing_ok=True)
            del self._processes[name]
        return failed

    def _run(self, name: str, arguments: list[str]) -> None:
        handle, said = tempfile.mkstemp(prefix="bathysphere-studio-", suffix=".txt")
        command = [sys.executable, "-m", "bathysphere", "train", *arguments, "--json"]
        process = subprocess.Popen(  # its own session: Ctrl-C in the studio's terminal is not for it
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=handle, start_new_session=True
        )
        os.close(handle)
        self._processes[name] = (process, Path(said))

    def _free_name(self, what: str, flags: list[str]) -> str:
        text = " ".join(flags).replace("=", " ")
        seed = re.search(r"--seed (\d+)", text)
        stem = f"{re.sub(r'[^A-Za-z0-9]+', '-', what).strip('-')}-seed{seed[1] if seed else 0}"
        number = 1
        while (self._folder.path / f"{stem}-{number}").exists() or f"{stem}-{number}" in self._processes:
            number += 1
        return f"{stem}-{number}"


def _checked(options: str) -> list[str]:
    """Returns flags as a list; refuses those that say where to write or what to load."""
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise BathysphereError(f"The options cannot be read: {error}.") from error
    for word in words:
        if word.startswith("-") and not _FLAG.fullmatch(word) and not re.fullmatch(r"-[\d.e+-]+", word):
            raise BathysphereError(
                f"{word} cannot be set here. Set steps, seed, batch, planner, and what begins with --domain., "
                "--search., --learning., --values. or --stop.; use the command line for the rest."
            )
    if words and not words[0].startswith("--"):
        raise BathysphereError(f"Options begin with --; got {words[0]!r}.")
    return words
