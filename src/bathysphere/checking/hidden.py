"""What answers depend on besides the state: chance, and whatever a world keeps to itself."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from bathysphere.checking.findings import Finding
from bathysphere.checking.walks import Walks, copied, name_of
from bathysphere.domains.base import Domain, Remembers, States, Successors, ask_afresh

_REPEATS = 4
_GENERATORS = np.random.Generator | np.random.RandomState | random.Random
_INTO_STATE = "Put everything that the future depends on into the state; a world is asked about states in any order."


def find_hidden(domain: Domain, walks: Walks, unused: Any = None) -> list[Finding]:
    """Asks about the same states again, at once and after other episodes have begun.

    Args:
      domain: the world.
      walks: through it.
      unused: if the world is written one state at a time: another one like it, which no step was made in. It is asked,
        since what a world keeps about the states it has met may not change any more after the walks.
    """
    if unused is None:
        return _find_hidden(domain, walks, getattr(domain, "world", domain))
    per_state: Any = domain
    used, per_state.world = per_state.world, unused
    try:
        domain.initial(1, np.random.default_rng(0))  # nobody makes steps in a world that was never started
        return _find_hidden(domain, walks, unused) or _find_kept(domain, walks, unused)
    finally:
        per_state.world = used


def _find_hidden(domain: Domain, walks: Walks, owner: Any) -> list[Finding]:
    states = walks.different(32)
    before = _Keeps(owner)
    first = _answer(domain, states)
    for _ in range(_REPEATS):
        again = _answer(domain, states)
        if difference := _difference(domain, states, first, again):
            return [_explained(difference, first, again, before.changed())]
    before = _Keeps(owner)
    domain.initial(4, np.random.default_rng(1234))
    changed = before.changed()
    if difference := _difference(domain, states, first, _answer(domain, states)):
        kept = f" The start of an episode changes {_listed(changed.attributes)}." if changed.attributes else ""
        seen = f"Answers changed when another episode began: {difference}.{kept}"
        fix = f"{_INTO_STATE} What start draws belongs there too."
        return [Finding("start-changes-the-world", seen, fix)]
    return []


def _find_kept(domain: Domain, walks: Walks, owner: Any) -> list[Finding]:
    """Tells what steps and starts change in the world, though nothing was seen to depend on it."""
    before = _Keeps(owner)
    domain.initial(1, np.random.default_rng(4321))
    by_start = before.changed().attributes
    before = _Keeps(owner)
    _answer(domain, walks.different(walks.most))
    by_step = before.changed().attributes
    told = [
        f"{what} changes {_listed(names)}."
        for what, names in (("The start of an episode", by_start), ("A step", by_step))
        if names
    ]
    if not told:
        return []
    return [
        Finding(
            "keeps-to-itself",
            f"{' '.join(told)} No answer that was seen depended on it.",
            "If later steps depend on it, put it into the state: a world is asked about states in any order. A cache "
            "or a count for yourself may stay.",
            is_wrong=False,
        )
    ]


def find_made_differently(domain: Domain, make: Callable[[], Domain], walks: Walks) -> list[Finding]:
    """Makes the world a second time, and compares."""
    other = make()
    if isinstance(domain, Remembers) and isinstance(other, Remembers):
        other.load_state_dicts([domain.state_dict()])  # so that it knows the way to the states of the first
    fix = "Make it from its settings alone: seed the generators that are used in __init__ with one of them."
    described = [(each.state_size, each.action_names, each.observation) for each in (domain, other)]
    starts = [each.initial(len(walks.starts), np.random.default_rng(5)) for each in (domain, other)]
    if described[0] != described[1] or not np.array_equal(starts[0], starts[1]):
        seen = "Two worlds that were made alike are not alike: their states or their starts differ."
        return [Finding("made-differently", f"{seen} A resumed run would go on in another one.", fix)]
    states = walks.different(64)
    if difference := _difference(domain, states, _answer(domain, states), _answer(other, states)):
        seen = f"Two worlds that were made alike are not alike: {difference}."
        return [Finding("made-differently", f"{seen} A resumed run would go on in another one.", fix)]
    return []


class _Keeps:
    """What an object keeps to itself, to tell later what of it has changed."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._saved, self._global = _saved(owner), _global_state()
        self.attributes: list[str] = []
        self.is_chance = False

    def changed(self) -> _Keeps:
        """Finds out what has changed since: names of attributes, and whether generators are among it."""
        now = _saved(self._owner)
        self.attributes = [name for name in now if now[name] != self._saved.get(name)]
        drawn = [isinstance(vars(self._owner)[name], _GENERATORS) for name in self.attributes]
        self.is_chance = any(drawn) or _global_state() != self._global
        return self


def _saved(owner: Any) -> dict[str, bytes]:
    saved = {}
    for name, thing in getattr(owner, "__dict__", {}).items():
        try:
            saved[name] = pickle.dumps(thing)
        except Exception:  # whatever a user's object may raise; what cannot be compared is left out
            continue
    return saved


def _global_state() -> bytes:
    return pickle.dumps((random.getstate(), np.random.get_state()))  # noqa: NPY002 (asks whether others draw from it)


def _answer(domain: Domain, states: States) -> Successors:
    return copied(ask_afresh(domain, states.copy()))


def _difference(domain: Domain, states: States, one: Successors, other: Successors) -> str:
    """Returns a clause with a step that came out in two ways; nothing if there is none."""
    for i in range(len(states)):
        for action, name in enumerate(domain.action_names):
            ends = [(part.states[i, action].tobytes(), part.terminal[i, action]) for part in (one, other)]
            earned = [float(part.rewards[i, action]) for part in (one, other)]
            step = f"{name} in the state {name_of(domain, states[i])}"
            if ends[0] != ends[1]:
                after = [name_of(domain, part.states[i, action]) for part in (one, other)]
                return f"{step} led to {after[0]}, and later to {after[1]}"
            if earned[0] != earned[1]:
                return f"{step} earned {earned[0]:g}, and later {earned[1]:g}"
    return ""


def _explained(difference: str, one: Successors, other: Successors, kept: _Keeps) -> Finding:
    if kept.is_chance or not kept.attributes:
        source = (
            f" It draws from {_listed(kept.attributes)}."
            if kept.attributes
            else " It draws from Python's or NumPy's global generator."
            if kept.is_chance
            else " What it depends on is no attribute of the world: chance, the clock or a global variable."
        )
        return Finding(
            "random-step",
            f"The same step came out in two ways: {difference}.{source}",
            "Draw what is random at the start, from rng, and keep it in the state; or make the step certain. A Domain "
            "may have chance if it says what may happen (outcomes), or lets a seed decide it (sample).",
        )
    only_rewards = np.array_equal(one.states, other.states) and np.array_equal(one.terminal, other.terminal)
    if only_rewards:
        seen = f"Rewards depend on what happened before: {difference}. A step changes {_listed(kept.attributes)}."
        return Finding("reward-depends-on-history", seen, _INTO_STATE)
    seen = f"The state is not all of the state: {difference}. A step changes {_listed(kept.attributes)}."
    return Finding("hidden-state", seen, _INTO_STATE)


def _listed(names: list[str]) -> str:
    return " and ".join(f"self.{name}" for name in names[:3])
