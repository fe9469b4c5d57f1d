"""Replay of steps: n-step targets against plain loops, and learning by them against value iteration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bathysphere.domains.base import Categories
from bathysphere.errors import BathysphereError
from bathysphere.learning.config import LearningConfig
from bathysphere.learning.masks import MaskConfig
from bathysphere.learning.replay import ReplayConfig
from bathysphere.learning.trainer import Trainer
from bathysphere.learning.transitions import TransitionReplay
from bathysphere.planning import Episode, NoPlannerConfig
from bathysphere.values import OptimiserConfig, ValuesConfig
from bathysphere.values.action_ensemble import ActionEnsemble
from tests.oracles.random_graph import RandomGraph

DISCOUNT = 0.9


class Numbered(RandomGraph):
    """A random graph that shows the number of the state."""

    @classmethod
    def of(cls, graph):
        world = cls(graph.target, graph.reward, graph.is_end, graph.is_solved, graph.max_steps)
        world.observation = Categories((1,), len(graph.target))
        return world

    def observe(self, states):
        return self.number(states)[:, None].astype(np.int32)


def make_values(world, num_members=3, seed=0):
    config = ValuesConfig(network="linear", num_members=num_members, bias=False, init_scale=2.0)
    optimiser = OptimiserConfig(name="delta", learning_rate=0.5)
    return ActionEnsemble(config, optimiser, world.observation, seed, num_actions=len(world.action_names))


def walk(world, rng, length):
    """A random episode of at most `length` steps."""
    numbers, actions = [0], []
    while len(actions) < length and not world.is_end[numbers[-1]]:
        actions.append(int(rng.integers(world.target.shape[1])))
        numbers.append(int(world.target[numbers[-1], actions[-1]]))
    states, taken = world.encode(np.array(numbers)), np.array(actions, np.int32)
    rewards = world.reward[numbers[:-1], actions]
    is_end = bool(world.is_end[numbers[-1]])
    values = np.zeros((len(taken), 3))
    return Episode(states[:-1], taken, rewards, values, False, not is_end, 0, 1, 0.0, last_state=states[-1])


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), num_steps=st.integers(1, 15))
def test_targets_are_the_sums_that_a_loop_makes(seed, num_steps):
    rng = np.random.default_rng(seed)
    world = Numbered.of(RandomGraph.draw(rng))
    episode, values = walk(world, rng, 12), make_values(world, seed=seed)
    replay = TransitionReplay(ReplayConfig(), world.state_size, 3, 12, num_steps, DISCOUNT)
    replay.add_episode(episode, np.ones((len(episode), 3), bool), False, not episode.truncated)
    batch = replay.lessons(replay.sample(2, 20, rng), world, values)
    members = values.evaluate(np.arange(len(world.target))[:, None]).astype(float)
    states = [*world.number(episode.states).tolist(), int(world.number(episode.last_state))]
    expected = {}
    for t in range(len(episode)):
        total, factor, now = np.zeros(3), 1.0, t
        while now < min(t + num_steps, len(episode)):
            total += factor * episode.rewards[now]
            factor, now = factor * DISCOUNT, now + 1
        if now < len(episode) or episode.truncated:
            total = total + factor * members[states[now]]
        expected.setdefault((states[t], int(episode.actions[t])), []).append(total)
    drawn = zip(batch.observations.reshape(-1), batch.actions.reshape(-1), batch.targets.reshape(-1, 3), strict=True)
    for state, action, target in drawn:
        assert any(np.allclose(target, one, atol=1e-5) for one in expected[int(state), int(action)])


@pytest.mark.parametrize("seed", range(8))
def test_every_member_learns_what_value_iteration_finds(seed):
    """With uniformly random play (no member is followed for long), all action values that were tried become right."""
    rng = np.random.default_rng(seed)
    world = Numbered.of(RandomGraph.draw(rng))
    num_states, num_actions = world.target.shape
    replay = TransitionReplay(ReplayConfig(capacity=300), world.state_size, 3, 12, 1, DISCOUNT)
    tried = np.zeros((num_states, num_actions), bool)
    for _ in range(300):
        episode = walk(world, rng, 12)
        replay.add_episode(episode, np.ones((len(episode), 3), bool), False, not episode.truncated)
        tried[world.number(episode.states), episode.actions] = True
    values = make_values(world, seed=seed)
    everything = np.arange(num_states)[:, None]
    start = values.evaluate_actions(everything).astype(float)
    for _ in range(2500):
        values.update_many(replay.lessons(replay.sample(1, 64, rng), world, values))
    # Value iteration for every member, in which an action that was never tried keeps what it began with.
    q = start.copy()
    for _ in range(300):
        ahead = np.where(world.is_end[:, None], 0.0, q.max(axis=1))
        backed_up = world.reward[:, :, None] + DISCOUNT * ahead[world.target]
        q = np.where(tried[:, :, None], backed_up, start)
    assert values.evaluate_actions(everything)[tried] == pytest.approx(q[tried], abs=0.02)


def test_symmetries_are_refused():
    world = Numbered.of(RandomGraph.draw(np.random.default_rng(0)))
    with pytest.raises(BathysphereError, match="symmetries is for values of states"):
        Trainer(world, make_values(world), NoPlannerConfig(), LearningConfig(symmetries=True))


def test_a_trainer_goes_on_bit_for_bit():
    world = Numbered.of(RandomGraph.draw(np.random.default_rng(3)))
    learning = LearningConfig(
        min_episodes=2, steps_per_update=1.0, renew_every=3, mask=MaskConfig(kind="bernoulli", probability=0.5)
    )

    def make():
        return Trainer(world, make_values(world), NoPlannerConfig(risk_coef=1.0), learning, batch=3, seed=1)

    whole, parted, resumed = make(), make(), make()
    for _ in range(40):
        whole.advance()
        parted.advance()
    resumed.load_state_dict(parted.state_dict())
    for _ in range(40):
        whole.advance()
        resumed.advance()
    one, other = whole.state_dict(), resumed.state_dict()
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)


@pytest.mark.parametrize("changes", [{"num_steps": 0}, {"renew_every": 0}])
def test_numbers_that_make_no_sense_are_refused(changes):
    with pytest.raises(BathysphereError, match="expected at least 1"):
        LearningConfig(**changes)
