"""What goes wrong inside the user's code, told as a sentence that says where."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bathysphere.domains.base import Categories
from bathysphere.domains.user_code import where
from bathysphere.errors import NO_PICTURES, BathysphereError, WorldError

_LONGEST = 200  # characters of a state in a sentence
_COLOURED = re.compile("\x1b\\[[0-9;]+m(.*?)\x1b\\[0m")  # what a terminal shows in colour, such as the agent's place


def shown(thing: object) -> str:
    """Returns an object as a sentence shows it."""
    text = repr(thing)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def told(domain: Any) -> str:
    """Returns what Python prints of a domain that was made of something else."""
    spec = domain.observation
    below = f" below {spec.num_categories:,}" if isinstance(spec, Categories) else ""
    size = math.prod(spec.shape) if isinstance(spec, Categories) else spec.size
    return (
        f"<World {domain.name}: {len(domain.action_names)} actions, an observation of {size:,} "
        f"number{'s' * (size != 1)}{below}, up to {domain.max_steps:,} steps>"
    )


def plain(drawn: object) -> str:
    """Returns what an environment writes for a terminal as text without colours: what had one is in brackets."""
    return _COLOURED.sub(r"[\1]", str(drawn)).rstrip("\n")


def explained(error: Exception, what: str) -> WorldError:
    """Returns what `what` of a world raised, with the file and the line of the user's code."""
    told = f"{what} raised {type(error).__name__}: {str(error).rstrip('.')}{where(error)}."
    if what == "render" and type(error).__name__ == "DependencyNotInstalled":  # of Gymnasium
        return WorldError(NO_PICTURES, told, "Install it to have pictures and films; everything else works without.")
    if "read-only" in str(error):
        return WorldError("changes-its-argument", told, "Work on a copy of the state: state = state.copy().")
    return WorldError("exception", told, "Mend it there; with --debug the command line shows the whole traceback.")


@contextmanager
def user_code(what: str, *things: object) -> Iterator[None]:
    """Turns exceptions of the user's code into a sentence; `things` are what it was called with."""
    try:
        yield
    except BathysphereError:
        raise
    except Exception as error:
        called = f"{what}({', '.join(map(shown, things))})" if things else what
        raise explained(error, called) from error
