"""What really happens: the one place where a world is asked for a step, and chance decides if there is any in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Chance, Domain, Sampler, States, Successors
from bathysphere.domains.estimated import SEEDS


class RealSteps(NamedTuple):
    """Where `n` episodes are after a step each."""

    states: States  # uint8 [n, S]
    rewards: NDArray[np.float64]  # [n]
    terminal: NDArray[np.bool_]  # [n]
    solved: NDArray[np.bool_]  # [n]


class MadeSteps(NamedTuple):
    """Steps that were made, as a `LearningModel` is told of them."""

    states: States  # uint8 [n, S], before
    actions: NDArray[np.int32]  # [n]
    outcomes: Successors  # without an action axis


def take_steps(domain: Domain, states: States, actions: NDArray[np.int32], rng: np.random.Generator) -> RealSteps:
    """Makes one step from each of `states`, uint8 [n, S], by `actions`, int32 [n].

    A domain answers for all actions at once; of its answer, only the chosen one is handed on.

    Args:
      rng: decides what happens in a world with chance; not touched otherwise.
    """
    rows = np.arange(len(states))
    if isinstance(domain, Sampler):
        run, chosen = domain.sample(states, rng.integers(SEEDS, size=len(states))), (rows, actions)
        return RealSteps(run.states[chosen], run.rewards[chosen], run.terminal[chosen], run.solved[chosen])
    if isinstance(domain, Chance):
        may_happen = domain.outcomes(states)
        chances = np.cumsum(may_happen.probabilities[rows, actions], axis=1)
        drawn = rng.random(len(states)) * chances[:, -1]
        taken: tuple[NDArray[np.integer], ...] = rows, actions, (drawn[:, None] >= chances).sum(axis=1)
        told = may_happen.states, may_happen.rewards, may_happen.terminal, may_happen.solved
        return RealSteps(told[0][taken], told[1][taken], told[2][taken], told[3][taken])
    answer, chosen = domain.successors(states), (rows, actions)
    return RealSteps(answer.states[chosen], answer.rewards[chosen], answer.terminal[chosen], answer.solved[chosen])
