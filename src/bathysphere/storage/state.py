"""Saved states: arrays by flat names, a part's names beginning with the name of the part; generators as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")

_WORD = 2**64 - 1


def section(state: Mapping[str, T], prefix: str) -> dict[str, T]:
    """Returns the entries whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def prefixed(prefix: str, state: Mapping[str, T]) -> dict[str, T]:
    """Returns the entries with `prefix` before their names. Inverse of `section`."""
    return {prefix + name: value for name, value in state.items()}


def generator_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Returns the state of a PCG64 generator (what `default_rng` makes), uint64 [6]."""
    state = rng.bit_generator.state
    numbers = (state["state"]["state"], state["state"]["inc"])
    words = [(number >> shift) & _WORD for number in numbers for shift in (0, 64)]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def restore_generator(rng: np.random.Generator, words: NDArray[Any]) -> None:
    """Gives `rng` the state that `generator_state` returned. Mutates: rng."""
    low, high, inc_low, inc_high, has_uint32, uinteger = (int(word) for word in words)
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": low | high << 64, "inc": inc_low | inc_high << 64},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
