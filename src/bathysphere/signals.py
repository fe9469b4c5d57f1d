"""Signals that end work: of the keyboard, of a terminal that is closed, of the system."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# A closed terminal (SIGHUP) is no signal on Windows.
OF_TERMINAL = tuple(getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name))
ENDING = (*OF_TERMINAL, signal.SIGTERM)


def left_to_parent() -> None:
    """Lets this process ignore what a terminal sends to all of its processes: it is for the one that gives orders."""
    for number in OF_TERMINAL:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def listening(
    listen: Callable[[int, Any], Any] | signal.Handlers, numbers: tuple[int, ...]
) -> Iterator[Callable[[], None]]:
    """Calls `listen` (or does what that constant says) when a signal comes, and yields what ends that early.

    Only the main thread may listen; elsewhere nothing happens. SIGHUP stays ignored where it is: who starts a program
    with nohup wants it to outlive the terminal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = {number: signal.getsignal(number) for number in numbers}
    if hasattr(signal, "SIGHUP") and before.get(signal.SIGHUP) is signal.SIG_IGN:
        del before[signal.SIGHUP]

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, listen)
    try:
        yield restore
    finally:
        restore()
