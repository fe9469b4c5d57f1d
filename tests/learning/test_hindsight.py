from dataclasses import replace

import numpy as np
import pytest

from bathysphere.errors import BathysphereError
from bathysphere.learning import targets, with_hindsight
from tests.learning.test_targets import make_episode


class Halver:
    """Relabels an episode as its first half with a reward of 10 at the end."""

    def relabel(self, states, rng):
        length = len(states) // 2
        rewards = np.zeros(length)
        rewards[-1] = 10
        return states[:length] + 100, rewards


EPISODE = make_episode([0, 0, 0, 0, 0, 0], False, [[1], [2], [3], [4], [5], [6]])


def test_relabelled_episode_is_cut_rewarded_and_still_unsolved():
    episode = with_hindsight(EPISODE, Halver(), 1.0, np.random.default_rng(0))
    assert episode.states[:, 0].tolist() == [100, 101, 102]
    assert targets(episode, "factual_rewards", 0.5).tolist() == [[2.5], [5], [10]]
    assert len(episode.actions) == len(episode.search_values) == len(episode) == 3
    assert not episode.solved
    assert EPISODE.states[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_intensity_is_a_probability():
    rng = np.random.default_rng(1)
    count = sum(with_hindsight(EPISODE, Halver(), 0.2, rng) is not EPISODE for _ in range(4000))
    assert count == pytest.approx(800, abs=5 * (4000 * 0.2 * 0.8) ** 0.5)


def test_episodes_left_alone():
    rng = np.random.default_rng(2)
    solved, short = replace(EPISODE, solved=True), make_episode([0.0])
    assert with_hindsight(solved, Halver(), 1.0, rng) is solved
    assert with_hindsight(short, Halver(), 1.0, rng) is short
    assert with_hindsight(EPISODE, object(), 0.0, rng) is EPISODE


def test_domain_without_relabelling_is_refused():
    with pytest.raises(BathysphereError, match="relabel method"):
        with_hindsight(EPISODE, object(), 0.2, np.random.default_rng(0))
