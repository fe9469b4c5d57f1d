"""The exceptions that speak to a person, and the hint that most of their sentences end with."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

# What NumPy and PyTorch say where others raise MemoryError.
_NO_MEMORY = ("array is too big", "Maximum allowed dimension", "allocate memory", "out of memory")


class BathysphereError(ValueError):
    """Bad input, told in a sentence that says what was expected, what arrived and what to do next.

    The command line prints the sentence without a traceback; `--debug` shows both.
    """


class UnknownNameError(BathysphereError):
    """A name that nothing is registered by in this process; a module of the user's may know it."""


NO_PICTURES = "no-pictures"  # name of the mistake that only keeps a world from being drawn


class WorldError(BathysphereError):
    """Something that a world of the user's does wrong.

    Attributes:
      name: of this kind of mistake, short, words joined by hyphens.
      seen: a sentence, what happened, with the state and the action.
      fix: a sentence, how to mend it.
    """

    def __init__(self, name: str, seen: str, fix: str) -> None:
        super().__init__(f"{seen} {fix}")
        self.name, self.seen, self.fix = name, seen, fix

    def __reduce__(self) -> tuple[type[WorldError], tuple[str, str, str]]:
        return type(self), (self.name, self.seen, self.fix)


def lacks_memory(error: Exception) -> bool:
    """Tells whether an error says that there is not enough memory."""
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in _NO_MEMORY)


@contextmanager
def room_for(what: str, settings: str) -> Iterator[None]:
    """Turns a lack of memory into a sentence that names the settings to lower."""
    try:
        yield
    except BathysphereError:
        raise
    except Exception as error:
        if not lacks_memory(error):
            raise
        raise BathysphereError(f"There is not enough memory for {what}. Lower {settings}.") from error


def printable(text: str) -> str:
    """Returns text in which nothing acts on a terminal: controls and changes of direction are written out.

    >>> printable("a title\\x1b[2J")
    'a title\\\\x1b[2J'
    """
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a question with the known name nearest to `name`, after a space; nothing if none is near.

    >>> did_you_mean("deep-see", ["deep-sea", "sokoban"])
    " Did you mean 'deep-sea'?"
    """
    near = nearest(name, known)
    return "" if near is None else f" Did you mean {near!r}?"


def unknown_name(what: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Returns the error for a name that is not registered, of things that users may register.

    >>> print(unknown_name("network", "cnm", ["mlp", "cnn"]))  # doctest: +ELLIPSIS
    There is no network 'cnm'; choose one of mlp, cnn. Did you mean 'cnn'? If it is your own, import ...
    """
    names = list(known)
    return UnknownNameError(
        f"There is no {what} {name!r}; choose one of {', '.join(names)}.{did_you_mean(name, names)} If it is your own, "
        "import the module that registers it first: --import MODULE on the command line."
    )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name nearest to `name`; None if none is near."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)
