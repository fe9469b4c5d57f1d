"""Planning in worlds with chance: against its plain twin, value iteration, and frequencies of what happens."""

import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.domains.base import Successors
from bathysphere.domains.real_steps import take_steps
from bathysphere.errors import BathysphereError
from bathysphere.models.chance_memory import ChanceMemory
from bathysphere.planning import MCTS, BestFirst, Expectimax, ExpectimaxConfig, NoPlanner
from bathysphere.planning.graph.risk import register_risk
from bathysphere.planning.inspect import root_report, search_graph
from bathysphere.planning.planner import play_all
from tests.oracles.chance import OracleSearch, RandomMDP, optimal
from tests.planning.test_no_planner import QTable


class Table:
    """A value function that looks its answers up: [states, E]."""

    def __init__(self, table):
        self.values, self.num_members = table.astype(np.float32), table.shape[1]

    def evaluate(self, observations):
        return self.values[observations[:, 0]]


@pytest.mark.kernels
@pytest.mark.parametrize(
    "config",
    [
        ExpectimaxConfig(passes=6, risk_coef=2.0),
        ExpectimaxConfig(passes=6, risk="vote", num_subsampled=3, max_depth=3),
        ExpectimaxConfig(passes=6, risk="exponential", risk_coef=-1.0, aleatoric=-0.5, num_subsampled=2, discount=0.9),
    ],
)
def test_every_pass_equals_the_plain_twin(config):
    rng = np.random.default_rng(0)
    for seed in range(40):
        mdp = RandomMDP.draw(rng)
        values = Table(rng.normal(size=(len(mdp.target), 4)))
        planner = Expectimax(mdp, values, config, seed=seed)
        arena = planner.graphs.arena
        members = arena.members[0].tolist()
        twin = OracleSearch(mdp, 0, values.values, config, members, int(arena.episodes["rng"][0]))
        twin.rng.state = int(arena.episodes["rng"][0])
        for _ in range(3):
            planner.plan()
            for _ in range(config.passes):
                twin.one_pass()
            graph = search_graph(planner, 0)
            numbers = mdp.number(graph.states).tolist()
            assert set(numbers) == set(twin.value)
            assert len(numbers) == len(set(numbers))
            for number, members_values in zip(numbers, graph.member_values, strict=True):
                assert members_values == pytest.approx(twin.value[number], abs=1e-9)
            assert int(planner.graphs.arena.episodes["rng"][0]) == twin.rng.state
            report = root_report(planner, 0)
            q, luck = twin.expectations(0)
            assert report.q == pytest.approx(np.array(q), abs=1e-9)
            assert report.luck == pytest.approx(np.array(luck), abs=1e-9)
            assert report.score == pytest.approx(list(twin.scores(0).values()), abs=1e-9)
            assert "luck" in report.table()


def test_with_enough_passes_the_choice_is_that_of_value_iteration():
    """Hundreds of small worlds. Members begin with values of their own, all too high, so that nothing is left out."""
    rng = np.random.default_rng(1)
    config = ExpectimaxConfig(passes=600, risk_coef=1.0, discount=0.8)
    num_worlds = 0
    for seed in range(200):
        mdp = RandomMDP.draw(rng)
        best, q = optimal(mdp, 0.8, sweeps=200)
        values = Table(20.0 + rng.normal(size=(len(mdp.target), 3)))
        planner = Expectimax(mdp, values, config, seed=seed)
        planner.plan()
        planner.act()
        chosen = int(planner.actions[0])
        assert q[0, chosen] == pytest.approx(best[0], abs=0.02)
        num_worlds += 1
    assert num_worlds == 200


def test_a_world_without_chance_is_its_own_expectation():
    """With one outcome everywhere there is no luck, and values are those of the deterministic world."""
    rng = np.random.default_rng(2)
    for seed in range(20):
        mdp = RandomMDP.draw(rng)
        mdp.target, mdp.reward = mdp.target[..., :1], mdp.reward[..., :1]
        mdp.chance = np.ones_like(mdp.chance[..., :1])
        planner = Expectimax(mdp, Table(rng.normal(size=(len(mdp.target), 3))), ExpectimaxConfig(passes=5), seed=seed)
        planner.plan()
        assert (root_report(planner, 0).luck == 0).all()


def test_luck_is_no_uncertainty_unless_it_is_asked_for():
    """A fair bet of 0 or 2 beside a sure 1: members agree on both, so the measure sees no difference; luck does."""
    target = np.array([[[1, 1], [1, 1]], [[1, 1], [1, 1]]])
    chance = np.array([[[0.5, 0.5], [1.0, 0.0]]] * 2)
    reward = np.array([[[0.0, 2.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    mdp = RandomMDP(target, chance, reward, np.array([False, True]))
    for aleatoric, action in ((1.0, 0), (-1.0, 1)):
        config = ExpectimaxConfig(risk_coef=100.0, aleatoric=aleatoric)
        planner = Expectimax(mdp, Table(np.zeros((2, 3))), config)
        planner.plan()
        report = root_report(planner, 0)
        assert report.q.mean(axis=1).tolist() == [1.0, 1.0]
        assert report.q.std(axis=1).tolist() == [0.0, 0.0]
        assert report.luck.tolist() == [1.0, 0.0]
        planner.act()
        assert planner.actions[0] == action


def test_a_measure_of_a_users_that_returns_nan_is_refused():
    register_risk("nothing_below", lambda values, risk_coef: values.mean() if values[0] > -1e6 else np.nan)
    mdp = RandomMDP(np.zeros((2, 2, 1), int), np.ones((2, 2, 1)), np.zeros((2, 2, 1)), np.array([False, False]))
    planner = Expectimax(mdp, Table(np.full((2, 3), -1e7)), ExpectimaxConfig(risk="nothing_below"), num_episodes=1)
    with pytest.raises(BathysphereError, match="'nothing_below' returned NaN"):
        play_all(planner)


def memory_of(mdp, num_steps, rng, num_members=4):
    """Returns a memory of so many steps in a world, each from any state by any action."""
    going = np.flatnonzero(~mdp.is_end)
    states = mdp.encode(rng.choice(going, size=num_steps))
    actions = rng.integers(mdp.target.shape[1], size=num_steps).astype(np.int32)
    memory = ChanceMemory(mdp.state_size, mdp.target.shape[1], num_members, 1.5, 3, num_outcomes=mdp.target.shape[2])
    memory.learn(states, actions, Successors(*take_steps(mdp, states, actions, rng)))
    return memory


def as_a_world(mdp, memory):
    """Returns what a memory knows as a world in which the unknown of every state and action is a state, an end."""
    num_states, num_actions, _ = mdp.target.shape
    states = mdp.encode(np.arange(num_states))
    told, unknown, worth = memory.imagine_outcomes(states)
    own = num_states + np.arange(num_states * num_actions).reshape(num_states, num_actions, 1)
    chance = np.concatenate([told.probabilities, unknown[..., None]], axis=2).astype(np.float32).astype(float)
    reward = np.concatenate([told.rewards, np.zeros((num_states, num_actions, 1))], axis=2)
    target = np.concatenate([mdp.number(told.states), own], axis=2)
    is_end = np.concatenate([mdp.is_end, np.ones(num_states * num_actions, bool)])
    return RandomMDP(target, chance, reward, is_end), worth.reshape(-1, worth.shape[2])


@pytest.mark.kernels
@pytest.mark.parametrize("risk", ["mean_std", "vote"])
def test_with_a_memory_every_pass_equals_the_plain_twin(risk):
    """The unknown is one outcome more, an end whose value differs between members."""
    rng, config = np.random.default_rng(7), ExpectimaxConfig(passes=6, risk=risk, risk_coef=2.0, discount=0.9)
    for seed in range(30):
        mdp = RandomMDP.draw(rng)
        memory = memory_of(mdp, int(rng.integers(0, 60)), rng)
        values = Table(rng.normal(size=(len(mdp.target), 4)))
        planner = Expectimax(mdp, values, config, seed=seed, model=memory)
        arena = planner.graphs.arena
        told, worth = as_a_world(mdp, memory)
        table = np.concatenate([values.values, worth])
        twin = OracleSearch(told, 0, table, config, arena.members[0].tolist(), 0)
        twin.value |= {len(mdp.target) + k: [float(v) for v in row] for k, row in enumerate(worth)}
        twin.rng.state = int(arena.episodes["rng"][0])
        for _ in range(2):
            planner.plan()
            for _ in range(config.passes):
                twin.one_pass()
            assert int(planner.graphs.arena.episodes["rng"][0]) == twin.rng.state
            report = root_report(planner, 0)
            assert report.q == pytest.approx(np.array(twin.expectations(0)[0]), abs=1e-6)
            assert report.score == pytest.approx(list(twin.scores(0).values()), abs=1e-6)


def test_with_a_memory_the_unforeseen_happens_and_episodes_are_possible():
    mdp = RandomMDP.draw(np.random.default_rng(11))
    values = Table(np.random.default_rng(0).normal(size=(len(mdp.target), 4)))
    memory = memory_of(mdp, 0, np.random.default_rng(0))
    config = ExpectimaxConfig(passes=3, risk_coef=1.0)
    planner = Expectimax(mdp, values, config, model=memory, batch=2, num_episodes=30, seed=1)
    for episode in play_all(planner):
        numbers = [*mdp.number(episode.states).tolist(), int(mdp.number(episode.last_state))]
        for before, after, action in zip(numbers[:-1], numbers[1:], episode.actions, strict=True):
            assert mdp.chance[before, action][mdp.target[before, action] == after].sum() > 0
        assert episode.truncated == (not mdp.is_end[numbers[-1]])
    assert planner.work.unknown_steps == planner.work.steps  # it learns nothing here, so that nothing is foreseen


class Hopeful(RandomMDP):
    """Believes that every end is a success."""

    def outcomes(self, states):
        told = super().outcomes(states)
        return told._replace(solved=told.terminal)


def test_ends_that_a_model_missed_or_made_up_are_mended_when_a_step_comes_there():
    rng, config = np.random.default_rng(13), ExpectimaxConfig(passes=4, risk_coef=1.0)
    surprises = 0
    for seed in range(10):
        mdp = RandomMDP.draw(rng)
        is_end = rng.random(len(mdp.target)) < 0.5
        mistaken = Hopeful(mdp.target, mdp.chance, mdp.reward, is_end)
        values = Table(rng.normal(size=(len(mdp.target), 4)))
        made = [Expectimax(mdp, values, config, model=mistaken, batch=2, num_episodes=6, seed=seed) for _ in range(2)]
        planner, copy = made
        while planner.active.any():
            for episode in planner.step():
                last = int(mdp.number(episode.last_state))
                assert episode.truncated == (not mdp.is_end[last])
                assert not episode.solved
                assert not mdp.is_end[mdp.number(episode.states)].any()
            copy.load_state_dict(planner.state_dict())  # refuses graphs that cannot be
            arena = planner.graphs.arena
            for slot in np.flatnonzero(planner.active):
                assert not arena.stats["terminal"][slot, planner._root(slot)]
        surprises += planner.work.unknown_steps
    assert surprises > 0


def test_what_a_memory_has_seen_often_is_planned_as_the_world_itself():
    """With thousands of steps the choice is that of value iteration in the true world."""
    rng = np.random.default_rng(12)
    config = ExpectimaxConfig(passes=400, discount=0.8)
    for seed in range(15):
        mdp = RandomMDP.draw(rng)
        best, q = optimal(mdp, 0.8, sweeps=200)
        memory = memory_of(mdp, 40_000, rng, num_members=3)
        values = Table(20.0 + rng.normal(size=(len(mdp.target), 3)))
        planner = Expectimax(mdp, values, config, seed=seed, model=memory)
        planner.plan()
        planner.act()
        assert q[0, int(planner.actions[0])] == pytest.approx(best[0], abs=0.1)


def test_a_saved_search_with_a_memory_goes_on_bit_for_bit():
    rng = np.random.default_rng(5)
    mdp = RandomMDP.draw(rng)
    memory = memory_of(mdp, 20, rng, num_members=3)
    values = Table(np.random.default_rng(0).normal(size=(len(mdp.target), 3)))

    def make():
        return Expectimax(mdp, values, ExpectimaxConfig(passes=4, risk_coef=1.0), batch=3, seed=2, model=memory)

    whole, resumed = make(), make()
    whole.step(7)
    resumed.load_state_dict(whole.state_dict())
    whole.step(9)
    resumed.step(9)
    one, other = whole.state_dict(), resumed.state_dict()
    assert all((one[name] == other[name]).all() for name in one)


def test_what_happens_is_as_probable_as_the_world_says():
    rng = np.random.default_rng(3)
    mdp = RandomMDP.draw(rng)
    while mdp.target.shape[2] < 3 or len(mdp.target) < 6:
        mdp = RandomMDP.draw(rng)
    num = 20_000
    states, actions = mdp.encode(np.zeros(num, np.int64)), np.zeros(num, np.int32)
    taken = take_steps(mdp, states, actions, rng)
    for after in range(len(mdp.target)):
        probability = mdp.chance[0, 0][mdp.target[0, 0] == after].sum()
        assert (mdp.number(taken.states) == after).mean() == pytest.approx(probability, abs=0.015)
    assert set(taken.rewards.tolist()) <= set(mdp.reward[0, 0].tolist())


@pytest.mark.parametrize("kind", ["expectimax", "none"])
def test_episodes_are_possible_and_seeds_decide_them(kind):
    rng = np.random.default_rng(4)
    mdp = RandomMDP.draw(rng)

    def play(seed):
        if kind == "none":
            values = QTable(np.zeros((*mdp.target.shape[:2], 3), np.float32))
            return play_all(NoPlanner(mdp, values, num_episodes=6, seed=seed))
        values = Table(np.zeros((len(mdp.target), 3)))
        return play_all(Expectimax(mdp, values, ExpectimaxConfig(passes=3), batch=2, num_episodes=6, seed=seed))

    for episode in play(0):
        numbers = [*mdp.number(episode.states).tolist(), int(mdp.number(episode.last_state))]
        for before, after, action in zip(numbers[:-1], numbers[1:], episode.actions, strict=True):
            assert mdp.chance[before, action][mdp.target[before, action] == after].sum() > 0
        assert episode.truncated == (not mdp.is_end[numbers[-1]])
    told = [[e.states.tolist() for e in play(seed)] for seed in (0, 0, 1)]
    assert told[0] == told[1] != told[2]


def test_a_saved_search_goes_on_bit_for_bit():
    mdp = RandomMDP.draw(np.random.default_rng(5))
    values = Table(np.random.default_rng(0).normal(size=(len(mdp.target), 3)))

    def make():
        return Expectimax(mdp, values, ExpectimaxConfig(passes=4, risk_coef=1.0), batch=3, seed=2)

    whole, parted, resumed = make(), make(), make()
    whole.step(7)
    parted.step(7)
    resumed.load_state_dict(parted.state_dict())
    whole.step(9)
    resumed.step(9)
    one, other = whole.state_dict(), resumed.state_dict()
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)


def test_what_does_not_go_together_is_refused():
    mdp, sea = RandomMDP.draw(np.random.default_rng(0)), DeepSea(DeepSeaConfig(size=4))
    values = Table(np.zeros((len(mdp.target), 2)))
    for planner in (MCTS, BestFirst):
        with pytest.raises(BathysphereError, match="a world with chance"):
            planner(mdp, values)
    with pytest.raises(BathysphereError, match="offers no outcomes"):
        Expectimax(sea, values)
    with pytest.raises(BathysphereError, match="leave out model"):
        Expectimax(mdp, values, model=sea)
    with pytest.raises(BathysphereError, match="newest values"):
        Expectimax(mdp, values, steady=True)
    with pytest.raises(BathysphereError, match="batch is 0"):
        Expectimax(mdp, values, batch=0)
    with pytest.raises(BathysphereError, match="passes is 0"):
        ExpectimaxConfig(passes=0)
    with pytest.raises(BathysphereError, match="max_depth is 0"):
        ExpectimaxConfig(max_depth=0)
    with pytest.raises(BathysphereError, match="aleatoric is inf"):
        ExpectimaxConfig(aleatoric=float("inf"))
