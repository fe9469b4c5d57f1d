"""Real environments as domains: what is found out about them, and that they keep the contract."""

import pickle

import gymnasium
import numpy as np
import pytest

import bathysphere
from bathysphere.domains import make_domain
from bathysphere.domains.base import Categories, Features
from bathysphere.domains.worlds import GymnasiumConfig
from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, SearchConfig
from bathysphere.planning.transport import pickled
from tests.domains.per_state_worlds import Lamps
from tests.oracles.random_graph import HashedValues

DETERMINISTIC = {
    "FrozenLake-v1": {"map_name": "8x8", "is_slippery": False},
    "CliffWalking-v1": {},
    "MiniGrid-Empty-5x5-v0": {},
    "MiniGrid-DoorKey-5x5-v0": {},
    "CartPole-v1": {},
}


@pytest.fixture(scope="module")
def domains():
    return {name: make_domain(GymnasiumConfig(name, settings)) for name, settings in DETERMINISTIC.items()}


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_environments_keep_the_contract(domains, name):
    bathysphere.check_domain(domains[name], np.random.default_rng(0), num_states=60)


def test_what_is_seen_follows_from_the_spaces(domains):
    assert domains["FrozenLake-v1"].observation == Categories((1,), 64)
    assert domains["CartPole-v1"].observation == Features(4)
    assert domains["MiniGrid-DoorKey-5x5-v0"].observation == Categories((156,), 16)
    assert domains["MiniGrid-DoorKey-5x5-v0"].action_names[:3] == ("left", "right", "forward")


def test_time_limits_are_known_and_no_part_of_the_state(domains):
    lake, grid = domains["FrozenLake-v1"], domains["MiniGrid-DoorKey-5x5-v0"]
    assert (lake.max_steps, grid.max_steps, domains["CliffWalking-v1"].max_steps) == (100, 250, 200)
    start = lake.initial(1, np.random.default_rng(0))
    state = start
    for _ in range(300):  # beyond the limit: against the edge, so that the state stays
        out = lake.successors(state)
        assert not out.terminal[0, 0]
        state = out.states[:, 0]
    assert np.array_equal(state, start)
    four_turns = grid.initial(1, np.random.default_rng(0))
    state = four_turns
    for _ in range(4):
        state = grid.successors(state).states[:, 0]
    assert np.array_equal(state, four_turns)


def test_the_steps_are_those_of_the_environment(domains):
    for name, settings in DETERMINISTIC.items():
        domain, env, rng = domains[name], gymnasium.make(name, **settings), np.random.default_rng(1)
        row = domain.initial(1, np.random.default_rng(5))
        env.reset(seed=int(np.random.default_rng(5).integers(2**31)))
        for _ in range(40):
            action = int(rng.integers(len(domain.action_names)))
            out = domain.successors(row)
            _, reward, terminated, _, _ = env.step(action)
            assert bool(out.terminal[0, action]) == terminated
            if not (name.startswith("MiniGrid") and reward):  # those pay less, the later
                assert out.rewards[0, action] == reward
            row = out.states[:, action]
            if terminated:
                break


def test_chance_without_a_table_of_it_is_counted():
    cards = make_domain(GymnasiumConfig("Blackjack-v1"))
    answer = cards.outcomes(cards.initial(1, np.random.default_rng(0)))
    assert np.count_nonzero(answer.probabilities, axis=2).max() > 2


def test_an_environment_that_gymnasium_can_make_is_described_by_its_id():
    settings = {"map_name": "4x4", "is_slippery": False}
    world = bathysphere.from_gymnasium(lambda: gymnasium.make("FrozenLake-v1", is_slippery=False), seeds=3)
    assert world.config == GymnasiumConfig("FrozenLake-v1", settings, None, 100, 3)
    wrapped = bathysphere.from_gymnasium(
        lambda: gymnasium.wrappers.FlattenObservation(gymnasium.make("CliffWalking-v1"))
    )
    assert not hasattr(wrapped, "config")
    assert wrapped.observation == Categories((1,), 50)  # where the only 1 is


def test_a_lambda_serves_other_processes_only_if_an_id_says_the_same():
    plain = bathysphere.from_gymnasium(lambda: gymnasium.make("CliffWalking-v1"))
    assert pickle.loads(pickle.dumps(plain)).name == "CliffWalking-v1"
    wrapped = bathysphere.from_gymnasium(
        lambda: gymnasium.wrappers.TransformReward(gymnasium.make("CliffWalking-v1"), abs), max_steps=20
    )
    with pytest.raises(BathysphereError, match=r"cannot be sent to another process.*Leave out the workers"):
        pickled(wrapped)
    MCTS(wrapped, HashedValues(4), SearchConfig(passes=2), batch=2).step()


class Told(gymnasium.Env):
    """Six places in a row, shown as a text and nothing else."""

    action_space, observation_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Text(20)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 2
        return f"place {self.place}", {}

    def step(self, action):
        self.place = max(self.place + 2 * int(action) - 1, 0)
        return f"place {self.place}", float(self.place == 5), self.place == 5, False, {}


def test_texts_alone_are_told_apart():
    domain = bathysphere.from_gymnasium(Told)
    bathysphere.check_domain(domain, np.random.default_rng(0), num_states=40)
    after = domain.successors(domain.initial(1, np.random.default_rng(0))).states[0]
    seen = domain.observe(after)
    assert seen.shape == (2, *domain.observation.shape)
    assert not np.array_equal(seen[0], seen[1])


def test_reprs_tell_what_a_world_is():
    domain = bathysphere.from_gymnasium(lambda: gymnasium.make("CliffWalking-v1"))
    told = "<World CliffWalking-v1: 4 actions, an observation of 1 number below 48, up to 200 steps>"
    assert repr(domain) == told
    chance = bathysphere.from_gymnasium(lambda: gymnasium.make("FrozenLake-v1"))
    assert repr(chance) == "<World FrozenLake-v1: 4 actions, an observation of 1 number below 16, up to 100 steps>"
    assert repr(bathysphere.from_gymnasium(lambda: gymnasium.make("Blackjack-v1"))).startswith(
        "<World Blackjack-v1: 2 "
    )
    assert repr(bathysphere.from_steps(Lamps)).startswith("<World lamps: 6 actions, an observation of 6 numbers below ")
