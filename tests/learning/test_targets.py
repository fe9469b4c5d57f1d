from typing import get_args

import numpy as np
import pytest

from bathysphere.learning import Episode, TargetKind, targets
from bathysphere.learning.targets import num_targets, policy_targets


def make_episode(rewards, solved=False, search_values=None, graph_values=None, actions=None, policy=None):
    length = len(rewards)
    if search_values is None:
        search_values = np.zeros((length, 2))
    return Episode(
        states=np.arange(length, dtype=np.uint8)[:, None],
        actions=np.zeros(length, np.int32) if actions is None else np.array(actions, np.int32),
        rewards=np.array(rewards, np.float64),
        search_values=np.array(search_values, np.float64),
        solved=solved,
        truncated=not solved,
        index=0,
        num_states=length,
        search_std=0.0,
        policy=None if policy is None else np.array(policy, np.float64),
        graph_values=np.array(search_values if graph_values is None else graph_values, np.float64),
    )


def column(episode, kind, discount):
    """Targets common to all members, as a list."""
    result = targets(episode, kind, discount)
    assert result.shape == (len(episode), 1)
    return result[:, 0].tolist()


SEARCH_VALUES = [[0.25, 0.75], [-1.0, 1.0], [7.0, 8.0]]


def test_bootstrap_is_the_mean_search_value():
    assert column(make_episode([0, 0, 1], True, SEARCH_VALUES), "bootstrap", 0.99) == [0.5, 0.0, 7.5]


def test_bootstrap_members_is_the_search_value_of_each():
    episode = make_episode([0, 0, 1], True, SEARCH_VALUES)
    assert targets(episode, "bootstrap_members", 0.99).tolist() == SEARCH_VALUES


@pytest.mark.parametrize("kind", get_args(TargetKind))
def test_num_targets_says_how_wide_targets_are(kind):
    assert targets(make_episode([0, 0, 1], True, SEARCH_VALUES), kind, 0.9).shape == (3, num_targets(kind, 2))


def test_factual_is_the_outcome_whatever_the_discount():
    assert column(make_episode([0, 0, 10], solved=True), "factual", 0.5) == [1, 1, 1]
    assert column(make_episode([-1, -1, -1]), "factual", 0.5) == [0, 0, 0]


def test_factual_discount_gives_the_last_state_the_full_reward():
    assert column(make_episode([0, 0, 10], solved=True), "factual_discount", 0.5) == [0.25, 0.5, 1]
    assert column(make_episode([-1, -1, 5]), "factual_discount", 0.5) == [0, 0, 0]


def test_factual_rewards_sums_what_followed():
    assert column(make_episode([1, -2, 10], solved=True), "factual_rewards", 0.5) == [2.5, 3, 10]
    # An unsolved episode keeps its rewards.
    assert column(make_episode([1, -2, 4]), "factual_rewards", 0.5) == [1.0, 0, 4]


@pytest.mark.parametrize("kind", get_args(TargetKind))
def test_one_step_and_no_step(kind):
    assert targets(make_episode([1.0], True, [[1.0]]), kind, 0.9).tolist() == [[1.0]]
    assert targets(make_episode([], search_values=np.zeros((0, 1))), kind, 0.9).shape == (0, 1)


def test_bootstrap_best_is_at_least_what_a_solved_episode_returned():
    episode = make_episode([0, 0, 10], True, SEARCH_VALUES)
    assert column(episode, "bootstrap_best", 0.5) == [2.5, 5.0, 10.0]
    high = make_episode([0, 0, 10], True, [[3.0, 3.0], [9.0, 0.0], [20.0, 20.0]])
    assert column(high, "bootstrap_best", 0.5) == [3.0, 5.0, 20.0]
    # In an unsolved episode the search knows better.
    assert column(make_episode([0, 0, 0], False, SEARCH_VALUES), "bootstrap_best", 0.5) == [0.5, 0.0, 7.5]


def test_mixed_is_halfway_between_search_and_return():
    assert column(make_episode([0, 0, 10], True, SEARCH_VALUES), "mixed", 0.5) == [1.5, 2.5, 8.75]
    assert column(make_episode([0, 0, 0], False, SEARCH_VALUES), "mixed", 0.5) == [0.25, 0.0, 3.75]


def test_graph_is_the_mean_of_what_the_best_continuation_is_worth():
    episode = make_episode([0, 0, 1], False, SEARCH_VALUES, graph_values=[[1.0, 2.0], [3.0, 4.0], [-1.0, 0.0]])
    assert column(episode, "graph", 0.9) == [1.5, 3.5, -0.5]
    assert column(episode, "bootstrap", 0.9) == [0.5, 0.0, 7.5]


# What policies learn.

VISITS = [[0.5, 0.25, 0.25], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_an_episode_that_reached_its_goal_teaches_what_was_done():
    episode = make_episode([0, 0, 1], True, actions=[2, 0, 1], policy=VISITS)
    assert policy_targets(episode, True, 3).tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


def test_so_does_one_that_reached_another_goal():
    episode = make_episode([0, 0, 1], False, actions=[2, 2, 1], policy=VISITS)
    assert policy_targets(episode, True, 3).tolist() == [[0, 0, 1], [0, 0, 1], [0, 1, 0]]


def test_an_episode_that_reached_nothing_teaches_where_the_search_looked():
    episode = make_episode([0, 0, 0], False, actions=[2, 0, 1], policy=VISITS)
    assert policy_targets(episode, False, 3).tolist() == VISITS


def test_without_visits_it_teaches_nothing():
    targets_ = policy_targets(make_episode([0, 0], actions=[2, 0]), False, 3)
    assert targets_.tolist() == [[0, 0, 0]] * 2
