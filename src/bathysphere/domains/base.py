"""The contract of domains: `Domain` is what all of them offer, the other protocols what one may offer besides.

Shape letters used throughout the package: `B` batch of episodes, `n` any number of rows, `S` bytes per state,
`A` actions, `E` ensemble members, `T` time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.observing import Observer
from bathysphere.errors import BathysphereError

States = NDArray[np.uint8]


class Successors(NamedTuple):
    """Everything one step ahead of `n` states, for all actions at once."""

    states: States  # uint8 [n, A, S]
    rewards: NDArray[np.float64]  # float64 [n, A], reward on the edge
    terminal: NDArray[np.bool_]  # bool [n, A], the successor ends the episode
    solved: NDArray[np.bool_]  # bool [n, A], the successor is a success (implies terminal in our worlds)

    @classmethod
    def empty(cls, num_states: int, num_actions: int, state_size: int) -> Successors:
        """Returns arrays of the right shapes and types, for rules to write every entry of."""
        shape = (num_states, num_actions)
        states = np.empty((*shape, state_size), np.uint8)
        return cls(states, np.empty(shape, np.float64), np.empty(shape, np.bool_), np.empty(shape, np.bool_))


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
    blank: int | None = field(default=None, compare=False)
    """A category that can be added around a board without changing what is on it, such as wall around walls; None if
    there is none. Networks of kind `board` need it."""


ObservationSpec = Features | Categories


class DomainConfig:
    """Base class of what can be set about a domain. Subclasses are frozen dataclasses that check their fields."""


@runtime_checkable
class Model(Protocol):
    """Anything that predicts successors: the domain itself, a learned network, a user's simulator."""

    def successors(self, states: States) -> Successors:
        """Predicts all actions' outcomes for `states`, uint8 [n, S]. Pure: same rows in, same rows out."""
        ...


class Imagined(NamedTuple):
    """What a model that does not know everything says one step ahead of `n` states."""

    successors: Successors  # of what it knows; the rest stays where it is
    is_known: NDArray[np.bool_]  # bool [n, A]
    values: NDArray[np.float32]  # float32 [n, A, E], what the rest is worth to each member


@runtime_checkable
class PartialModel(Protocol):
    """What a model may offer besides: that it knows what it does not know.

    Planning goes on from what is known. The unknown ends it, with values that differ between members as widely as the
    model says, so that the risk measure decides whether to go there.
    """

    def imagine(self, states: States) -> Imagined:
        """Predicts all actions' outcomes for `states`, uint8 [n, S], as far as they are known."""
        ...


@runtime_checkable
class LearningModel(Model, Protocol):
    """What a model may offer besides: that it learns from the steps that are made."""

    def learn(self, states: States, actions: NDArray[np.integer], outcomes: Successors) -> None:
        """Learns from steps: `actions` [n] in `states`, uint8 [n, S], had `outcomes`, arrays without an action axis."""
        ...

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything learnt as arrays."""
        ...

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        ...


@runtime_checkable
class AskedModel(LearningModel, Protocol):
    """A model that learns from every step when it is made, not at the end of its episode.

    It says what it was asked, so that its errors there can be counted.
    """

    asked: States  # uint8 [n, S], the latest states


class Outcomes(NamedTuple):
    """Everything that may happen one step ahead of `n` states: up to C outcomes for each action."""

    states: States  # uint8 [n, A, C, S]
    probabilities: NDArray[np.float64]  # float64 [n, A, C], of each action 1 in all; 0 where there is no such outcome
    rewards: NDArray[np.float64]  # float64 [n, A, C]
    terminal: NDArray[np.bool_]  # bool [n, A, C]
    solved: NDArray[np.bool_]  # bool [n, A, C]

    @classmethod
    def none(cls, states: States, num_actions: int, num_outcomes: int) -> Outcomes:
        """Returns arrays in which nothing happens in `states`, uint8 [n, S], and with no probability, to be filled."""
        shape = (len(states), num_actions, num_outcomes)
        stays = np.broadcast_to(states[:, None, None], (*shape, states.shape[1])).copy()
        return cls(stays, np.zeros(shape), np.zeros(shape), np.zeros(shape, np.bool_), np.zeros(shape, np.bool_))


@runtime_checkable
class Chance(Protocol):
    """What a domain with chance offers besides: what may happen, and how probable it is.

    `successors` then returns the likeliest outcome. Steps that are made are drawn from `outcomes`.
    """

    def outcomes(self, states: States) -> Outcomes:
        """Returns all that may follow `states`, uint8 [n, S]; always with the same C.

        Pure, unless chances are counted: then estimates get sharper when they are asked for again.
        """
        ...


class ImaginedOutcomes(NamedTuple):
    """What a model of chance that does not know everything says one step ahead of `n` states."""

    outcomes: Outcomes  # of what it knows; the probabilities of an action add up to 1 with that of the unknown
    unknown: NDArray[np.float64]  # float64 [n, A], how probable it is that something else happens
    values: NDArray[np.float32]  # float32 [n, A, E], what that is worth to each member


@runtime_checkable
class PartialChance(Protocol):
    """What a model that offers `Chance` may offer besides: that it knows what it does not know.

    The unknown is one outcome more: an end, with values that differ between members.
    """

    def imagine_outcomes(self, states: States) -> ImaginedOutcomes:
        """Returns all that is known to follow `states`, uint8 [n, S], and what the rest is worth."""
        ...


@runtime_checkable
class Sampler(Protocol):
    """What a world with chance offers besides that can only be run, such as a simulator.

    Its outcomes are counted (`domains/estimated.py`), so that it can be planned in as one that knows them. Steps
    that are made are runs too.
    """

    def sample(self, states: States, seeds: NDArray[np.int64]) -> Successors:
        """Runs every action once from each of `states`, uint8 [n, S].

        Args:
          states: where to begin; equal ones may come several times.
          seeds: int64 [n], 0 to 2^31 - 1. They decide all that is chance: the same state and seed give the same answer.
        """
        ...


@runtime_checkable
class Domain(Model, Protocol):
    """A discrete world, deterministic unless it offers `Chance` or `Sampler`. Two states are equal iff their bytes are.

    An action that is impossible in a state leaves the state unchanged; the planner's loop avoidance then never
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


@runtime_checkable
class Renderer(Protocol):
    """What a domain may offer for pictures and films. Without it they show the state's text."""

    def render(self, state: States) -> NDArray[np.uint8]:
        """Draws one state, uint8 [S], as an RGB picture, uint8 [height, width, 3]; all states in one size."""
        ...


@runtime_checkable
class TextRenderer(Protocol):
    """What a domain may offer for the terminal. Without it the terminal shows the state's bytes."""

    def text(self, state: States) -> str:
        """Draws one state, uint8 [S], with characters."""
        ...


@runtime_checkable
class StyledText(Protocol):
    """What a domain with a text may offer besides: colours for the terminal."""

    @property
    def text_styles(self) -> Mapping[str, str]:
        """Styles as Rich writes them ("bold red"), by regular expressions of the characters that get them."""
        ...


@runtime_checkable
class Hinted(Protocol):
    """What a domain may offer to people who play it."""

    @property
    def hint(self) -> str:
        """A sentence about what would surprise them."""
        ...


@runtime_checkable
class ReadsEnvironments(Protocol):
    """What a domain made of an environment may offer, so that its agents can act in other copies of that one."""

    def state_of(self, env: Any) -> States:
        """Returns the state of an environment of the same kind, perhaps wrapped, uint8 [S]; leaves it as it is."""
        ...


@runtime_checkable
class ReadsStates(Protocol):
    """What a domain whose states people know as objects may offer, so that its agents can be asked about these."""

    def row_of(self, state: Any) -> States:
        """Returns the row of a state in which the episode goes on, uint8 [S]."""
        ...


@runtime_checkable
class EpisodeRenderer(Protocol):
    """What a domain may offer for posters: a whole episode in one picture."""

    def render_episode(self, states: States) -> NDArray[np.uint8]:
        """Draws an episode, uint8 [T, S], as an RGB picture, uint8 [height, width, 3]."""
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


@runtime_checkable
class WithGoal(Protocol):
    """What a domain may offer to planners that count steps: what success pays."""

    @property
    def goal_reward(self) -> float:
        """Reward of the step that solves an episode."""
        ...


@runtime_checkable
class Relabeller(Protocol):
    """What a domain may offer for hindsight: another goal for an episode that missed its own."""

    def relabel(self, states: States, rng: np.random.Generator) -> tuple[States, NDArray[np.float64]]:
        """Rewrites an episode for a goal that it reached.

        Args:
          states: uint8 [T, S], the states where steps were made, in order.
          rng: chooses the goal.

        Returns:
          The first T' <= T states under the new goal, uint8 [T', S], and the reward of the step out of each,
          float64 [T'].
        """
        ...


@runtime_checkable
class Symmetric(Protocol):
    """What a domain may offer to learn more from each state: which states are equal but for a symmetry."""

    def transform(self, states: States, rng: np.random.Generator) -> tuple[States, NDArray[np.intp]]:
        """Returns for each state, uint8 [n, S], a random one of equal value, perhaps itself, and its actions.

        Returns:
          The states, uint8 [n, S], and for each the actions, intp [n, A]: action a there is what actions[i, a] is here.
        """
        ...


@runtime_checkable
class Hopeless(Protocol):
    """What a domain may offer to spare planners vain work: which states are lost. They may leave such states out."""

    def hopeless(self, states: States) -> NDArray[np.bool_]:
        """Tells which of `states`, uint8 [n, S], can never be solved. It may miss some, but names none that can."""
        ...


class Discovery(NamedTuple):
    """Something that a domain found out about itself by trying."""

    what: str  # in a few words
    reason: str


@runtime_checkable
class Explored(Protocol):
    """What a domain that had to be tried out may offer: what was found, for the person who trains in it."""

    findings: Sequence[Discovery]


@runtime_checkable
class Remembers(Protocol):
    """What a domain may offer whose rows alone do not lead back to its states: what a resumed process must know.

    It is saved with the planners that use the domain.
    """

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything as arrays."""
        ...

    def load_state_dicts(self, states: Sequence[Mapping[str, NDArray[Any]]]) -> None:
        """Adds what the `state_dict` of domains like this one returned, in this process or others."""
        ...


@runtime_checkable
class Forgetful(Protocol):
    """What a domain may offer that answers from memory: for those who want to see whether the world is consistent."""

    def forget(self) -> None:
        """Forgets all answers, so that the world is asked again."""
        ...


def ask_afresh(domain: Domain, states: States) -> Successors:
    """Returns the successors of states, uint8 [n, S], none of them from memory."""
    if isinstance(domain, Forgetful):
        domain.forget()
    return domain.successors(states)


class StateMap(NamedTuple):
    """States that have a place on a map, such as all cells in which somebody could stand."""

    name: str
    states: States  # uint8 [n, S]
    cells: NDArray[np.float64]  # [n, 2], row and column of each; whole numbers are the middles of cells
    shape: tuple[int, int]  # height and width of the map, in cells
    arrows: NDArray[np.float64] | None = None  # [n], degrees to turn an upward arrow clockwise; None draws cells
    picture: NDArray[np.uint8] | None = None  # uint8 [height, width, 3], what lies below the map


@runtime_checkable
class WithMaps(Protocol):
    """What a domain may offer to show what an ensemble knows: where states lie that differ in one thing."""

    def state_maps(self, state: States) -> list[StateMap]:
        """Returns maps of states that are like `state`, uint8 [S], but for what the map varies."""
        ...


@runtime_checkable
class Placed(Protocol):
    """What a domain may offer so that steps can be drawn into its pictures: where the one who acts is in them."""

    def places(self, states: States, shown: States) -> NDArray[np.float64]:
        """Returns where the one who acts in `states`, uint8 [n, S], would be in the picture of `shown`, uint8 [S].

        Returns:
          Float64 [n, 2]: shares of the picture's height, from the top, and of its width, from the left. Outside 0 to 1
          lies what the picture does not show.
        """
        ...


@runtime_checkable
class Observed(Protocol):
    """What a domain may offer to show what happens in it."""

    def observers(self, evaluate: Callable[[States], NDArray[np.float32]]) -> list[Observer]:
        """Returns fresh observers for one run.

        Args:
          evaluate: returns every member's value of states, uint8 [n, S], as it is now: float32 [n, E].
        """
        ...


def as_rows(states: States, state_size: int) -> States:
    """Returns `states` as a C-contiguous uint8 [n, S] array, without copying when it is one already.

    Raises:
      BathysphereError: for another dtype or shape.
    """
    rows = np.ascontiguousarray(states)
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != state_size:
        raise BathysphereError(
            f"States must be uint8 [n, {state_size}]; got {rows.dtype} {list(rows.shape)}. "
            "Pass rows that came from initial or successors of the same domain."
        )
    return rows
