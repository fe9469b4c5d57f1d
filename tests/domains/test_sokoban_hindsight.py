from __future__ import annotations

import numpy as np
import pytest

from bathysphere.domains.sokoban.hindsight import relabel
from bathysphere.domains.sokoban.rules import SHAPED_REWARDS, Rewards, is_solved, successors
from tests.domains.sokoban_boards import random_board, rows_of
from tests.oracles import sokoban as oracle

SHAPE = (5, 6)


def random_episode(rng: np.random.Generator, length: int) -> np.ndarray:
    state = random_board(rng, *SHAPE, num_boxes=2, closed=False).reshape(1, -1)
    history = [state]
    for _ in range(length - 1):
        state = np.ascontiguousarray(successors(state, SHAPE, Rewards()).states[:, rng.integers(4)])
        history.append(state)
    return np.concatenate(history)


@pytest.mark.parametrize("rewards", [Rewards(), SHAPED_REWARDS])
def test_relabelling_matches_the_oracle(rewards: Rewards) -> None:
    prices = (rewards.step, rewards.box_on_target, rewards.box_off_target, rewards.finished)
    rng = np.random.default_rng(8)
    num_relabelled = 0
    for case in range(600):
        length = int(rng.integers(2, 30))
        states = random_episode(rng, length)
        kept, paid = relabel(states, np.random.default_rng(case), rewards)
        cut = int(np.random.default_rng(case).integers(2, length + 1))
        expected = oracle.relabel([rows_of(state, SHAPE) for state in states], cut, *prices)
        assert len(kept) == len(paid)
        if expected is None:
            assert np.array_equal(kept, states[:cut])
        else:
            num_relabelled += 1
            assert [rows_of(state, SHAPE) for state in kept] == expected[0]
            assert paid.tolist() == pytest.approx(expected[1])
            assert not is_solved(kept).any()
            assert paid[-1] >= rewards.finished - 1
    assert num_relabelled > 50


def test_play_ends_at_the_first_solved_state_even_before_the_cut() -> None:
    # One push to the right, then steps to the left: from the second state on, the box is where it ends up.
    states = np.array([[1, 5, 4, 1, 2], [1, 1, 5, 4, 2], [1, 5, 1, 4, 2], [5, 1, 1, 4, 2]], np.uint8)
    for seed in range(10):
        kept, paid = relabel(states, np.random.default_rng(seed))
        assert kept.tolist() == [[1, 5, 4, 2, 1]]
        assert paid.tolist() == [10]


def test_old_targets_go_also_under_boxes_and_player() -> None:
    states = np.array([[6, 4, 1, 3, 0], [2, 5, 4, 3, 0]], np.uint8)
    kept, paid = relabel(states, np.random.default_rng(0))
    assert kept.tolist() == [[5, 4, 2, 3, 0]]
    assert paid.tolist() == [10]


def test_boxes_that_did_not_move_leave_the_cut_episode_as_it_was() -> None:
    states = np.array([[5, 1, 1, 4, 2], [1, 5, 1, 4, 2], [5, 1, 1, 4, 2]], np.uint8)
    lengths = set()
    for seed in range(20):
        kept, paid = relabel(states, np.random.default_rng(seed), SHAPED_REWARDS)
        assert np.array_equal(kept, states[: len(kept)])
        assert paid.tolist() == [-0.1] * len(kept)
        lengths.add(len(kept))
    assert lengths == {2, 3}


def test_the_cut_is_uniform() -> None:
    # A corridor in which every step pushes: a cut after m states keeps m - 1 of them.
    states = np.ones((6, 9), np.uint8)
    for t in range(6):
        states[t, t : t + 2] = 5, 4
    rng = np.random.default_rng(1)
    lengths = np.bincount([len(relabel(states, rng)[0]) for _ in range(2000)], minlength=6)
    assert lengths[0] == 0
    # 400 each expected; four standard deviations of a binomial are 72.
    assert np.abs(lengths[1:] - 400).max() < 72


def test_too_short_to_cut() -> None:
    states = np.array([[5, 4, 2]], np.uint8)
    kept, paid = relabel(states, np.random.default_rng(0))
    assert kept.tolist() == states.tolist()
    assert paid.tolist() == [0]
    assert relabel(states[:0], np.random.default_rng(0))[0].shape == (0, 3)
