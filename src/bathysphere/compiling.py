"""Says once that code is compiled, which a person would otherwise take for a program that hangs, and how long."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from typing import Any

from numba.core import event


class _Announcement(event.Listener):
    """Is printed once. Numba calls listeners for real compilations only, not for what it finds in its cache."""

    # Of this process. Compilations lie within others, and several of these may listen.
    is_printed, depth, began, seconds = False, 0, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        """Called before anything is compiled."""
        if not _Announcement.depth:
            _Announcement.began = time.perf_counter()
        _Announcement.depth += 1
        if not _Announcement.is_printed:
            _Announcement.is_printed = True
            sys.stderr.write(
                "Compiling for this machine: a minute or so, longer if it is busy; the next start is quick ...\n"
            )

    def on_end(self, event: Any) -> None:
        """Called after that."""
        _Announcement.depth -= 1
        if not _Announcement.depth:
            _Announcement.seconds += time.perf_counter() - _Announcement.began


def seconds() -> float:
    """Returns how long this process has compiled, while somebody listened (`announcing`)."""
    return _Announcement.seconds


def announcing() -> AbstractContextManager[None]:
    """Returns a context in which the first compilation of the process is announced on stderr."""
    context: AbstractContextManager[None] = event.install_listener("numba:compile", _Announcement())
    return context
