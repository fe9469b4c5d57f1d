"""What all kernels share: how they are compiled, and what they are handed besides the arena."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from bathysphere.planning.config import SearchConfig
from bathysphere.planning.graph.risk import find_bonus, find_risk_measure

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
    key = dispatcher, *map(_kind, args)
    if key not in _entry_points:
        signature = tuple(dispatcher.typeof_pyval(arg) for arg in args)
        dispatcher.compile(signature)
        _entry_points[key] = dispatcher.overloads[signature].entry_point
    return _entry_points[key]


_entry_points: dict[tuple[Any, ...], Any] = {}  # a planner is made for every block of a run, with the same types


def _kind(arg: Any) -> Any:
    """Returns what decides Numba's type of an argument; finding that type itself takes a hundred times as long."""
    if isinstance(arg, np.ndarray):
        flags = arg.flags
        return arg.dtype, arg.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    return (type(arg), *map(_kind, arg)) if isinstance(arg, tuple) else type(arg)


class Rules(NamedTuple):
    """The numbers of a SearchConfig that kernels need."""

    discount: float
    risk_coef: float
    final_risk_coef: float
    bonus_coef: float
    final_bonus_coef: float
    prior_coef: float
    dead_end_value: float
    episode_penalty: float
    path_penalty: float
    patience: float
    avoid_loops: bool
    tracks_path: bool  # whether path_visits are needed at all
    has_penalties: bool
    dead_ends: bool
    transpositions: bool
    merge_nodes: bool
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


def translate(config: SearchConfig) -> tuple[Rules, Addresses]:
    """Translates a config into what kernels take."""
    risk = find_risk_measure(config.risk)
    final = find_risk_measure(config.final_risk or config.risk)
    # Kernels take one address of each kind; the kind not in use is never called.
    any_separable, any_joint = find_risk_measure("mean_std"), find_risk_measure("vote")
    rules = Rules(
        discount=float(config.discount),
        risk_coef=float(config.risk_coef),
        final_risk_coef=float(config.risk_coef if config.final_risk_coef is None else config.final_risk_coef),
        bonus_coef=0.0 if config.bonus == "none" else float(config.bonus_coef),
        final_bonus_coef=0.0 if config.bonus == "none" or not config.final_bonus else float(config.bonus_coef),
        prior_coef=float(config.prior_coef),
        dead_end_value=float(config.dead_end_value or 0.0),
        episode_penalty=float(config.episode_penalty),
        path_penalty=float(config.path_penalty),
        patience=float(config.patience),
        avoid_loops=config.avoid_loops,
        tracks_path=config.avoid_loops or config.path_penalty != 0.0,
        has_penalties=config.episode_penalty != 0.0 or config.path_penalty != 0.0,
        dead_ends=config.dead_end_value is not None,
        transpositions=config.transpositions,
        merge_nodes=config.merge_nodes,
        is_joint=risk.kind == "joint",
        final_is_joint=final.kind == "joint",
        final_highest=config.final_ties == "highest",
    )
    addresses = Addresses(
        separable=(risk if risk.kind == "separable" else any_separable).address,
        joint=(risk if risk.kind == "joint" else any_joint).address,
        final_separable=(final if final.kind == "separable" else any_separable).address,
        final_joint=(final if final.kind == "joint" else any_joint).address,
        bonus=find_bonus(config.bonus).address,
    )
    return rules, addresses


# Constants of splitmix64, and shifts in the type it needs them in.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
S27, S30, S31, S32, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32), np.uint64(11)
