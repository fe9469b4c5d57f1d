"""What fields of the config were called in earlier versions, and what their values were.

Configs in old run directories and agent files, old flags and old keyword arguments go on being read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bathysphere.storage.plain import translated

# Dotted names of version 0.1, and what they are called now.
FIELDS = {
    "lanes": "workers",
    "learning.min_games": "learning.min_episodes",
}
# Values that have another name now, by the field's name of now.
VALUES = {
    "learning.mask.per": {"game": "episode"},
    "learning.replay.sampling": {"game": "episode"},
}


def renewed(plain: Any) -> Any:
    """Returns a config as plain data, or part of one, with the names of now."""
    return translated(plain, FIELDS, VALUES)


def as_first_named(plain: Any) -> Any:
    """Returns a config as plain data with the names that fields had first, by which checkpoints know it."""
    values = {name: {new: old for old, new in pairs.items()} for name, pairs in VALUES.items()}
    return translated(plain, {new: old for old, new in FIELDS.items()}, values)


def renewed_flags(argv: Sequence[str]) -> list[str]:
    """Returns command-line arguments with the names of now.

    >>> renewed_flags(["--lanes", "2", "--learning.mask.per=game"])
    ['--workers', '2', '--learning.mask.per=episode']
    """
    flags = []
    field = ""  # that the argument before named
    for argument in argv:
        if argument.startswith("--"):
            name, equals, value = argument[2:].partition("=")
            old = name.replace("-", "_")
            field = FIELDS.get(old, old)
            name = field.replace("_", "-") if old in FIELDS else name
            flags.append(f"--{name}{equals}{VALUES.get(field, {}).get(value, value)}")
        else:
            flags.append(VALUES.get(field, {}).get(argument, argument))
    return flags
