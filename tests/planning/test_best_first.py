"""Best-first search against its plain-Python twin after every round, and in compiled code against Python."""

from dataclasses import replace

import numba
import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.errors import BathysphereError
from bathysphere.planning import BestFirst, BestFirstConfig
from bathysphere.planning.best_first import planner as planner_module
from bathysphere.planning.best_first.invariants import check_store
from bathysphere.planning.best_first.orders import order
from bathysphere.planning.best_first.store import allocate, grown
from bathysphere.planning.graph.risk import separable
from bathysphere.planning.planner import MODEL_ERRORS, play_all
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig
from tests.models.test_memory import memory_of
from tests.oracles.compiled_graph import CompiledGraph
from tests.oracles.random_graph import RandomGraph, TableValues
from tests.planning.best_first_lockstep import Guided, Perilous, all_starts, draw, search_in_lockstep, told
from tests.planning.small_worlds import Recorder, make_domain

QUICK = numba.config.DISABLE_JIT
NUM_GRAPHS = 3 if QUICK else 8
ORDERS = ["steps", "value", "levin", "phs"]


@pytest.fixture
def small_store(monkeypatch):
    """Begins with room for 16 states, so that stores grow in the smallest of worlds."""
    monkeypatch.setattr(planner_module, "allocate", lambda sizes, num_records=16: allocate(sizes, num_records))


class Detour:
    """Values with the answers of a table, but without the table, so that every round goes through Python."""

    def __init__(self, values):
        self._values = values
        self.num_members = values.num_members

    def evaluate(self, observations):
        return self._values.evaluate(observations)


def make_values(values):
    """Returns a value function for `values` [states] or [states, E]."""
    table = np.asarray(values, np.float32)
    return TableValues(table[:, None] if table.ndim == 1 else table)


# Against the twin, after every round.


@pytest.mark.kernels
@pytest.mark.parametrize("reopen", [False, True])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_every_order(order, width, reopen, small_store):
    again = grew = 0
    for seed in range(NUM_GRAPHS):
        domain, values = draw(seed)
        config = BestFirstConfig(order=order, width=width, reopen=reopen, discount=0.5, risk_coef=1.5)
        planner, twins = search_in_lockstep(domain, values, config)
        again += sum(twin.num_expansions - twin.num_model_calls for twin in twins)
        grew += len(planner.store.records) > 16
    assert (again > 0) <= reopen
    assert grew


@pytest.mark.kernels
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"weight": 0.0}, id="breadth first"),
        pytest.param({"weight": 1.0, "reopen": True}, id="A*"),
        pytest.param({"risk_coef": -2.0, "goal_reward": 0.5}, id="cautious"),
        pytest.param({"max_steps": 3, "reopen": True}, id="short"),
        pytest.param({"max_steps": 4, "width": 3}, id="short and wide"),
        pytest.param({"max_expansions": 7, "reopen": True, "width": 4}, id="few expansions"),
        pytest.param({"max_states": 9, "width": 2}, id="few states"),
        pytest.param({"prune": False}, id="not pruned"),
    ],
)
def test_every_option(order, options, small_store):
    """Values are all different here: with other discounts than 0.5 compiled powers may be off by a last bit."""
    for seed in range(NUM_GRAPHS // 2):
        domain, values = draw(100 + seed, ties=False)
        search_in_lockstep(domain, values, BestFirstConfig(order=order, **options))


@pytest.mark.kernels
def test_every_search_by_itself_and_many_together(small_store):
    for batch in (1, 7):
        for seed in range(NUM_GRAPHS):
            domain, values = draw(200 + seed)
            config = BestFirstConfig(discount=0.5, width=2, reopen=True)
            search_in_lockstep(domain, values, config, batch=batch, num_episodes=15)


@pytest.mark.kernels
@pytest.mark.parametrize("reopen", [False, True])
def test_circles_that_pay_lead_nowhere(reopen):
    """Round a circle that pays, the order `value` always finds a better way; plans stay finite all the same."""
    domain = make_domain({0: [1, 0], 1: [2, (1, 3.0)], 2: [(1, 2.0), 3], 3: [(2, 1.0), (0, 5.0)]}, max_steps=9)
    values = Guided(np.zeros((4, 1), np.float32), np.full((4, 2), 0.5, np.float32))
    for name in ORDERS:
        config = BestFirstConfig(order=name, reopen=reopen)
        search_in_lockstep(domain, values, config, batch=2, num_episodes=4)


@pytest.mark.kernels
def test_a_state_may_be_reached_anew_in_the_round_in_which_it_was_taken(monkeypatch):
    """State 3 is expanded while a shorter way to it is found; 7, its child, is taken first, then gets that way from 3.

    So 7 is open once more when it has no edges yet. They must not be followed to the last record of the store.
    """

    def allocate_marked(sizes, num_records=64):
        store = allocate(sizes, num_records)
        store.records["depth"][-1] = 100
        return store

    monkeypatch.setattr(planner_module, "allocate", allocate_marked)
    edges = {0: [1, 4, 6], 1: [2, 2, 2], 2: [3, 3, 3], 3: [7, 3, 3], 4: [5, 5, 5], 6: [3, 3, 3], 7: [8, 8, 8]}
    domain = make_domain(edges, max_steps=20)
    values = make_values([1.0, 1.0, 1.0, 0.9, 1.0, 1.0, 0.5, 1.0, 1.0])
    config = BestFirstConfig(width=2, reopen=True)
    planner, (twin,) = search_in_lockstep(domain, values, config, num_episodes=1)
    assert [state.key[0] for state in twin.expanded] == [0, 1, 4, 2, 5, 3, 6, 7, 3, 7, 8]
    assert planner.store.records["depth"][-1] == 100


@pytest.mark.kernels
@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_a_model_that_errs(rate):
    """Plans are followed in the domain up to the first step that leads elsewhere than predicted."""
    seen = dict.fromkeys(MODEL_ERRORS, 0)
    for seed in range(3 * NUM_GRAPHS):
        domain, values = draw(300 + seed)
        model = domain.misled(np.random.default_rng(seed), rate)
        config = BestFirstConfig(order=ORDERS[seed % 4], discount=0.5)
        planner, _ = search_in_lockstep(domain, values, config, model=model)
        seen = {name: count + planner.work.model_errors[name] for name, count in seen.items()}
    assert QUICK or rate < 0.1 or all(seen.values()), f"an error was never made: {seen}"


@pytest.mark.kernels
def test_growing_in_mid_search_changes_nothing():
    domain, values = draw(7)
    options = {"batch": 3, "num_episodes": 8, "starts": all_starts(domain)}
    one, other = (BestFirst(domain, values, BestFirstConfig(order="phs"), **options) for _ in range(2))
    size = len(other.store.records)
    while one.active.any():
        size *= 2 if size < 1 << 15 else 1
        other.store = grown(other.store, other.sizes, size)
        check_store(other.store)
        assert told(one.step()) == told(other.step())


# In compiled code.


def draw_compiled(seed):
    graph, values = draw(seed)
    plain = RandomGraph(graph.target, graph.reward, graph.is_end, graph.is_solved)
    return CompiledGraph.of(plain), TableValues(values.table)


@pytest.mark.kernels
@pytest.mark.parametrize("reopen", [False, True])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("order", ["steps", "value"])
def test_compiled_rules(order, width, reopen, monkeypatch):
    monkeypatch.setattr(planner_module, "_ROUNDS", 1)
    for seed in range(NUM_GRAPHS):
        config = BestFirstConfig(order=order, width=width, reopen=reopen, discount=0.5, risk_coef=1.5)
        planner, _ = search_in_lockstep(*draw_compiled(seed), config)
        assert planner.work.seconds["model"] == 0.0


@pytest.mark.kernels
@pytest.mark.parametrize("width", [1, 3])
def test_compiled_rules_give_the_same_episodes(width, small_store):
    for seed in range(NUM_GRAPHS):
        domain, values = draw_compiled(seed)
        config = BestFirstConfig(order="value", width=width, max_steps=7, max_expansions=20)
        options = {"batch": 4, "num_episodes": 12, "starts": all_starts(domain), "graph_states": 5}
        fast, slow = (BestFirst(domain, v, config, **options) for v in (values, Detour(values)))
        assert told(play_all(fast)) == told(play_all(slow))
        assert (fast.work.model_calls, fast.work.network_calls) == (slow.work.model_calls, slow.work.network_calls)
        assert fast.work.seconds["model"] == 0.0 < slow.work.seconds["model"]


def test_deep_sea_in_compiled_code():
    domain = DeepSea(DeepSeaConfig(size=30))
    config = ValuesConfig("linear", bias=False, num_members=5)
    values = Ensemble(config, OptimiserConfig(), domain.observation, seed=0)
    search = BestFirstConfig(risk_coef=5.0, max_expansions=300)
    fast, slow = (BestFirst(domain, v, search, batch=2, num_episodes=3) for v in (values, Detour(values)))
    assert told(play_all(fast)) == told(play_all(slow))
    assert fast.work.seconds["model"] == 0.0 < slow.work.seconds["model"]


@pytest.mark.kernels
def test_pruning_and_policies_are_not_bypassed():
    domain, values = draw_compiled(3)
    domain.hopeless = lambda states: np.zeros(len(states), np.bool_)
    guided = Guided(values.table, np.full(domain.target.shape, 1 / domain.target.shape[1], np.float32))
    for config in (BestFirstConfig(), BestFirstConfig(order="levin", prune=False)):
        planner = BestFirst(domain, guided, config)
        planner.step()
        assert planner.work.seconds["model"] > 0.0
    planner = BestFirst(domain, guided, BestFirstConfig(prune=False))
    planner.step()
    assert planner.work.seconds["model"] == 0.0


# Hopeless states.


class Watched(TableValues):
    """Notes which states are evaluated."""

    def __init__(self, table):
        super().__init__(table)
        self.seen = []

    def evaluate(self, observations):
        self.seen += observations[:, 0].astype(int).tolist()
        return super().evaluate(observations)


@pytest.mark.parametrize("prune", [False, True])
def test_hopeless_states_are_left_out(prune):
    graph = make_domain({0: [1, 2], 1: [3, 4], 2: [3, 5], 3: [0, 6]}, ends=(6,), solved=(6,))
    domain = Perilous.of(graph, np.arange(7) == 1)
    values = Watched(np.arange(7, dtype=np.float32)[::-1, None] / 10)  # 1 is the best child
    planner = BestFirst(domain, values, BestFirstConfig(prune=prune), num_episodes=1)
    (episode,) = play_all(planner)
    assert episode.actions.tolist() == ([1, 0, 1] if prune else [0, 0, 1])
    assert (1 in values.seen) != prune
    assert len(values.seen) == len(set(values.seen))


def test_a_hopeless_start_makes_one_step():
    domain = Perilous.of(make_domain({0: [(1, 0.25), 2]}, ends=(1,)), np.arange(3) == 0)
    (episode,) = play_all(BestFirst(domain, make_values(np.ones(3)), num_episodes=1))
    assert (episode.ended_by, episode.num_model_calls) == ("no state left", 0)
    assert (episode.actions.tolist(), episode.rewards.tolist(), episode.truncated) == ([0], [0.25], False)


# Orders and measures of one's own.


@pytest.mark.kernels
def test_an_order_of_your_own():
    @order
    def depth_first(depth, returned, value, log_probability, numbers):
        return -1.0 * depth

    domain = Recorder.of(make_domain({0: [1, 2], 1: [3, 4], 2: [5, 6]}))
    play_all(BestFirst(domain, make_values(np.zeros(7)), BestFirstConfig(order="depth_first"), num_episodes=1))
    assert domain.expanded == [0, 1, 3, 4, 2, 5, 6]
    domain.expanded.clear()
    play_all(BestFirst(domain, make_values(np.zeros(7)), BestFirstConfig(weight=0.0), num_episodes=1))
    assert domain.expanded == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.kernels
def test_a_risk_measure_of_your_own():
    @separable
    def best_member(values, risk_coef):
        return values.max()

    values = make_values([[0, 0], [0.3, 0.3], [0.5, 0.0]])
    for risk, first in (("best_member", 2), ("mean_std", 1)):
        domain = Recorder.of(make_domain({0: [1, 2]}))
        play_all(BestFirst(domain, values, BestFirstConfig(risk=risk), num_episodes=1))
        assert domain.expanded[1] == first


# What is refused.

DOMAIN = make_domain({0: [1, 2], 1: [2, 0], 2: [2, 1]})
VALUES = make_values(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"weight": -0.1}, r"search\.weight is -0\.1; expected at least 0"),
        ({"weight": np.inf}, r"search\.weight is inf; expected a finite number"),
        ({"risk_coef": np.nan}, r"search\.risk_coef is nan; expected a finite number"),
        ({"risk": "vote"}, r"search\.risk is vote, which compares the actions"),
        ({"risk": "mean_sdt"}, r"no risk measure 'mean_sdt'.*Did you mean"),
        ({"order": "lewin"}, r"no order of the open list 'lewin'; choose one of .*levin.*Did you mean"),
        ({"discount": 1.0}, r"search\.order steps .* search\.discount must be below 1"),
        ({"discount": 1.0, "order": "phs"}, r"search\.order phs .* search\.discount must be below 1"),
        ({"discount": 0.0}, r"search\.discount is 0\.0; expected a number in \(0, 1\]"),
        ({"goal_reward": 0.0}, r"search\.goal_reward is 0\.0; expected more than 0"),
        ({"max_seconds": 0.0}, r"search\.max_seconds is 0\.0; expected more than 0"),
        *(
            ({name: 0}, rf"search\.{name} is 0; expected at least 1")
            for name in ("width", "max_expansions", "max_states", "max_steps", "memory_limit_mb")
        ),
    ],
)
def test_configs(options, complaint):
    with pytest.raises(BathysphereError, match=complaint):
        BestFirstConfig(**options)


def test_without_a_discount_the_order_value_works():
    BestFirstConfig(order="value", discount=1.0)


@pytest.mark.parametrize("name", ["levin", "phs"])
def test_orders_that_need_a_policy(name):
    unguided = Guided(VALUES.table, None)
    unguided.has_policy = False
    for values in (VALUES, unguided):
        with pytest.raises(
            BathysphereError, match=rf"search\.order {name} is guided by a policy, and these values have"
        ):
            BestFirst(DOMAIN, values, BestFirstConfig(order=name))


def test_policies_of_another_shape():
    values = Guided(VALUES.table, np.full((3, 1), 1.0, np.float32))
    with pytest.raises(BathysphereError, match=r"probabilities of shape \(1, 1\); expected \[n, A\] = \(1, 2\)"):
        BestFirst(DOMAIN, values, BestFirstConfig(order="levin"))


def test_steady_values_and_empty_batches():
    with pytest.raises(BathysphereError, match=r"learning\.steady_values is for search mcts"):
        BestFirst(DOMAIN, VALUES, steady=True)
    with pytest.raises(BathysphereError, match="batch is 0; expected at least 1 episode"):
        BestFirst(DOMAIN, VALUES, batch=0)


NOT_FINITE = "values.evaluate, the risk measure or the order .* returned a number that is not finite"


@pytest.mark.kernels
@pytest.mark.parametrize("compiled", [False, True])
def test_numbers_that_are_not_finite(compiled):
    @order
    def no_number(depth, returned, value, log_probability, numbers):
        return np.nan if depth else 0.0

    @separable
    def no_measure(values, risk_coef):
        return np.nan if values[0] == 1.0 else 0.0  # not for those a measure is tried on

    domain = CompiledGraph.of(DOMAIN) if compiled else DOMAIN
    spoilt = make_values([0.0, np.nan, 0.0])
    for values, config in (
        (spoilt, BestFirstConfig()),
        (make_values([0.0, 1.0, 0.0]), BestFirstConfig(order="no_number")),
        (make_values([0.0, 1.0, 0.0]), BestFirstConfig(risk="no_measure")),
    ):
        planner = BestFirst(domain, values, config)
        with pytest.raises(BathysphereError, match=NOT_FINITE):
            planner.step()
    with pytest.raises(BathysphereError, match=NOT_FINITE):
        BestFirst(domain, make_values([np.nan, 0.0, 0.0]))


@pytest.mark.kernels
@pytest.mark.parametrize("order", ["steps", "value"])
@pytest.mark.parametrize(
    "options", [{"weight": 0.0}, {"width": 3, "risk_coef": -2.0}, {"reopen": True, "max_steps": 5}]
)
def test_a_model_that_does_not_know_everything(order, options, small_store):
    """Plans lead into the unknown, or stop before it; what it turns out to be is no error."""
    ended = set()
    num_unknown = 0
    for seed in range(NUM_GRAPHS):
        domain, values = draw(seed)
        rng = np.random.default_rng(seed)
        tried = rng.random(domain.target.shape) < rng.choice([0.3, 0.8])
        model = memory_of(domain, tried, num_members=values.num_members)
        config = BestFirstConfig(order=order, discount=0.9, risk_coef=1.5)
        planner, twins = search_in_lockstep(domain, values, replace(config, **options), model=model)
        ended |= {twin.ended_by for twin in twins}
        num_unknown += planner.work.unknown_steps
    assert "the unknown" in ended
    assert num_unknown
