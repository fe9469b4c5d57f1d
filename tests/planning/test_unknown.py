"""Planning with a model that does not know everything."""

from dataclasses import replace

import numpy as np
import pytest

from bathysphere.planning import MCTS, SearchConfig
from bathysphere.planning.graph.invariants import check_graph
from bathysphere.planning.planner import play_all
from tests.models.test_memory import memory_of
from tests.oracles.random_graph import HashedValues, RandomGraph
from tests.planning.lockstep import play_in_lockstep
from tests.planning.small_worlds import Recorder, entry, make_domain

CONFIGS = [
    SearchConfig(passes=4, risk_coef=2.0),
    SearchConfig(passes=4, risk_coef=2.0, merge_nodes=True, episode_penalty=0.1, final_ties="random"),
    SearchConfig(passes=4, risk="vote", avoid_loops=False, transpositions=False),
    SearchConfig(passes=4, risk_coef=1.0, avoid_loops=False, num_subsampled=2),
]


@pytest.mark.kernels
@pytest.mark.parametrize("config", CONFIGS)
def test_planning_with_a_partial_memory_equals_the_oracle(config):
    rng = np.random.default_rng(0)
    num_unknown = 0
    for seed in range(8):
        world = RandomGraph.draw(rng)
        memory = memory_of(world, rng.random(world.target.shape) < rng.choice([0.0, 0.5, 0.9]))
        search, oracles = play_in_lockstep(world, HashedValues(3), config, batch=2, seed=seed, model=memory)
        assert search.work.unknown_steps == sum(oracle.unknown_steps for oracle in oracles)
        assert not any(search.work.model_errors.values())  # not to know is no error
        num_unknown += search.work.unknown_steps
        check_graph(search.arena, transpositions=config.transpositions)
    assert num_unknown > 10


@pytest.mark.parametrize("config", CONFIGS)
def test_a_memory_of_everything_plans_like_the_rules(config):
    rng = np.random.default_rng(1)
    for seed in range(5):
        world, values = RandomGraph.draw(rng), HashedValues(3)
        memory = memory_of(world, np.ones(world.target.shape, bool))
        by_rules, by_memory = (
            play_all(MCTS(world, values, config, batch=3, seed=seed, num_episodes=5, model=model))
            for model in (None, memory)
        )
        for one, other in zip(by_rules, by_memory, strict=True):
            assert (one.states == other.states).all()
            assert (one.actions == other.actions).all()
            assert (one.search_values == other.search_values).all()
            assert (one.last_state == other.last_state).all()


def test_only_the_steps_that_are_made_are_asked_of_the_world():
    rng = np.random.default_rng(2)
    world = Recorder.of(RandomGraph.draw(rng))
    memory = memory_of(world, rng.random(world.target.shape) < 0.5)
    search = MCTS(world, HashedValues(3), SearchConfig(risk_coef=1.0), model=memory, num_episodes=3)
    episodes = play_all(search)
    assert world.expanded == [number for e in episodes for number in world.number(e.states).tolist()]
    assert search.work.steps == len(world.expanded)


def test_curiosity_goes_into_the_unknown_and_caution_keeps_away():
    world = make_domain({0: [1, 2]}, ends=(1, 2))
    tried = np.array([[True, False], [False, False], [False, False]])
    for coef, action in ((5.0, 1), (-5.0, 0)):
        memory = memory_of(world, tried, num_members=8)
        search = MCTS(world, HashedValues(8), SearchConfig(risk_coef=coef), model=memory)
        search.step()
        assert search.actions[0] == action


def test_the_graph_learns_where_the_unknown_led():
    """State 0 leads back to itself through 1, so the episode comes by again and finds the way mended."""
    world = make_domain({0: [1, 1], 1: [0, 0]}, max_steps=6)
    memory = memory_of(world, np.zeros((2, 2), bool))
    config = SearchConfig(passes=3, avoid_loops=False, final_ties="random")
    search = MCTS(world, HashedValues(3), config, model=memory, seed=1)
    for _ in range(5):
        search.step()
        check_graph(search.arena)
        edges = search.arena.edges["child"][0]
        for moment in search.arena.history[0, : search.arena.episodes["step"][0]]:
            after = 1 - world.number(search.graphs.states(search.arena.words[0, [moment["state"]]]))[0]
            assert edges[moment["state"], moment["action"]] == entry(search, world, after)
    assert search.work.unknown_steps == len({(int(m["state"]), int(m["action"])) for m in search.arena.history[0, :5]})


def test_a_saved_search_goes_on_bit_for_bit():
    rng = np.random.default_rng(3)
    world = replace(RandomGraph.draw(rng), max_steps=30)
    memory = memory_of(world, rng.random(world.target.shape) < 0.4)

    def make():
        return MCTS(world, HashedValues(3), SearchConfig(passes=5, risk_coef=1.0), batch=2, seed=1, model=memory)

    whole, parted, resumed = make(), make(), make()
    whole.step(7)
    parted.step(7)
    resumed.load_state_dict(parted.state_dict())
    assert resumed.work.unknown_steps == whole.work.unknown_steps > 0
    whole.step(9)
    resumed.step(9)
    one, other = whole.state_dict(), resumed.state_dict()
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)
