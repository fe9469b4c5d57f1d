"""Says that code is being compiled, which on a new machine is all that a first command seems to do."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Any

from numba.core import event


class _Announcement(event.Listener):
    """Speaks once. Numba tells listeners of real compilations only, not of what it finds in its cache."""

    def __init__(self) -> None:
        self._is_said = False

    def on_start(self, event: Any) -> None:
        """Called before anything is compiled."""
        if not self._is_said:
            self._is_said = True
            sys.stderr.write("Compiling for this machine; that is kept, and takes less than a minute ...\n")

    def on_end(self, event: Any) -> None:
        """Called after that."""


def announcing() -> AbstractContextManager[None]:
    """Returns a context in which the first compilation is announced on stderr."""
    context: AbstractContextManager[None] = event.install_listener("numba:compile", _Announcement())
    return context
