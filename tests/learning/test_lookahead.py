"""Targets by the model, computed when a batch is drawn: against plain loops and value iteration."""

import numpy as np
import pytest

from bathysphere.learning.config import LearningConfig
from bathysphere.learning.lookahead import look_ahead
from bathysphere.learning.masks import MaskConfig
from bathysphere.learning.replay import ReplayConfig
from bathysphere.learning.trainer import Trainer
from bathysphere.models.memory import MemoryModel
from bathysphere.planning import PlannerSettings, ReplanConfig, SearchConfig
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig
from tests.learning.test_transitions import DISCOUNT, Numbered
from tests.models.test_memory import memory_of
from tests.oracles.random_graph import RandomGraph
from tests.planning.small_worlds import Recorder

BY_STEP = SearchConfig(discount=DISCOUNT, risk_coef=10.0, passes=3, avoid_loops=False, final_ties="random")
PLANNERS = [BY_STEP, ReplanConfig(discount=DISCOUNT, risk_coef=10.0)]


def make_values(world, seed=0):
    config = ValuesConfig(network="linear", num_members=3, bias=False, init_scale=2.0)
    return Ensemble(config, OptimiserConfig(name="delta", learning_rate=0.5), world.observation, seed)


@pytest.mark.parametrize("knows", [0.0, 0.5, 1.0, None])
def test_every_member_looks_ahead_by_its_own_values(knows):
    rng = np.random.default_rng(0)
    for _ in range(20):
        world = Numbered.of(RandomGraph.draw(rng))
        num_states, num_actions = world.target.shape
        values, everything = make_values(world), world.encode(np.arange(num_states))
        tried = rng.random(world.target.shape) < (1.0 if knows is None else knows)
        model = world if knows is None else memory_of(world, tried)
        found = look_ahead(everything, world, model, values, DISCOUNT)
        members = values.evaluate(np.arange(num_states)[:, None])
        unknown = memory_of(world, tried).imagine(everything).values
        for state in range(num_states):
            for e in range(3):
                options = []
                for action in range(num_actions):
                    after = world.target[state, action]
                    ahead = 0.0 if world.is_end[after] else members[after, e]
                    known = world.reward[state, action] + DISCOUNT * ahead
                    options.append(known if tried[state, action] else DISCOUNT * unknown[state, action, e])
                assert found[state, e] == pytest.approx(max(options), abs=1e-5)


def make_trainer(world, search: PlannerSettings = BY_STEP, seed=0):
    values = make_values(world, seed)
    learning = LearningConfig(
        target="lookahead",
        min_episodes=0,
        steps_per_update=0.1,
        renew_every=1,
        mask=MaskConfig(kind="none"),
        replay=ReplayConfig(capacity=200),
    )
    model = MemoryModel(world.state_size, len(world.action_names), 3, spread=20.0, seed=seed)
    return Trainer(world, values, search, learning, batch=2, seed=seed, model=model)


@pytest.mark.parametrize("seed", range(4))
def test_curious_members_come_to_agree_with_value_iteration(seed):
    """The state they begin in gets the value that the rules give it, although nobody was told the rules."""
    rng = np.random.default_rng(seed)
    world = Numbered.of(RandomGraph.draw(rng))
    trainer = make_trainer(world, seed=seed)
    while trainer.progress.env_steps < 1500:
        trainer.advance()
    best = np.zeros(len(world.target))
    for _ in range(300):
        best = (world.reward + DISCOUNT * np.where(world.is_end, 0.0, best)[world.target]).max(axis=1)
    learnt = trainer.values.evaluate(np.zeros((1, 1), np.int32))[0]
    assert learnt == pytest.approx(np.full(3, best[0]), abs=0.05)


@pytest.mark.parametrize("search", PLANNERS)
def test_the_world_is_asked_for_the_steps_made_and_nothing_else_and_both_kinds_are_counted(search):
    world = Recorder.of(RandomGraph.draw(np.random.default_rng(1)))
    world.observation, world.observe = Numbered.of(world).observation, Numbered.of(world).observe
    trainer = make_trainer(world, search)
    for _ in range(60):
        trainer.advance()
    progress, work = trainer.progress, trainer.pool.work
    assert len(world.expanded) == progress.env_steps == 120
    looked_ahead = progress.updates * trainer.learning.batch_size
    assert progress.imagined_steps == (work.model_calls + looked_ahead) * len(world.action_names)
    assert 0 < work.unknown_steps <= trainer.model.num_known + 2 * world.max_steps * 2


@pytest.mark.parametrize("search", PLANNERS)
def test_a_trainer_with_a_memory_goes_on_bit_for_bit(search):
    world = Numbered.of(RandomGraph.draw(np.random.default_rng(3)))
    whole, parted, resumed = (make_trainer(world, search) for _ in range(3))
    for _ in range(30):
        whole.advance()
        parted.advance()
    resumed.load_state_dict(parted.state_dict())
    for _ in range(30):
        whole.advance()
        resumed.advance()
    one, other = whole.state_dict(), resumed.state_dict()
    assert one.keys() == other.keys()
    assert any(name.startswith("model.") for name in one)
    assert all((one[name] == other[name]).all() for name in one if ".store." not in name)  # what is free may differ
