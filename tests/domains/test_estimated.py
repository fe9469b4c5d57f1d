"""Chances that are counted in runs of a simulator: against the true ones, value iteration, and a saved run."""

import inspect

import gymnasium
import numpy as np
import pytest

import bathysphere
from bathysphere.config.auto import choose
from bathysphere.config.convert import override
from bathysphere.domains.base import Chance, Remembers, Sampler, Successors, TextRenderer
from bathysphere.domains.estimated import EstimatedChance, with_outcomes
from bathysphere.domains.real_steps import take_steps
from bathysphere.domains.worlds import as_domain, describe
from bathysphere.errors import BathysphereError
from bathysphere.planning import Expectimax, ExpectimaxConfig
from bathysphere.planning.planner import play_all
from bathysphere.runs.build import make_trainer
from tests.domains.adapters import broken_environments as environments
from tests.oracles.chance import RandomMDP, optimal
from tests.planning.test_expectimax import Table


class Simulated:
    """A random MDP that can only be run."""

    def __init__(self, mdp):
        self._mdp = mdp
        for name in ("name", "state_size", "action_names", "max_steps", "observation", "initial", "observe"):
            setattr(self, name, getattr(mdp, name))

    def sample(self, states, seeds):
        answer = self._mdp.outcomes(states)
        drawn = np.array([np.random.default_rng(seed).random(len(self.action_names)) for seed in seeds.tolist()])
        drawn = drawn.reshape(len(states), -1, 1)
        place = (drawn >= answer.probabilities.cumsum(axis=2)).sum(axis=2).clip(max=answer.rewards.shape[2] - 1)
        chosen = np.arange(len(states))[:, None], np.arange(place.shape[1])[None], place
        return Successors(answer.states[chosen], answer.rewards[chosen], answer.terminal[chosen], answer.solved[chosen])

    def successors(self, states):
        return self.sample(states, np.zeros(len(states), np.int64))


class HiddenTable(gymnasium.Wrapper):
    """A wrapper behind which a table of transitions might no longer hold."""


def hidden_lake():
    return HiddenTable(gymnasium.make("FrozenLake-v1", is_slippery=True))


def many_runs(mdp, runs=400, **settings):
    return EstimatedChance(Simulated(mdp), runs=runs, most_runs=runs, num_outcomes=mdp.target.shape[2], **settings)


def test_with_many_runs_the_choice_is_that_of_value_iteration():
    rng = np.random.default_rng(1)
    config = ExpectimaxConfig(passes=300, risk_coef=1.0, discount=0.8)
    for seed in range(30):
        mdp = RandomMDP.draw(rng)
        best, q = optimal(mdp, 0.8, sweeps=200)
        values = Table(20.0 + rng.normal(size=(len(mdp.target), 3)))
        planner = Expectimax(many_runs(mdp), values, config, seed=seed)
        planner.plan()
        planner.act()
        # 400 runs know an expectation of numbers of size 1 to some 0.05, and so much may be lost at every step.
        assert q[0, int(planner.actions[0])] == pytest.approx(best[0], abs=0.25)


def test_estimates_come_nearer_to_the_truth_when_they_are_asked_for_again():
    rng = np.random.default_rng(2)
    errors = np.zeros(3)
    for seed in range(20):
        mdp = RandomMDP.draw(rng)
        world = EstimatedChance(Simulated(mdp), runs=8, most_runs=800, seed=seed)
        states = mdp.encode(np.arange(len(mdp.target)))
        truth = expected_rewards(mdp.outcomes(states))
        for asked in range(100):
            answer = world.outcomes(states)
            assert answer.probabilities.sum(axis=2) == pytest.approx(np.ones(truth.shape))
            if asked in (0, 9, 99):
                errors[(0, 9, 99).index(asked)] += np.abs(expected_rewards(answer) - truth).mean()
        runs = world.num_runs
        world.outcomes(states)
        assert world.num_runs == runs  # enough is enough
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def told_of(answer, action):
    return zip(answer.states[0, action], answer.probabilities[0, action], strict=True)


def expected_rewards(answer):
    return (answer.probabilities * answer.rewards).sum(axis=2)


def test_outcomes_lead_where_the_simulator_does_and_rewards_are_averaged():
    class Noisy(Simulated):
        def sample(self, states, seeds):
            answer = super().sample(states, seeds)
            noise = [np.random.default_rng([seed, 1]).normal(size=len(self.action_names)) for seed in seeds.tolist()]
            return answer._replace(rewards=answer.rewards + np.array(noise))

    mdp = RandomMDP.draw(np.random.default_rng(3))
    world = EstimatedChance(Noisy(mdp), runs=2000, most_runs=2000)
    states = mdp.encode(np.zeros(1, np.int64))
    answer, truth = world.outcomes(states), mdp.outcomes(states)
    assert expected_rewards(answer) == pytest.approx(expected_rewards(truth), abs=0.15)
    for action in range(len(world.action_names)):
        possible = {row.tobytes() for row, p in told_of(truth, action) if p > 0}
        told = [row.tobytes() for row, p in told_of(answer, action) if p > 0]
        assert set(told) <= possible
        assert len(told) == len(set(told))
    few = EstimatedChance(Noisy(mdp), num_outcomes=1).outcomes(states)
    assert (few.probabilities == 1.0).all()


def test_everything_follows_from_the_seed_and_what_was_asked():
    mdp = RandomMDP.draw(np.random.default_rng(4))
    states = mdp.encode(np.arange(len(mdp.target)))

    def asked(seed):
        world = EstimatedChance(Simulated(mdp), seed=seed)
        world.outcomes(states[:1])
        return world

    same = asked(5)
    same.seed_runs(6)
    for one, other, equal in ((asked(5), asked(5), True), (asked(5), asked(6), False)):
        told = [world.outcomes(states).probabilities.tolist() for world in (one, other)]
        assert (told[0] == told[1]) is equal
    same.outcomes(states[:1])
    assert same.outcomes(states).probabilities.tolist() == told[1]
    saved = asked(7)
    saved.outcomes(states)
    loaded = EstimatedChance(Simulated(mdp), seed=7)
    loaded.load_state_dicts([saved.state_dict()])
    again = EstimatedChance(Simulated(mdp), seed=7)
    again.load_state_dicts([loaded.state_dict()])  # before anything is asked
    for each in (loaded, again):
        assert isinstance(each, Remembers)
    told = [world.outcomes(states).probabilities.tolist() for world in (saved, loaded, again)]
    assert told[0] == told[1] == told[2]
    bad = saved.state_dict() | {"runs": np.array([10**9] * len(states))}
    with pytest.raises(BathysphereError, match="nobody made"):
        loaded.load_state_dicts([bad])


def test_a_domain_with_a_sampler_gets_its_outcomes_counted():
    mdp = RandomMDP.draw(np.random.default_rng(5))
    world = as_domain(Simulated(mdp))
    assert isinstance(world, EstimatedChance)
    assert isinstance(world, Chance)
    assert isinstance(world, Sampler)
    assert with_outcomes(world) is world
    assert with_outcomes(mdp) is mdp
    with pytest.raises(BathysphereError, match="offers no sample"):
        EstimatedChance(mdp)
    with pytest.raises(BathysphereError, match="expected 1 <= runs"):
        EstimatedChance(Simulated(mdp), runs=3, most_runs=2)


def test_steps_that_are_made_are_runs_of_the_simulator():
    rng = np.random.default_rng(6)
    mdp = RandomMDP.draw(rng)
    while mdp.target.shape[2] < 3 or len(mdp.target) < 6:
        mdp = RandomMDP.draw(rng)
    num = 5000
    taken = take_steps(as_domain(Simulated(mdp)), mdp.encode(np.zeros(num, np.int64)), np.zeros(num, np.int32), rng)
    for after in range(len(mdp.target)):
        probability = mdp.chance[0, 0][mdp.target[0, 0] == after].sum()
        assert (mdp.number(taken.states) == after).mean() == pytest.approx(probability, abs=0.03)


@pytest.fixture(scope="module")
def lake():
    return bathysphere.from_gymnasium(hidden_lake)


def test_an_environment_with_hidden_chance_has_the_outcomes_of_its_table(lake):
    table = bathysphere.from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=True))
    states = lake.initial(1, np.random.default_rng(0))
    for _ in range(8):
        answer = lake.outcomes(states)
    truth = table.outcomes(table.initial(1, np.random.default_rng(0)))
    seen = lake.observe(answer.states.reshape(-1, lake.state_size)).reshape(answer.rewards.shape)
    true_seen = table.observe(truth.states.reshape(-1, 2)).reshape(truth.rewards.shape)
    for action in range(4):
        for cell in range(16):
            told = answer.probabilities[0, action][seen[0, action] == cell].sum()
            assert told == pytest.approx(truth.probabilities[0, action][true_seen[0, action] == cell].sum(), abs=0.15)
    assert any("counted" in finding.what for finding in lake.findings)


def test_check_says_how_much_of_it_is_chance():
    found = bathysphere.check(hidden_lake)
    assert not found.findings or not any(finding.is_wrong for finding in found.findings)
    assert 0.5 < found.to_dict()["chance"] <= 1.0


@pytest.mark.parametrize("kind", [environments.Slippery, environments.DrawsGlobally])
def test_seeds_decide_chance_of_an_environment(kind):
    world = bathysphere.from_gymnasium(kind)
    assert isinstance(world, EstimatedChance)
    start = world.initial(1, np.random.default_rng(0))
    states, seeds = start.repeat(40, axis=0), np.arange(40)
    one, other = world.sample(states, seeds), world.sample(states, seeds)
    assert np.array_equal(one.states, other.states)
    assert len(np.unique(one.states[:, -1], axis=0)) > 1


def trained(world, steps):
    config, domain = describe(world)
    run, _ = choose(domain, config)
    run = override(run, {"seed": 3, "search": {"passes": 3}, "learning": {"min_episodes": 1}})
    trainer = make_trainer(run)
    while trainer.progress.env_steps < steps:
        trainer.advance()
    return run, trainer


def test_a_run_in_hidden_chance_goes_on_bit_for_bit():
    run, trainer = trained(hidden_lake, 60)
    saved = trainer.state_dict()
    other = make_trainer(run, is_new=False)
    other.load_state_dict(saved)
    for _ in range(30):
        trainer.advance()
        other.advance()
    ours, theirs = trainer.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        if "seconds" not in name:
            assert np.array_equal(array, theirs[name]), name


def test_it_learns_to_cross_a_lake_whose_chances_it_has_to_count():
    _, trainer = trained(hidden_lake, 1500)
    domain = trainer.domain
    planner = Expectimax(
        domain, trainer.values, ExpectimaxConfig(passes=5, discount=0.99), batch=50, num_episodes=300, seed=9
    )
    assert np.mean([episode.solved for episode in play_all(planner)]) > 0.5  # the best is 0.744


def test_what_else_a_world_offers_is_found_where_protocols_look():
    """Since Python 3.12 that is where `inspect.getattr_static` does: not what `__getattr__` answers."""
    world = bathysphere.from_gymnasium(hidden_lake)
    assert isinstance(world, EstimatedChance)
    assert isinstance(world, TextRenderer)
    for name in ("text", "state_of"):
        assert inspect.getattr_static(world, name)
    start = world.initial(1, np.random.default_rng(0))
    assert "S" in world.text(start[0])
