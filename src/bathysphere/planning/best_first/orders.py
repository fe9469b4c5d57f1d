"""Orders of the open list: small compiled functions that say which state is expanded next.

An order gives every state a priority, and the lowest is expanded first. To add your own:

    from bathysphere.planning.best_first.orders import order

    @order
    def greedy(depth, returned, value, log_probability, numbers):
        return -value

and set `order="greedy"`. What is passed in, of a state and of the best way to it that is known:

    depth             steps from the start
    returned          discounted rewards of those steps
    value             what the risk measure makes of the members' values of the state
    log_probability   of those steps, by the policy; 0 if the values have none
    numbers           the config's: WEIGHT, DISCOUNT and GOAL (what success pays) are their places
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from numba import njit, types

from bathysphere.errors import BathysphereError, did_you_mean
from bathysphere.planning.graph.function_pointers import address_of, caller

WEIGHT, DISCOUNT, GOAL = range(3)
LEAST_SHARE = 1e-3  # of the goal: values below it count as this, so that every state has a number of steps to go

_SIGNATURE = types.float64(types.int64, types.float64, types.float64, types.float64, types.Array(types.float64, 1, "C"))
order_at = caller(_SIGNATURE)
Function = TypeVar("Function", bound=Callable[..., Any])


class Order(NamedTuple):
    """A named order of the open list."""

    function: Callable[..., float]
    needs_policy: bool

    @property
    def address(self) -> int:
        """Where the machine code lies, as kernels take it."""
        return address_of(self.function, _SIGNATURE)


_ORDERS: dict[str, Order] = {}


def order(function: Function) -> Function:
    """Registers `function(depth, returned, value, log_probability, numbers) -> float` under its own name."""
    _ORDERS[function.__name__] = Order(function, needs_policy=False)
    return function


def policy_order(function: Function) -> Function:
    """Registers an order that reads `log_probability`, so that the values must have a policy."""
    _ORDERS[function.__name__] = Order(function, needs_policy=True)
    return function


def find_order(name: str) -> Order:
    """Returns the order called `name`."""
    if name not in _ORDERS:
        known = ", ".join(sorted(_ORDERS))
        raise BathysphereError(
            f"There is no order of the open list {name!r}; choose one of {known}.{did_you_mean(name, _ORDERS)}"
        )
    return _ORDERS[name]


@njit(inline="always")
def _steps_to_go(value, numbers):  # type: ignore[no-untyped-def]
    """Returns after how many steps a final reward is worth `value` now; at least 0."""
    share = min(max(value / numbers[GOAL], LEAST_SHARE), 1.0)
    return math.log(share) / math.log(numbers[DISCOUNT])


@order
def steps(depth, returned, value, log_probability, numbers):  # type: ignore[no-untyped-def]
    """Weighted A*: depth + weight * steps to go."""
    return depth + numbers[WEIGHT] * _steps_to_go(value, numbers)


@order
def value(depth, returned, value, log_probability, numbers):  # type: ignore[no-untyped-def]
    """Weighted A* in value: the highest of returned + weight * discount^depth * value first."""
    return -(returned + numbers[WEIGHT] * numbers[DISCOUNT] ** depth * value)


@policy_order
def levin(depth, returned, value, log_probability, numbers):  # type: ignore[no-untyped-def]
    """Levin tree search: the lowest of (depth + 1) / probability first, as a logarithm. Values are not used."""
    return math.log(depth + 1.0) - log_probability


@policy_order
def phs(depth, returned, value, log_probability, numbers):  # type: ignore[no-untyped-def]
    """PHS*: the lowest of (g + h) / probability^(1 + h / g) first, as a logarithm; g is depth + 1, h steps to go."""
    g = depth + 1.0
    h = _steps_to_go(value, numbers)
    return math.log(g + h) - (1.0 + h / g) * log_probability
