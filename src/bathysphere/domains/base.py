"""The contract every world keeps: rules and presentation over rows of bytes.

Shape letters used throughout the package: `B` batch of episodes, `n` any number of rows, `S` bytes per state,
`A` actions, `E` ensemble members, `T` time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

States = NDArray[np.uint8]


class Successors(NamedTuple):
    """Everything one step ahead of `n` states, for all actions at once."""

    states: States  # uint8 [n, A, S]
    rewards: NDArray[np.float64]  # float64 [n, A], reward on the edge
    terminal: NDArray[np.bool_]  # bool [n, A], the successor ends the episode
    solved: NDArray[np.bool_]  # bool [n, A], the successor is a success (implies terminal in our worlds)


@dataclass(frozen=True)
class Features:
    """Observations are plain numbers: `observe` returns float32 [n, size]."""

    size: int


@dataclass(frozen=True)
class Categories:
    """Observations are grids of categories: `observe` returns integers [n, *shape], each < num_categories.

    Networks read them as one-hot vectors, and need never materialise those.
    """

    shape: tuple[int, ...]
    num_categories: int


ObservationSpec = Features | Categories


@runtime_checkable
class Model(Protocol):
    """Anything that predicts successors: the domain itself, a learned network, a user's simulator."""

    def successors(self, states: States) -> Successors:
        """Predicts all actions' outcomes for `states`, uint8 [n, S]. Pure: same rows in, same rows out."""
        ...


@runtime_checkable
class Domain(Model, Protocol):
    """A deterministic, discrete world. Two states are equal iff their bytes are.

    A move that is impossible in a state leaves the state unchanged; the planner's loop avoidance then never
    picks it. Terminal states must map to themselves with reward 0.
    """

    name: str
    state_size: int  # S
    action_names: tuple[str, ...]  # A of them
    max_steps: int  # the usual time limit; reaching it is truncation, not an end
    observation: ObservationSpec

    def initial(self, n: int, rng: np.random.Generator) -> States:
        """Returns `n` start states, uint8 [n, S]."""
        ...

    def observe(self, states: States) -> NDArray[np.generic]:
        """Returns what networks see of `states`, in the form `observation` declares."""
        ...

    def render(self, state: States) -> NDArray[np.uint8]:
        """Draws one state, uint8 [S], as an RGB picture, uint8 [height, width, 3]."""
        ...

    def text(self, state: States) -> str:
        """Draws one state, uint8 [S], with characters."""
        ...


class Starts(Protocol):
    """A stream of start states without end, each with its number."""

    def take(self, numbers: NDArray[np.int64], ahead: NDArray[np.int64]) -> States:
        """Returns the start states with these numbers, uint8 [n, S]. The same number is always the same state.

        Args:
          numbers: int64 [n], from 0.
          ahead: int64 [m], those that will be wanted next; they may be prepared meanwhile.
        """
        ...


@runtime_checkable
class NumberedStarts(Protocol):
    """What a domain may offer besides: the n-th episode of a search then begins with the n-th state of a stream.

    So a run meets no start state twice (as far as a stream does not repeat itself), and runs with the same seed
    meet the same ones, whatever their other settings.
    """

    def numbered_starts(self, stream: int) -> Starts | None:
        """Opens stream `stream`, from 0; None if episodes begin with states that `initial` draws all the same."""
        ...


@dataclass(frozen=True)
class CompiledRules:
    """A domain's rules for one state at a time, as functions that Numba compiles.

    Kernels call them through a pointer, so they see their arguments and nothing else: whatever depends on the domain's
    settings is in `numbers` and `cells`, which are handed to both. They must agree with the domain's `successors` and
    `observe` bit for bit, and write every entry of what they write.
    """

    successors: Callable[..., None]
    """successors(numbers, cells, state, states, rewards, terminal, solved): from `state`, uint8 [S], writes `states`,
    uint8 [A, S], and `rewards`, `terminal` and `solved`, [A] each."""
    category: Callable[..., int]
    """category(numbers, cells, state): returns the one category that `observe` returns for `state`."""
    numbers: NDArray[np.float64]  # [any]
    cells: NDArray[np.uint8]  # [any]


@runtime_checkable
class Compilable(Protocol):
    """What a domain observed as one category may offer besides: rules by which to plan without leaving compiled code.

    They serve when the values are a table, and change no number.
    """

    def compiled_rules(self) -> CompiledRules:
        """Returns the rules."""
        ...
