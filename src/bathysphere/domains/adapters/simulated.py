"""A domain out of an environment that can be put back into a state it was in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.adapters import digests
from bathysphere.domains.adapters.attributes import Attributes, Entangled, chain_of
from bathysphere.domains.adapters.calling import plain, told, user_code
from bathysphere.domains.adapters.memory import Origins, TransitionMemory, Transitions
from bathysphere.domains.adapters.observations import Layout, leaves_of
from bathysphere.domains.adapters.per_state import MAX_STEPS
from bathysphere.domains.adapters.simulator import Access, Pickled, Simulator, Step
from bathysphere.domains.adapters.transplant import transplanted
from bathysphere.domains.adapters.trial import try_out, view_of
from bathysphere.domains.base import Discovery, DomainConfig, States, Successors, as_rows
from bathysphere.domains.estimated import EstimatedChance
from bathysphere.errors import BathysphereError, WorldError

KEYS = ("observation", "snapshot")
_SNAPSHOT_BYTES = 1 << 28  # of all snapshots that are kept
_LOOSE_SNAPSHOT = 1 << 16  # what one counts that is no bytes
_GIVEN, _MOST_GIVEN = -1, 1024  # number of the origin of states from other environments; how many are kept
_FIRST_SEEDS = 4  # resets that are tried

Thing = TypeVar("Thing")


class _Place(NamedTuple):
    """Where an environment can be brought back to."""

    saved: Any
    mask: NDArray[np.bool_] | None


class SimulatedDomain:
    """A domain whose rows are what is seen of a state and a digest of what is not.

    A row is the packed observation; 16 bytes more that tell states apart which look alike, unless the observation
    identifies a state; and a byte for how the episode ended: 0 while it goes on, 1 ended, 2 ended in success. So what
    networks see follows from the row. To step from a state, the environment is put into it: by a snapshot, or, when
    that is forgotten or was another process's, by the reset and the actions that led there.

    Args:
      make: returns the environment, with Gymnasium's interface.
      key: what identifies a state: "observation", "snapshot", a function of the environment, or None to find out.
      max_steps: the usual time limit; None: the environment's own.
      seeds: how many resets there are to begin with; None for any number.
      config: what describes this domain, if anything does.
    """

    _first_dice: int | None = None  # what decides chance while the environment is tried out

    def __init__(
        self,
        make: Callable[[], Any],
        *,
        key: str | Callable[[Any], Any] | None = None,
        max_steps: int | None = None,
        seeds: int | None = None,
        config: DomainConfig | None = None,
    ) -> None:
        _check(key, max_steps, seeds)
        self._arguments = {"key": key, "max_steps": max_steps, "seeds": seeds, "config": config}
        self._make, self._seeds = make, seeds
        if config is not None:
            self.config = config
        with user_code("The environment's factory"):
            env = make()
        simulator = self._simulator = Simulator(env)
        simulator.dice = self._first_dice
        inner = getattr(env, "layers", [env.unwrapped])[-1]
        self.name: str = env.spec.id if getattr(env, "spec", None) is not None else type(inner).__name__
        self.action_names = _action_names(env.unwrapped, simulator.num_actions)
        leaves_of(env.observation_space)  # refuses what cannot be packed, before anything is tried
        found = try_out(simulator, list(range(min(seeds or _FIRST_SEEDS, _FIRST_SEEDS))), key)
        self.max_steps, why = (max_steps, None) if max_steps else _time_limit(simulator.chain())
        self.findings: list[Discovery] = [*found.findings, *([why] if why else [])]
        self._key = key if callable(key) else found.key
        self._layout = Layout(env.observation_space, found.examples)
        self.observation = self._layout.spec
        self._key_bytes = 0 if self._key == "observation" else digests.SIZE
        self.state_size = self._layout.num_bytes + self._key_bytes + 1
        self._memory = TransitionMemory(self.state_size, simulator.num_actions)
        self._origins = Origins()
        self._places: OrderedDict[bytes, _Place] = OrderedDict()
        self._places_bytes = 0
        self._given: dict[bytes, _Place] = {}  # states that were read from other environments
        self._view = found.view
        mode, offered = getattr(env, "render_mode", None), getattr(env, "metadata", {}).get("render_modes", ())
        modes = offered if mode is None else [mode]
        if "ansi" in modes:
            self.text = self._text
        if "rgb_array" in modes:
            self.render = self._render

    def __repr__(self) -> str:
        return told(self)

    def __reduce__(self) -> Any:
        return _remade, (type(self), self._make, self._arguments)

    def initial(self, n: int, rng: np.random.Generator) -> States:
        """Resets the environment `n` times, with seeds from `rng`."""
        rows = b"".join(map(self._reset, rng.integers(self._seeds or 2**31, size=n).tolist()))
        return np.frombuffer(rows, np.uint8).reshape(n, self.state_size).copy()

    def successors(self, states: States) -> Successors:
        """Puts the environment into each state and makes a step, once for each action, unless it is remembered."""
        rows = as_rows(states, self.state_size)
        num_actions = len(self.action_names)
        out = Successors.empty(len(rows), num_actions, self.state_size)
        for number, row in enumerate(rows):
            if row[-1]:
                out.states[number], out.rewards[number] = row, 0.0
            else:
                out.states[number], out.rewards[number], _ = self._steps_from(row)
        ends = out.states[:, :, -1]
        return Successors(out.states, out.rewards, ends > 0, ends == 2)

    def observe(self, states: States) -> NDArray[np.generic]:
        """Returns what the environment showed in each state."""
        return self._layout.seen(as_rows(states, self.state_size))

    def state_of(self, env: Any) -> States:
        """Returns the state that another environment of this kind is in, uint8 [S]; its episode has not ended."""
        if self._view is None:
            raise BathysphereError(
                f"{self.name} shows an observation only when it steps, so that its state cannot be read from outside. "
                "Give the environment a method _get_obs() that returns the present one."
            )
        if not hasattr(env, "unwrapped"):
            env = self._as_ours(env)
        view = self._view
        row, place = self._unless_shared_changes(lambda: self._read(env, view))
        key = digests.digest(row)
        self._origins.add(key, None, _GIVEN)
        if len(self._given) >= _MOST_GIVEN:
            self._given.clear()
        self._given[key] = place
        return np.frombuffer(row, np.uint8).copy()

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns how every state that is known was reached."""
        return self._origins.state_dict()

    def load_state_dicts(self, states: Sequence[Mapping[str, NDArray[Any]]]) -> None:
        """Adds what the `state_dict` of domains like this one returned."""
        self._origins.load_state_dicts(states)

    def _as_ours(self, env: Any) -> Any:
        """Returns an environment without Gymnasium's interface with the one that ours has, if ours was made so."""
        ours = self._simulator.env.unwrapped
        if not hasattr(ours, "layers"):
            raise BathysphereError(f"{self.name} is an environment of Gymnasium's, and {type(env).__name__} is none.")
        return type(ours)(env)

    def _read(self, env: Any, view: str) -> tuple[bytes, _Place]:
        """Returns the row and the place of the state that another environment is in."""
        simulator, kept = self._simulator, self._simulator.env
        try:
            if isinstance(simulator.way, Access):
                simulator.load(simulator.way.save(env))
            else:
                way = Pickled() if isinstance(simulator.way, Attributes) else simulator.way
                kinds = set(map(type, simulator.chain()))
                env = next(each for each in [*chain_of(env), env] if type(each) in kinds or each is env.unwrapped)
                theirs, ours = (way.load(None, way.save(each)) for each in (env, kept))
                simulator.env = transplanted(theirs, ours, simulator.held)
            mask = simulator.settle()
            with user_code(view):
                row = self._row(Step(view_of(simulator, view), 0.0, False, False, mask))
            return row, _Place(simulator.save(), mask)
        finally:
            simulator.env = kept

    def _reset(self, seed: int) -> bytes:
        """Begins an episode; returns the row of its first state."""
        row = self._row(self._simulator.reset(seed))
        self._origins.add(digests.digest(row), None, seed)
        return row

    def _steps_from(self, row: States) -> Transitions:
        data = row.tobytes()
        key = digests.digest(data)
        known = self._memory.get(key)
        if known is None:
            known = self._unless_shared_changes(lambda: self._try_actions(data, key))
            self._memory.put(key, known)
        elif self._origins.touch(key) is None:
            raise _forgotten(self.name)
        for action, child in enumerate(known.keys):
            self._origins.add(child, key, action)
        return known

    def _unless_shared_changes(self, make: Callable[[], Thing]) -> Thing:
        """Returns what `make` makes; has it made again by whole copies if parts of the environment cannot be copied."""
        try:
            made = make()
            if not self._simulator.shared.has_changed():
                return made
        except Entangled:
            pass
        self._simulator.share_no_more()
        self._places.clear()
        self._given.clear()
        self._places_bytes = 0
        return make()

    def _try_actions(self, data: bytes, key: bytes) -> Transitions:
        """Makes every step out of a state."""
        place, simulator = self._place(key, data), self._simulator
        rows, rewards = list[bytes](), list[float]()
        compares = isinstance(simulator.way, Attributes)  # equal snapshots are then equal states
        here: Any = None  # the snapshot of the state to step from, as it is made after loading
        saved: Any = None  # the latest snapshot
        for action in range(simulator.num_actions):
            if place.mask is not None and not place.mask[action]:
                rows.append(data)
                rewards.append(0.0)
                continue
            if saved is None or saved != here:
                simulator.load(place.saved)
                if compares and here is None:
                    here = simulator.save()
            step = simulator.step(action)
            saved = simulator.save() if compares else None
            rows.append(self._row(step, saved))
            rewards.append(step.reward)
            child = digests.digest(rows[-1])
            if compares and not step.ended and child != key and child not in self._places:
                self._keep(child, _Place(saved, step.mask))
        states = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
        return Transitions(states, np.array(rewards), tuple(map(digests.digest, rows)))

    def _place(self, key: bytes, data: bytes | None = None) -> _Place:
        """Returns the snapshot of a state; makes it again if it is not kept.

        Args:
          key: of the state.
          data: its row, if that is to be checked.
        """
        way: list[int] = []
        at = key
        while (place := self._places.get(at) or self._given.get(at)) is None:
            origin = self._origins.touch(at)
            if origin is None or origin.number == _GIVEN:
                raise _forgotten(self.name)
            way.append(origin.number)
            if origin.parent is None:
                break
            at = origin.parent
        if place is not None and not way:
            if at in self._places:
                self._places.move_to_end(at)
            return place
        step: Step | None = None
        if place is None:
            step = self._simulator.reset(way.pop())
        else:
            self._simulator.load(place.saved)
        for action in reversed(way):
            step = self._step_again(action)
        assert step is not None
        if data is not None and self._row(step) != data:
            raise WorldError(
                "random-step",
                "The steps that led to a state led elsewhere when they were made again: chance or something outside "
                "the environment decides them.",
                "The first walks met no chance, and so it was not counted on. Let it show in the first steps, or "
                "switch it off.",
            )
        return self._keep(key, _Place(self._simulator.save(), step.mask))

    def _step_again(self, number: int) -> Step:
        """Makes the step that an origin numbers."""
        return self._simulator.step(number)

    def _keep(self, key: bytes, place: _Place) -> _Place:
        self._places[key] = place
        self._places_bytes += _size(place)
        while self._places_bytes > _SNAPSHOT_BYTES:
            _, oldest = self._places.popitem(last=False)
            self._places_bytes -= _size(oldest)
        return place

    def _row(self, step: Step, saved: Any = None) -> bytes:
        """Returns the row of the state that the environment is in, and `saved` a snapshot of."""
        packed = self._layout.pack(step.observation)
        if self._key == "snapshot":
            packed += self._simulator.digest(saved)
        elif callable(self._key):
            with user_code("key"):
                packed += digests.digest_of(self._key(self._simulator.env))
        return packed + bytes([step.ended + step.solved])

    def _render(self, state: States) -> NDArray[np.uint8]:
        return np.asarray(self._drawn(state, "rgb_array"), np.uint8)

    def _text(self, state: States) -> str:
        return plain(self._drawn(state, "ansi"))

    def _drawn(self, state: States, mode: str) -> Any:
        """Draws a state in a copy of the environment: windows and the like cannot be copied."""
        place, simulator = self._place(digests.digest(state.tobytes())), self._simulator
        kept = simulator.env
        simulator.load(place.saved)
        if isinstance(simulator.way, Attributes):
            simulator.env = Pickled().load(None, Pickled().save(simulator.env))
        inner = simulator.env.unwrapped
        if inner.render_mode is None:
            inner.render_mode = mode
        try:
            with user_code("render"):
                return simulator.env.render()
        finally:
            simulator.env = kept


class SampledDomain(SimulatedDomain):
    """The same for an environment with chance, which is decided by a seed before every step.

    With one seed for all steps it is deterministic, and so it is tried out. An origin's number is the seed times A plus
    the action.
    """

    _first_dice = 0

    def __init__(self, make: Callable[[], Any], **arguments: Any) -> None:
        super().__init__(make, **arguments)
        self._simulator.note_generators()

    def sample(self, states: States, seeds: NDArray[np.int64]) -> Successors:
        """Puts the environment into each state and makes a step with its seed, once for each action."""
        rows = as_rows(states, self.state_size)
        out = Successors.empty(len(rows), len(self.action_names), self.state_size)
        for number, (row, seed) in enumerate(zip(rows, seeds.tolist(), strict=True)):
            out.states[number], out.rewards[number] = (row, 0.0) if row[-1] else self._run(row, seed)
        ends = out.states[:, :, -1]
        return Successors(out.states, out.rewards, ends > 0, ends == 2)

    def successors(self, states: States) -> Successors:
        """Returns one run of every action, always the same one."""
        return self.sample(states, np.zeros(len(states), np.int64))

    def _run(self, row: States, seed: int) -> tuple[States, NDArray[np.float64]]:
        data = row.tobytes()
        key = digests.digest(data)

        def make() -> Transitions:
            self._place(key, data)  # before the seed is set: coming here may need others
            self._simulator.dice = seed
            return self._try_actions(data, key)

        made = self._unless_shared_changes(make)
        for action, child in enumerate(made.keys):
            self._origins.add(child, key, seed * len(self.action_names) + action)
        return made.states, made.rewards

    def _step_again(self, number: int) -> Step:
        self._simulator.dice, action = divmod(number, len(self.action_names))
        return self._simulator.step(action)


def simulate(make: Callable[[], Any], **arguments: Any) -> SimulatedDomain | EstimatedChance:
    """Returns an environment as a domain: deterministic, or one whose chances are counted; arguments as for both."""
    try:
        return SimulatedDomain(make, **arguments)
    except WorldError as error:
        if error.name not in ("random-step", "shared-generator"):
            raise
        try:
            domain = SampledDomain(make, **arguments)
        except WorldError:
            raise error from None
        told = f"{error.seen} With seeds set before every step, the same ones led to the same answers"
        domain.findings.append(Discovery("outcomes counted in runs", told))
        return EstimatedChance(domain)


def is_factory(thing: Any) -> bool:
    """Tells whether `thing` makes environments, and is none itself."""
    return isinstance(thing, type) or (callable(thing) and not hasattr(thing, "step"))


def _remade(kind: type[SimulatedDomain], make: Callable[[], Any], arguments: dict[str, Any]) -> SimulatedDomain:
    return kind(make, **arguments)


def _check(key: Any, max_steps: int | None, seeds: int | None) -> None:
    if key is not None and key not in KEYS and not callable(key):
        raise BathysphereError(f"key is {key!r}; expected one of {', '.join(KEYS)}, or a function of the environment.")
    for name, value in (("max_steps", max_steps), ("seeds", seeds)):
        if value is not None and value < 1:
            raise BathysphereError(f"{name} is {value}; expected at least 1.")


def _action_names(inner: Any, num_actions: int) -> tuple[str, ...]:
    """Returns what the environment calls its actions, if it does."""
    named = [str(name).lower() for name in _meanings(inner)]
    if len(named) == len(set(named)) == num_actions:
        return tuple(named)
    return tuple(f"action-{number}" for number in range(num_actions))


def _meanings(inner: Any) -> Sequence[Any]:
    if callable(getattr(inner, "get_action_meanings", None)):  # ALE
        meanings: Sequence[Any] = inner.get_action_meanings()
        return meanings
    return [each.name for each in getattr(inner, "actions", ()) if hasattr(each, "name")]  # MiniGrid


def _time_limit(chain: list[Any]) -> tuple[int, Discovery | None]:
    """Returns the steps of an episode, and the reason if the environment does not say."""
    for thing in chain:
        spec = getattr(thing, "spec", None)
        for limit in (
            vars(thing).get("_max_episode_steps"),
            getattr(spec, "max_episode_steps", None),
            vars(thing).get("max_steps"),
        ):
            if isinstance(limit, int | np.integer) and limit > 0:
                return int(limit), None
    return MAX_STEPS, Discovery(f"domain.max_steps {MAX_STEPS}", "the environment states no time limit")


def _size(place: _Place) -> int:
    return len(place.saved) if isinstance(place.saved, bytes) else _LOOSE_SNAPSHOT


def _forgotten(name: str) -> BathysphereError:
    return BathysphereError(
        f"How a state of {name} was reached is not known here. Pass rows that came from initial or successors of the "
        "same domain; if they did, so many states came between that it was forgotten: lower the batch or max_steps."
    )
