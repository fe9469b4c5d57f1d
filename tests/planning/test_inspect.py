"""What a planner says about itself."""

import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, SearchConfig
from bathysphere.planning.inspect import root_report, search_graph
from tests.oracles.random_graph import HashedValues, RandomGraph, TableValues
from tests.planning.lockstep import make_oracles
from tests.planning.small_worlds import make_domain, make_search, plan


def test_a_report_in_numbers():
    domain = make_domain({0: [(1, 1.0), 2, 0], 1: [1] * 3, 2: [2] * 3})
    search = make_search(domain, [[0, 0], [1, 3], [4, 4]], passes=1, discount=0.5, risk_coef=2.0)
    plan(search)
    report = root_report(search, 0)
    assert report.q.tolist() == [[1.5, 2.5], [2.0, 2.0], [0.0, 0.0]]
    assert report.reward.tolist() == [1.0, 0.0, 0.0]
    assert report.score[:2].tolist() == [1.0 + 0.5 * (2.0 + 2.0 * 1.0), 0.5 * 4.0]
    assert np.isnan(report.score[2])
    assert report.visits.tolist() == [1, 1, 1]
    assert report.votes.tolist() == [1.0, 1.0, 0.0]
    assert report.excluded == (None, None, "stays where it is")
    assert report.chosen == 0
    assert (report.step, domain.number(report.state)) == (0, 0)
    lines = str(report).splitlines()
    assert "a0 is next" in lines[0]
    assert lines[2].startswith("> a0")
    assert lines[-1].endswith("stays where it is")


def test_penalties_are_in_the_scores_and_not_in_the_estimates():
    domain = make_domain({0: [1], 1: [0]})
    search = make_search(domain, [0, 0], passes=2, discount=1.0, episode_penalty=0.25, avoid_loops=False)
    for visits in ([0], [1], [1], [2]):  # how often the child has been a root: 1, 0, 1, 0, ...
        plan(search)
        report = root_report(search, 0)
        assert report.q.tolist() == [[0.0]]
        assert report.score.tolist() == [-0.25 * visits[0]]
        search.act()


def test_looking_at_a_step_that_waits_changes_nothing():
    domain = make_domain({0: [0, 1], 1: [1, 1]})
    search = make_search(domain, [0, 1], passes=2, merge_nodes=True, patience=0.5)
    for _ in range(3):
        plan(search)
        before = {name: array.copy() for name, array in search.state_dict().items()}
        assert root_report(search, 0).chosen == 0  # although 1 has the better score
        assert all((array == before[name]).all() for name, array in search.state_dict().items())
        search.act()


@pytest.mark.parametrize("options", [{}, {"risk": "vote", "final_ties": "random"}, {"bonus": "ucb1"}])
@pytest.mark.parametrize("seed", range(6))
def test_the_step_is_the_one_reported_and_looking_changes_nothing(options, seed):
    rng = np.random.default_rng(seed)
    domain = RandomGraph.draw(rng)
    values = TableValues(rng.choice([0.0, 1.0], size=(len(domain.target), 3)).astype(np.float32))
    config = SearchConfig(passes=6, risk_coef=1.0, episode_penalty=0.1, num_subsampled=2, **options)
    watched, alone = (MCTS(domain, values, config, batch=2, seed=seed) for _ in range(2))
    (oracle, _) = make_oracles(watched, domain, values)
    for _ in range(5):
        plan(watched)
        report = root_report(watched, 0)
        search_graph(watched, 1)
        watched.act()
        alone.step()
        assert report.chosen == watched.actions[0]
        assert watched.actions.tolist() == alone.actions.tolist()
        oracle.begin_step()
        for _ in range(config.passes):
            oracle.one_pass()
        scores = np.where(np.isnan(report.score), -np.inf, report.score)
        assert scores[report.chosen] == scores.max()
        oracle.end_step()
        if oracle.outcome:
            break


def test_the_graph_of_a_dive():
    domain = DeepSea(DeepSeaConfig(size=6))
    search = MCTS(domain, HashedValues(4), SearchConfig(passes=30, avoid_loops=False), batch=2)
    search.step()
    plan(search)
    graph = search_graph(search, 1)
    num_states = len(graph.states)
    assert num_states == search.arena.episodes["num_states"][1]
    y, x = domain.cells(graph.states)
    assert len(set(zip(y.tolist(), x.tolist(), strict=True))) == num_states
    assert graph.states[graph.root].tolist() == search.root_states[1].tolist()
    assert graph.root_visits[[0, graph.root]].tolist() == [1, 1]
    reached = graph.depth >= 0
    assert (graph.depth[reached] == y[reached] - 1).all()  # every step sinks, and the root is one row down
    assert graph.depth[0] == -1  # nothing leads back up
    expanded = graph.child[:, 0] >= 0
    assert (y[graph.child[expanded]] == y[expanded, None] + 1).all()
    assert (graph.reward[~expanded] == 0).all()
    assert graph.terminal.tolist() == (y == 5).tolist()
    assert not graph.child[graph.terminal].max(initial=-1) >= 0
    np.testing.assert_allclose(graph.mean, graph.member_values.mean(axis=1))
    np.testing.assert_allclose(graph.std, graph.member_values.std(axis=1))
    assert (graph.std[graph.terminal] == 0).all()


def test_nothing_to_report_is_a_sentence():
    domain = make_domain({0: [1], 1: [2]}, ends=[2])
    search = make_search(domain, [0, 0, 0], batch=2, num_episodes=1, passes=1)
    with pytest.raises(BathysphereError, match="not been expanded"):
        root_report(search, 0)
    with pytest.raises(BathysphereError, match=r"slot 1; running slots: \[0\]"):
        root_report(search, 1)
    with pytest.raises(BathysphereError, match="slots 0 to 1"):
        search_graph(search, 2)
    search.play()
    with pytest.raises(BathysphereError, match="running slots: none"):
        search_graph(search, 0)
