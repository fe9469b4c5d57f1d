from __future__ import annotations

import numba
import numpy as np
import pytest

from bathysphere.domains.sokoban.rules import ACTION_NAMES, SHAPED_REWARDS, Rewards, is_solved, successors
from tests.domains.sokoban_boards import random_board, rows_of
from tests.oracles import sokoban as oracle

NUM_WALKS = 40 if numba.config.DISABLE_JIT else 500


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("height", "width", "num_boxes", "rewards"),
    [
        (5, 5, 1, Rewards()),
        (4, 7, 2, SHAPED_REWARDS),
        (8, 3, 3, Rewards(step=-1, box_on_target=2, box_off_target=-3, finished=7)),
        (1, 6, 1, SHAPED_REWARDS),
    ],
)
def test_random_walks_match_the_oracle(height: int, width: int, num_boxes: int, rewards: Rewards) -> None:
    rng = np.random.default_rng(height * 100 + width)
    shape = (height, width)
    states = np.stack([random_board(rng, *shape, num_boxes).ravel() for _ in range(NUM_WALKS)])
    num_solved = 0
    for _ in range(12):
        before = states.copy()
        out = successors(states, shape, rewards)
        assert np.array_equal(states, before)
        for i, state in enumerate(states):
            drawn = rows_of(state, shape)
            for action, name in enumerate(ACTION_NAMES):
                rows, reward, solved = oracle.successor(
                    drawn,
                    name[0],
                    rewards.step,
                    rewards.box_on_target,
                    rewards.box_off_target,
                    rewards.finished,
                )
                assert rows_of(out.states[i, action], shape) == rows
                assert out.rewards[i, action] == reward
                assert out.terminal[i, action] == out.solved[i, action] == solved
        num_solved += int(is_solved(states).sum())
        states = np.ascontiguousarray(out.states[np.arange(len(states)), rng.integers(4, size=len(states))])
    assert num_solved > 0


@pytest.mark.kernels
def test_a_push_that_solves_pays_and_a_solved_board_stays() -> None:
    # player, box, target in a row
    state = np.array([[5, 4, 2]], np.uint8)
    out = successors(state, (1, 3), Rewards())
    right = ACTION_NAMES.index("right")
    assert out.states[0, right].tolist() == [1, 5, 3]
    assert out.rewards[0].tolist() == [0, 10, 0, 0]
    assert out.solved[0].tolist() == out.terminal[0].tolist() == [False, True, False, False]
    again = successors(np.ascontiguousarray(out.states[:, right]), (1, 3), SHAPED_REWARDS)
    assert (again.states == [1, 5, 3]).all()
    assert (again.rewards == 0).all()
    assert again.terminal.all()


@pytest.mark.kernels
def test_shaped_rewards() -> None:
    on = successors(np.array([[5, 4, 2, 4]], np.uint8), (1, 4), SHAPED_REWARDS)
    off = successors(np.array([[5, 3, 1, 4]], np.uint8), (1, 4), SHAPED_REWARDS)
    kept = successors(np.array([[5, 3, 2, 4]], np.uint8), (1, 4), SHAPED_REWARDS)
    assert on.rewards[0].tolist() == pytest.approx([-0.1, 0.9, -0.1, -0.1])
    assert off.rewards[0].tolist() == pytest.approx([-0.1, -1.1, -0.1, -0.1])
    assert kept.rewards[0].tolist() == pytest.approx([-0.1, -0.1, -0.1, -0.1])


@pytest.mark.kernels
def test_any_bytes_are_safe() -> None:
    rng = np.random.default_rng(3)
    states = rng.integers(0, 9, size=(50, 12)).astype(np.uint8)
    states[:10] = np.where(states[:10] >= 5, 200, states[:10])  # no player
    out = successors(states, (3, 4), Rewards())
    assert (out.states[:10] == states[:10, None]).all()
    off_target = (out.states == 4).sum(axis=2)
    assert np.array_equal(out.solved, off_target == 0)


def test_no_states() -> None:
    assert successors(np.empty((0, 9), np.uint8), (3, 3), Rewards()).states.shape == (0, 4, 9)
