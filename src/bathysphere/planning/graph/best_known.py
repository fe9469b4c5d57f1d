"""What the states of a search graph are worth by the best continuation that the graph knows.

With deterministic rules a state is worth the best of its actions: reward + discount * worth of where it leads. Ends are
worth 0, states that were never expanded what the network says. The mean over passes, which the planner keeps, mixes in
every detour that was tried; this does not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bathysphere.planning.graph.compiled import kernel

_SETTLED = 1e-6  # what rises by no more counts as settled: below what networks tell apart


def best_known_values(
    child: NDArray[np.signedinteger],
    reward: NDArray[np.float64],
    terminal: NDArray[np.bool_],
    values: NDArray[np.floating],
    discount: float,
) -> NDArray[np.float64]:
    """Returns every member's value of every state by the best continuation that is known, float64 [N, E].

    That is the least solution of the equations above that loops cannot raise: a state from which every way leads round
    in circles, to no end and to no state that was not expanded, is worth 0.

    Args:
      child: [N, A], the state each action leads to; -1 in all places if a state was not expanded.
      reward: [N, A].
      terminal: [N].
      values: [N, E], the network's; used where a state was not expanded.
      discount: in (0, 1].
    """
    worth = np.where(child[:, :1] >= 0, -np.inf, values.astype(np.float64))
    worth[terminal] = 0.0
    _settle(np.ascontiguousarray(child), np.ascontiguousarray(reward), terminal, worth, discount)
    worth[np.isneginf(worth)] = 0.0
    return worth


@kernel
def _settle(child, reward, terminal, worth, discount):
    """Raises each state's worth to the best of its actions until none rises any more.

    Invariant: a worth is what some known way that ends, or leaves what was expanded, pays; it never falls. States are
    made after the state that first led to them, so going backwards most of them settle in the first sweep. As many
    sweeps as there are states suffice, for no way without a loop is longer; more would only follow loops that pay.
    Loops that put off something bad, which a discount makes less bad, pay less and less and are soon settled.
    Mutates: worth [N, E].
    """
    num_states, num_actions = child.shape
    for _ in range(num_states):
        has_risen = False
        for state in range(num_states - 1, -1, -1):
            if child[state, 0] < 0 or terminal[state]:
                continue
            for i in range(worth.shape[1]):
                best = worth[state, i]
                for a in range(num_actions):
                    best = max(best, reward[state, a] + discount * worth[child[state, a], i])
                has_risen |= best > worth[state, i] + _SETTLED
                worth[state, i] = best
        if not has_risen:
            return
