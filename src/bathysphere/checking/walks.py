"""Random walks through a world: what a check looks at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.config.auto import ask_timed
from bathysphere.domains.adapters.calling import shown
from bathysphere.domains.base import Domain, States, Successors
from bathysphere.testing import check_shapes

_WALKS = 8
_SECONDS = 1.0  # after which walks of a slow world end; about what each look at its states may take


class Walks(NamedTuple):
    """Steps that random walks made, all out of states in which the episode goes on."""

    starts: States  # uint8 [w, S]
    states: States  # uint8 [n, S], where steps were made
    successors: Successors  # of all these states, [n, A] of each
    actions: NDArray[np.intp]  # [n], those taken
    num_episodes: int  # that came to an end
    num_solved: int
    seconds: float  # for all successors of one state

    @property
    def is_going(self) -> NDArray[np.bool_]:
        """Which successors do not end the episode, bool [n, A]."""
        going: NDArray[np.bool_] = ~self.successors.terminal
        return going

    @property
    def most(self) -> int:
        """How many states to look at again: fewer in slow worlds."""
        return int(np.clip(_SECONDS / max(self.seconds, 1e-9), 16, 400))

    def different(self, most: int) -> States:
        """Returns different states that were met or lie one step away, and are not over: uint8 [at most `most`, S]."""
        rows = np.concatenate([self.states, self.successors.states[self.is_going]])
        _, first = np.unique(rows, axis=0, return_index=True)
        return rows[np.sort(first)[: min(most, self.most)]]


def walk_about(domain: Domain, rng: np.random.Generator, num_states: int) -> Walks:
    """Returns what random walks from the start meet; a walk that comes to an end begins again.

    Raises:
      ConformanceError: if the arrays of the domain are not as promised.
    """
    starts = domain.initial(_WALKS, rng)
    check_shapes(domain, starts, domain.successors(starts.copy()))  # compiles what has to be compiled
    met: list[tuple[States, Successors, NDArray[np.intp]]] = []
    states, ages, rows = starts, np.zeros(_WALKS, int), np.arange(_WALKS)
    num_episodes = num_solved = 0
    spent, num_asked = 0.0, 0
    while len(met) * _WALKS < num_states and (len(met) < 2 or spent < _SECONDS):
        out, seconds, num_different = ask_timed(domain, states)
        spent, num_asked = spent + seconds, num_asked + num_different
        check_shapes(domain, states, out)
        actions = rng.integers(len(domain.action_names), size=_WALKS)
        met.append((states, out, actions))
        ended, ages = out.terminal[rows, actions], ages + 1
        num_episodes += int(ended.sum())
        num_solved += int(out.solved[rows, actions].sum())
        states = out.states[rows, actions]
        over = ended | (ages >= domain.max_steps)
        if over.any():
            states[over], ages[over] = domain.initial(int(over.sum()), rng), 0
    parts = zip(*(out for _, out, _ in met), strict=True)
    return Walks(
        starts,
        np.concatenate([states for states, _, _ in met]),
        Successors(*map(np.concatenate, parts)),
        np.concatenate([actions for _, _, actions in met]),
        num_episodes,
        num_solved,
        spent / num_asked,
    )


def copied(out: Successors) -> Successors:
    """Returns a copy that a domain cannot change afterwards."""
    return Successors(out.states.copy(), out.rewards.copy(), out.terminal.copy(), out.solved.copy())


def name_of(domain: Domain, state: States) -> str:
    """Returns a state, uint8 [S], as a sentence shows it: the object that it is, otherwise its bytes."""
    objects = getattr(domain, "objects", None)
    return shown(objects(state[None])[0]) if objects is not None else shown(state.tolist())
