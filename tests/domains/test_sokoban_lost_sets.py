"""Sets of boxes that are lost alone: as a plain search finds them, and never in a position that can be solved."""

import numba
import numpy as np
import pytest

from bathysphere.domains.sokoban import GeneratorConfig, Sokoban, generate
from bathysphere.domains.sokoban import lost_sets as module
from bathysphere.domains.sokoban.deadlocks import hopeless
from bathysphere.domains.sokoban.levels import Level, replay_moves
from bathysphere.domains.sokoban.lost_sets import LostSets
from bathysphere.domains.sokoban.rules import Rewards, successors
from tests.domains.test_sokoban_deadlocks import codes, everything_reachable
from tests.oracles import sokoban_lost_sets as oracle
from tests.oracles.sokoban_deadlocks import Position

NUM_BOARDS, NUM_STEPS = (1, 30) if numba.config.DISABLE_JIT else (6, 80)


def random_play(height, width, num_boxes):
    """States of several boards in turn, uint8 [n, S]."""
    shape, rng = (height, width), np.random.default_rng(height)
    levels = generate(NUM_BOARDS, GeneratorConfig(height, width, num_boxes, max_states=1000), seed=height)
    states, history = np.stack([level.grid.ravel() for level in levels]), []
    for _ in range(NUM_STEPS):
        history.append(states)
        moves = rng.integers(4, size=len(states))
        states = np.ascontiguousarray(successors(states, shape, Rewards()).states[np.arange(len(states)), moves])
    return np.concatenate(history)


def told_by_the_oracle(states, shape):
    known, told = {}, []
    for state in states:
        position = Position(state.reshape(shape).tolist())
        ground = frozenset(position.floor), frozenset(position.targets)
        if ground not in known:
            sizes = range(2, min(3, len(position.targets) - 1) + 1)
            known[ground] = {size: oracle.solvable(position, size) for size in sizes}
        players = np.argwhere(state.reshape(shape) >= 5).tolist()
        told.append(oracle.is_lost(position, tuple(players[0]) if players else None, known[ground]))
    return told


@pytest.mark.kernels
@pytest.mark.parametrize(("height", "width", "num_boxes"), [(6, 5, 2), (6, 7, 3), (7, 7, 4)])
def test_random_play_matches_the_oracle(height, width, num_boxes, monkeypatch):
    states, shape = random_play(height, width, num_boxes), (height, width)
    found = LostSets(shape).any_lost(states)
    assert found.tolist() == told_by_the_oracle(states, shape)
    if num_boxes == 2:  # sets of all boxes are not looked at
        assert not found.any()
    elif not numba.config.DISABLE_JIT:
        assert (found & ~hopeless(states, shape)).any()  # some that no other rule knows
    monkeypatch.setattr(module, "_MOST_WORDS", 0)  # everything is forgotten after each call
    forgetful = LostSets(shape)
    assert [bool(forgetful.any_lost(state[None])[0]) for state in states[:60]] == found[:60].tolist()


@pytest.mark.kernels
def test_any_bytes_match_the_oracle():
    share = [0.1, 0.35, 0.15, 0.12, 0.12, 0.06, 0.04, 0.03, 0.03]  # of the codes 0 to 6 and of two that are none
    rng = np.random.default_rng(1)
    drawn = rng.choice(np.array([0, 1, 2, 3, 4, 5, 6, 7, 255], np.uint8), size=(40, 16), p=share)
    drawn[5][drawn[5] >= 5] = 1  # nobody is there
    assert LostSets((4, 4)).any_lost(drawn).tolist() == told_by_the_oracle(np.where(drawn > 6, 0, drawn), (4, 4))


def test_no_state_that_search_solves_is_lost():
    num_lost, num_found = 0, 0
    for height, width, num_boxes in ((6, 7, 3), (7, 7, 3), (6, 6, 4)):
        for level in generate(8, GeneratorConfig(height, width, num_boxes, max_states=1000), seed=1):
            states, solvable = everything_reachable(level)
            found = Sokoban(levels=[level]).hopeless(states)
            assert not (found & solvable).any()
            num_lost += int((~solvable).sum())
            num_found += int(found.sum())
    assert num_lost > num_found > 0.9 * num_lost


def test_no_state_on_the_way_to_a_solution_is_lost():
    for level in generate(60, GeneratorConfig(max_states=20_000), seed=2):
        assert not LostSets(level.shape).any_lost(replay_moves(level, level.solution)).any()


def test_two_boxes_in_a_corridor_are_lost():
    lost = codes(["###########", "#   #######", "# $.#######", "#@  $ $ ..#", "###########"])
    fine = codes(["###########", "#   #######", "# $.#######", "#@  $   .*#", "###########"])
    domain = Sokoban(levels=[Level("lost", lost), Level("fine", fine)])
    states = np.stack([lost.ravel(), fine.ravel()])
    assert not hopeless(states, lost.shape).any()
    assert domain.hopeless(states).tolist() == [True, False]


def test_a_large_board_has_no_sets():
    large = np.ones((10, 10), np.uint8)
    large[[0, -1]], large[:, [0, -1]] = 0, 0  # 64 cells
    large[1, 1:4], large[4, 3:6], large[8, 8] = 2, 4, 5
    assert not LostSets(large.shape).any_lost(large.reshape(1, -1)).any()
    assert LostSets((10, 10)).any_lost(np.empty((0, 100), np.uint8)).shape == (0,)
