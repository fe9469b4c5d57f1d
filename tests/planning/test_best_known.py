"""What states are worth by the best continuation known: against all ways tried out, and plain value iteration."""

import math

import numba
import numpy as np
import pytest

from bathysphere.planning import MCTS, BestFirst, BestFirstConfig, SearchConfig
from bathysphere.planning.graph.best_known import best_known_values
from tests.oracles.random_graph import TableValues
from tests.planning.best_first_lockstep import all_starts, draw, make_twin
from tests.planning.small_worlds import make_domain, make_search

pytestmark = pytest.mark.kernels

NUM_GRAPHS = 20 if numba.config.DISABLE_JIT else 100


def draw_graph(seed, *, num_states=8, low=-1.0, high=1.0):
    """Returns child, reward, terminal and values of a graph with circles; rewards are between `low` and `high`."""
    rng = np.random.default_rng(seed)
    child = rng.integers(0, num_states, size=(num_states, int(rng.integers(1, 4)))).astype(np.int32)
    terminal = rng.random(num_states) < 0.2
    child[terminal | (rng.random(num_states) < 0.3)] = -1
    reward = np.where(rng.random(child.shape) < 0.5, rng.uniform(low, high, size=child.shape), 0.0)
    return child, reward, terminal, rng.normal(size=(num_states, int(rng.integers(1, 4))))


def best_way(child, reward, terminal, values, discount, state, past=frozenset()):
    """Tries out every way without a circle; -inf if all ways lead round in circles."""
    if terminal[state]:
        return 0.0
    if child[state][0] < 0:
        return values[state]
    past, best = past | {state}, -math.inf
    for following, paid in zip(child[state], reward[state], strict=True):
        if following not in past:
            rest = best_way(child, reward, terminal, values, discount, following, past)
            best = max(best, paid + discount * rest)
    return best


def tried_out(child, reward, terminal, values, discount):
    """Returns what every member finds every state to be worth by the best way without a circle."""
    graph = child.tolist(), reward.tolist(), terminal.tolist()
    ways = [[best_way(*graph, member, discount, state) for member in values.T.tolist()] for state in range(len(child))]
    return np.array([[0.0 if worth == -math.inf else worth for worth in row] for row in ways])


def iterated(child, reward, terminal, values, discount, sweeps):
    """Returns the best of all ways of at most so many steps, circles included, by plain value iteration."""
    worth = np.where((child[:, :1] >= 0) & ~terminal[:, None], -np.inf, np.where(terminal[:, None], 0.0, values))
    for _ in range(sweeps):
        for_action = reward[:, :, None] + discount * worth[child]
        worth = np.where((child[:, :1] >= 0) & ~terminal[:, None], for_action.max(axis=1), worth)
    return np.where(np.isneginf(worth), 0.0, worth)


def test_where_circles_cannot_pay_the_best_way_has_none():
    """Without a discount circles cost; with one, all that is worth something is nearer on the straight way."""
    for seed in range(NUM_GRAPHS):
        child, reward, terminal, values = draw_graph(seed, low=-1.0, high=0.0)
        known = best_known_values(child, reward, terminal, values, 1.0)
        np.testing.assert_allclose(known, tried_out(child, reward, terminal, values, 1.0), atol=1e-9)
        leads_to_end = np.where(child >= 0, terminal[child], False)
        paid = np.where(leads_to_end, np.abs(reward), 0.0)  # only ends pay
        known = best_known_values(child, paid, terminal, np.abs(values), 0.9)
        np.testing.assert_allclose(known, tried_out(child, paid, terminal, np.abs(values), 0.9), atol=1e-5)


def test_where_circles_pay_it_is_between_the_best_way_without_and_with_them():
    num_paid = 0
    for seed in range(NUM_GRAPHS):
        graph = draw_graph(seed)
        known, straight = best_known_values(*graph, 0.9), tried_out(*graph, 0.9)
        assert (known >= straight - 1e-5).all()
        assert (known <= iterated(*graph, 0.9, 500) + 1e-9).all()
        num_paid += (known > straight + 1e-5).sum()
    assert num_paid


@pytest.mark.parametrize("discount", [0.8, 1.0])
def test_without_circles_it_is_the_solution_of_the_equations(discount):
    for seed in range(NUM_GRAPHS):
        child, reward, terminal, values = draw_graph(seed, num_states=30)
        later = np.arange(30)[:, None] + 1 + child % 7  # states are born after those that lead to them, or not
        shuffled = np.random.default_rng(seed).permutation(31).astype(np.int32)
        ended = np.append(terminal, True)
        forward = np.full((31, child.shape[1]), -1, np.int32)
        forward[shuffled[:30]] = np.where(child >= 0, shuffled[np.minimum(later, 30)], -1)
        paid, ends, worth = np.zeros(forward.shape), np.zeros(31, np.bool_), np.zeros((31, values.shape[1]))
        paid[shuffled[:30]], ends[shuffled], worth[shuffled[:30]] = reward, ended, values
        forward[ends] = -1
        known = best_known_values(forward, paid, ends, worth, discount)
        np.testing.assert_allclose(known, iterated(forward, paid, ends, worth, discount, 31), atol=1e-5)


def test_circles_are_worth_nothing():
    child = np.array([[1, 0], [0, 1], [0, 3], [-1, -1]], np.int32)  # 0 and 1 lead round; 2 also out
    values = np.array([[9.0], [9.0], [9.0], [0.5]])
    known = best_known_values(child, np.zeros((4, 2)), np.zeros(4, np.bool_), values, 0.9)
    assert known.ravel().tolist() == [0.0, 0.0, 0.45, 0.5]


def test_states_without_edges_keep_their_values_and_ends_are_worth_nothing():
    child = np.full((2, 3), -1, np.int32)
    known = best_known_values(child, np.zeros((2, 3)), np.array([False, True]), np.full((2, 2), -0.5), 0.9)
    assert known.tolist() == [[-0.5, -0.5], [0.0, 0.0]]


# What planners hand on.


def test_mcts_hands_on_what_its_graph_knows():
    for seed in range(NUM_GRAPHS // 10):
        domain, values = draw(seed)
        search = MCTS(domain, values, SearchConfig(passes=8, max_steps=6), num_episodes=1, graph_states=3)
        (episode,) = search.play()
        graph = search.search_graph(0)
        known = best_known_values(graph.child, graph.reward, graph.terminal, graph.member_values, 0.99)
        places = {state.tobytes(): k for k, state in enumerate(graph.states)}
        path = [places[state.tobytes()] for state in episode.states]
        assert episode.graph_values.tolist() == known[path].tolist()
        assert len(episode.seen.states) == min(3, len(set(np.flatnonzero(graph.child[:, 0] >= 0)) - set(path)))
        for state, worth in zip(episode.seen.states, episode.seen.values, strict=True):
            place = places[state.tobytes()]
            assert graph.child[place, 0] >= 0
            assert place not in path
            assert worth.tolist() == known[place].tolist()


def test_mcts_hands_on_nothing_unless_asked():
    (episode,) = make_search(make_domain({0: [1, 1]}, ends=(1,)), np.zeros(2), num_episodes=1).play()
    assert (episode.graph_values, episode.seen) == (None, None)


def mean_below(state, twin, discount, num_members):
    """Returns the sums, over a state and all that is reached through it, of what each is worth, and their number."""
    sums, count = list(state.members or [0.0] * num_members), 1
    for other in twin.states.values():
        if other.way.parent is state:
            below, number = mean_below(other, twin, discount, num_members)
            reward = state.rewards[other.way.action]
            sums = [s + number * reward + discount * b for s, b in zip(sums, below, strict=True)]
            count += number
    return sums, count


@pytest.mark.parametrize("order", ["steps", "value"])
def test_best_first_hands_on_what_its_graph_knows(order):
    """Where a success is known, the best way to it; elsewhere, in what is searched, the mean of what was found."""
    kinds = set()
    for seed in range(12):
        domain, values = draw(seed)
        config = BestFirstConfig(order=order, max_expansions=6, reopen=True, max_steps=4)
        start = all_starts(domain)[:1]
        planner = BestFirst(domain, values, config, num_episodes=1, starts=start, graph_states=100)
        twin = make_twin(planner, 0)
        while not twin.ended_by:
            twin.round()
            planner.plan()
        graph = planner.search_graph(0)
        (episode,) = planner.act()
        states = list(twin.states.values())
        known = best_known_values(graph.child, graph.reward, graph.terminal, values_of(states, values), 0.99)
        assert graph.member_values.tolist() == known.tolist()
        path = [twin.states[row.tobytes()].birth for row in episode.states]
        assert episode.graph_values.tolist() == known[path].tolist()
        searched = []
        for state in states:
            if can_succeed(state):
                searched.append(known[state.birth].tolist())
            else:
                sums, count = mean_below(state, twin, 0.99, values.num_members)
                searched.append([total / count for total in sums])
        np.testing.assert_allclose(episode.search_values, np.array(searched)[path], rtol=1e-9, atol=1e-12)
        is_known = [bool(s.children) or (s.members is None and not s.terminal) for s in states]
        seen = [s for s in states if is_known[s.birth] and s.birth not in path]
        assert [row.tobytes() for row in episode.seen.states] == [s.key for s in seen]
        np.testing.assert_allclose(
            episode.seen.values, np.reshape([searched[s.birth] for s in seen], (-1, values.num_members)), atol=1e-12
        )
        kinds |= {can_succeed(state) for state in states}
    assert kinds == {False, True}


def values_of(states, values):
    return np.array([state.members or [0.0] * values.num_members for state in states])


def can_succeed(state, past=()):
    """Tells whether some known way from a state leads to a success."""
    return state.solved or any(
        can_succeed(child, (*past, state)) for child in state.children if child not in past and child is not state
    )


def test_a_state_that_leads_nowhere_is_worth_what_the_network_says():
    values = TableValues(np.array([[0.25, 0.5]], np.float32))
    (episode,) = BestFirst(make_domain({0: [0, 0]}), values, num_episodes=1).step()
    assert episode.search_values.tolist() == [[0.25, 0.5]]
    assert (episode.graph_values, episode.seen) == (None, None)
