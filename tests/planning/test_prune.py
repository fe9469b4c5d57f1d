"""States that a domain knows to be hopeless are worth nothing to MCTS, if it is asked to know."""

import numpy as np
import pytest

from bathysphere.domains.sokoban import Sokoban, SokobanConfig, parse_levels
from bathysphere.planning import MCTS, SearchConfig

CORNERS = """
#######
#     #
# $@$ #
# . . #
#     #
#######
"""


class Tens:
    """Everything is worth 10, also what is lost."""

    num_members = 2

    def evaluate(self, observations):
        return np.full((len(observations), 2), 10.0, np.float32)


@pytest.fixture
def domain():
    return Sokoban(SokobanConfig(max_steps=10), levels=parse_levels(CORNERS))


@pytest.mark.parametrize("prune", [False, True])
def test_lost_states_are_worth_nothing_if_asked_for(domain, prune):
    planner = MCTS(domain, Tens(), SearchConfig(passes=200, prune=prune), num_episodes=1)
    planner.plan()
    graph = planner.search_graph(0)
    lost = domain.hopeless(graph.states) & (graph.child[:, 0] < 0)  # and not expanded, so worth what they began with
    assert lost.any()
    assert (graph.member_values[lost] == (0.0 if prune else 10.0)).all()
    found = ~domain.hopeless(graph.states) & (graph.child[:, 0] < 0) & ~graph.terminal
    assert (graph.member_values[found] == 10.0).all()
