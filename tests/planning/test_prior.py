"""Priors from a policy: against the plain-Python planner after every pass, by hand, saved, and refused."""

import functools

import numba
import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.domains.sokoban import GeneratorConfig, Sokoban, SokobanConfig
from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, SearchConfig
from bathysphere.planning.graph.arena import allocate, arena_bytes
from bathysphere.planning.graph.invariants import check_graph
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig
from tests.oracles.compiled_graph import CompiledGraph
from tests.oracles.planner import OracleEpisode
from tests.oracles.random_graph import RandomGraph, TableValues
from tests.planning import lockstep
from tests.planning.small_worlds import count, make_domain, plan
from tests.planning.test_kernels import OPTIONS, RISKS

QUICK = numba.config.DISABLE_JIT
NUM_GRAPHS = 4 if QUICK else 20


class GuidedValues(TableValues):
    """Values and a policy that are looked up: float32 [states, E] and [states, A]."""

    has_policy = True

    def __init__(self, table, policy):
        super().__init__(table)
        self.policy = policy

    def evaluate_with_policy(self, observations):
        return self.evaluate(observations), self.policy[observations[:, 0].astype(np.int64)]


class Unasked(GuidedValues):
    """Values whose policy nobody may ask for."""

    def evaluate_with_policy(self, observations):
        raise AssertionError("the policy was asked for")


def draw(seed, kind=GuidedValues):
    """Returns a random world with values of few distinct numbers and a random policy, some of it certain."""
    rng = np.random.default_rng(seed)
    domain = RandomGraph.draw(rng)
    num_states, num_actions = domain.target.shape
    num_members = int(rng.integers(1, 6))
    table = rng.choice([0.0, 0.25, 0.5, 1.0, -0.5], size=(num_states, num_members)).astype(np.float32)
    policy = rng.dirichlet(np.full(num_actions, 0.5), size=num_states).astype(np.float32)
    certain = rng.random(num_states) < 0.2
    policy[certain] = np.eye(num_actions, dtype=np.float32)[rng.integers(num_actions, size=certain.sum())]
    return domain, kind(table, policy), rng


@pytest.fixture
def play_both(monkeypatch):
    """Returns `play_in_lockstep` with oracles that have priors, which are compared at the end of play."""

    def play(domain, values, config, **options):
        def priors(key):
            observation = domain.observe(np.frombuffer(key, np.uint8)[None])
            return values.evaluate_with_policy(observation)[1][0].tolist()

        monkeypatch.setattr(lockstep, "OracleEpisode", functools.partial(OracleEpisode, priors=priors))
        search, oracles = lockstep.play_in_lockstep(domain, values, config, **options)
        for b, oracle in enumerate(oracles):
            assert search.arena.priors[b, : len(oracle.states)].tolist() == [state.priors for state in oracle.states]
        return search, oracles

    return play


# Against the plain-Python planner.


@pytest.mark.kernels
@pytest.mark.parametrize("risk", RISKS)
def test_every_risk_measure(risk, play_both):
    for seed in range(NUM_GRAPHS):
        domain, values, rng = draw(seed)
        coefs = {"risk_coef": float(rng.choice([0.0, 1.0, -1.0])), "prior_coef": float(rng.choice([0.1, 1.0, 5.0]))}
        play_both(domain, values, SearchConfig(risk=risk, passes=6, **coefs), batch=3, seed=seed)


@pytest.mark.kernels
@pytest.mark.parametrize("options", OPTIONS)
def test_every_option(options, play_both):
    for seed in range(NUM_GRAPHS):
        domain, values, _ = draw(1000 + seed)
        config = SearchConfig(**{"prior_coef": 0.7, "risk_coef": 1.0, "passes": 6, **options})
        play_both(domain, values, config, batch=2, seed=seed)


@pytest.mark.kernels
def test_a_model_that_errs(play_both):
    """A state that was falsely called an end has neither value nor prior; a true one that was missed has both."""
    for seed in range(NUM_GRAPHS):
        domain, values, rng = draw(2000 + seed)
        model = domain.misled(rng, 0.3)
        play_both(domain, values, SearchConfig(prior_coef=1.0, passes=5), batch=2, seed=seed, model=model)


@pytest.mark.kernels
def test_running_on_without_the_model_equals_pass_by_pass(play_both):
    for seed in range(NUM_GRAPHS):
        domain, values, _ = draw(3000 + seed)
        config = SearchConfig(prior_coef=2.0, risk="vote", num_subsampled=1, passes=7, episode_penalty=0.1)
        play_both(domain, values, config, batch=3, seed=seed, compare_passes=False, steps=20)


@pytest.mark.kernels
def test_compiled_rules_do_not_pass_the_policy_by(play_both):
    for seed in range(NUM_GRAPHS):
        domain, values, _ = draw(4000 + seed)
        search, _ = play_both(CompiledGraph.of(domain), values, SearchConfig(prior_coef=2.0), batch=2, seed=seed)
        assert search.table() is None
        assert search.work.seconds["model"] > 0


@pytest.mark.kernels
def test_nothing_of_an_earlier_episode_is_left():
    domain, values, _ = draw(7)
    starts = domain.encode(np.flatnonzero(~domain.is_end))
    search = MCTS(domain, values, SearchConfig(prior_coef=1.0, max_steps=3), batch=3, starts=starts)
    for _ in range(30):
        search.step()
        check_graph(search.arena)
        for b, num_states in enumerate(search.arena.episodes["num_states"].tolist()):
            numbers = search.arena.words[b, :num_states].view(np.uint8)[:, 0]
            expected = np.where(domain.is_end[numbers, None], 0, values.policy[numbers])
            assert np.array_equal(search.arena.priors[b, :num_states], expected)


def test_invariants_are_checked():
    domain, values, _ = draw(3)
    search = MCTS(domain, values, SearchConfig(prior_coef=1.0))
    search.step()
    check_graph(search.arena)
    search.arena.priors[0, -1] = 1.0
    with pytest.raises(BathysphereError, match="a prior was not cleared"):
        check_graph(search.arena)
    search.arena.priors[0, 0] = -1.0
    with pytest.raises(BathysphereError, match="a prior is no probability"):
        check_graph(search.arena)


# By hand.

# Two corridors, which part at state 0 and never meet again.
FORK = make_domain({0: [1, 11], **{s: [s + 1, s + 1] for s in range(1, 20) if s not in (10,)}}, ends=(10, 20))


def fork_values(policy_at_fork, values=0.0):
    table = np.full((21, 1), values, np.float32)
    policy = np.full((21, 2), 0.5, np.float32)
    policy[0] = policy_at_fork
    return GuidedValues(table, policy)


@pytest.mark.kernels
@pytest.mark.parametrize("risk", ["mean_std", "vote"])
def test_visits_by_the_formula(risk):
    """All values are 0, so a pass takes the larger of P / (1 + n): 0.7 of n = 1, 2 and 3, then 0.3 of n = 1, ...

    The first pass through a child only expands it, and n stays 1.
    """
    counts = []
    for passes in range(1, 10):
        config = SearchConfig(passes=passes, prior_coef=1.0, risk=risk, discount=0.9)
        search = MCTS(FORK, fork_values([0.7, 0.3]), config)
        plan(search)
        counts.append(tuple(count(search, FORK, state) for state in (0, 1, 11)))
    assert counts[:7] == [(1, 1, 1), (2, 1, 1), (3, 2, 1), (4, 3, 1), (5, 4, 1), (6, 4, 1), (7, 4, 2)]
    assert counts[7:] == [(8, 5, 2), (9, 6, 2)]  # 0.7 / 5 and 0.7 / 6 are more than 0.3 / 3


@pytest.mark.kernels
def test_a_certain_policy_is_followed_in_planning_and_not_in_the_step():
    values = fork_values([0.0, 1.0])
    values.table[1] = 0.5  # where the policy does not lead
    search = MCTS(FORK, values, SearchConfig(passes=8, prior_coef=1e6))
    plan(search)
    assert (count(search, FORK, 1), count(search, FORK, 11)) == (1, 7)
    search.act()
    assert search.actions[0] == 0


@pytest.mark.kernels
def test_the_prior_is_inside_the_bracket():
    """It is discounted, as bonus and penalties are: what it weighs against a reward depends on the discount."""
    domain = make_domain({0: [(1, 0.3), 2], 1: [1, 1], 2: [2, 2]})
    values = GuidedValues(np.zeros((3, 1), np.float32), np.array([[0, 1], [0.5, 0.5], [0.5, 0.5]], np.float32))
    for discount, taken in ((0.5, 1), (0.7, 2)):  # 0.5 * 1 * sqrt(1) / 2 is less than 0.3, 0.7 * 1 * sqrt(1) / 2 more
        search = MCTS(domain, values, SearchConfig(passes=2, prior_coef=1.0, discount=discount))
        plan(search)
        leaf = search.arena.nodes[0, search.arena.episodes["leaf"][0]]["state"]
        assert search.arena.words[0, leaf].view(np.uint8)[0] == taken


# Without priors.


@pytest.mark.kernels
def test_a_coefficient_of_zero_changes_nothing():
    for seed in range(NUM_GRAPHS):
        domain, values, _ = draw(seed, Unasked)
        config = SearchConfig(risk_coef=1.0, final_ties="random")
        guided, plain = (MCTS(domain, v, config, batch=2, seed=seed) for v in (values, TableValues(values.table)))
        for _ in range(8):
            guided.step()
            plain.step()
        assert guided.arena.priors.shape == (2, guided.arena.stats.shape[1], 0)
        assert guided.graph_bytes == plain.graph_bytes
        saved, expected = guided.state_dict(), plain.state_dict()
        assert not any("prior" in name for name in saved)
        assert {name: array.tobytes() for name, array in saved.items()} == {
            name: array.tobytes() for name, array in expected.items()
        }


def test_priors_take_four_bytes_per_state_and_action():
    domain, values, _ = draw(5)
    with_priors, without = (MCTS(domain, values, SearchConfig(prior_coef=coef), batch=3) for coef in (1.0, 0.0))
    num_states, num_actions = with_priors.arena.stats.shape[1], domain.target.shape[1]
    assert with_priors.graph_bytes - without.graph_bytes == 3 * num_states * num_actions * 4
    assert arena_bytes(with_priors.sizes, num_states, with_priors.arena.nodes.shape[1]) == with_priors.graph_bytes


# Saved, grown, and with a network.


def told(episodes):
    return [(e.index, e.states.tobytes(), e.actions.tolist(), e.search_values.tolist()) for e in episodes]


@pytest.mark.kernels
def test_a_resumed_planner_goes_on_bit_for_bit():
    domain, values, _ = draw(11)
    config = SearchConfig(passes=6, prior_coef=1.0, risk_coef=1.0, final_ties="random", max_steps=7)
    search, other = (MCTS(domain, values, config, batch=3, seed=seed) for seed in (1, 2))
    for _ in range(10):
        search.step()
    saved = search.state_dict()
    assert saved["arena.priors"].shape == (search.arena.episodes["num_states"].sum(), domain.target.shape[1])
    other.load_state_dict(saved)
    check_graph(other.arena)
    for _ in range(20):
        assert told(search.step()) == told(other.step())
    again, expected = other.state_dict(), search.state_dict()
    assert {name: array.tobytes() for name, array in again.items()} == {
        name: array.tobytes() for name, array in expected.items()
    }


def test_an_arena_that_grows_plays_like_one_that_need_not(monkeypatch):
    domain, values, _ = draw(12)
    config = SearchConfig(passes=20, prior_coef=1.0, risk_coef=1.0, max_steps=10)
    roomy = MCTS(domain, values, config, batch=3, seed=2, num_episodes=7).play()
    monkeypatch.setattr(allocate, "__defaults__", (2, 2))
    tight = MCTS(domain, values, config, batch=3, seed=2, num_episodes=7)
    before = tight.arena.priors.shape
    assert told(tight.play()) == told(roomy)
    assert tight.arena.priors.shape > before


def test_a_network_guides_the_search():
    domain = Sokoban(SokobanConfig(generator=GeneratorConfig(6, 6, num_boxes=1, max_states=2000), num_boards=2))
    network = ValuesConfig("board", 2, conv_layers=3, conv_channels=4, dense=4, policy=True)
    values = Ensemble(network, OptimiserConfig(), domain.observation, 0, num_actions=4)
    search = MCTS(domain, values, SearchConfig(passes=5, prior_coef=1.0), batch=2)
    search.step()
    for b, num_states in enumerate(search.arena.episodes["num_states"].tolist()):
        boards = domain.observe(search.graphs.states(search.arena.words[b, :num_states].copy()))
        expected = np.where(search.arena.stats["terminal"][b, :num_states, None], 0, values.policies(boards)[1].mean(1))
        np.testing.assert_allclose(search.arena.priors[b, :num_states], expected, rtol=1e-4)
        assert len(np.unique(expected, axis=0)) > 1


# What is refused.


@pytest.mark.parametrize(
    ("coef", "complaint"),
    [(-0.1, "prior_coef is -0.1; expected at least 0"), (np.nan, "finite"), (np.inf, "finite")],
)
def test_bad_coefficients(coef, complaint):
    with pytest.raises(BathysphereError, match=complaint):
        SearchConfig(prior_coef=coef)


NO_POLICY = r"search\.prior_coef is 2\.0, but these values have no policy\. Train with values\.policy, or set it to 0\."


def test_values_without_a_policy():
    domain, values, _ = draw(1)
    with pytest.raises(BathysphereError, match=NO_POLICY):
        MCTS(domain, TableValues(values.table), SearchConfig(prior_coef=2.0))
    values.has_policy = False
    with pytest.raises(BathysphereError, match=NO_POLICY):
        MCTS(domain, values, SearchConfig(prior_coef=2.0))


def test_a_table_for_compiled_rules():
    domain = DeepSea(DeepSeaConfig(size=5))
    values = Ensemble(ValuesConfig("linear", bias=False), OptimiserConfig(), domain.observation, seed=0)
    with pytest.raises(BathysphereError, match=NO_POLICY):
        MCTS(domain, values, SearchConfig(prior_coef=2.0))


def test_values_of_an_episodes_beginning():
    domain, values, _ = draw(1)
    with pytest.raises(BathysphereError, match=r"prior_coef is 2\.0, but the values of an episode's beginning"):
        MCTS(domain, values, SearchConfig(prior_coef=2.0), steady=True)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda policy: policy[:, :-1], r"policy of shape \(1, \d\); expected \[n, A\] = \(1, \d\)"),
        (lambda policy: policy - 1, "negative or not finite.*learning rate"),
        (lambda policy: policy * np.nan, "negative or not finite.*learning rate"),
    ],
)
def test_a_policy_that_is_none(spoil, complaint):
    domain, values, _ = draw(1)
    values.policy = spoil(values.policy)
    with pytest.raises(BathysphereError, match=complaint):
        MCTS(domain, values, SearchConfig(prior_coef=2.0))


def test_a_saved_planner_with_priors_and_one_without():
    domain, values, _ = draw(1)
    with_priors, without = (MCTS(domain, values, SearchConfig(prior_coef=coef)) for coef in (1.0, 0.0))
    for one, other in ((with_priors, without), (without, with_priors)):
        with pytest.raises(BathysphereError, match=r"step limit and priors .*settings it was saved with"):
            one.load_state_dict(other.state_dict())
