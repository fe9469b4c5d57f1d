"""Saved states: arrays by flat names, a part's names beginning with the name of the part; generators as arrays.

What is read back may have been written by anybody. `check_kinds` and `require` refuse what no run has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bathysphere.errors import BathysphereError

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")

MOST = 2**53  # of whatever is counted, so that sums stay exact
_WORD = 2**64 - 1
_COUNTS = ("num_updates", "step")  # what optimisers keep: how many updates they have made,
_SQUARES = ("mean_square", "exp_avg_sq", "square_avg", "accumulators")  # and means of squared gradients


def section(state: Mapping[str, T], prefix: str) -> dict[str, T]:
    """Returns the entries whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def prefixed(prefix: str, state: Mapping[str, T]) -> dict[str, T]:
    """Returns the entries with `prefix` before their names. Inverse of `section`."""
    return {prefix + name: value for name, value in state.items()}


def check_kinds(saved: Mapping[str, NDArray[Any]], fresh: Mapping[str, NDArray[Any]]) -> None:
    """Refuses saved arrays that are of another kind than those of the same names in a state that has just begun.

    Their lengths may differ, their types and numbers of axes may not. Names that only one of them has are let pass.
    """
    for name in saved.keys() & fresh.keys():
        found, expected = ((array.dtype, array.ndim) for array in (saved[name], fresh[name]))
        require(
            found == expected,
            f"{name} is {found[0]} with {found[1]} axes, and {expected[0]} with {expected[1]} was expected",
        )


def check_finite(weights: Mapping[str, NDArray[Any]]) -> None:
    """Refuses saved weights that are not all numbers."""
    for name, array in weights.items():
        require(array.dtype.kind != "f" or np.isfinite(array).all(), f"the weights {name} are not finite")


def check_optimiser(saved: Mapping[str, NDArray[Any]]) -> None:
    """Refuses what no optimiser can have kept, among arrays whose names end in what they are."""
    for name, array in saved.items():
        what = name.rpartition(".")[2]
        if what in _COUNTS:
            require(((array >= 0) & (array < MOST)).all(), f"{name} counts no updates")
        elif what in _SQUARES:
            require((array >= 0).all(), f"{name} is a mean of squares, and negative")


def require(is_kept: Any, complaint: str) -> None:
    """Refuses a saved state that no run can have written, with what is wrong with it."""
    if not is_kept:
        raise BathysphereError(f"What was saved is impossible: {complaint}. It is damaged, or was made up.")


def generator_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Returns the state of a PCG64 generator (what `default_rng` makes), uint64 [6]."""
    state = rng.bit_generator.state
    numbers = (state["state"]["state"], state["state"]["inc"])
    words = [(number >> shift) & _WORD for number in numbers for shift in (0, 64)]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def restore_generator(rng: np.random.Generator, words: NDArray[Any]) -> None:
    """Gives `rng` the state that `generator_state` returned. Mutates: rng."""
    require(words.shape == (6,), "a generator has another number of words")
    low, high, inc_low, inc_high, has_uint32, uinteger = (int(word) for word in words)
    require(inc_low % 2 == 1 and has_uint32 <= 1 and uinteger < 2**32, "a generator is in no state that it can be in")
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": low | high << 64, "inc": inc_low | inc_high << 64},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
