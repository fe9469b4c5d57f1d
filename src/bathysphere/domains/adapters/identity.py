"""What identifies a state of an environment.

Everything in a copy does. To leave something out is safe only if the future cannot depend on it, which no number of
steps proves: a key that was picked up may matter at a door that nobody has reached yet. So nothing is left out but what
merely repeats the latest action, notes the seed of a random generator, or is only written by the code (unread.py), and
only after trying.
"""

from __future__ import annotations

import copy
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.adapters.digests import GENERATORS, digest_of, is_description
from bathysphere.domains.adapters.simulator import Access, Part, Simulator
from bathysphere.domains.adapters.unread import unread
from bathysphere.domains.adapters.walks import Walk, look_of
from bathysphere.domains.base import Discovery
from bathysphere.errors import BathysphereError, WorldError

_EXPANDED, _EXPANDED_STEPS = 512, 4096  # states from which all steps are made, to find some that look alike
_PAIRS, _COMPARED_STEPS = 96, 8192  # those that are compared, and how many steps that may take
_PLACES, _PLACE_STEPS = 24, 4  # where something is changed, and how long the answers are compared
_SEED = "_np_random_seed"  # where Gymnasium notes what seed a reset gave to the environment's generator
_VALUES = 16  # that it is given there


class _Place(NamedTuple):
    """A state of a walk."""

    walk: Walk
    number: int  # steps from the reset


class _State(NamedTuple):
    """A state to come back to."""

    saved: Any
    mask: NDArray[np.bool_] | None
    seen: bytes  # digest of the observation
    seed: int  # of the reset that it was reached from
    number: int  # steps from there

    def __str__(self) -> str:
        return f"after {self.number} steps from reset(seed={self.seed})"


_Pair = tuple[_State, _State]


def identify_by_snapshot(simulator: Simulator, walks: list[Walk], *, with_echoes: bool = False) -> list[Discovery]:
    """Finds attributes that do not matter: seeds of generators, what repeats the latest action, what is only written.

    Sets the simulator's `ignored`.

    Args:
      simulator: the environment.
      walks: through it.
      with_echoes: whether what repeats the latest action, and what is only written, tells states apart.
    """
    if isinstance(simulator.way, Access):
        return [Discovery("domain.key snapshot", "all that the environment hands out as its state")]
    candidates = dict[Part, str]()
    if not with_echoes:
        candidates |= dict.fromkeys(_unread(simulator, walks), "written and not used")
        candidates |= dict.fromkeys(_echoes(simulator, walks), "the latest action")
    candidates |= dict.fromkeys(_seeds_of_generators(simulator), "the seed of its generator")
    ignored = {part: what for part, what in candidates.items() if not _matters(simulator, walks, part)}
    simulator.ignored = frozenset(ignored)
    names = [f"{_name(simulator, part)} ({what})" for part, what in ignored.items()]
    but = f", but {' and '.join(names)}: no step depended on that" if names else ""
    kept = [
        Discovery(
            f"{_name(simulator, part)} in the state",
            "it notes the seed of the reset, so that states of different resets are never the same; if no step depends "
            "on it, let reset keep it elsewhere, or give a function as key",
        )
        for part in _kept_seeds(simulator, walks)
        if part.name != _SEED and part not in ignored
    ]
    return [Discovery("domain.key snapshot", f"everything in a copy identifies a state{but}"), *kept]


def check_observation(simulator: Simulator, walks: list[Walk]) -> Discovery:
    """Tries whether states that look alike behave alike.

    Raises:
      WorldError: if some do not.
    """
    original = simulator.env
    try:
        alike: dict[bytes, list[_State]] = defaultdict(list)
        for state in _explored(simulator, walks):
            alike[state.seen].append(state)
        pairs = [(first, other) for first, *others in alike.values() for other in others]
        chosen = pairs[:: max(1, len(pairs) // _PAIRS)]
        found = _first_difference(simulator, chosen)
    finally:
        simulator.env = original
    if found is not None:
        one, other, later = found
        raise WorldError(
            "observation-aliases",
            f"{str(one).capitalize()} and {other} the observation is the same, and {later} equal steps later "
            "the answers are not: observations alone would merge states that differ.",
            "Leave out key, or say key=snapshot; or let the observation show everything.",
        )
    tried = f"of {len(pairs)} states that looked like another, {len(chosen)} were tried and behaved alike"
    return Discovery(
        "domain.key observation",
        f"as you say; {tried if pairs else 'no two states looked alike, so that it could not be tried'}",
    )


def _explored(simulator: Simulator, walks: list[Walk]) -> list[_State]:
    """Returns the states of walks and those around them that go on, each once."""
    known: dict[bytes, _State] = {}
    for place in _states(simulator, walks):
        seen, mask = digest_of(place.walk.steps[place.number].observation), place.walk.steps[place.number].mask
        known.setdefault(simulator.digest(), _State(simulator.save(), mask, seen, place.walk.seed, place.number))
    waiting = deque(known.values())
    for _ in range(min(_EXPANDED, _EXPANDED_STEPS // simulator.num_actions)):
        if not waiting:
            break
        state = waiting.popleft()
        for action in _possible(simulator, state.mask):
            simulator.load(state.saved)
            step = simulator.step(action)
            digest = simulator.digest()
            if not step.ended and digest not in known:
                seen = digest_of(step.observation)
                known[digest] = _State(simulator.save(), step.mask, seen, state.seed, state.number + 1)
                waiting.append(known[digest])
    return list(known.values())


def _first_difference(simulator: Simulator, pairs: list[_Pair]) -> tuple[_State, _State, int] | None:
    """Makes the same steps from two states of each pair; returns the pair that differs first, and after how many."""
    waiting = deque((pair, pair, 0) for pair in pairs)
    met: set[tuple[bytes, bytes]] = set()
    for _ in range(_COMPARED_STEPS // simulator.num_actions):
        if not waiting:
            break
        roots, pair, number = waiting.popleft()
        for action in _possible(simulator, pair[0].mask):
            answers = [_stepped(simulator, state, action) for state in pair]
            (one, look, first), (other, other_look, second) = answers
            if look != other_look:
                return *roots, number + 1
            if one is not None and other is not None and first != second and (first, second) not in met:
                met.add((first, second))
                waiting.append((roots, (one, other), number + 1))
    return None


def _stepped(simulator: Simulator, state: _State, action: int) -> tuple[_State | None, bytes, bytes]:
    """Returns the state after a step, None if it is the end; what is seen; and the state's digest."""
    simulator.load(state.saved)
    step = simulator.step(action)
    if step.ended:
        return None, look_of(step), b""
    return _State(simulator.save(), step.mask, b"", state.seed, state.number + 1), look_of(step), simulator.digest()


def _possible(simulator: Simulator, mask: NDArray[np.bool_] | None) -> list[int]:
    possible: list[int] = (np.arange(simulator.num_actions) if mask is None else np.flatnonzero(mask)).tolist()
    return possible


def _states(simulator: Simulator, walks: list[Walk]) -> Iterator[_Place]:
    """Brings the environment into each state of the walks that goes on, one after the other."""
    for walk in walks:
        simulator.reset(walk.seed)
        for number, step in enumerate(walk.steps):
            if number:
                simulator.step(walk.actions[number - 1])
            if step.ended:
                break
            yield _Place(walk, number)


def _echoes(simulator: Simulator, walks: list[Walk]) -> list[Part]:
    """Returns the attributes whose value always followed from the latest action, and was not always the same."""
    values: dict[Part, dict[int, bytes]] | None = None
    for place in _states(simulator, walks):
        action = place.walk.actions[place.number - 1] if place.number else -1
        now = _parts(simulator)
        values = {part: {} for part in now} if values is None else values
        values = {
            part: met for part, met in values.items() if part in now and met.setdefault(action, now[part]) == now[part]
        }
    return [part for part, met in (values or {}).items() if len(set(met.values())) > 1]


def _seeds_of_generators(simulator: Simulator) -> list[Part]:
    """Returns where Gymnasium notes seeds. They say nothing that the generators do not, which do not count either."""
    return [Part(depth, _SEED) for depth, thing in enumerate(simulator.chain()) if _SEED in vars(thing)]


def _kept_seeds(simulator: Simulator, walks: list[Walk]) -> list[Part]:
    """Returns the attributes that always were the seed of the reset; none if there was only one reset."""
    if len({walk.seed for walk in walks}) < 2:
        return []
    kept: set[Part] | None = None
    for place in _states(simulator, walks):
        seed = digest_of(place.walk.seed)
        now = {part for part, value in _parts(simulator).items() if value == seed}
        kept = now if kept is None else kept & now
    return sorted(kept or ())


def _name(simulator: Simulator, part: Part) -> str:
    return f"{type(simulator.chain()[part.depth]).__name__}.{part.name}"


def _unread(simulator: Simulator, walks: list[Walk]) -> list[Part]:
    """Returns the attributes that the environment's code writes and does not use."""
    parts = {part for _ in _states(simulator, walks) for part in _parts(simulator)}
    names = unread(simulator.chain(), {part.name for part in parts})
    return sorted(part for part in parts if part.name in names)


def _parts(simulator: Simulator) -> dict[Part, bytes]:
    """Returns digests of the attributes with plain values; what merely repeats an action is one of them."""
    return {
        Part(depth, name): digest_of(value)
        for depth, thing in enumerate(simulator.chain())
        for name, value in vars(thing).items()
        if not isinstance(value, GENERATORS) and not is_description(value) and _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    return (
        value is None
        or isinstance(value, int | float | str | np.generic)
        or (isinstance(value, np.ndarray) and value.size == 1)
    )


def _matters(simulator: Simulator, walks: list[Walk], part: Part) -> bool:
    """Tells whether giving an attribute the value it had in another state changes any answer."""
    met: dict[bytes, Any] = {}
    for _ in _states(simulator, walks):
        value = vars(simulator.chain()[part.depth]).get(part.name)
        met.setdefault(digest_of(value), copy.deepcopy(value))
    rng = np.random.default_rng(0)
    saved = [(place, simulator.save()) for place in _states(simulator, walks)]
    original = simulator.env
    try:
        for place, snapshot in saved[:: max(1, len(saved) // _PLACES)]:
            actions = rng.integers(simulator.num_actions, size=_PLACE_STEPS).tolist()
            simulator.load(snapshot)
            expected = _answers(simulator, place, actions)
            for value in list(met.values())[:: max(1, len(met) // _VALUES)]:
                simulator.load(snapshot)
                setattr(simulator.chain()[part.depth], part.name, copy.deepcopy(value))
                if _answers(simulator, place, actions) != expected:
                    return True
    except BathysphereError:  # a step did not bear it
        return True
    finally:
        simulator.env = original
    return False


def _answers(simulator: Simulator, place: _Place, actions: list[int]) -> list[bytes]:
    """Makes steps from a state that the environment is in; returns what is seen, nothing of steps not possible."""
    step, looks = place.walk.steps[place.number], list[bytes]()
    for action in actions:
        if step.ended or (step.mask is not None and not step.mask[action]):
            looks.append(b"")
        else:
            step = simulator.step(action)
            looks.append(look_of(step))
    return looks
