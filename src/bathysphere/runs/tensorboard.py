"""Metrics for TensorBoard: one event per row, through TensorBoard's own record writer, which queues nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

# Columns by how their names begin; the others, those of observers among them, are about play.
_GROUPS = {
    "time": ("share_", "seconds", "env_steps_per_second", "worker", "learner_waited", "blocks_in_flight"),
    "planning": ("graph_size", "new_states", "ensemble_std", "model_"),
    "learning": ("updates", "loss", "gradient_norm", "member_losses", "replay_", "blocks", "staleness"),
}


class Board:
    """One TensorBoard file, for the part of a run that one process makes.

    Args:
      folder: where TensorBoard's files are.
      env_steps: what earlier files hold after this moment is void: the run will come to it again.
    """

    def __init__(self, folder: Path, env_steps: int) -> None:
        from tensorboard.compat.proto import event_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        folder.mkdir(exist_ok=True)
        # TensorBoard knows its files by "tfevents" and reads them in the order of their names.
        file = (folder / f"events.out.tfevents.{time.time_ns():020d}.{env_steps:012d}").open("wb")
        self._writer: Any = RecordWriter(file)
        self._event = event_pb2.Event
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._write(event_pb2.Event(wall_time=time.time(), file_version="brain.Event:2"))
        self._write(event_pb2.Event(wall_time=time.time(), step=env_steps + 1, session_log=start))

    def _write(self, event: Any) -> None:
        self._writer.write(event.SerializeToString())

    def write(self, row: dict[str, Any]) -> None:
        """Writes a row of the metrics; what is null is left out."""
        event = self._event(wall_time=time.time(), step=row["env_steps"], summary=_summary(row))
        self._write(event)

    def flush(self) -> None:
        """Waits until the disk has all rows."""
        self._writer.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        self._writer.close()


def _summary(row: dict[str, Any]) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary

    numbers = {f"{_group(name)}/{name}": value for name, value in row.items() if name != "env_steps"}
    numbers.pop("time/worker_steps_per_second", None)  # workers come and go: no curve
    members = numbers.pop("learning/member_losses") or []
    numbers |= {f"member_losses/{number:02d}": loss for number, loss in enumerate(members)}
    return Summary(value=[Summary.Value(tag=tag, simple_value=v) for tag, v in numbers.items() if v is not None])


def _group(name: str) -> str:
    for group, beginnings in _GROUPS.items():
        if name.startswith(beginnings):
            return group
    return "play"
