"""Metrics for TensorBoard: one event per row, written at once, so that a crash loses nothing in a queue."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any


class Board:
    """One TensorBoard file, for the part of a run that one process makes.

    Args:
      folder: where TensorBoard's files are.
      env_steps: what earlier files hold after this moment is void: the run is at it again.
    """

    def __init__(self, folder: Path, env_steps: int) -> None:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto import event_pb2

        folder.mkdir(exist_ok=True)
        # The suffix orders files that were begun within one second.
        self._writer: Any = EventsWriter(str(folder / "events"), f".{env_steps:012d}")
        self._event = event_pb2.Event
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._writer.write_event(event_pb2.Event(wall_time=time.time(), step=env_steps + 1, session_log=start))

    def write(self, row: dict[str, Any]) -> None:
        """Writes a row of the metrics; what is null is left out."""
        event = self._event(wall_time=time.time(), step=row["env_steps"], summary=_summary(row))
        self._writer.write_event(event)

    def flush(self) -> None:
        """Waits until the disk has all rows."""
        self._writer.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        self._writer.close()


def _summary(row: dict[str, Any]) -> Any:
    from tensorboardX.proto.summary_pb2 import Summary

    numbers = {f"{_group(name)}/{name}": value for name, value in row.items() if name != "env_steps"}
    members = numbers.pop("learning/member_losses") or []
    numbers |= {f"member_losses/{number:02d}": loss for number, loss in enumerate(members)}
    return Summary(value=[Summary.Value(tag=tag, simple_value=v) for tag, v in numbers.items() if v is not None])


def _group(name: str) -> str:
    if name.startswith(("win_rate", "episode", "solution", "rooms")):
        return "play"
    if name.startswith(("share_", "seconds", "env_steps_per_second")):
        return "time"
    return "planning" if name in ("graph_size", "ensemble_std") else "learning"
