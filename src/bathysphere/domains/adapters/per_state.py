"""A domain out of a world that is written one state at a time."""

from __future__ import annotations

import pprint
import re
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.adapters.calling import explained, shown, told, user_code
from bathysphere.domains.adapters.digests import digest
from bathysphere.domains.adapters.memory import TransitionMemory, Transitions
from bathysphere.domains.adapters.packing import Packer
from bathysphere.domains.adapters.seen import Seen
from bathysphere.domains.base import States, Successors, as_rows
from bathysphere.errors import BathysphereError, WorldError
from bathysphere.timing import timed

MAX_STEPS = 200  # the time limit of worlds that state none
MAX_STATE_BYTES = 1 << 16
_PROBES, _PROBE_STEPS = 8, 64  # walks that find out how long rows are and what is seen of them
_REMEMBERED = 1 << 16  # states that are kept as objects
_WIDTH = 40  # characters of a state that its world does not tell
_SLOW = 1e-4  # seconds for all steps out of a state from which on they are remembered

_IMPOSSIBLE = object()  # stands for an action


class _Made(NamedTuple):
    """All steps out of n states, those of the first state first."""

    states: Sequence[Any]  # n A
    rewards: NDArray[np.float64]  # [n A]
    over: NDArray[np.bool_]  # [n A]
    solved: NDArray[np.bool_]  # [n A]


class PerStateDomain:
    """A domain whose rows are the packed states of a world, padded with zeros, and a byte for how an episode ended.

    That last byte is 0 while the episode goes on, 1 when it is over, 2 when it is over and solved. States that are over
    lead to themselves, and the world is not asked about them. What a slow world answers is remembered across episodes.

    Args:
      world: see `from_steps`.
    """

    def __init__(self, world: Any) -> None:
        self.world = world
        self.name: str = getattr(world, "name", None) or _hyphenated(type(world).__name__)
        self._actions = actions_of(world)
        self.action_names = tuple(map(str, self._actions))
        self.max_steps: int = getattr(world, "max_steps", MAX_STEPS)
        self._has_legal = hasattr(world, "legal")
        self._packer = _OwnPacker(world) if hasattr(world, "pack") else Packer(type(world).__module__)
        self._objects: dict[bytes, Any] = {}
        examples, seconds = self._walk()
        self.state_size = self._find_row_size(max(examples, key=len))
        is_slow = seconds > _SLOW  # decides when the world is asked, and no number
        self._memory = TransitionMemory(self.state_size, len(self._actions)) if is_slow else None
        self._seen = Seen(world, list(map(self._packer.unpack, examples)))
        self.observation = self._seen.spec
        for name in ("render", "relabel", "transform"):
            if hasattr(world, name):
                setattr(self, name, getattr(self, f"_{name}"))
        if hasattr(world, "goal_reward"):
            self.goal_reward = float(world.goal_reward)

    def initial(self, n: int, rng: np.random.Generator) -> States:
        """Returns `n` start states, uint8 [n, S]."""
        return self.rows([self._start(rng) for _ in range(n)])

    def successors(self, states: States) -> Successors:
        """Has the world make every step out of each state."""
        rows = as_rows(states, self.state_size)
        if len(rows) and not rows[:, -1].any():
            return self._steps_from(rows)
        going = np.flatnonzero(rows[:, -1] == 0)
        shape = (len(rows), len(self._actions))
        ends = np.repeat(rows[:, -1:], shape[1], axis=1)
        out = Successors(np.repeat(rows[:, None], shape[1], axis=1), np.zeros(shape), ends > 0, ends == 2)
        if len(going):
            made = self._steps_from(rows[going])
            out.states[going], out.rewards[going] = made.states, made.rewards
            out.terminal[going], out.solved[going] = made.terminal, made.solved
        return out

    def forget(self) -> None:
        """Forgets the steps that are remembered."""
        if self._memory is not None:
            self._memory = TransitionMemory(self.state_size, len(self._actions))

    def _steps_from(self, rows: States) -> Successors:
        """Returns every step out of states in which the episode goes on, uint8 [n, S]; a slow world is asked once."""
        if self._memory is None:
            return self._ask(rows)
        keys = [digest(row.tobytes()) for row in rows]
        known = {key: steps for key in keys if (steps := self._memory.get(key)) is not None}
        new = {key: number for number, key in enumerate(keys) if key not in known}
        if new:
            asked = self._ask(rows[list(new.values())])
            for key, states, rewards in zip(new, asked.states, asked.rewards, strict=True):
                known[key] = Transitions(states, rewards, ())
                self._memory.put(key, known[key])
        states = np.array([known[key].states for key in keys])
        ends = states[:, :, -1]
        return Successors(states, np.array([known[key].rewards for key in keys]), ends > 0, ends == 2)

    def _ask(self, rows: States) -> Successors:
        """Has the world make every step out of states in which the episode goes on, uint8 [n, S]."""
        made = self._make_steps(self.objects(rows))
        shape, states = (len(rows), len(self._actions)), self.rows(made.states)
        np.add(made.over, made.solved, out=states[:, -1], dtype=np.uint8)
        return Successors(
            states.reshape(*shape, self.state_size),
            made.rewards.reshape(shape),
            made.over.reshape(shape),
            made.solved.reshape(shape),
        )

    def observe(self, states: States) -> NDArray[np.generic]:
        """Returns what the world shows of each state."""
        return self._seen.of(self.objects(states))

    def objects(self, states: States) -> list[Any]:
        """Returns the objects that rows stand for, uint8 [n, S]."""
        data, size = as_rows(states, self.state_size).tobytes(), self.state_size
        return [self._object(data[first : first + size]) for first in range(0, len(data), size)]

    def rows(self, objects: Sequence[Any]) -> States:
        """Returns the rows of states in which the episode goes on, uint8 [n, S]."""
        numbers = self._packer.small_numbers(objects)
        if numbers is None or numbers.shape[1] >= self.state_size:
            return self._padded(list(map(self._packer.pack, objects)))
        rows = np.zeros((len(objects), self.state_size), np.uint8)
        rows[:, : numbers.shape[1]] = numbers
        return rows

    def row_of(self, state: Any) -> States:
        """Returns the row of a state in which the episode goes on, uint8 [S]."""
        row: States = self.rows([state])[0]
        return row

    def __repr__(self) -> str:
        return told(self)

    def _make_steps(self, states: Sequence[Any]) -> _Made:
        """Makes all steps out of n states."""
        step, answers = self.world.step, list[Any]()
        action: Any = None
        for state in states:
            try:
                if not self._has_legal:
                    for action in self._actions:
                        answers.append(step(state, action))
                    continue
                for action in self._possible_in(state):
                    answers.append((state, 0.0, False) if action is _IMPOSSIBLE else step(state, action))
            except BathysphereError:
                raise
            except Exception as error:
                raise explained(error, f"step({shown(state)}, {shown(action)})") from error
        try:
            next_states, rewards, over, solved = _columns(answers)
        except (TypeError, ValueError):
            number = next(number for number, answer in enumerate(answers) if not _is_readable(answer))
            raise _wrong_answer(self._call(states, number), answers[number]) from None
        earned = self._checked(rewards, states)
        if solved is None:
            solved = over & (earned > 0)
        elif (wrong := np.flatnonzero(solved > over)).size:
            raise _solved_and_going_on(self._call(states, int(wrong[0])))
        return _Made(next_states, earned, over, solved)

    def _call(self, states: Sequence[Any], number: int) -> str:
        """Returns a step as text; steps are numbered state by state."""
        state, action = divmod(number, len(self._actions))
        return f"step({shown(states[state])}, {shown(self._actions[action])})"

    def _checked(self, rewards: Sequence[Any], states: Sequence[Any]) -> NDArray[np.float64]:
        """Returns rewards as an array [n A], or refuses one."""
        try:
            earned = np.array(rewards, np.float64)
        except (TypeError, ValueError):
            earned = np.array([_number(reward) for reward in rewards], np.float64)
        if np.isfinite(earned).all():
            return earned
        number = int(np.flatnonzero(~np.isfinite(earned))[0])
        raise WorldError(
            "reward-not-finite",
            f"{self._call(states, number)} returned the reward {shown(rewards[number])}.",
            "Return finite numbers; a large negative one can stand for what must not happen.",
        )

    def _padded(self, packed: list[bytes]) -> States:
        """Returns packed states as rows, uint8 [n, S]."""
        size, lengths = self.state_size, set(map(len, packed))
        if max(lengths, default=0) >= size:
            raise _too_long(len(max(packed, key=len)), size, self._packer.unpack(max(packed, key=len)))
        if len(lengths) > 1:
            packed = [data.ljust(size, b"\0") for data in packed]
        rows = np.zeros((len(packed), size), np.uint8)
        if packed:
            rows[:, : len(packed[0])] = np.frombuffer(b"".join(packed), np.uint8).reshape(len(packed), -1)
        return rows

    def _possible_in(self, state: Any) -> Sequence[Any]:
        """Returns the actions [A], with a sign instead of those that are impossible in this state."""
        with user_code("legal", state):
            possible = set(self.world.legal(state))
        if unknown := possible.difference(self._actions):
            raise WorldError(
                "unknown-action",
                f"legal({shown(state)}) names {shown(unknown.pop())}, which is not among the world's actions.",
                "Return those entries of actions that are possible.",
            )
        return [action if action in possible else _IMPOSSIBLE for action in self._actions]

    def _object(self, row: bytes) -> Any:
        """Returns the object of a row; always as it is read back, so that whatever `step` gets follows from the row."""
        thing = self._objects.get(row)
        if thing is None:
            if len(self._objects) >= _REMEMBERED:
                self._objects.clear()
            thing = self._objects[row] = self._packer.unpack(row)
        return thing

    def _start(self, rng: np.random.Generator) -> Any:
        with user_code("start"):
            return self.world.start(rng)

    def _walk(self) -> tuple[list[bytes], float]:
        """Returns packed states that random steps lead to, and the seconds that all steps out of one of them take."""
        rng, met, seconds = np.random.default_rng(0), list[bytes](), list[float]()
        for _ in range(_PROBES):
            met.append(self._packer.pack(self._start(rng)))
            if len(met[-1]) >= MAX_STATE_BYTES:
                break  # that is enough to know
            for number in rng.integers(len(self._actions), size=min(self.max_steps, _PROBE_STEPS)).tolist():
                made, taken = timed(partial(self._make_steps, [self._packer.unpack(met[-1])]))
                seconds.append(taken)
                met.append(self._packer.pack(made.states[number]))
                if made.over[number]:
                    break
        return met, statistics.median(seconds or [0.0])

    def _find_row_size(self, longest: bytes) -> int:
        """Returns how long rows are: as the world says, otherwise the longest packed state met and half as much."""
        stated, length = getattr(self.world, "state_bytes", None), len(longest)
        if length >= MAX_STATE_BYTES:
            raise _too_long(length, MAX_STATE_BYTES, self._packer.unpack(longest))
        if stated is None:
            return min(-(-(length + length // 2 + 17) // 32) * 32, MAX_STATE_BYTES)
        if not isinstance(stated, int) or not length <= stated < MAX_STATE_BYTES:
            raise WorldError(
                "state-outgrows-its-row",
                f"state_bytes is {stated!r}, and states take {length:,} bytes.",
                f"Write a whole number from {length} to {MAX_STATE_BYTES - 1}, or leave it out.",
            )
        return stated + 1

    def text(self, state: States) -> str:
        """Returns a state, uint8 [S], for people: as its world tells it, otherwise as Python writes it."""
        (thing,) = self.objects(state[None])
        if not hasattr(self.world, "text"):
            return str(thing) if isinstance(thing, np.ndarray) else pprint.pformat(thing, width=_WIDTH)
        with user_code("text", thing):
            return str(self.world.text(thing))

    # Offered if the world offers it.

    def _render(self, state: States) -> NDArray[np.uint8]:
        (thing,) = self.objects(state[None])
        with user_code("render", thing):
            return np.asarray(self.world.render(thing), np.uint8)

    def _relabel(self, states: States, rng: np.random.Generator) -> tuple[States, NDArray[np.float64]]:
        with user_code("relabel"):
            objects, rewards = self.world.relabel(self.objects(states), rng)
            return self.rows(objects), np.asarray(rewards, np.float64)

    def _transform(self, states: States, rng: np.random.Generator) -> tuple[States, NDArray[np.intp]]:
        numbers = {action: number for number, action in enumerate(self._actions)}
        with user_code("transform"):
            pairs = [self.world.transform(thing, rng) for thing in self.objects(states)]
            rows = self.rows([thing for thing, _ in pairs])
            return rows, np.array([[numbers[action] for action in actions] for _, actions in pairs], np.intp)


class _OwnPacker:
    """Packs states by the methods of their world."""

    def __init__(self, world: Any) -> None:
        self._world, self._outer = world, Packer()

    def pack(self, thing: Any) -> bytes:
        with user_code("pack", thing):
            data = self._world.pack(thing)
        if not isinstance(data, bytes):
            raise WorldError("pack", f"pack({shown(thing)}) returned {shown(data)}.", "Let it return bytes.")
        return self._outer.pack(data)

    def small_numbers(self, things: Sequence[Any]) -> None:
        return None

    def unpack(self, row: bytes) -> Any:
        data = self._outer.unpack(row)
        with user_code("unpack", data):
            thing = self._world.unpack(data)
        if self._world.pack(thing) != data:
            raise WorldError(
                "pack",
                f"unpack({shown(data)}) returned {shown(thing)}, which pack makes other bytes of.",
                "Let pack write all of a state, and the same bytes for equal states; let unpack read all of them.",
            )
        return thing


def from_steps(world: Any) -> PerStateDomain:
    """Returns a world that is written one state at a time as a domain.

    Args:
      world: an object, or a class that makes one without arguments. It has

        - `actions`: a list of actions, or how many there are;
        - `start(rng)`: returns the state in which an episode begins, random only by `rng`;
        - `step(state, action)`: returns `next_state, reward, done`, or `next_state, reward, done, solved`. The action
          is an entry of `actions`, or a number from 0. An action that is impossible returns the same state. Without
          `solved`, an episode counts as solved if it is done with a last reward above 0.

        A state is a hashable object made of numbers, text, bytes, tuples, frozensets, named tuples, frozen dataclasses
        and enums, or an array of numbers; it is everything that the future depends on. The world may have

        - `observe(state)`: what networks see, an array of numbers or a grid of small whole numbers, always in one
          shape; without it they see the numbers that the state is made of;
        - `observation`: `Features` or `Categories`, if the largest number in observations is not met soon;
        - `max_steps` (200), `name` (that of the class), `goal_reward`, `state_bytes` (room for a state's bytes);
        - `legal(state)`: the possible actions; `step` is then not asked for others;
        - `text(state)`, `render(state)`: the state for people, as text and as uint8 [height, width, 3];
        - `pack(state)`, `unpack(data)`: a state's bytes, if it is made of other things than those above;
        - `relabel(states, rng)`: hindsight, another goal for the states of an episode: the states and the rewards;
        - `transform(state, rng)`: a state that is equal but for a symmetry, and its actions in the order of ours.

    Raises:
      WorldError: if the world does not keep this.
    """
    if isinstance(world, type):
        with user_code(world.__name__):
            world = world()
    missing = [name for name in ("actions", "start", "step") if not hasattr(world, name)]
    if missing:
        raise WorldError(
            "incomplete",
            f"{type(world).__name__} has no {' and no '.join(missing)}.",
            "A world that is written one state at a time has actions, start(rng) and step(state, action).",
        )
    return PerStateDomain(world)


def actions_of(world: Any) -> tuple[Any, ...]:
    """Returns the actions of a world that is written one state at a time."""
    actions = world.actions
    listed = (
        tuple(range(actions)) if isinstance(actions, int) else tuple(actions) if hasattr(actions, "__iter__") else ()
    )
    if not listed or len(set(map(str, listed))) < len(listed):
        raise WorldError(
            "actions", f"actions is {shown(actions)}.", "List the actions, each once, or write how many there are."
        )
    return listed


def _hyphenated(name: str) -> str:
    """Returns LightsOut as lights-out."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower().strip("_")


def _columns(
    answers: Sequence[Any],
) -> tuple[Sequence[Any], Sequence[Any], NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Returns next states, rewards, and what is over and solved; None for the latter if no answer tells it.

    Raises:
      TypeError, ValueError: if an answer has another form.
    """
    try:
        next_states, rewards, over = zip(*answers, strict=True)
    except ValueError:
        pass
    else:
        return next_states, rewards, _truths(over), None
    next_states, rewards, over, solved = zip(*map(_with_solved, answers), strict=True)
    return next_states, rewards, _truths(over), _truths(solved)


def _with_solved(answer: Any) -> Any:
    if len(answer) == 4:
        return answer
    next_state, reward, over = answer
    return next_state, reward, over, over and reward > 0


def _truths(things: Sequence[Any]) -> NDArray[np.bool_]:
    truths = np.array(things, np.bool_)
    if truths.ndim != 1:
        raise ValueError
    return truths


def _is_readable(answer: Any) -> bool:
    try:
        _columns([answer])
    except (TypeError, ValueError):
        return False
    return True


def _number(reward: Any) -> float:
    try:
        return float(reward)
    except (TypeError, ValueError):
        return np.nan


def _wrong_answer(call: str, answer: Any) -> WorldError:
    return WorldError(
        "step-returns",
        f"{call} returned {shown(answer)}.",
        "Return next_state, reward, done, and perhaps solved, separated by commas.",
    )


def _solved_and_going_on(call: str) -> WorldError:
    return WorldError(
        "solved-without-done",
        f"{call} returned solved without done.",
        "Return done too when the episode is solved.",
    )


def _too_long(length: int, size: int, thing: Any) -> WorldError:
    if size >= MAX_STATE_BYTES:
        return WorldError(
            "state-too-long",
            f"A state takes {length:,} bytes, and rows have at most {MAX_STATE_BYTES:,}: {shown(thing)}.",
            "Leave out of the state whatever stays the same in an episode or follows from the rest.",
        )
    return WorldError(
        "state-outgrows-its-row",
        f"A state takes {length:,} bytes, and those met at first were so short that rows have room for {size - 1:,}: "
        f"{shown(thing)}.",
        f"Write how long states can become into the world, for instance state_bytes = {2 * length}.",
    )
