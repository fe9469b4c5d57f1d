"""The console that everything is shown on: text stays text, and a reader that goes ends the program quietly."""

from __future__ import annotations

import shutil
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from bathysphere.errors import printable


def columns_of(stream: TextIO) -> int | None:
    """Returns how wide the terminal is that a stream goes to; None if it goes elsewhere."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


class Terminal(Console):
    """A console on which no text acts: neither rich's markup, nor names of emoji, nor escape sequences.

    Texts come from files and names of folders, which anybody may have written.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **more)

    def render_str(self, text: str, **more: Any) -> Text:
        """Makes what is shown of a string."""
        return super().render_str(printable(text), **more)

    def on_broken_pipe(self) -> None:
        """Lets the command line end as it does for all output; rich would end the process with exit code 1."""
        raise BrokenPipeError
