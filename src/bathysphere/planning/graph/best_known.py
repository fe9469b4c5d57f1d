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


def can_succeed(child: NDArray[np.signedinteger], solved: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tells from which states the graph knows a way to a success, bool [N]; arguments as above, `solved` bool [N]."""
    can: NDArray[np.bool_] = solved.copy()
    _spread(np.ascontiguousarray(child), can)
    return can


@kernel
def _spread(child, can):
    """Marks every state that an action leads to a marked one from, until there is none left. Mutates: can [N]."""
    has_changed = True
    while has_changed:
        has_changed = False
        for state in range(child.shape[0] - 1, -1, -1):
            if can[state]:
                continue
            for a in range(child.shape[1]):
                if child[state, a] >= 0 and can[child[state, a]]:
                    can[state] = has_changed = True
                    break


def tree_means(
    parent: NDArray[np.signedinteger],
    reward: NDArray[np.float64],
    depth: NDArray[np.signedinteger],
    values: NDArray[np.floating],
    discount: float,
) -> NDArray[np.float64]:
    """Returns the mean, over all states found by way of each state, of what they and the way to them are worth, [N, E].

    As the passes of MCTS do, every state that was found counts once, with the network's value and the rewards on the
    way, discounted; the state itself among them. So a state whose neighbourhood disappoints is worth less.

    Args:
      parent: [N], the state before on the way to each; -1 for the first. It is always less deep.
      reward: [N], of the step from there.
      depth: [N].
      values: [N, E], the network's.
      discount: in (0, 1].
    """
    sums, counts = values.astype(np.float64), np.ones(len(parent))
    _gather(np.argsort(-depth.astype(np.int64), kind="stable"), parent, reward, sums, counts, discount)
    means: NDArray[np.float64] = sums / counts[:, None]
    return means


@kernel
def _gather(deepest_first, parent, reward, sums, counts, discount):
    """Adds each state's sum to that of its parent. Invariant: all below a state are added when its turn comes.

    Mutates: sums [N, E], counts [N].
    """
    for state in deepest_first:
        above = parent[state]
        if above >= 0:
            for i in range(sums.shape[1]):
                sums[above, i] += counts[state] * reward[state] + discount * sums[state, i]
            counts[above] += counts[state]
