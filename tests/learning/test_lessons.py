"""What games that were cut off teach."""

import numpy as np
import pytest

from bathysphere.errors import BathysphereError
from bathysphere.learning.lessons import CutOffConfig, lesson
from bathysphere.planning import Episode


def game(length, *, truncated=True, last_value=1.0):
    moves = np.arange(length)
    search_values = np.tile(moves[:, None].astype(float), (1, 2))
    search_values[-1] = last_value - 0.5, last_value + 0.5
    return Episode(
        states=moves[:, None].astype(np.uint8),
        actions=moves.astype(np.int32),
        rewards=moves * 0.5,
        search_values=search_values,
        solved=False,
        truncated=truncated,
        index=7,
        num_states=length,
        search_std=0.0,
    )


def test_everything_is_remembered_unless_told_otherwise():
    whole = game(5)
    assert lesson(whole, CutOffConfig()) is whole


def test_only_the_last_moves_are_remembered():
    rest = lesson(game(5), CutOffConfig(last_moves=3))
    assert rest.states[:, 0].tolist() == rest.actions.tolist() == [2, 3, 4]
    assert rest.rewards.tolist() == [1.0, 1.5, 2.0]
    assert rest.search_values[:, 0].tolist() == [2.0, 3.0, 0.5]
    assert (rest.index, len(rest)) == (7, 3)
    assert len(lesson(game(2), CutOffConfig(last_moves=3))) == 2


def test_a_game_that_could_still_be_won_is_forgotten():
    config = CutOffConfig(max_value=2.0)
    assert lesson(game(5, last_value=2.1), config) is None
    assert len(lesson(game(5, last_value=2.0), config)) == 5  # the mean over members counts, not the highest


def test_games_that_ended_by_themselves_are_certain():
    ended = game(5, truncated=False, last_value=9.0)
    assert lesson(ended, CutOffConfig(last_moves=1, max_value=2.0)) is ended


def test_nonsense_is_refused():
    with pytest.raises(BathysphereError, match=r"cut_off\.last_moves is 0"):
        CutOffConfig(last_moves=0)
