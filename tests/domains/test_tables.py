"""Worlds out of tables of transitions: against the real FrozenLake, and a learner that comes near the optimum."""

import pickle

import gymnasium
import numpy as np
import pytest

from bathysphere.config.auto import choose
from bathysphere.config.convert import override
from bathysphere.domains.adapters.gymnasium import from_gymnasium
from bathysphere.domains.adapters.tables import TableDomain
from bathysphere.domains.base import Chance
from bathysphere.errors import BathysphereError
from bathysphere.planning import Expectimax, ExpectimaxConfig
from bathysphere.planning.planner import play_all
from bathysphere.runs.build import make_trainer

BET = {0: {0: [(0.25, 1, 2.0, True), (0.75, 0, 0.0, False)]}, 1: {0: [(1.0, 1, 0.0, True)]}}


@pytest.fixture(scope="module")
def lake():
    return from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=True))


def best_chance(lake):
    """The best probability of crossing the lake within the limit, by dynamic programming over time."""
    states = lake.initial(1, np.random.default_rng(0)).repeat(16, axis=0)
    states[:, 0] = np.arange(16)
    answer = lake.outcomes(states)
    value = np.zeros(16)
    for _ in range(lake.max_steps):
        ahead = np.where(answer.terminal, 0.0, value[answer.states[..., 0]])
        value = (answer.probabilities * (answer.rewards + ahead)).sum(axis=2).max(axis=1)
    return value[0]


def test_the_table_says_what_the_real_environment_does(lake):
    assert isinstance(lake, TableDomain)
    assert isinstance(lake, Chance)
    assert (len(lake.action_names), lake.max_steps, lake.observation.num_categories) == (4, 100, 16)
    env = gymnasium.make("FrozenLake-v1", is_slippery=True)
    state = lake.initial(1, np.random.default_rng(0))
    assert lake.observe(state)[0, 0] == env.reset(seed=0)[0] == 0
    seen, rng = {}, np.random.default_rng(1)
    for _ in range(1500):
        before, action = env.unwrapped.s, int(rng.integers(4))
        after, reward, terminated, truncated, _ = env.step(action)
        seen.setdefault((before, action), []).append((after, reward, terminated))
        if terminated or truncated:
            env.reset()
    for (before, action), happened in seen.items():
        answer = lake.outcomes(np.array([[before, 0]], np.uint8))
        possible = {
            (int(s[0]), float(r), bool(t))
            for s, p, r, t in zip(*(part[0, action] for part in answer[:4]), strict=True)
            if p > 0
        }
        assert set(happened) <= possible
    assert answer.probabilities.sum(axis=2) == pytest.approx(np.ones((1, 4)))
    assert best_chance(lake) == pytest.approx(0.744, abs=0.001)


def test_a_world_without_chance_is_simulated_as_before():
    assert not isinstance(from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=False)), Chance)


def test_the_likeliest_outcome_stands_for_all():
    world = TableDomain(BET, [1.0, 0.0])
    answer = world.successors(world.initial(1, np.random.default_rng(0)))
    assert answer.rewards.tolist() == [[0.0]]
    assert not answer.terminal.any()
    assert "state 0" in world.text(world.initial(1, np.random.default_rng(0))[0])


def test_tables_that_do_not_add_up_are_refused():
    with pytest.raises(BathysphereError, match="do not add up to 1"):
        TableDomain({0: {0: [(0.5, 0, 0.0, False)]}}, [1.0])
    with pytest.raises(BathysphereError, match="2 states and 1 prob"):
        TableDomain(BET, [1.0])


def test_chosen_settings_cross_the_lake(lake):
    """A few dozen episodes are enough for most of the optimum of 0.744; luck alone crosses in 1 of 70."""
    config, choices = choose(lake, lake.config)
    assert isinstance(config.search, ExpectimaxConfig)
    assert any(choice.setting == "planner expectimax" for choice in choices)
    trainer = make_trainer(override(config, {"search": {"passes": 5, "discount": 0.999}}))
    while trainer.progress.env_steps < 1500:
        trainer.advance()
    search = ExpectimaxConfig(passes=3, discount=0.999)
    episodes = play_all(Expectimax(lake, trainer.values, search, batch=32, num_episodes=100))
    assert np.mean([episode.total_reward for episode in episodes]) > 0.5


def test_the_environment_draws_its_states_and_stays_as_it_was(lake):
    start = lake.initial(1, np.random.default_rng(0))[0]
    before = pickle.dumps(lake)
    assert lake.text(start).splitlines()[-4:] == ["[S]FFF", "FHFH", "FFFH", "HFFG"]
    right = lake.outcomes(start[None]).states[0, 2]
    pictures = [lake.render(state) for state in (start, *right)]
    assert {picture.shape for picture in pictures} == {(256, 256, 3)}
    assert not np.array_equal(pictures[0], lake.render(right[1]))
    assert pickle.dumps(lake) == before


def test_states_that_there_are_not_are_refused(lake):
    states = np.array([[15, 0], [16, 0]], np.uint8)
    assert lake.observe(states).tolist() == [[15], [16]]  # so that a model can tell that it made one up
    for ask in (lake.outcomes, lake.successors):
        with pytest.raises(BathysphereError, match="has the states 0 to 15, and 16 came"):
            ask(states)
