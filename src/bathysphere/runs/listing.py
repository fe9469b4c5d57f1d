"""What runs there are, and how far they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bathysphere.config.convert import from_dict
from bathysphere.config.run import RunConfig
from bathysphere.errors import BathysphereError, UnknownNameError
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.metrics import Row, last_row
from bathysphere.storage.files import read_json

_NUMBERS = ("env_steps", "episodes", "win_rate_100", "win_rate_1000", "env_steps_per_second")
_MOMENTS = ("first_solved_step", "solved_step")
_RETURNS = ("return_mean_50", "return_best")  # which version 0.1 did not count


def run_directories(folder: Path) -> list[Path]:
    """Returns `folder` if it is a run, and the runs one and two levels below it, by name."""
    files = [file for pattern in ("", "*/", "*/*/") for file in folder.glob(f"{pattern}config.json")]
    return [file.parent for file in sorted(files)]


def find_runs(folder: Path) -> list[dict[str, Any]]:
    """Describes the runs in `folder`, by name."""
    return [describe_run(RunDirectory.open(path)) for path in run_directories(folder)]


def _numbers(row: Row) -> Row:
    """Returns what a result or a row of the metrics says of a run, without what is no number."""
    wanted = {name: row.get(name) for name in (*_NUMBERS, *_MOMENTS, *_RETURNS)}
    return {name: number for name, number in wanted.items() if type(number) in (int, float)}


def describe_run(directory: RunDirectory) -> dict[str, Any]:
    """Returns preset, seed, state and the latest numbers of a run; its state is damaged if it cannot be read.

    Parts of the user's own that its config names need not be known for that.
    """
    try:
        try:
            config = directory.load_config()
        except UnknownNameError:
            plain = read_json(directory.config_file)
            config = from_dict({name: plain[name] for name in ("preset", "seed") if name in plain})
        return describe(directory, config)
    except BathysphereError:
        return _damaged(directory)


def describe(directory: RunDirectory, config: RunConfig) -> dict[str, Any]:
    """Returns preset, seed, state and the latest numbers of a run with `config`.

    The state is running, what the run was stopped by, or unfinished: it died, and can be resumed.
    """
    result = directory.load_result()
    about = _damaged(directory) | {"preset": config.preset, "seed": config.seed}
    if result is not None:
        return about | _numbers(result) | {"state": str(result.get("stopped_by", "damaged"))}
    if row := last_row(directory.metrics_file):
        about |= _numbers(row)
    return about | {"state": "running" if directory.is_running() else "unfinished"}


def _damaged(directory: RunDirectory) -> dict[str, Any]:
    """Returns what is told of a run of which nothing can be read."""
    about: dict[str, Any] = {"run_dir": str(directory.path), "preset": "?", "seed": None, "state": "damaged"}
    return about | dict.fromkeys(_NUMBERS[:-1], 0) | dict.fromkeys((*_MOMENTS, *_RETURNS, _NUMBERS[-1]))
