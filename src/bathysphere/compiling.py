"""Says once that code is compiled, which a person would otherwise take for a program that hangs."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Any

from numba.core import event


class _Announcement(event.Listener):
    """Is printed once. Numba calls listeners for real compilations only, not for what it finds in its cache."""

    is_printed = False  # by this process

    def on_start(self, event: Any) -> None:
        """Called before anything is compiled."""
        if not _Announcement.is_printed:
            _Announcement.is_printed = True
            sys.stderr.write("Compiling for this machine; that is kept, and takes less than a minute ...\n")

    def on_end(self, event: Any) -> None:
        """Called after that."""


def announcing() -> AbstractContextManager[None]:
    """Returns a context in which the first compilation of the process is announced on stderr."""
    context: AbstractContextManager[None] = event.install_listener("numba:compile", _Announcement())
    return context
