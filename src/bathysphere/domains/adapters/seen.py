"""What networks see of states that are Python objects: what the world shows of them, or the numbers they hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.adapters.calling import shown, user_code
from bathysphere.domains.base import Categories, Features, ObservationSpec
from bathysphere.errors import WorldError

_MOST_CATEGORIES = 64  # numbers from 0 up to here are taken for kinds of things, larger ones for amounts
_MOST_NUMBERED = 4096  # the same of an observation that is one number
_FIX = "Give the world a method observe(state) that returns an array of numbers, or a grid of small whole numbers."


class Seen:
    """Observations of states, all of one shape.

    Args:
      world: may have a method `observe` and an attribute `observation`, Features or Categories.
      examples: states, from which the shape and the number of categories are found where the world does not say.
    """

    def __init__(self, world: Any, examples: Sequence[Any]) -> None:
        self._name, self._look = "The state", _as_it_is if _are_regular(examples) else _leaves
        if hasattr(world, "observe"):
            self._name, self._look = "observe", world.observe
        stated = getattr(world, "observation", None)
        self.spec: ObservationSpec = stated if isinstance(stated, Features | Categories) else self._find(examples)

    def of(self, states: Sequence[Any]) -> NDArray[np.generic]:
        """Returns float32 [n, size] for Features, int32 [n, *shape] for Categories."""
        spec = self.spec
        shape = (spec.size,) if isinstance(spec, Features) else spec.shape
        if not states:
            return np.zeros((0, *shape), np.float32 if isinstance(spec, Features) else np.int32)
        array = self._array(states)
        if array[0].size != np.prod(shape, dtype=int):
            raise self._wrong_shape(states[0], array[0], f"{spec} was expected")
        array = array.reshape(len(states), *shape)
        if isinstance(spec, Features):
            if not np.isfinite(array).all():
                bad = states[int(np.argwhere(~np.isfinite(array))[0, 0])]
                raise WorldError(
                    "observation-not-finite",
                    f"{self._name} has numbers that are not finite in the state {shown(bad)}.",
                    "Return finite numbers only; networks cannot learn from others.",
                )
            return array.astype(np.float32)
        if array.min() < 0 or array.max() >= spec.num_categories:
            row = int(np.argwhere((array < 0) | (array >= spec.num_categories))[0, 0])
            raise WorldError(
                "category-out-of-range",
                f"{self._name} has the numbers {array[row].min()} to {array[row].max()} in the state "
                f"{shown(states[row])}; 0 to {spec.num_categories - 1} were expected.",
                "Write how many there are into the world, with Categories of bathysphere.domains.base: observation = "
                f"Categories({spec.shape}, {max(int(array.max()) + 1, spec.num_categories)}).",
            )
        return array.astype(np.int32)

    def _array(self, states: Sequence[Any]) -> NDArray[Any]:
        """Returns numbers [n, ...], of any type."""
        look = self._look
        if look is _as_it_is:
            looks: list[Any] = list(states)
        elif look is _leaves:
            looks = [_leaves(state) for state in states]
        else:
            looks = []
            for state in states:
                with user_code("observe", state):
                    looks.append(look(state))
        try:
            array = np.array(looks)
        except ValueError:
            array = np.zeros(0, object)
        if array.dtype.kind in "biuf":
            return array
        first = np.shape(looks[0])
        odd = next((i for i, one in enumerate(looks) if not _is_numbers(one) or np.shape(one) != first), 0)
        raise self._wrong_shape(states[odd], looks[odd], "numbers in one shape were expected")

    def _wrong_shape(self, state: Any, look: Any, expected: str) -> WorldError:
        found = f"an array {list(np.shape(look))}" if _is_numbers(look) else shown(look)
        if self._name == "The state":
            return WorldError(
                "no-observation",
                f"Without a method observe networks see the numbers of a state, here {found} of {shown(state)}; "
                f"{expected}.",
                _FIX,
            )
        return WorldError(
            "observation-shape",
            f"observe gave {found} in the state {shown(state)}; {expected}.",
            "Let observe return numbers in the same shape for every state, padded where need be.",
        )

    def _find(self, examples: Sequence[Any]) -> ObservationSpec:
        array = self._array(examples)
        shape = array.shape[1:] or (1,)
        size = int(np.prod(shape))
        is_whole = array.dtype.kind in "biu" and bool(array.min() >= 0)
        highest = int(array.max()) if is_whole else 0
        if is_whole and size == 1:
            if highest >= _MOST_NUMBERED:
                raise WorldError(
                    "no-observation",
                    f"{self._name} is one whole number as large as {highest}, of which a network can make nothing.",
                    _FIX,
                )
            return Categories(shape, 16 << highest.bit_length())  # with room for those not met yet
        if is_whole and highest < _MOST_CATEGORIES:
            return Categories(shape, 1 << max(highest, 1).bit_length())
        return Features(size)


def _as_it_is(state: Any) -> Any:
    return state


def _is_numbers(look: Any) -> bool:
    try:
        return np.asarray(look).dtype.kind in "biuf"
    except ValueError:
        return False


def _are_regular(examples: Sequence[Any]) -> bool:
    """Tells whether states are numbers, tuples or arrays of numbers, all in one shape."""
    return all(map(_is_numbers, examples)) and len(set(map(np.shape, examples))) == 1


def _leaves(state: Any) -> list[float]:
    """Returns all numbers in a state, in order."""
    if isinstance(state, bool | int | float | np.number | np.bool_):
        return [state]  # type: ignore[list-item]
    if isinstance(state, np.ndarray):
        return list(state.ravel())
    if isinstance(state, bytes):
        return list(state)
    if dataclasses.is_dataclass(state):
        state = tuple(getattr(state, field.name) for field in dataclasses.fields(state))
    if isinstance(state, tuple):
        return [leaf for part in state for leaf in _leaves(part)]
    raise WorldError(
        "no-observation",
        f"The state holds {shown(state)}, of which no observation follows, and the world has no method observe.",
        _FIX,
    )
