"""An environment with Gymnasium's interface that can be put back into a state it was in."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.adapters.attributes import Attributes, chain_of
from bathysphere.domains.adapters.calling import shown, user_code
from bathysphere.domains.adapters.digests import PartDigests, digest, digest_of, generators_in, reseed
from bathysphere.domains.adapters.sharing import Shared
from bathysphere.errors import WorldError

_ACCESS = (("clone_state", "restore_state"), ("get_state", "set_state"))  # names under which environments offer it
_REMEMBERED = 1 << 17  # states whose digest is known by their snapshot
_SUCCESS = ("is_success", "success")  # entries of info that say whether an episode was solved


class Step(NamedTuple):
    """What an environment answers to a step, or to a reset."""

    observation: Any
    reward: float
    ended: bool  # terminated; truncation is no end
    solved: bool
    mask: NDArray[np.bool_] | None  # [A], which actions are possible now; None if all are


class Counter(NamedTuple):
    """An attribute that counts steps."""

    depth: int  # of the object in the chain of wrappers, outermost first
    name: str
    first: int  # its value after a reset


class Part(NamedTuple):
    """An attribute."""

    depth: int  # of the object in the chain of wrappers, outermost first
    name: str


class Way(Protocol):
    """A way to copy an environment's state."""

    name: str

    def save(self, env: Any) -> Any:
        """Returns a snapshot, which nothing that happens to `env` changes."""
        ...

    def load(self, env: Any, saved: Any) -> Any:
        """Returns an environment in the state of a snapshot: `env` itself, or another."""
        ...


class Access:
    """Has the environment hand out its state, and take it back."""

    def __init__(self, get: str, put: str) -> None:
        self.name, self._get, self._put = f"{get} and {put}", get, put

    def save(self, env: Any) -> Any:
        """Returns what the environment hands out, as bytes where possible: those cannot change."""
        state = getattr(env.unwrapped, self._get)()
        try:
            return pickle.dumps(state, pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever cannot be pickled
            return copy.deepcopy(state)

    def load(self, env: Any, saved: Any) -> Any:
        """Hands the state back."""
        getattr(env.unwrapped, self._put)(pickle.loads(saved) if isinstance(saved, bytes) else copy.deepcopy(saved))
        return env


class Pickled:
    """Pickles the environment with all its wrappers.

    Args:
      shared: what is left out of copies.
    """

    name = "pickling"

    def __init__(self, shared: Shared | None = None) -> None:
        self._shared = shared or Shared()

    def save(self, env: Any) -> Any:
        """Returns bytes."""
        return self._shared.dumps(env)

    def load(self, env: Any, saved: Any) -> Any:
        """Returns a new environment."""
        return self._shared.loads(saved)


class Copied:
    """Copies the environment with all its wrappers as Python objects."""

    name = "deep copies"

    def save(self, env: Any) -> Any:
        """Returns a copy."""
        return copy.deepcopy(env)

    def load(self, env: Any, saved: Any) -> Any:
        """Returns a copy of the copy."""
        return copy.deepcopy(saved)


class Simulator:
    """An environment, used one step at a time.

    Args:
      env: has Gymnasium's interface. It may be replaced by copies of it.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.way: Way = Pickled()
        self.shared = Shared()
        self.ignored = frozenset()
        self.held: list[Counter] = []  # counters that are no part of the state: they are kept as after a reset
        space = env.action_space
        if not hasattr(space, "n") or not hasattr(space, "start"):
            raise WorldError(
                "action-space",
                f"The action space is {shown(space)}.",
                "Actions must be Discrete; put a wrapper around the environment that offers a list of actions.",
            )
        self.num_actions, self._first_action = int(space.n), int(space.start)
        self._digests = PartDigests()
        self._rolling: list[tuple[int, str]] | None = None  # depth and name of attributes that hold random generators
        self.dice: int | None = None  # seed of all that is chance in the next steps; None: nothing sets it

    def reset(self, seed: int) -> Step:
        """Begins an episode; everything random about it follows from `seed`."""
        with seeded(seed), user_code(f"reset(seed={seed})"):
            answer = self.env.reset(seed=seed)
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise _wrong_answer("reset", answer, "observation, info")
        self._hold()
        return Step(answer[0], 0.0, False, False, self._mask(answer[1]))

    def step(self, action: int) -> Step:
        """Makes one step; `action` from 0."""
        with self._thrown(), user_code("step", action + self._first_action):
            answer = self.env.step(action + self._first_action)
            if not isinstance(answer, tuple) or len(answer) != 5:
                raise _wrong_answer("step", answer, "observation, reward, terminated, truncated, info")
            observation, reward, terminated, _, info = answer
            reward, ended = float(reward), bool(terminated)
        if not np.isfinite(reward):
            raise WorldError(
                "reward-not-finite",
                f"step({action + self._first_action}) returned the reward {reward}.",
                "Return finite numbers; a large negative one can stand for what must not happen.",
            )
        self._hold()
        return Step(observation, reward, ended, ended and _is_success(reward, info), self._mask(info))

    @contextmanager
    def _thrown(self) -> Iterator[None]:
        """Sets all random generators before a step, if `dice` says to what."""
        if self.dice is None:
            yield
            return
        self.disturb_generators(self.dice)
        with seeded(self.dice):
            yield

    def step_inside(self, action: int) -> Any:
        """Makes one step of the environment without its wrappers; returns what it answers."""
        with user_code("step", action + self._first_action):
            return self.env.unwrapped.step(action + self._first_action)[:3]

    def save(self) -> Any:
        """Returns a snapshot of the state."""
        return self.way.save(self.env)

    def load(self, saved: Any) -> None:
        """Goes back to the state of a snapshot."""
        self.env = self.way.load(self.env, saved)

    def share_no_more(self) -> None:
        """Makes copies whole from now on; those that were made before are of no use."""
        self.shared, self._digests = Shared(), PartDigests()
        if isinstance(self.way, Pickled | Attributes):
            self.way = Pickled()

    def settle(self) -> NDArray[np.bool_] | None:
        """Sets counters back in an environment that came from elsewhere; returns which actions are possible."""
        self._hold()
        return self._mask(None)

    def chain(self) -> list[Any]:
        """Returns the wrappers, outermost first, and the environment inside, with whatever that is around."""
        return chain_of(self.env)

    @property
    def stickiness(self) -> float:
        """Probability with which ALE repeats an action; its generator is out of reach, so that trying might miss it."""
        inner = self.env.unwrapped
        return float(inner.ale.getFloat("repeat_action_probability")) if hasattr(inner, "ale") else 0.0

    @property
    def ignored(self) -> frozenset[Part]:
        """Attributes that do not tell states apart."""
        return self._ignored

    @ignored.setter
    def ignored(self, parts: frozenset[Part]) -> None:
        self._ignored = parts
        self._by_snapshot: dict[bytes, bytes] = {}  # digests of states, by those of their snapshots

    def digest(self, saved: Any = None) -> bytes:
        """Returns 16 bytes that tell this state from others, as far as the environment lets it be seen.

        Args:
          saved: a snapshot of this state, if there is one.
        """
        inner = self.env.unwrapped
        if hasattr(inner, "ale"):
            return digest(np.asarray(inner.ale.getRAM()).tobytes())
        if isinstance(self.way, Access):
            saved = self.way.save(self.env)
            return digest_of(pickle.loads(saved) if isinstance(saved, bytes) else saved)
        if not isinstance(self.way, Attributes):
            return self._digests.of(self.chain(), self.shared.numbers, self.ignored)
        known = digest(self.save() if saved is None else saved)
        found = self._by_snapshot.get(known)
        if found is None:
            if len(self._by_snapshot) >= _REMEMBERED:
                self._by_snapshot.clear()
            found = self._digests.of(self.chain(), self.shared.numbers, self.ignored)
            self._by_snapshot[known] = found
        return found

    def disturb_generators(self, seed: int) -> None:
        """Sets every random generator that the environment refers to to another stream."""
        chain = self.chain()
        known = chain if self._rolling is None else [vars(chain[depth]).get(name) for depth, name in self._rolling]
        reseed(generators_in(*known, but=self.shared.numbers), seed)

    def note_generators(self) -> None:
        """Looks for random generators once more; from now on only attributes that hold some now are looked at."""
        self._rolling = [
            (depth, name)
            for depth, thing in enumerate(self.chain())
            for name, part in sorted(vars(thing).items())
            if name != "env" and generators_in(part)
        ]

    def _hold(self) -> None:
        if self.held:
            chain = self.chain()
            for counter in self.held:
                setattr(chain[counter.depth], counter.name, counter.first)

    def _mask(self, info: Any) -> NDArray[np.bool_] | None:
        mask = info.get("action_mask") if isinstance(info, dict) else None
        inner = self.env.unwrapped
        if mask is None and callable(getattr(inner, "action_masks", None)):
            with user_code("action_masks"):
                mask = inner.action_masks()
        if mask is None:
            return None
        array = np.asarray(mask).astype(np.bool_).ravel()
        if len(array) != self.num_actions:
            raise WorldError(
                "action-mask",
                f"The action mask is {shown(mask)}, and there are {self.num_actions} actions.",
                "Return one entry for each action, 1 where it is possible.",
            )
        return None if array.all() else array


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Sets the generators of `random` and NumPy that all programs share, and then back."""
    kept, kept_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(kept)
        np.random.set_state(kept_numpy)  # noqa: NPY002


def ways_of(simulator: Simulator) -> list[Way]:
    """Returns the ways to try, the best first."""
    inner = simulator.env.unwrapped
    offered = [
        Access(get, put)
        for get, put in _ACCESS
        if callable(getattr(inner, get, None)) and callable(getattr(inner, put, None))
    ]
    return [*offered, Pickled(simulator.shared), Copied()]


def _is_success(reward: float, info: Any) -> bool:
    for name in _SUCCESS:
        if isinstance(info, dict) and name in info:
            return bool(info[name])
    return reward > 0


def _wrong_answer(what: str, answer: Any, expected: str) -> WorldError:
    return WorldError(
        f"{what}-returns", f"{what} returned {shown(answer)}.", f"Return {expected}, as Gymnasium 1 has it."
    )
