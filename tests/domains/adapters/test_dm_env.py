"""dm_env environments as domains."""

import dm_env
import gymnasium
import numpy as np
import pytest
from dm_env import specs

import bathysphere
from bathysphere.domains.base import Categories, Features
from bathysphere.errors import BathysphereError
from bathysphere.planning import SearchConfig
from tests.oracles.random_graph import HashedValues

SIZE = 4


class Sea(dm_env.Environment):
    """Deep-sea after bsuite's: down a square, and one to the right by action 1; the treasure is in the corner."""

    def __init__(self, chance=0.0):
        self._rng, self._chance = np.random.RandomState(0), chance

    def reset(self):
        self._row = self._column = 0
        return dm_env.restart(self._look())

    def step(self, action):
        right = action == 1 and self._rng.rand() >= self._chance
        self._column = min(self._column + 1, SIZE - 1) if right else max(self._column - 1, 0)
        self._row += 1
        reward = float(right and self._row == SIZE and self._column == SIZE - 1) - 0.01 * right
        if self._row == SIZE:
            return dm_env.termination(reward, self._look())
        return dm_env.transition(reward, self._look())

    def _look(self):
        look = np.zeros((SIZE, SIZE), np.float32)
        if self._row < SIZE:
            look[self._row, self._column] = 1
        return look

    def observation_spec(self):
        return specs.Array((SIZE, SIZE), np.float32)

    def action_spec(self):
        return specs.DiscreteArray(2)


class Limited(Sea):
    """Goes on for ever but for a limit, and shows its column in several ways."""

    def step(self, action):
        self._column = min(self._column + 1, SIZE - 1) if action else max(self._column - 1, 0)
        return dm_env.truncation(0.0, self._look(), 1.0)

    def _look(self):
        return {"place": np.float64(self._column), "flag": np.array([self._column > 1]), "kind": np.int32(self._column)}

    def observation_spec(self):
        return {
            "place": specs.BoundedArray((), np.float64, 0, SIZE),
            "flag": specs.Array((1,), np.bool_),
            "kind": specs.DiscreteArray(SIZE, np.int32),
        }


def test_a_dm_env_environment_keeps_the_contract_and_is_seen_as_a_place():
    domain = bathysphere.from_dm_env(Sea, max_steps=SIZE)
    assert domain.observation == Categories((1,), SIZE * SIZE + 2)
    bathysphere.check_domain(domain, np.random.default_rng(0), 60)
    row = domain.initial(1, np.random.default_rng(0))
    for step in range(SIZE):
        out = domain.successors(row)
        assert out.terminal.all() == (step == SIZE - 1)
        row = out.states[:, 1]
    assert out.solved.tolist() == [[False, True]]
    assert out.rewards.tolist() == [[0.0, 0.99]]


def test_a_last_step_with_a_discount_is_no_end():
    domain = bathysphere.from_dm_env(Limited())
    out = domain.successors(domain.initial(1, np.random.default_rng(0)))
    assert not out.terminal.any()
    assert domain.observation == Features(3)
    bathysphere.check_domain(domain, np.random.default_rng(0), 40)


def test_chance_is_counted_and_the_world_is_found_by_train():
    sea = bathysphere.from_dm_env(lambda: Sea(chance=0.3))
    assert np.count_nonzero(sea.outcomes(sea.initial(1, np.random.default_rng(0))).probabilities, axis=2).max() == 2
    from bathysphere.domains.worlds import PythonConfig, describe

    config, domain = describe(Sea)
    assert isinstance(config, PythonConfig)
    assert config.world == "tests.domains.adapters.test_dm_env:Sea"
    assert domain.observation == Categories((1,), SIZE * SIZE + 2)


class Shown(Sea):
    """Has a method for what it shows, as environments of bsuite and dm_env's examples do."""

    _observation = Sea._look


def test_an_agent_acts_in_another_environment_of_the_kind():
    domain = bathysphere.from_dm_env(lambda: Shown(), max_steps=SIZE)
    assert domain.name == "Shown"
    env = Shown()
    env.reset()
    env.step(1)
    expected = domain.successors(domain.initial(1, np.random.default_rng(0))).states[0, 1]
    assert domain.state_of(env).tobytes() == expected.tobytes()
    chooser = bathysphere.Agent(domain, HashedValues(3), SearchConfig(passes=4))
    assert chooser.act(env) == chooser.act(expected)
    with pytest.raises(BathysphereError, match="shows an observation only when it steps"):
        bathysphere.from_dm_env(Sea).state_of(Sea())
    with pytest.raises(BathysphereError, match="is an environment of Gymnasium's, and Shown is none"):
        bathysphere.from_gymnasium(lambda: gymnasium.make("CliffWalking-v1")).state_of(env)
