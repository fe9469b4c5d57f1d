"""Several lanes: the same episodes whatever the number of threads."""

import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.errors import BathysphereError
from bathysphere.planning import Crew, SearchConfig
from tests.oracles.random_graph import HashedValues, RandomGraph

SEA = DeepSea(DeepSeaConfig(size=8))
CONFIG = SearchConfig(risk_coef=5.0, num_subsampled=2, avoid_loops=False, passes=6)


def play(**options):
    return Crew(SEA, HashedValues(4), CONFIG, batch=6, seed=3, num_episodes=20, **options).play()


def told(episodes):
    return [(e.index, e.states.tobytes(), e.actions.tolist(), e.search_values.tolist()) for e in episodes]


def test_threads_change_nothing():
    alone, together = play(lanes=3, threads=1), play(lanes=3, threads=3)
    assert told(alone) == told(together)
    assert [episode.index for episode in alone] == list(range(20))


def test_one_lane_is_a_search():
    assert len(told(play(lanes=1))) == 20
    assert told(play(lanes=1)) == told(play(lanes=1))


def test_the_nth_episode_plays_the_nth_start():
    rng = np.random.default_rng(0)
    world = RandomGraph.draw(rng)
    starts = world.encode(np.array([0, 1, 0]) % len(world.target))
    crew = Crew(world, HashedValues(2), SearchConfig(passes=3), batch=4, lanes=2, num_episodes=10, starts=starts)
    episodes = crew.play()
    assert [e.states[0].tobytes() for e in episodes] == [starts[k % 3].tobytes() for k in range(10)]


def test_resuming_in_mid_episode_continues_bit_for_bit():
    def make():
        return Crew(SEA, HashedValues(4), CONFIG, batch=5, lanes=2, seed=1)

    whole, first, second = make(), make(), make()
    for _ in range(4):
        whole.step(), first.step()
    second.load_state_dict(first.state_dict())
    for _ in range(30):
        assert told(whole.step()) == told(second.step())


def test_more_lanes_than_episodes_are_refused():
    with pytest.raises(BathysphereError, match="lanes is 7; expected 1 to 6"):
        play(lanes=7)
