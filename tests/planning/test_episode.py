"""What a finished episode tells about its search: shares of visits, and values by the best continuation known."""

import numpy as np
import pytest

from bathysphere.planning import MCTS, SearchConfig
from bathysphere.planning.graph.best_known import best_known_values
from bathysphere.planning.search_graph import graph_of_episode
from tests.oracles.random_graph import RandomGraph, TableValues
from tests.planning.small_worlds import make_domain


def finished(domain, table, **options):
    """Plays one episode; its graph stays in the arena. Returns the planner and the episode."""
    graph_states = options.pop("graph_states", None)
    values = TableValues(np.asarray(table, np.float32))
    config = SearchConfig(**options)
    search = MCTS(domain, values, config, num_episodes=1, graph_states=graph_states)
    (episode,) = search.play()
    return search, episode


def draw(seed, **kwargs):
    rng = np.random.default_rng(seed)
    domain = RandomGraph.draw(rng, **kwargs)
    return domain, rng.normal(size=(len(domain.target), 3))


def slow_shares(graph, path):
    """Shares of visits, one state of `path` after the other."""
    rows = []
    for step, state in enumerate(path):
        seen, visits = path[: step + 1], []
        for child in graph.child[state].tolist():
            visits.append(0 if child < 0 or child in seen else int(graph.count[child]))
        rows.append([n / max(sum(visits), 1) for n in visits])
    return rows


@pytest.mark.parametrize("avoid_loops", [True, False])
def test_shares_of_visits_are_those_of_the_slow_twin(avoid_loops):
    left_out = 0
    for seed in range(30):
        domain, table = draw(seed)
        search, episode = finished(domain, table, passes=6, avoid_loops=avoid_loops, risk_coef=1.0)
        graph = graph_of_episode(search.graphs, 0)
        path = search.arena.history["state"][0, : len(episode)].tolist()
        assert episode.policy.shape == (len(episode), domain.target.shape[1])
        np.testing.assert_allclose(episode.policy, slow_shares(graph, path))
        sums = episode.policy.sum(1)
        assert (np.isclose(sums, 1) | (sums == 0)).all()
        left_out += (episode.policy == 0).sum()
    assert left_out


def test_episodes_of_different_lengths_that_end_together():
    """Read together, as they are from compiled code or at the step limit, each has its own shares."""
    domain, table = draw(3)
    starts = domain.encode(np.flatnonzero(~domain.is_end))
    options = {"starts": starts, "num_episodes": 6, "seed": 1}
    values, config = TableValues(table.astype(np.float32)), SearchConfig(passes=5, max_steps=4, final_ties="random")
    together = MCTS(domain, values, config, batch=6, **options).play()
    assert len({len(episode) for episode in together}) > 1
    for episode in together:
        assert episode.policy.shape == (len(episode), domain.target.shape[1])
        assert np.isfinite(episode.policy).all()


def test_no_share_for_staying_or_going_back():
    """A corridor: left, right, or stay. Where one has been, one has passed most often, but not by going back."""
    corridor = make_domain({s: [max(s - 1, 0), s + 1, s] for s in range(6)}, ends=(6,), solved=(6,))
    search, episode = finished(corridor, np.arange(7.0)[:, None] / 10, passes=10)
    assert episode.actions.tolist() == [1] * 6
    assert episode.policy.tolist() == [[0, 1, 0]] * 6
    counts = graph_of_episode(search.graphs, 0).count
    assert counts.min() == 1 < counts[:6].min()


def test_nothing_is_shared_where_nothing_is_left():
    loop = make_domain({0: [0, 0]}, max_steps=2)
    _, episode = finished(loop, [[0.0]], passes=3)
    assert episode.policy.tolist() == [[0, 0]] * 2


# By the best continuation known.


@pytest.mark.parametrize("seed", range(10))
def test_graph_values_are_those_of_the_best_continuation_known(seed):
    domain, table = draw(seed)
    search, episode = finished(domain, table, passes=7, discount=0.9, max_steps=8, graph_states=0)
    graph = graph_of_episode(search.graphs, 0)
    expected = best_known_values(graph.child, graph.reward, graph.terminal, graph.member_values, 0.9)
    path = search.arena.history["state"][0, : len(episode)]
    assert episode.graph_values.tolist() == expected[path].tolist()
    assert episode.seen is None


def test_where_everything_is_known_they_are_the_true_values():
    num_known = 0
    for seed in range(20):
        domain, table = draw(seed, acyclic=True)
        search, episode = finished(domain, table, passes=200, discount=0.9, graph_states=0, risk_coef=5.0)
        graph = graph_of_episode(search.graphs, 0)
        if ((graph.child[:, 0] < 0) & ~graph.terminal).any():
            continue
        num_known += 1
        true = np.zeros(len(domain.target))
        for state in range(len(true) - 1, -1, -1):  # every action leads to a higher number
            if not domain.is_end[state]:
                true[state] = (domain.reward[state] + 0.9 * true[domain.target[state]]).max()
        expected = true[domain.number(episode.states)]
        np.testing.assert_allclose(episode.graph_values, np.repeat(expected[:, None], 3, axis=1), atol=1e-12)
    assert num_known > 5


@pytest.mark.parametrize("most", [1, 4, 100])
def test_further_states_are_expanded_ones_beside_the_way(most):
    domain, table = draw(4)
    search, episode = finished(domain, table, passes=10, max_steps=5, risk_coef=2.0, graph_states=most)
    graph = graph_of_episode(search.graphs, 0)
    on_the_way = {state.tobytes() for state in episode.states}
    seen = [state.tobytes() for state in episode.seen.states]
    beside = [
        (state.tobytes(), k)
        for k, state in enumerate(graph.states)
        if graph.child[k, 0] >= 0 and state.tobytes() not in on_the_way
    ]
    assert len(beside) > 4
    assert len(seen) == len(set(seen)) == min(most, len(beside))
    assert set(seen) <= {state for state, _ in beside}
    discount = search.config.discount
    worth = best_known_values(graph.child, graph.reward, graph.terminal, graph.member_values, discount)
    assert episode.seen.values.tolist() == [worth[dict(beside)[state]].tolist() for state in seen]


def test_none_are_told_unless_asked_for():
    _, episode = finished(*draw(4), passes=5)
    assert episode.graph_values is None
    assert episode.seen is None
