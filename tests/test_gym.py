import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import bathysphere.gym
from bathysphere.domains.deep_sea.domain import DeepSea, DeepSeaConfig
from bathysphere.domains.presentation import picture_of
from bathysphere.errors import BathysphereError
from bathysphere.gym import DomainEnv
from tests.domains.corridor import Corridor

IDS = ["bathysphere/DeepSea-v0", "bathysphere/ToyMontezuma-v0", "bathysphere/Sokoban-v0"]


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("render_mode", ["rgb_array", "ansi"])
def test_gymnasiums_own_check_finds_nothing(env_id, render_mode):
    # Warnings are errors in this suite.
    env = gymnasium.make(env_id, render_mode=render_mode)
    check_env(env.unwrapped)
    assert isinstance(env.unwrapped, DomainEnv)


def test_arguments_are_the_configs_fields():
    env = gymnasium.make("bathysphere/DeepSea-v0", size=20, horizon="paper")
    assert env.unwrapped.domain.config == DeepSeaConfig(20, 0, "paper")
    with pytest.raises(BathysphereError, match=r"no argument depth[.] It has: size, mask_seed, horizon"):
        gymnasium.make("bathysphere/DeepSea-v0", depth=20)
    with pytest.raises(BathysphereError, match="whole number from 2"):
        gymnasium.make("bathysphere/DeepSea-v0", size=0)


def test_importing_by_prefix_works():
    assert gymnasium.make("bathysphere.gym:bathysphere/ToyMontezuma-v0", map="one-room").unwrapped


def test_an_episode():
    env = DomainEnv(DeepSea(DeepSeaConfig(4)))
    observation, info = env.reset(seed=0)
    assert observation.tolist() == [0]
    assert info == {"solved": False, "steps": 0}
    rewards = []
    for _ in range(3):
        observation, reward, terminated, truncated, info = env.step(0)
        rewards.append(reward)
    assert observation.tolist() == [15]
    assert (terminated, truncated, info) == (True, False, {"solved": True, "steps": 3})
    assert rewards == [-0.01 / 3, -0.01 / 3, 1.0]


def test_the_time_limit_truncates():
    env = gymnasium.make("bathysphere/ToyMontezuma-v0", map="one-room", max_steps=3)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    env.reset()
    assert env.step(0)[2:4] == (False, False)


@pytest.mark.parametrize("env_id", IDS)
def test_a_restored_environment_goes_on_exactly_as_before(env_id):
    def play_on(env, actions):
        """Plays, resets twice and returns all that happened."""
        seen = [env.step(action) for action in actions]
        return [
            *[(observation.tolist(), *rest) for observation, *rest in seen],
            *[env.reset()[0].tolist() for _ in range(2)],
        ]

    env, other = gymnasium.make(env_id).unwrapped, gymnasium.make(env_id).unwrapped
    rng = np.random.default_rng(1)
    actions = rng.integers(env.action_space.n, size=8)
    env.reset(seed=7)
    for action in actions[:4]:
        env.step(action)
    saved = env.get_state()
    first = play_on(env, actions)
    env.set_state(saved)
    assert play_on(env, actions) == first
    other.reset(seed=99)
    other.set_state(pickle.loads(pickle.dumps(saved)))
    assert play_on(other, actions) == first


def test_mistakes_get_a_sentence():
    env = DomainEnv(DeepSea(DeepSeaConfig(4)))
    with pytest.raises(BathysphereError, match="Call reset first"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(BathysphereError, match=r"There is no action 2[.] Choose from: 0 action-0, 1 action-1"):
        env.step(2)
    with pytest.raises(BathysphereError, match="render_mode='rgb_array' or 'ansi'"):
        env.render()
    with pytest.raises(BathysphereError, match="render_mode must be"):
        DomainEnv(DeepSea(), render_mode="human")
    with pytest.raises(BathysphereError, match=r"uint8 \[n, 4\]"):
        env.set_state(env.get_state()._replace(state=b"123"))


def test_a_domain_without_pictures_shows_its_bytes():
    env = DomainEnv(Corridor(), render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == env.get_state().state.hex()
    picture = DomainEnv(Corridor(), render_mode="rgb_array")
    picture.reset(seed=0)
    state = np.frombuffer(picture.get_state().state, np.uint8)
    assert np.array_equal(picture.render(), picture_of(picture.domain, state))


def test_ids_are_registered_once():
    assert [name for name in gymnasium.registry if name.startswith("bathysphere/")] == IDS
    assert bathysphere.gym.make_env("deep-sea", size=3).domain.max_steps == 2


def test_what_chance_decides_follows_from_the_seed_of_reset():
    lake = bathysphere.from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=True))

    def walk(seed):
        env = DomainEnv(lake)
        env.reset(seed=seed)
        return [int(env.step(2)[0][0]) for _ in range(5)]

    assert walk(0) == walk(0)
    assert len({tuple(walk(seed)) for seed in range(20)}) > 3
