"""The one exception that speaks to a person, and the hint that most of its sentences end with."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BathysphereError(ValueError):
    """Bad input, told in a sentence that says what was expected, what arrived and what to do next.

    The command line prints the sentence without a traceback; `--debug` shows both.
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a question with the known name nearest to `name`, after a space; nothing if none is near.

    >>> did_you_mean("deep-see", ["deep-sea", "sokoban"])
    " Did you mean 'deep-sea'?"
    """
    near = nearest(name, known)
    return "" if near is None else f" Did you mean {near!r}?"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name nearest to `name`; None if none is near."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)
