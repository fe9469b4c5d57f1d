"""Metrics: a row every so many steps, more at the beginning, and one at the end, as JSON lines and for TensorBoard.

Rows are a function of the run alone, except for `TIME_COLUMNS`. The row at the end, which is due only because the run
ends there, is cut off again when the run is resumed: it then goes on as if it had never stopped.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.learning.learner import Learner
from bathysphere.learning.progress import WINDOWS
from bathysphere.planning import Episode, ExpectimaxConfig
from bathysphere.planning.planner import PHASES
from bathysphere.runs.tensorboard import Board
from bathysphere.storage.files import parse_json, writing
from bathysphere.storage.state import MOST, check_kinds, require
from bathysphere.values.batch import UpdateStats

WORKER_COLUMNS = ("blocks_in_flight", "workers", "worker_restarts", "worker_steps_per_second", "learner_waited")
TIME_COLUMNS = (
    "seconds",
    "env_steps_per_second",
    *(f"share_{phase}" for phase in (*PHASES, "learning")),
    *WORKER_COLUMNS,
)

Row = dict[str, Any]

_BEGINNING, _OFTEN = 1000, 100  # steps in which there is a row at least every so many: many runs end soon after
_TAIL = 1 << 16  # bytes in which the last row lies: rows have about a thousand
_ROW = 1 << 12  # bytes for every wanted row up to which it is quicker to read a file whole


class Meter:
    """Gathers what happens between two rows, and makes the rows.

    Averages are over the episodes that finished since the last row, and null without any; the losses are those
    of the latest burst of updates.

    Args:
      every: steps between rows; a row is due when their number passes a multiple of it, and at the beginning of a run
        when it passes a multiple of 100.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self.last_row = 0  # steps at the last row that was due; 0 before the first
        self._begin_interval()
        self._latest: UpdateStats | None = None
        self._row = 0  # number of the last row
        self._clock = (0.0, 0)  # seconds and steps at the last row
        self._phases: dict[str, float] = {}

    def _begin_interval(self) -> None:
        """Forgets the episodes up to a row."""
        self._episodes, self._lengths, self._graphs, self._stds = 0, 0, 0, 0.0
        self._wins, self._solutions = 0, 0  # solved episodes and their lengths
        self._new_states, self._successors = 0, 0  # those that models were asked for, and new ones among them
        self._returns = _Returns()

    def start(self, trainer: Learner, seconds: float) -> None:
        """Starts the clocks of a new or a resumed run."""
        self._row = self._number(trainer.progress.env_steps)
        self._clock = (seconds, trainer.progress.env_steps)
        self._phases = _phases(trainer)

    def record(self, trainer: Learner, episodes: list[Episode], seconds: float) -> Row | None:
        """Takes note of one `trainer.advance()`; returns a row if one is due."""
        for episode in episodes:
            self._episodes += 1
            self._lengths += len(episode)
            self._graphs += episode.num_states
            if not isinstance(trainer.search, ExpectimaxConfig):  # whose actions have several successors
                self._new_states += episode.num_states - 1
                self._successors += episode.num_model_calls * len(trainer.domain.action_names)
            self._stds += episode.search_std
            self._returns = self._returns.plus(episode.total_reward)
            if episode.solved:
                self._wins += 1
                self._solutions += len(episode)
        self._latest = trainer.last_update or self._latest
        number = self._number(trainer.progress.env_steps)
        if number == self._row:
            return None
        row = self._make_row(trainer, seconds)
        self._row, self.last_row = number, trainer.progress.env_steps
        self._begin_interval()
        self._clock, self._phases = (seconds, trainer.progress.env_steps), _phases(trainer)
        return row

    def _number(self, env_steps: int) -> int:
        """Returns how many rows are due up to a step, or more; the same for all steps before the next one."""
        return env_steps // self._every + min(env_steps, _BEGINNING) // min(_OFTEN, self._every)

    def end(self, trainer: Learner, seconds: float) -> Row | None:
        """Returns a row for the end of a run, unless the last row is of this very moment.

        Nothing is forgotten by it: a resumed run goes on as if there had been no such row.
        """
        return None if trainer.progress.env_steps == self.last_row else self._make_row(trainer, seconds)

    def _make_row(self, trainer: Learner, seconds: float) -> Row:
        progress, latest, returns = trainer.progress, self._latest, self._returns
        row: Row = {
            "env_steps": progress.env_steps,
            "imagined_steps": progress.imagined_steps,
            "episodes": progress.episodes,
            "wins": progress.wins,
            "updates": progress.updates,
            **{f"win_rate_{window}": progress.win_rate(window) for window in WINDOWS},
            "return_mean": _ratio(returns.total, returns.episodes),
            "return_min": returns.low if returns.episodes else None,
            "return_max": returns.high if returns.episodes else None,
            "return_mean_50": progress.mean_return,
            "return_best": progress.best_return,
            "episode_length": _ratio(self._lengths, self._episodes),
            "solution_length": _ratio(self._solutions, self._wins),
            "graph_size": _ratio(self._graphs, self._episodes),
            "new_states": _ratio(self._new_states, self._successors),
            "ensemble_std": _ratio(self._stds, self._episodes),
            "loss": latest and _finite(latest.loss),
            "gradient_norm": latest and _finite(latest.gradient_norm),
            "member_losses": latest and [_finite(loss) for loss in latest.member_losses.tolist()],
            "replay_solved": trainer.replay.num_solved_episodes,
            "replay_unsolved": trainer.replay.num_unsolved_episodes,
            "seconds": seconds,
            "env_steps_per_second": _ratio(progress.env_steps - self._clock[1], seconds - self._clock[0]),
        }
        phases = _phases(trainer)
        spent = {phase: phases[phase] - self._phases[phase] for phase in phases}
        shares = {f"share_{phase}": _ratio(time, sum(spent.values())) for phase, time in spent.items()}
        return row | shares | trainer.columns()

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns what a resumed meter needs."""
        counts = (self._episodes, self._lengths, self._graphs, self._wins, self._solutions)
        state: dict[str, NDArray[Any]] = {
            "counts": np.array(counts, np.int64),
            "stds": np.array(self._stds),
            "returns": np.array(self._returns),
            "new_states": np.array([self._new_states, self._successors]),
            "last_row": np.array(self.last_row),
        }
        if self._latest is not None:
            state["update"] = np.array([self._latest.loss, self._latest.gradient_norm])
            state["member_losses"] = self._latest.member_losses.copy()
        return state

    def load_state_dict(self, state: Mapping[str, NDArray[Any]], env_steps: int) -> None:
        """Restores what `state_dict` returned after so many steps; what older checkpoints do not hold begins here."""
        check_kinds(state, self.state_dict())
        counts = state["counts"].tolist()
        require(len(counts) == 5 and 0 <= min(counts) <= max(counts) < MOST, "a count of the metrics is none")
        self._episodes, self._lengths, self._graphs, self._wins, self._solutions = counts
        self._stds = float(state["stds"])
        require(0 <= self._stds < math.inf, "a spread of members is none")
        if "returns" in state:
            self._returns = _read_returns(state["returns"].tolist())
            new = state["new_states"].tolist()
            require(len(new) == 2 and 0 <= min(new) <= max(new) < MOST, "a count of new states is none")
            self._new_states, self._successors = new
        self.last_row = int(state.get("last_row", env_steps))
        require(0 <= self.last_row <= env_steps, "the last row of the metrics is still to come")
        if "update" in state:
            loss, norm = state["update"].tolist()
            self._latest = UpdateStats(loss, state["member_losses"], norm)


class _Returns(NamedTuple):
    """Returns of the episodes since the last row."""

    episodes: float = 0.0
    total: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def plus(self, earned: float) -> _Returns:
        return _Returns(self.episodes + 1, self.total + earned, min(self.low, earned), max(self.high, earned))


def _read_returns(saved: list[float]) -> _Returns:
    require(len(saved) == len(_Returns._fields), "the metrics have other returns")
    returns = _Returns(*saved)
    is_ordered = 1 <= returns.episodes < MOST and -math.inf < returns.low <= returns.high < math.inf
    require((is_ordered and math.isfinite(returns.total)) or returns == _Returns(), "a return of the metrics is none")
    return returns


def _phases(trainer: Learner) -> dict[str, float]:
    return {**trainer.work.seconds, "learning": trainer.learning_seconds}


def _ratio(total: float, count: float) -> float | None:
    return total / count if count > 0 else None


def _finite(number: float) -> float | None:
    """JSON knows no nan and no infinity."""
    return number if np.isfinite(number) else None


class MetricsWriter:
    """Appends rows to `metrics.jsonl` and to TensorBoard's files.

    Args:
      file: the JSON lines.
      tensorboard: folder of TensorBoard's files; opened with the first row.
      env_steps: rows after this moment are cut off: the run will come to them again.
    """

    def __init__(self, file: Path, tensorboard: Path, env_steps: int) -> None:
        self._path, self._folder, self._env_steps = file, tensorboard, env_steps
        self._board: Board | None = None
        with self._writing():
            if file.exists():
                _cut(file, env_steps)
            self._file = file.open("a", encoding="utf-8", buffering=1)  # a row can be read once it is written

    def write(self, row: Row) -> None:
        """Appends one row."""
        with self._writing():
            self._file.write(json.dumps(row) + "\n")
            if self._board is None:
                self._board = Board(self._folder, self._env_steps)
            self._board.write(row)

    def flush(self) -> None:
        """Waits until the disk has all rows; call it before the checkpoint that builds on them."""
        with self._writing():
            self._file.flush()
            os.fsync(self._file.fileno())
            if self._board is not None:
                self._board.flush()

    def close(self) -> None:
        """Closes both, whatever state they are in."""
        for file in (self._file, self._board):
            with suppress(OSError):  # of a full disk, which write or flush has reported already
                if file is not None:
                    file.close()

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self._path.parent, "Free some space and continue with --resume.")


def read_rows(file: Path) -> list[Row]:
    """Returns the rows of `metrics.jsonl`; a last line that was cut off by a crash is left out."""
    if not file.is_file():
        return []
    rows = []
    for line in file.read_bytes().splitlines():
        if (row := _row(line)) is None:
            break
        rows.append(row)
    return rows


def last_row(file: Path) -> Row | None:
    """Returns the last whole row of `metrics.jsonl`, however long the file is; None if there is none."""
    try:
        with file.open("rb") as opened:
            opened.seek(max(opened.seek(0, os.SEEK_END) - _TAIL, 0))
            lines = opened.read().splitlines()
    except OSError:
        return None
    return next(filter(None, map(_row, reversed(lines))), None)


def sample_rows(file: Path, most: int) -> list[Row]:
    """Returns up to about `most` rows of `metrics.jsonl` at equal distances, with the first and the last.

    The work does not grow with the file: of a long one only those rows are read. A row that cannot be read, such as one
    that is being written, is left out.
    """
    try:
        with file.open("rb") as opened:
            size = opened.seek(0, os.SEEK_END)
            opened.seek(0)
            if size <= most * _ROW:
                lines = opened.read().splitlines()
                return _parsed(lines[:: -(-len(lines) // most)] + lines[-1:]) if lines else []
            lines = [opened.readline()]
            for number in range(1, most):
                opened.seek(size * number // most)
                opened.readline()  # the rest of a row
                lines.append(opened.readline())
            opened.seek(max(size - _TAIL, 0))
            return _parsed(lines + opened.read().splitlines()[-1:])
    except OSError:
        return []


def _parsed(lines: list[bytes]) -> list[Row]:
    """Returns the rows in `lines`, each once."""
    rows = {row["env_steps"]: row for row in map(_row, lines) if row is not None}
    return [rows[steps] for steps in sorted(rows)]


def _row(line: bytes) -> Row | None:
    """Returns the row that a line holds; None if it holds none."""
    try:
        row = parse_json(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and type(row.get("env_steps")) is int else None


def _cut(file: Path, env_steps: int) -> None:
    """Keeps the rows up to `env_steps`."""
    lines = file.read_bytes().splitlines(keepends=True)
    kept = takewhile(lambda line: _is_kept(line, env_steps), lines)
    os.truncate(file, sum(map(len, kept)))


def _is_kept(line: bytes, env_steps: int) -> bool:
    row = _row(line) if line.endswith(b"\n") else None
    return row is not None and row["env_steps"] <= env_steps
