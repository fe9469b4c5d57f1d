import numpy as np
import pytest

from bathysphere.learning import Episode, targets


def episode(rewards, solved=False, search_values=None):
    length = len(rewards)
    return Episode(
        states=np.arange(length, dtype=np.uint8)[:, None],
        actions=np.zeros(length, np.int64),
        rewards=np.array(rewards, np.float64),
        search_values=np.array(search_values if search_values is not None else [0.0] * length),
        solved=solved,
        truncated=not solved,
        index=0,
        num_states=length,
    )


def test_bootstrap_is_the_search_value():
    game = episode([0, 0, 1], True, [0.25, -1.0, 7.0])
    result = targets(game, "bootstrap", 0.99)
    assert result.tolist() == [0.25, -1.0, 7.0]
    assert not np.shares_memory(result, game.search_values)


def test_factual_is_the_outcome_whatever_the_discount():
    assert targets(episode([0, 0, 10], solved=True), "factual", 0.5).tolist() == [1, 1, 1]
    assert targets(episode([-1, -1, -1]), "factual", 0.5).tolist() == [0, 0, 0]


def test_factual_discount_gives_the_last_state_the_full_reward():
    assert targets(episode([0, 0, 10], solved=True), "factual_discount", 0.5).tolist() == [0.25, 0.5, 1]
    assert targets(episode([-1, -1, 5]), "factual_discount", 0.5).tolist() == [0, 0, 0]


def test_factual_rewards_sums_what_followed():
    assert targets(episode([1, -2, 10], solved=True), "factual_rewards", 0.5).tolist() == [2.5, 3, 10]
    # An unsolved game keeps its rewards.
    assert targets(episode([1, -2, 4]), "factual_rewards", 0.5).tolist() == [1.0, 0, 4]


@pytest.mark.parametrize("kind", ["bootstrap", "factual", "factual_discount", "factual_rewards"])
def test_one_move_and_no_move(kind):
    assert targets(episode([1.0], True, [1.0]), kind, 0.9).tolist() == [1.0]
    assert targets(episode([]), kind, 0.9).shape == (0,)
