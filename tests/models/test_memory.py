"""The memory against the true rules: what was tried is known exactly, and nothing else is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bathysphere.domains.base import LearningModel, Model, PartialModel, Successors
from bathysphere.models.memory import MemoryModel
from tests.oracles.random_graph import RandomGraph


def memory_of(world, tried, num_members=3, spread=1.0, seed=0):
    """Returns a memory of the steps that `tried` [states, actions] says were made in `world`."""
    memory = MemoryModel(world.state_size, len(world.action_names), num_members, spread, seed)
    numbers, actions = np.nonzero(tried)
    target = world.target[numbers, actions]
    outcomes = Successors(
        world.encode(target), world.reward[numbers, actions], world.is_end[target], world.is_solved[target]
    )
    memory.learn(world.encode(numbers), actions, outcomes)
    return memory


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_what_was_tried_is_known_exactly_and_nothing_else_is(seed, share):
    rng = np.random.default_rng(seed)
    world = RandomGraph.draw(rng)
    tried = rng.random(world.target.shape) < share
    memory = memory_of(world, tried)
    states = world.encode(rng.permutation(len(world.target)))
    imagined, truth = memory.imagine(states), world.successors(states)
    known = tried[world.number(states)]
    assert (imagined.is_known == known).all()
    assert memory.num_known == tried.sum()
    for told, true in zip(imagined.successors, truth, strict=True):
        assert (told[known] == true[known]).all()
    stays = np.broadcast_to(states[:, None], imagined.successors.states.shape)
    assert (imagined.successors.states[~known] == stays[~known]).all()
    assert not imagined.successors.rewards[~known].any()
    assert not imagined.values[known].any()
    for told, again in zip(memory.successors(states), imagined.successors, strict=True):
        assert (told == again).all()


def test_the_unknown_is_worth_the_same_whenever_it_is_asked_for_and_spreads_as_told():
    memory = MemoryModel(state_size=11, num_actions=4, num_members=20, spread=2.5, seed=1)
    states = np.random.default_rng(0).integers(256, size=(500, 11), dtype=np.uint8)
    values = memory.imagine(states).values
    assert (memory.imagine(states[7:9]).values == values[7:9]).all()
    assert values.std() == pytest.approx(2.5, rel=0.02)
    assert values.mean() == pytest.approx(0.0, abs=0.05)
    spreads = values.std(axis=2)  # between members, of one outcome
    assert spreads.mean() == pytest.approx(2.5, rel=0.05)
    assert spreads.min() > 1.0
    # Neither actions nor members nor states are alike.
    flat = values.reshape(500, -1)
    assert np.abs(np.corrcoef(flat.T) - np.eye(80)).max() < 0.25
    other = MemoryModel(state_size=11, num_actions=4, num_members=20, spread=2.5, seed=2)
    assert (other.imagine(states).values != values).mean() > 0.99


def test_memories_grow_and_are_saved():
    rng = np.random.default_rng(0)
    states = np.unique(rng.integers(256, size=(5000, 3), dtype=np.uint8), axis=0)
    actions, n = rng.integers(2, size=len(states)), len(states)
    outcomes = Successors(states[::-1], rng.normal(size=n), rng.random(n) < 0.5, np.zeros(n, bool))
    memory, loaded = MemoryModel(3, 2, 4, 1.5, 7), MemoryModel(3, 2, 4, 0.0, 7)
    memory.learn(states, actions, outcomes)
    loaded.load_state_dict(memory.state_dict())
    one, other = memory.imagine(states), loaded.imagine(states)
    assert memory.num_known == loaded.num_known == n
    assert (one.successors.states[np.arange(n), actions] == states[::-1]).all()
    assert (one.is_known == other.is_known).all()
    assert (one.values == other.values).all()
    for mine, theirs in zip(one.successors, other.successors, strict=True):
        assert (mine == theirs).all()
    for name, array in memory.state_dict().items():
        assert (loaded.state_dict()[name] == array).all()


def test_what_planners_and_training_ask_of_it():
    memory = MemoryModel(1, 1, 1, 1.0, 0)
    for protocol in (Model, PartialModel, LearningModel):
        assert isinstance(memory, protocol)
