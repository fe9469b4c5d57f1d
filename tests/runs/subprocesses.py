"""Runs in processes of their own, to be killed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from bathysphere.config.convert import config_hash
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.metrics import TIME_COLUMNS, read_rows
from bathysphere.storage.checkpoint import CheckpointStore

STEPS = 6_000
# N = 8 is won early, so solved and unsolved episodes, updates and half-played episodes are all there.
FLAGS = ["--domain.size", "8", "--batch", "5", "--steps", str(STEPS), "--log-every", "100", "--no-pictures"]
_HANGS = 1800  # seconds, in which a slow machine with much other work ends too
SAVE_OFTEN = ["--checkpoint.seconds", "0.02"]


def bathysphere(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bathysphere", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Waits for the end of a process; returns what it printed. One that hangs is not left behind."""
    try:
        return process.communicate(timeout=_HANGS)
    except BaseException:
        process.kill()
        raise


def finish(process: subprocess.Popen[str], code: int = 0) -> dict:
    out, err = told(process)
    assert process.returncode == code, err
    return json.loads(out)


_STOPPED = """
import os, signal, sys
from bathysphere.cli import main
from bathysphere.storage.checkpoint import CheckpointStore

save = CheckpointStore.save

def save_and_stop(*arguments):
    CheckpointStore.save = save
    save(*arguments)
    {stop}

CheckpointStore.save = save_and_stop
sys.exit(main(sys.argv[1:]))
"""


def killed(seconds: float, *arguments: str) -> int:
    """Runs a command until it has used so much of the processor after its first checkpoint; returns how it ended.

    The process's own timer does it: one that waits outside may come too late on a busy machine.
    """
    process = _stopped(f"signal.setitimer(signal.ITIMER_PROF, {max(seconds, 1e-4)})", *arguments)
    told(process)
    return process.returncode


def signalled(number: int, *arguments: str, more: tuple[int, ...] = ()) -> subprocess.Popen[str]:
    """Runs a command that gets a signal after its first checkpoint, and `more` at once."""
    return _stopped("; ".join(f"os.kill(os.getpid(), {one:d})" for one in (number, *more)), *arguments)


def _stopped(stop: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _STOPPED.format(stop=stop), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def contents(run: Path) -> tuple[dict[str, np.ndarray], list[dict]]:
    """Returns the newest checkpoint's arrays, and the metrics without their times."""
    directory = RunDirectory.open(run)
    config = directory.load_config()
    checkpoint = CheckpointStore(directory.checkpoints, config_hash(config)).load()
    rows = [
        {name: value for name, value in row.items() if name not in TIME_COLUMNS}
        for row in read_rows(directory.metrics_file)
    ]
    return checkpoint.arrays, rows


def assert_same(one: Path, other: Path) -> None:
    """Asserts that two runs ended in the same place, bit for bit, along the same metrics."""
    (arrays, rows), (other_arrays, other_rows) = contents(one), contents(other)
    assert arrays.keys() == other_arrays.keys()
    for name, array in arrays.items():
        assert array.dtype == other_arrays[name].dtype, name
        assert array.tobytes() == other_arrays[name].tobytes(), name
    assert rows == other_rows
    assert len(rows) > 20
    assert board_steps(one) == board_steps(other) == [row["env_steps"] for row in rows]


def board_steps(run: Path) -> list[int]:
    """Returns the moments of the win rate that TensorBoard shows."""
    board = EventAccumulator(str(run / "tensorboard"))
    board.Reload()
    return [event.step for event in board.Scalars("play/win_rate_100")]
