"""Several planners that share a batch and take turns."""

import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, Pool, SearchConfig
from tests.oracles.compiled_graph import CompiledGraph
from tests.oracles.random_graph import HashedValues, RandomGraph, TableValues

SEA = DeepSea(DeepSeaConfig(size=8))
CONFIG = SearchConfig(risk_coef=5.0, num_subsampled=2, avoid_loops=False, passes=6)


def play(**options):
    return Pool(SEA, HashedValues(4), CONFIG, batch=6, seed=3, num_episodes=20, **options).play()


def told(episodes):
    return [(e.index, e.states.tobytes(), e.actions.tolist(), e.search_values.tolist()) for e in episodes]


@pytest.mark.parametrize("workers", [1, 3])
def test_all_episodes_are_played_in_order_of_starting(workers):
    episodes = play(workers=workers)
    assert [episode.index for episode in episodes] == list(range(20))
    assert told(play(workers=workers)) == told(episodes)


def test_one_planner_is_that_planner():
    (seed,) = np.random.SeedSequence(3).spawn(1)
    assert told(play()) == told(MCTS(SEA, HashedValues(4), CONFIG, batch=6, seed=seed, num_episodes=20).play())


@pytest.mark.parametrize("compiled", [False, True])
def test_many_steps_in_one_call_give_the_same_episodes(compiled):
    """Episodes of one planner are in order of finishing, and planner comes after planner."""
    rng = np.random.default_rng(5)
    domain = CompiledGraph.of(RandomGraph.draw(rng))
    values = TableValues(rng.normal(size=(len(domain.target), 2)).astype(np.float32))

    def make():
        config = SearchConfig(passes=4, max_steps=6, final_ties="random")
        return Pool(domain, values if compiled else HashedValues(2), config, batch=7, workers=3, num_episodes=40)

    one_by_one, at_once = make(), make()
    while one_by_one.num_active:
        steps = 5
        expected = [episode for _ in range(steps) for episode in one_by_one.step()]
        expected.sort(key=lambda episode: episode.index % 3)
        assert told(expected) == told(at_once.step(steps))
    assert at_once.num_active == 0
    assert (at_once.work.seconds["model"] == 0.0) == compiled
    assert at_once.work.network_calls == one_by_one.work.network_calls


def test_it_goes_on_bit_for_bit_with_values_that_change():
    def make():
        domain = RandomGraph.draw(np.random.default_rng(5))
        values, model = HashedValues(2), domain.misled(np.random.default_rng(6), rate=0.3)
        return values, Pool(domain, values, SearchConfig(passes=4, max_steps=6), batch=5, workers=2, model=model)

    (values, whole), (other_values, parts) = make(), make()
    for step in range(20):
        values._seed = step // 5
        whole.step()
    assert whole.work.model_errors["wrong_state"] > 0
    assert len(whole.made()) == 2
    parts.load_state_dict(whole.state_dict())
    for step in range(8):
        values._seed = other_values._seed = step
        assert told(whole.step()) == told(parts.step())
    assert whole.num_active == parts.num_active == 5
    assert whole.graph_bytes == parts.graph_bytes
    state, other = whole.state_dict(), parts.state_dict()
    assert {k: v.tobytes() for k, v in state.items()} == {k: v.tobytes() for k, v in other.items()}


def test_the_nth_episode_plays_the_nth_start():
    rng = np.random.default_rng(0)
    domain = RandomGraph.draw(rng)
    starts = domain.encode(np.array([0, 1, 0]) % len(domain.target))
    pool = Pool(domain, HashedValues(2), SearchConfig(passes=3), batch=4, workers=2, num_episodes=10, starts=starts)
    episodes = pool.play()
    assert [e.states[0].tobytes() for e in episodes] == [starts[k % 3].tobytes() for k in range(10)]


def test_more_planners_than_episodes_are_refused():
    with pytest.raises(BathysphereError, match="workers is 7; expected 1 to 6"):
        play(workers=7)
