"""Worlds with chance in the studio: what may happen, what most probably does, and what happens."""

import gymnasium
import numpy as np
import pytest

from bathysphere import from_gymnasium
from bathysphere.agents.agent import Agent
from bathysphere.planning import ExpectimaxConfig
from bathysphere.studio.lines import best_line, line_text, told_ways
from bathysphere.studio.watched import Watched


class Guesses:
    """Values drawn once for every state: [16, 3]."""

    num_members = 3

    def __init__(self):
        self.values = np.random.default_rng(0).random((16, 3), np.float32)

    def evaluate(self, observations):
        return self.values[observations[:, 0]]


def watch(seed):
    lake = from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=True))
    start = lake.initial(1, np.random.default_rng(0))[0]
    return Watched(Agent(lake, Guesses(), ExpectimaxConfig(passes=30)), start, seed)


def test_lines_take_the_likeliest_outcome_and_say_so():
    watched = watch(0)
    thought, domain = watched.think(), watched.agent.domain
    graph = thought.graph
    line = best_line(graph, thought.choice)
    assert "chance permitting" in line_text(graph, line, domain)
    for state, action, after in zip(line.states, line.actions, line.states[1:], strict=False):
        children = graph.child[state].reshape(graph.chances.shape[1:])[action]
        chances = graph.chances[state, action]
        is_likely = np.isclose(chances, chances.max())
        worth = graph.reward[state].reshape(graph.chances.shape[1:])[action] + graph.mean[children]
        assert after == children[is_likely][worth[is_likely].argmax()]
    assert thought.path == list(line.states)


def test_where_actions_lead_is_told_with_probabilities():
    graph, domain = watch(0).think().graph, watch(0).agent.domain
    for state in np.flatnonzero(graph.child[:, 0] >= 0).tolist():
        ways = told_ways(graph, state, domain.action_names)
        for name in domain.action_names:
            shares = [label.partition("(")[2].rstrip("%)") or "100" for label, _ in ways if label.startswith(name)]
            assert sum(map(int, shares)) == pytest.approx(100, abs=1)


def test_planning_is_seen_growing_pass_by_pass():
    watched = watch(0)
    few, many = watched.think(2), watched.think()
    assert (few.budget, few.most, many.budget) == (2, 30, 30)
    assert len(few.graph.states) < len(many.graph.states)


def test_the_same_step_may_end_elsewhere_and_planning_goes_on_from_there():
    ends = set()
    for seed in range(12):
        watched = watch(seed)
        watched.play(2)
        ends.add(watched.episode.state.tobytes())
        graph = watched.think().graph
        assert graph.states[graph.root].tobytes() == watched.episode.state.tobytes()
        while not watched.episode.over:
            watched.act()
    assert len(ends) == 3
