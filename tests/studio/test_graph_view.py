"""What is drawn of a search graph."""

from itertools import pairwise

import numpy as np
import pytest

from bathysphere.domains.deep_sea import DeepSea
from bathysphere.planning.search_graph import SearchGraph, depths_from
from bathysphere.studio.charts import actions_chart, graph_chart, shade
from bathysphere.studio.graph_view import dead_ends, view_graph
from bathysphere.studio.lines import best_line, line_text


def make_graph(child, terminal=(), solved=(), count=None, unknown=()):
    child = np.array(child)
    n = len(child)
    marks = [np.isin(np.arange(n), which) for which in (terminal, solved, unknown)]
    values = np.linspace(0, 1, n)[:, None].repeat(3, axis=1)
    return SearchGraph(
        states=np.zeros((n, 4), np.uint8),
        count=np.ones(n, np.int64) if count is None else np.array(count),
        member_values=values,
        mean=values.mean(axis=1),
        std=np.arange(n) / n,
        child=child,
        reward=np.zeros(child.shape),
        terminal=marks[0],
        solved=marks[1],
        root_visits=np.zeros(n, np.int64),
        root=0,
        depth=depths_from(child, 0),
        unknown=marks[2],
    )


#        0
#      /   \
#     1     2 -> back to 0
#    / \    |
#   3   4   4        3 stays where it is, 4 is an end
GRAPH = make_graph([[1, 2], [3, 4], [0, 4], [3, 3], [-1, -1]], terminal=[4])


def test_nodes_edges_and_marks():
    view = view_graph(GRAPH, [0, 1], DeepSea())
    kinds = {node.state: node.kind for node in view.nodes}
    assert kinds == {0: "root", 1: "dead end", 2: "state", 3: "dead end", 4: "end"}
    lines = {(edge.source, edge.target): edge.kind for edge in view.edges}
    assert lines == {(0, 1): "path", (0, 2): "tree", (1, 3): "tree", (1, 4): "tree", (2, 0): "loop", (2, 4): "other"}
    assert {node.state for node in view.nodes if node.is_on_path} == {0, 1}
    assert [node.y for node in view.nodes] == [GRAPH.depth[node.state] for node in view.nodes]
    assert view.num_hidden == 0


def test_a_dead_end_leads_nowhere():
    assert dead_ends(GRAPH, DeepSea()).tolist() == [False, True, False, True, False]
    won = make_graph([[1, 2], [-1, -1], [2, 2]], terminal=[1], solved=[1])
    assert dead_ends(won, DeepSea()).tolist() == [False, False, True]


def test_what_the_model_does_not_know_is_no_dead_end():
    graph = make_graph([[1, 2], [3, 4], [2, 2], [-1, -1], [-1, -1]], terminal=[3, 4], unknown=[4])
    assert dead_ends(graph, DeepSea()).tolist() == [False, False, True, False, False]
    view = view_graph(graph, [0, 1, 4], DeepSea())
    assert {node.state: node.kind for node in view.nodes} == dict(
        enumerate(["root", "state", "dead end", "end", "unknown"])
    )
    drawn = graph_chart(view, "std", "/picture/{}")["series"][0]["data"]
    assert [node["id"] for node in drawn if node["label"]["show"]] == ["4"]
    assert line_text(graph, best_line(graph, 0), DeepSea()).endswith("2 steps to what its model does not know.")


def test_a_state_of_which_only_some_actions_are_known_is_no_dead_end():
    assert not dead_ends(make_graph([[1, -1], [-1, -1]], terminal=[1]), DeepSea()).any()


@pytest.mark.parametrize("most", [1, 5, 40])
def test_a_pruned_graph_keeps_the_most_visited_states_connected(most):
    rng = np.random.default_rng(0)
    n = 300
    child = np.full((n, 2), -1)
    for state in range(n // 2 - 1):
        child[state] = [2 * state + 1, 2 * state + 2]
    graph = make_graph(child, count=rng.integers(1, 50, n))
    view = view_graph(graph, [0, 1, 3], DeepSea(), most)
    kept = {node.state for node in view.nodes}
    assert len(kept) == most
    assert view.num_hidden == n - most
    assert all(state == 0 or (state - 1) // 2 in kept for state in kept)
    assert len({(node.x, node.y) for node in view.nodes}) == most
    if most > 3:
        assert {0, 1, 3} <= kept
    drawn = graph_chart(view, "value", "/picture/{}", 0)["series"][0]
    assert len(drawn["data"]) == most
    assert len(drawn["links"]) == most - 1


@pytest.mark.parametrize("seed", range(5))
def test_the_plan_is_a_straight_line_and_states_keep_their_distance(seed):
    rng = np.random.default_rng(seed)
    child, n = np.full((120, 3), -1), 1
    for state in range(40):
        for action in range(3):
            child[state, action] = n if n < 120 and rng.random() < 0.8 else rng.integers(0, n)
            n += int(child[state, action] == n)
    graph, path = make_graph(child), [0]
    while len(below := [c for c in child[path[-1]] if c >= 0 and graph.depth[c] == len(path)]):
        path.append(int(below[0]))
    view = view_graph(graph, path, DeepSea())
    places = {node.state: (node.y, node.x) for node in view.nodes}
    assert len({places[state][1] for state in path}) == 1
    order = sorted(places.values())
    assert all(right - left >= 1 - 1e-9 for (y, left), (z, right) in pairwise(order) if y == z)


def test_the_plan_is_straight_though_there_is_another_way_as_short():
    graph = make_graph([[1, 2], [3, -1], [3, 4], [-1, -1], [-1, -1]])
    for path in ([0, 1, 3], [0, 2, 3]):
        x = {node.state: node.x for node in view_graph(graph, path, DeepSea()).nodes}
        assert len({x[state] for state in path}) == 1


def test_shades_go_from_low_to_high():
    low, middle, high = shade([0.0, 0.5, 1.0], "std")
    assert (low, high) == ("#e3edf7", "#08306b")
    assert middle not in (low, high)
    assert len(set(shade([1.0, 1.0], "value"))) == 1
    assert len(shade([np.nan, 1.0], "std")) == 2


def test_every_member_is_a_dot():
    from bathysphere.agents.loading import load_agent

    report = load_agent("deep-sea").explain()
    series = actions_chart(report)["series"]
    assert len(series[-2]["data"]) == report.q.size
    assert len(series[-1]["data"]) == len(report.q)
