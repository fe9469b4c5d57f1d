import numpy as np

from bathysphere.planning.inspect import search_graph
from bathysphere.planning.picture import draw_graph, layers
from tests.planning.small_worlds import make_domain, make_search, plan


def test_states_lie_in_rows_by_distance_from_the_start():
    domain = make_domain({0: [1, 2], 1: [3, 3], 2: [3, 4]}, ends=[3, 4], solved=[4])
    search = make_search(domain, [0, 1, 2, 0, 0], passes=6)
    search.step()
    plan(search)
    graph = search_graph(search, 0)
    where = layers(graph)
    row_of = {0: 0, 1: 1, 2: 1, 3: 2, 4: 2}
    assert where[:, 1].tolist() == [row_of[number] for number in domain.number(graph.states).tolist()]
    assert len(np.unique(where, axis=0)) == len(where)


def test_smoke_a_picture_is_drawn(tmp_path):
    domain = make_domain({0: [1, 2], 1: [3, 3], 2: [3, 4]}, ends=[3, 4], solved=[4])
    search = make_search(domain, np.arange(10).reshape(5, 2), passes=6)
    plan(search)
    draw_graph(search_graph(search, 0), title="six passes").savefig(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").stat().st_size > 5_000
