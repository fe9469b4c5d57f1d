"""What all kernels share: how they are compiled, and what they are handed besides the arena."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

# No reference counting: it costs more than the arithmetic, and kernels neither allocate nor keep anything.
_OPTIONS: Any = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
kernel: Any = numba.njit(**_OPTIONS)
inlined: Any = numba.njit(inline="always", **_OPTIONS)


def direct(compiled: Any, *args: Any) -> Any:
    """Returns `compiled` for arguments of exactly the types of `args`, without Numba's look at the types of each call.

    That look takes longer than a whole sweep of a few episodes. Safe only for arguments that are all our own.
    """
    if not isinstance(compiled, Dispatcher):  # Numba is switched off
        return compiled
    dispatcher: Any = compiled
    signature = tuple(dispatcher.typeof_pyval(arg) for arg in args)
    dispatcher.compile(signature)
    return dispatcher.overloads[signature].entry_point


class Rules(NamedTuple):
    """The numbers of a SearchConfig that kernels need."""

    discount: float
    risk_coef: float
    final_risk_coef: float
    bonus_coef: float
    final_bonus_coef: float
    dead_end_value: float
    episode_penalty: float
    path_penalty: float
    avoid_loops: bool
    tracks_path: bool  # whether path_visits are needed at all
    has_penalties: bool
    dead_ends: bool
    transpositions: bool
    is_joint: bool
    final_is_joint: bool
    final_highest: bool


class Scratch(NamedTuple):
    """Room for intermediate results, so that kernels allocate nothing."""

    eligible: NDArray[np.bool_]  # [A]
    scores: NDArray[np.float64]  # [A]
    drawn: NDArray[np.float64]  # [L], drawn members' values of one child
    q: NDArray[np.float64]  # [A, L], drawn members' values of all actions
    value: NDArray[np.float64]  # [E], what is being backed up


class Addresses(NamedTuple):
    """Where compiled risk measures and bonus lie. Of each separable/joint pair only the one in use is ever called."""

    separable: int
    joint: int
    final_separable: int
    final_joint: int
    bonus: int


# Constants of splitmix64, and shifts in the type it needs them in.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
S27, S30, S31, S32, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32), np.uint64(11)
