"""Seeded damage to texts and to plain data, for scripts that count what readers make of it."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

PIECES = (
    *("\0", "\x1b[31m", "\x9b2J", "\u202e", "\ufeff", "\ud7ff", "\U0001f4a5", "\u0665", "é", "\x1a", "\r", "\f", "\t"),
    *("#", "@", "$", ".", "*", "+", " ", "|", ";", "::", "999999999#", "12345678901234567890-", "3(2#)", "Title:"),
    *("Solution", "lurdLURD", "99999R", "room size: 10 x 10", "room size: 0 x 0", "first room: 999999, -1", "[bold]"),
    *("<script>alert(1)</script>", "%s", "../../etc/passwd", "nan", "1e999", "-", "G", "D", "k", "^"),
)
BOMBS: tuple[Callable[[random.Random], str], ...] = (
    lambda rng: str(rng.randrange(10)) * rng.randrange(1, 100_000),
    lambda rng: "9" * rng.randrange(1, 20) + "#\n",
    lambda rng: "#\n" * rng.randrange(1, 20_000),
    lambda rng: "#" * rng.randrange(1, 50_000),
    lambda rng: ("1" * rng.randrange(1, 30) + "-") * rng.randrange(1, 500) + "#\n",
    lambda rng: "|".join(["9#"] * rng.randrange(1, 5000)),
    lambda rng: " " * rng.randrange(1, 50_000) + "#",
    lambda rng: "Solution: " + "9999l" * rng.randrange(1, 2000),
    lambda rng: "####\n#@.#\n#$ #\n####\n\n" * rng.randrange(1, 200),
)
NUMBERS = (0, 1, -1, 2**31, 2**63, 2**64, 10**30, -(10**30), 0.5, -0.0, 1e-320, 1e308, float("inf"), float("nan"))
VALUES: tuple[Any, ...] = (
    *NUMBERS,
    *(None, True, False, "", "\x1b[31m", "[bold]x[/]", "<b>", "nan", "../..", "\0", [], {}, [1], {"a": 1}, [[[]]]),
    *(["x"] * 50, {"name": "x"}, "deep-sea", "x" * 5000),
)


def mutated_text(text: str, others: tuple[str, ...], rng: random.Random) -> str:
    """Returns a text after one to four kinds of damage; `others` are spliced into it."""
    for _ in range(rng.randrange(1, 5)):
        where, end = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        kind = rng.randrange(9)
        if kind == 0:  # a character
            text = text[:where] + chr(rng.randrange(1, 0xD800)) + text[where + 1 :]
        elif kind == 1:  # something known to matter
            text = text[:where] + rng.choice(PIECES) * rng.choice((1, 1, 2, 50)) + text[where:]
        elif kind == 2:  # a part is lost
            text = text[:where] + text[min(end, where + rng.randrange(1, 60)) :]
        elif kind == 3:  # a part is doubled
            text = text[:end] + text[where:end] * rng.choice((1, 1, 10)) + text[end:]
        elif kind == 4:  # two halves
            other = rng.choice(others)
            text = text[:where] + other[rng.randrange(len(other)) :]
        elif kind == 5:  # a part is moved
            text = text[end:] + text[where:end] + text[:where]
        elif kind == 6:
            text = text[:where] + rng.choice(BOMBS)(rng) + text[where:]
        elif kind == 7:  # two lines change places
            lines = text.split("\n")
            one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[one], lines[two] = lines[two], lines[one]
            text = "\n".join(lines)
        else:
            text = text.replace(rng.choice("#@$. -kDG0123"), rng.choice(PIECES))
        text = text[:2_000_000]
    return text


def mutated_bytes(text: str, rng: random.Random) -> bytes:
    """Returns a text as bytes: nearly always as UTF-8, else in another encoding, cut off, or with bytes changed."""
    content = text.encode("utf-8", "surrogatepass")
    kind = rng.randrange(20)
    if kind == 0:
        return text.encode("utf-16", "replace")
    if kind == 1:
        return content[: rng.randrange(len(content) + 1)]
    if kind == 2 and content:
        changed = bytearray(content)
        for _ in range(rng.randrange(1, 9)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed)
    return content


def mutated_data(data: Any, rng: random.Random) -> Any:
    """Returns plain data with one to three entries changed, removed, added or moved."""
    data = copy.deepcopy(data)
    for _ in range(rng.randrange(1, 4)):
        places = _places(data)
        if not places:
            return _value(rng)
        holder, key = rng.choice(places)
        kind = rng.randrange(5)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[rng.choice(("x", "", "name", "\x1b[2J", "size", "steps"))] = _value(rng)
        elif kind == 2:
            other, name = rng.choice(places)
            holder[key] = copy.deepcopy(other[name]) if name in _keys(other) else None
        else:
            holder[key] = _value(rng)
    return _value(rng) if rng.randrange(200) == 0 else data


def _value(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(VALUES))


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Returns every (dict or list, key or index) in plain data."""
    found = []
    for key in _keys(data):
        found += [(data, key), *_places(data[key])]
    return found


def _keys(data: Any) -> list[Any]:
    if isinstance(data, dict):
        return list(data)
    return list(range(len(data))) if isinstance(data, list) else []


def mutated_json(data: Any, rng: random.Random) -> bytes:
    """Returns JSON of damaged data; now and then a damaged text of it."""
    text = json.dumps(mutated_data(data, rng))
    if rng.randrange(10) == 0:
        depth = rng.choice((1, 10, 100_000))
        text = rng.choice((text[: rng.randrange(len(text) + 1)], "[" * depth + "]" * depth, "1" * 5000, text + "}"))
        text = rng.choice((text, mutated_text(text + " ", (text + " ",), rng)))
    return mutated_bytes(text, rng)
