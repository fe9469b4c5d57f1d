"""What really happens: the one place where planners that do not look ahead by the rules ask the world for a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, States


class RealSteps(NamedTuple):
    """Where `n` episodes are after a step each."""

    states: States  # uint8 [n, S]
    rewards: NDArray[np.float64]  # [n]
    terminal: NDArray[np.bool_]  # [n]
    solved: NDArray[np.bool_]  # [n]


def take_steps(domain: Domain, states: States, actions: NDArray[np.int32]) -> RealSteps:
    """Makes one step from each of `states`, uint8 [n, S], by `actions`, int32 [n].

    A domain answers for all actions at once; of its answer, only the chosen one is handed on.
    """
    answer = domain.successors(states)
    taken = np.arange(len(states)), actions
    return RealSteps(answer.states[taken], answer.rewards[taken], answer.terminal[taken], answer.solved[taken])
