"""Domains out of Gymnasium environments."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.domains.adapters.gymnasium import GymDomain
from bathysphere.domains.base import Renderer, TextRenderer
from bathysphere.errors import BathysphereError
from bathysphere.gym import DomainEnv
from bathysphere.testing import check_domain


def toy_text(name, **kwargs):
    """Wraps one of Gymnasium's toy_text environments, whose whole state is the integer `s`."""

    def set_state(env, saved):
        env.s = int.from_bytes(saved, "little")

    return GymDomain(
        gymnasium.make(name, **kwargs),
        get_state=lambda env: int(env.s).to_bytes(2, "little"),
        set_state=set_state,
        get_observation=lambda env: env.s,
        max_steps=100,
    )


def test_frozen_lake_as_a_domain():
    domain = toy_text("FrozenLake-v1", is_slippery=False)
    check_domain(domain, np.random.default_rng(0), num_states=40)
    state = domain.initial(1, np.random.default_rng(0))
    assert (domain.state_size, domain.observation.num_categories) == (3, 16)
    rewards = []
    for action in [1, 1, 2, 1, 2, 2]:  # down, down, right, down, right, right
        out = domain.successors(state)
        state = out.states[:, action]
        rewards.append(float(out.rewards[0, action]))
    assert rewards == [0, 0, 0, 0, 0, 1]
    assert out.solved[0, 2]
    assert domain.observe(state).tolist() == [[15]]


def test_taxi_as_a_domain_and_back_as_an_environment():
    domain = toy_text("Taxi-v4", render_mode="ansi")
    check_domain(domain, np.random.default_rng(0), num_states=40)
    assert "+---------+" in domain.text(domain.initial(1, np.random.default_rng(0))[0])
    env = DomainEnv(domain)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    assert env.step(0)[1] == -1.0


def test_environments_a_domain_cannot_come_from_get_a_sentence():
    def nothing(*_):
        return b""

    with pytest.raises(BathysphereError, match="Discrete action space"):
        GymDomain(gymnasium.make("Pendulum-v1"), nothing, nothing, nothing, 100)
    with pytest.raises(BathysphereError, match="reads Discrete, MultiDiscrete"):
        GymDomain(gymnasium.make("Blackjack-v1"), nothing, nothing, nothing, 100)
    lengths = iter([b"12", b"123"])
    domain = GymDomain(gymnasium.make("CartPole-v1"), lambda env: next(lengths), nothing, nothing, 100)
    with pytest.raises(BathysphereError, match="get_state returned 3 bytes after 2"):
        domain.initial(1, np.random.default_rng(0))


def sea_and_back(render_mode):
    """Wraps Deep-sea as an environment, and that as a domain."""
    return GymDomain(
        DomainEnv(DeepSea(DeepSeaConfig(4)), render_mode),
        get_state=lambda env: env.get_state().state,
        set_state=lambda env, saved: env.set_state(env.get_state()._replace(state=saved)),
        get_observation=lambda env: env.domain.observe(np.frombuffer(env.get_state().state, np.uint8)[None])[0],
        max_steps=3,
    )


def test_a_domain_has_what_the_environment_draws_and_nothing_else():
    bare, text, picture = (sea_and_back(mode) for mode in (None, "ansi", "rgb_array"))
    assert [isinstance(domain, Renderer) for domain in (bare, text, picture)] == [False, False, True]
    assert [isinstance(domain, TextRenderer) for domain in (bare, text, picture)] == [False, True, False]
    check_domain(bare, np.random.default_rng(0), num_states=40)
    start = bare.initial(1, np.random.default_rng(0))
    below = bare.successors(start).states[0, 0]
    sea = DeepSea(DeepSeaConfig(4))
    for state in (below, start[0]):  # not only the one that the environment happens to be in
        assert np.array_equal(picture.render(state), sea.render(state[:-1]))
        assert text.text(state) == sea.text(state[:-1])


def test_gymnasium_is_imported_only_when_an_environment_is_wrapped():
    code = "import sys, bathysphere.domains.adapters.gymnasium; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "bathysphere.domains" in modules
    assert not {"gymnasium", "torch"} & set(modules)


def test_it_is_offered_beside_its_counterpart():
    import bathysphere.gym

    assert bathysphere.gym.GymDomain is GymDomain
