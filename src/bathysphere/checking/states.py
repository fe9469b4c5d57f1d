"""Mistakes that show in the states: counters in them, states that never come again, observations that hide them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bathysphere.checking.findings import Finding
from bathysphere.checking.walks import Walks, name_of
from bathysphere.domains.base import Domain, Successors

_FEWEST_STEPS = 40  # from which something is concluded
_FEWEST_PAIRS = 5  # states that differ in a counter only


def find_stuck(domain: Domain, walks: Walks) -> list[Finding]:
    """Looks for a start that no action leaves."""
    after = domain.successors(walks.starts.copy()).states
    stuck = (after == walks.starts[:, None]).all(axis=(1, 2))
    if not stuck.any():
        return []
    start = name_of(domain, walks.starts[int(stuck.argmax())])
    return [
        Finding(
            "stuck-at-the-start",
            f"No action changes the start state {start}; the episode is over, or nothing can be done in it.",
            "Return another state from start, or see to it that step returns the new state and not the old one.",
        )
    ]


def find_counter(domain: Domain, walks: Walks) -> list[Finding]:
    """Looks for a byte that counts steps and decides nothing but the end."""
    for position in _counting(walks):
        rest = np.delete(walks.states, position, axis=1)
        _, kind = np.unique(rest, axis=0, return_inverse=True)
        if kind.max() == 0 or not _is_idle(walks, position, kind.ravel()):
            continue
        last = int(walks.states[:, position].max()) + 1
        return [
            Finding(
                "time-limit-in-the-state",
                f"Byte {position} of the state counts steps and changes nothing else, so that no state is ever met "
                f"again: {name_of(domain, walks.states[0])}.",
                f"Leave the counter out of the state and write the limit into the world, for instance max_steps = "
                f"{max(last, domain.max_steps)}; a time limit ends an episode without its state being over.",
                is_wrong=False,
            )
        ]
    return []


def find_never_again(domain: Domain, walks: Walks) -> list[Finding]:
    """Tells whether no state was met twice, not even across episodes and by different ways."""
    if len(walks.states) < _FEWEST_STEPS or share_of_repeats(walks) > 0:
        return []
    met = int(walks.is_going.sum())
    return [
        Finding(
            "states-never-repeat",
            f"{met:,} steps led to as many different states, such as {name_of(domain, walks.states[-1])}.",
            "If the state holds something that makes no difference (a clock, an identity, digits beyond what counts), "
            "leave it out or round it; search gains by recognising states. Of an environment, key can say what counts: "
            "key=lambda env: env.unwrapped.place.",
            is_wrong=False,
        )
    ]


def share_of_repeats(walks: Walks) -> float:
    """Returns which share of all steps led to a state that was known already."""
    after = walks.successors.states[walks.is_going]
    if not len(after):
        return 0.0
    return 1.0 - len(np.unique(after, axis=0)) / len(after)


def find_aliases(domain: Domain, walks: Walks) -> list[Finding]:
    """Looks for states that look alike and are not: rewards, ends, or what is seen next differ."""
    states = walks.different(400)
    looks = domain.observe(states).reshape(len(states), -1)
    out = domain.successors(states.copy())
    after = out.states.reshape(-1, domain.state_size)
    _, kinds = np.unique(looks, axis=0, return_inverse=True)
    next_looks = domain.observe(after).reshape(len(states), -1)
    first: dict[int, int] = {}
    for i, kind in enumerate(kinds.ravel().tolist()):
        one = first.setdefault(kind, i)
        if one != i and (told := _unlike(out, next_looks, one, i)):
            pair = f"{name_of(domain, states[one])} and {name_of(domain, states[i])}"
            return [
                Finding(
                    "observation-aliases",
                    f"The states {pair} look the same to networks, but {told}.",
                    "Show in observe what tells them apart; values cannot differ where observations do not.",
                    is_wrong=False,
                )
            ]
    return []


def _unlike(out: Successors, looks: NDArray[np.generic], one: int, other: int) -> str:
    """Says in what two states that look alike differ; nothing if in nothing."""
    if not np.array_equal(out.rewards[one], out.rewards[other]):
        return "their steps earn different rewards"
    if not np.array_equal(out.terminal[one], out.terminal[other]):
        return "a step ends the episode in one of them only"
    if not np.array_equal(out.solved[one], out.solved[other]):
        return "a step solves the episode in one of them only"
    return "" if np.array_equal(looks[one], looks[other]) else "what is seen after a step differs"


def _counting(walks: Walks) -> list[int]:
    """Returns positions of bytes that grow or fall by one with every step, whatever the action."""
    going = walks.is_going
    if going.sum() < _FEWEST_STEPS:
        return []
    change = (walks.successors.states - walks.states[:, None])[going]  # uint8: modulo 256
    counts = (change == 1).all(axis=0) | (change == 255).all(axis=0)
    return [int(position) for position in np.flatnonzero(counts)]


def _is_idle(walks: Walks, position: int, kind: NDArray[np.intp]) -> bool:
    """Tells whether states that differ only in one byte have the same future but for that byte, as far as was seen."""
    going = walks.is_going
    after = np.delete(walks.successors.states, position, axis=2)
    rewards = walks.successors.rewards
    first: dict[int, int] = {}
    pairs = 0
    for i in np.flatnonzero(going.all(axis=1)).tolist():
        one = first.setdefault(int(kind[i]), i)
        if walks.states[one, position] == walks.states[i, position]:
            continue
        if not np.array_equal(after[one], after[i]) or not np.array_equal(rewards[one], rewards[i]):
            return False
        pairs += 1
    return pairs >= _FEWEST_PAIRS
