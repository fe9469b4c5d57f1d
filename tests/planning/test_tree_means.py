"""What a best-first search makes of its tree: means over it, and from where a success is known."""

import numpy as np
import pytest

from bathysphere.planning.graph.best_known import can_succeed, tree_means

pytestmark = pytest.mark.kernels


def random_tree(rng, num):
    """Parents, rewards, depths and values [N, 2] of a random tree, whose states are numbered in any order."""
    parent = np.array([-1, *(rng.integers(n) for n in range(1, num))])
    depth = np.zeros(num, np.int64)
    for state in range(1, num):
        depth[state] = depth[parent[state]] + 1
    order = rng.permutation(num)
    place = np.argsort(order)
    parent = np.where(parent[order] < 0, -1, place[parent[order]])
    return parent, rng.normal(size=num), depth[order], rng.normal(size=(num, 2))


@pytest.mark.parametrize("seed", range(20))
def test_means_are_over_all_that_was_found_below(seed):
    rng = np.random.default_rng(seed)
    parent, reward, depth, values = random_tree(rng, 30)
    means = tree_means(parent, reward, depth, values, 0.9)
    for state in range(30):
        worths = []
        for below in range(30):
            way = [below]
            while way[-1] != state and parent[way[-1]] >= 0:
                way.append(parent[way[-1]])
            if way[-1] == state:
                worth = values[below]
                for step in way[:-1]:
                    worth = reward[step] + 0.9 * worth
                worths.append(worth)
        np.testing.assert_allclose(means[state], np.mean(worths, axis=0))


@pytest.mark.parametrize("seed", range(20))
def test_success_is_known_where_a_way_leads_to_it(seed):
    rng = np.random.default_rng(seed)
    child = rng.integers(40, size=(40, 2))
    child[rng.random(40) < 0.4] = -1
    solved = rng.random(40) < 0.05
    found = can_succeed(child, solved)
    for state in range(40):
        seen, todo = {state}, [state]
        while todo:
            for following in child[todo.pop()].tolist():
                if following >= 0 and following not in seen:
                    seen.add(following)
                    todo.append(following)
        assert found[state] == any(solved[other] for other in seen)
