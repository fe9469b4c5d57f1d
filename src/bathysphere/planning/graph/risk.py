"""Risk measures and visit-count bonuses: small compiled functions handed to the planner's kernels.

A *separable* measure turns one child's member estimates into a score. It is called only when the child's sums
have changed; the planner caches the result per state. A *joint* measure sees all actions at once. To add your
own:

    import bathysphere

    @bathysphere.separable
    def best_case(values, risk_coef):
        return values.max()

and set `risk="best_case"`; `register_risk` does the same under another name. It is compiled to machine code and called
through a pointer, exactly as ours are.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numba import njit, types

from bathysphere.errors import BathysphereError, did_you_mean, unknown_name
from bathysphere.planning.graph.function_pointers import address_of, caller

_VECTOR = types.Array(types.float64, 1, "C")
_MATRIX = types.Array(types.float64, 2, "C")
_FLAGS = types.Array(types.boolean, 1, "C")
_SIGNATURES = {
    "separable": types.float64(_VECTOR, types.float64),
    "joint": types.void(_MATRIX, _FLAGS, types.float64, _VECTOR),
    "bonus": types.float64(types.int64, types.int64, types.float64, types.int64),
}

Kind = Literal["separable", "joint", "bonus"]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Compiled:
    """A named function that is compiled on first use."""

    name: str
    kind: Kind
    function: Callable[..., Any]

    @property
    def is_built_in(self) -> bool:
        """Whether it comes with the package."""
        return self.function.__module__ == __name__

    @property
    def address(self) -> int:
        """Where the machine code lies, as kernels take it."""
        return address_of(self.function, _SIGNATURES[self.kind])


separable_at, joint_at, bonus_at = (caller(_SIGNATURES[kind]) for kind in ("separable", "joint", "bonus"))


_MEASURES: dict[str, Compiled] = {}
_BONUSES: dict[str, Compiled] = {}


def separable(function: Function) -> Function:
    """Registers `function(values: float64 [E], risk_coef: float) -> float` under its own name."""
    _register(function.__name__, "separable", function)
    return function


def joint(function: Function) -> Function:
    """Registers `function(q: float64 [A, E], eligible: bool [A], risk_coef: float, scores: float64 [A])`.

    It writes a score for every eligible action; the others are ignored, and their rows of `q` hold -inf.
    """
    _register(function.__name__, "joint", function)
    return function


def register_risk(name: str, measure: Callable[..., Any]) -> None:
    """Makes a risk measure known by another name than its own.

    Args:
      name: as configs and flags have it.
      measure: a function of two arguments, as `separable` takes it, or of four, as `joint` does.
    """
    count = len(inspect.signature(getattr(measure, "py_func", measure)).parameters)
    if count not in (2, 4):
        raise BathysphereError(
            f"The risk measure {name!r} takes {count} arguments; expected 2 (values, risk_coef) or 4 (q, eligible, "
            "risk_coef, scores)."
        )
    _register(name, "separable" if count == 2 else "joint", measure)


def _register(name: str, kind: Kind, measure: Callable[..., Any]) -> None:
    known = _MEASURES.get(name)
    if known is not None and known.is_built_in and measure.__module__ != __name__:
        raise BathysphereError(f"There is a risk measure {name!r} already. Choose another name for yours.")
    _MEASURES[name] = Compiled(name, kind, measure)


def modules_of_measures(names: Iterable[str]) -> list[str]:
    """Returns the modules that registered those of `names` that are users' own: another process must import them."""
    measures = [find_risk_measure(name) for name in names]
    homes = {measure.function.__module__ for measure in measures if not measure.is_built_in}
    return sorted(homes - {"__main__"})  # which processes import by themselves


def check_measure(measure: Compiled, num_members: int, risk_coef: float) -> None:
    """Tries a user's own measure on a few values, and refuses one that fails or returns no number.

    Args:
      measure: the measure; those that come with the package are not tried.
      num_members: whose values it will get.
      risk_coef: that it will get.
    """
    if measure.is_built_in:
        return
    function = getattr(measure.function, "py_func", measure.function)
    rng = np.random.default_rng(0)
    tried = [np.zeros(num_members), np.full(num_members, -1.0), *rng.normal(size=(3, num_members))]
    for values in tried:
        try:
            if measure.kind == "separable":
                scores = np.array([function(values.copy(), risk_coef)], np.float64)
            else:
                scores = np.zeros(2)
                function(np.stack([values, -values]), np.ones(2, np.bool_), risk_coef, scores)
        except Exception as error:
            raise BathysphereError(
                f"The risk measure {measure.name!r} fails with {type(error).__name__}: {error}. Tried on the members' "
                f"values {np.round(values, 3).tolist()} and risk_coef {risk_coef:g}."
            ) from error
        if np.isnan(scores).any():
            raise no_number(measure.name, f"the members' values {np.round(values, 3).tolist()}")


def no_number(name: str, what: str) -> BathysphereError:
    """Returns the error of a measure that returned NaN for something."""
    return BathysphereError(
        f"The risk measure {name!r} returned NaN for {what}, so actions cannot be ranked. Return a number for all "
        "finite values: mind square roots and logarithms of negative numbers, and division by a deviation of 0."
    )


def _bonus(function: Function) -> Function:
    name = function.__name__.removesuffix("_bonus")
    _BONUSES[name] = Compiled(name, "bonus", function)
    return function


def risk_measures() -> list[str]:
    """Returns the names of all registered risk measures."""
    return sorted(_MEASURES)


def find_risk_measure(name: str) -> Compiled:
    """Returns the risk measure called `name`."""
    if name not in _MEASURES:
        raise unknown_name("risk measure", name, sorted(_MEASURES))
    return _MEASURES[name]


def find_bonus(name: str) -> Compiled:
    """Returns the visit-count bonus called `name`."""
    if name not in _BONUSES:
        known, hint = ", ".join(sorted(_BONUSES)), did_you_mean(name, _BONUSES)
        raise BathysphereError(f"There is no visit-count bonus {name!r}; choose one of {known}.{hint}")
    return _BONUSES[name]


@njit(inline="always")
def _mean_and_squares(values):  # type: ignore[no-untyped-def]
    """Returns the mean of values [E], and the sum of their squared distances from it."""
    mean = 0.0
    for value in values:
        mean += value
    mean /= values.shape[0]
    squares = 0.0
    for value in values:
        squares += (value - mean) * (value - mean)
    return mean, squares


@separable
def mean_std(values, risk_coef):  # type: ignore[no-untyped-def]
    """Returns mean + risk_coef * std (population std, so one member gives std 0)."""
    mean, squares = _mean_and_squares(values)
    return mean + risk_coef * math.sqrt(squares / values.shape[0])


@separable
def mean_variance(values, risk_coef):  # type: ignore[no-untyped-def]
    """Returns mean + risk_coef * population variance."""
    mean, squares = _mean_and_squares(values)
    return mean + risk_coef * squares / values.shape[0]


@separable
def second_moment(values, risk_coef):  # type: ignore[no-untyped-def]
    """Returns the mean of x + risk_coef * x²: the paper's measure with a loading on variance."""
    total = 0.0
    for value in values:
        total += value + risk_coef * value * value
    return total / values.shape[0]


@separable
def exponential(values, risk_coef):  # type: ignore[no-untyped-def]
    """Returns log(mean(exp(risk_coef * x))) / risk_coef, the certainty equivalent; the mean at risk_coef 0.

    The largest exponent is taken out first, so no exponential overflows.
    """
    num = values.shape[0]
    if risk_coef == 0.0:
        mean = 0.0
        for value in values:
            mean += value
        return mean / num
    peak = -math.inf
    for value in values:
        peak = max(peak, risk_coef * value)
    total = 0.0
    for value in values:
        total += math.exp(risk_coef * value - peak)
    return (peak + math.log(total / num)) / risk_coef


@joint
def vote(q, eligible, risk_coef, scores):  # type: ignore[no-untyped-def]
    """Counts plurality votes as the authors do: a member votes for *every* action close to its own maximum.

    Close means within 1e-8 + 1e-5 * |maximum|. `risk_coef` is not used.
    """
    if q.shape[0] == 4:  # as in most grids; without inner loops it takes half the time
        first = second = third = fourth = 0.0
        for i in range(q.shape[1]):
            peak = max(max(q[0, i], q[1, i]), max(q[2, i], q[3, i]))
            margin = 1e-8 + 1e-5 * abs(peak)
            first += peak - q[0, i] <= margin
            second += peak - q[1, i] <= margin
            third += peak - q[2, i] <= margin
            fourth += peak - q[3, i] <= margin
        scores[0], scores[1], scores[2], scores[3] = first, second, third, fourth
        return
    scores[:] = 0.0
    for i in range(q.shape[1]):
        peak = -np.inf
        for a in range(q.shape[0]):
            peak = max(peak, q[a, i])
        margin = 1e-8 + 1e-5 * abs(peak)
        for a in range(q.shape[0]):
            scores[a] += peak - q[a, i] <= margin


@joint
def vote_once(q, eligible, risk_coef, scores):  # type: ignore[no-untyped-def]
    """Counts plurality votes with one vote per member, shared equally between its exact ties."""
    scores[:] = 0.0
    for i in range(q.shape[1]):
        peak = -np.inf
        ties = 0
        for a in range(q.shape[0]):
            if q[a, i] > peak:
                peak = q[a, i]
                ties = 0
            ties += q[a, i] == peak
        for a in range(q.shape[0]):
            if q[a, i] == peak:
                scores[a] += 1.0 / ties


@_bonus
def none_bonus(parent_count, child_count, std, num_members):  # type: ignore[no-untyped-def]
    """Returns 0."""
    return 0.0


@_bonus
def ucb1_bonus(parent_count, child_count, std, num_members):  # type: ignore[no-untyped-def]
    """Returns sqrt(2 ln N / (n E)) for parent count N, child count n and E members."""
    return math.sqrt(2.0 * math.log(parent_count) / (child_count * num_members))


@_bonus
def ucb_v_bonus(parent_count, child_count, std, num_members):  # type: ignore[no-untyped-def]
    """Returns std * sqrt((ln 2 + 4 ln N) / (n E)), a Bernstein-like bound with the members' std."""
    return std * math.sqrt((math.log(2.0) + 4.0 * math.log(parent_count)) / (child_count * num_members))


@_bonus
def moss_bonus(parent_count, child_count, std, num_members):  # type: ignore[no-untyped-def]
    """Returns sqrt(max(0, ln(N / 4n)) / 2n)."""
    return math.sqrt(max(0.0, math.log(parent_count / (4.0 * child_count))) / (2.0 * child_count))
