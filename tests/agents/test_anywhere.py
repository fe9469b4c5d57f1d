"""An agent in any environment of its world, with any budget, for one state or many."""

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import bathysphere
import bathysphere.gym
from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.domains.adapters.gymnasium import GymDomain
from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, BestFirstConfig, SearchConfig
from bathysphere.planning.inspect import root_report
from bathysphere.runs.build import make_trainer
from tests.domains.per_state_worlds import Lamps
from tests.oracles.random_graph import HashedValues
from tests.runs.small import small_config

SIZE = 6


def agent(domain=None, search=None, seed=0):
    """An agent that has learnt nothing, which is enough to plan."""
    trainer = make_trainer(small_config())
    return bathysphere.Agent(domain or trainer.domain, trainer.values, search or SearchConfig(passes=4), seed)


def states(n=20):
    """States of random play."""
    domain, rng = DeepSea(DeepSeaConfig(size=SIZE)), np.random.default_rng(0)
    row, found = domain.initial(1, rng)[0], []
    while len(found) < n:
        out = domain.successors(row[None])
        found.append(row)
        action = rng.integers(2)
        row = domain.initial(1, rng)[0] if out.terminal[0, action] else out.states[0, action]
    return np.array(found)


class Counted(gymnasium.Wrapper):
    """Notes what is done to an environment."""

    steps = 0

    def step(self, action):
        self.steps += 1
        return super().step(action)


def test_a_wrapped_environment_is_looked_at_and_not_touched():
    env = Counted(TimeLimit(gymnasium.make("bathysphere/DeepSea-v0", size=SIZE), 100))
    env.reset(seed=0)
    before = env.unwrapped.get_state()
    action = agent().act(env)
    assert env.action_space.contains(action)
    assert env.unwrapped.get_state() == before
    assert env.steps == 0


class Foreign(gymnasium.Env):
    """Deep-sea behind an interface of its own, whose actions begin with 5."""

    render_mode = None
    action_space = gymnasium.spaces.Discrete(2, start=5)
    observation_space = gymnasium.spaces.Discrete(SIZE * SIZE)

    def __init__(self):
        self.world = DeepSea(DeepSeaConfig(size=SIZE))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.row = self.world.initial(1, self.np_random)
        return self.look(), {}

    def step(self, action):
        out = self.world.successors(self.row)
        self.row = out.states[:, action - 5]
        return self.look(), out.rewards[0, action - 5], out.terminal[0, action - 5], False, {}

    def look(self):
        return int(self.world.observe(self.row)[0, 0])

    def save(self):
        return self.row.tobytes()

    def load(self, saved):
        self.row = np.frombuffer(saved, np.uint8)[None].copy()


def test_a_foreign_environment_is_read_by_the_domain_and_its_actions_are_its_own():
    domain = GymDomain(Foreign(), Foreign.save, Foreign.load, Foreign.look, SIZE)
    chooser, env = agent(domain), TimeLimit(Foreign(), 50)
    policy = chooser.policy(env, passes=2)
    observation, _ = env.reset(seed=0)
    for _ in range(SIZE - 1):
        action = policy(observation)
        assert action in (5, 6)
        assert chooser.act(chooser.domain.state_of(env)) in (0, 1)
        observation, _, terminated, _, _ = env.step(action)
    assert terminated
    with pytest.raises(BathysphereError, match="an environment like the one Foreign was made of, or a state; got str"):
        chooser.act("here")


@pytest.mark.parametrize("passes", [1, 3, 50])
def test_passes_are_what_is_asked_for(passes):
    start = states(1)
    many, few = agent(search=SearchConfig(passes=passes)), agent(search=SearchConfig(passes=4))
    assert many.act(start[0]) == few.act(start[0], passes=passes)
    assert few._planner.search_graph(0).states.tobytes() == many._planner.search_graph(0).states.tobytes()


@pytest.mark.parametrize("compiled", [True, False])
def test_time_is_a_budget_too(compiled):
    chooser, start = agent(), states(1)[0]
    model = None if compiled else DeepSea(DeepSeaConfig(size=SIZE))  # another object is asked in batches
    planner = MCTS(chooser.domain, chooser.values, SearchConfig(passes=1), starts=start[None], model=model)
    planner.plan(seconds=1e-9)
    assert root_report(planner, 0).visits.sum() >= 2  # at least one pass
    planner.plan(seconds=0.05)
    planner.act()
    assert chooser.act(start, milliseconds=1) in (0, 1)
    searcher = agent(search=BestFirstConfig())
    assert searcher.act(start, milliseconds=1000) in (0, 1)


def test_budgets_that_mean_nothing():
    chooser, start = agent(), states(1)[0]
    with pytest.raises(BathysphereError, match="give one of them"):
        chooser.act(start, passes=1, milliseconds=1)
    for budget in ({"passes": 0}, {"milliseconds": 0}, {"milliseconds": float("nan")}):
        with pytest.raises(BathysphereError, match="expected at least 1"):
            chooser.act(start, **budget)
    searcher = agent(search=BestFirstConfig())
    for act in (searcher.act, lambda state, passes: searcher.act_many([state], passes=passes)):
        with pytest.raises(BathysphereError, match="best-first knows no passes"):
            act(start, passes=3)


@pytest.mark.parametrize("search", [SearchConfig(passes=30), BestFirstConfig(max_expansions=60)])
def test_many_states_at_once(search):
    rows = states(300)
    many = agent(search=search).act_many(rows)
    assert many.dtype == np.int64
    assert many.shape == (300,)
    alone = [agent(search=search).act(row) for row in rows[:10]]
    assert many[:10].tolist() == alone
    assert agent(search=search).act_many(list(rows[:10])).tolist() == alone
    assert agent(search=search).act_many(rows[:0]).shape == (0,)


def test_values_of_states():
    chooser, rows = agent(), states(7)
    expected = chooser.values.evaluate(chooser.domain.observe(rows))
    assert chooser.value(rows).tolist() == expected.tolist()
    assert chooser.value(list(rows)).tolist() == expected.tolist()
    env = gymnasium.make("bathysphere/DeepSea-v0", size=SIZE)
    env.reset(seed=0)
    assert chooser.value([env]).shape == (1, chooser.values.num_members)


def test_states_of_a_world_that_is_written_one_state_at_a_time_are_taken_as_they_are():
    domain = bathysphere.from_steps(Lamps)
    chooser = bathysphere.Agent(domain, HashedValues(3), SearchConfig(passes=4))
    state, env = (1, 0, 0, 0, 0, 0), bathysphere.gym.DomainEnv(domain)
    row = domain.row_of(state)
    assert domain.objects(row[None]) == [state]
    assert chooser.explain(state).state.tobytes() == row.tobytes()
    assert chooser.act(state) in range(6)
    assert chooser.act_many([state, state]).tolist() == chooser.act_many(np.array([row, row])).tolist()
    assert np.array_equal(chooser.value([state]), chooser.value(row[None]))
    env.reset(seed=0)
    assert chooser.act(env) in range(6)
    with pytest.raises(BathysphereError, match="Return a tuple instead"):
        chooser.act([1, 0, 0, 0, 0, 0])
