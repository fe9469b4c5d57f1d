"""Planning in compiled code: not one number differs from the way through Python; taken only where that holds."""

import dataclasses

import numba
import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.domains.base import Categories, Features
from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, SearchConfig
from bathysphere.planning.graph.invariants import check_graph
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig
from tests.oracles.compiled_graph import CompiledGraph
from tests.oracles.random_graph import RandomGraph, TableValues
from tests.planning.lockstep import play_in_lockstep
from tests.planning.test_kernels import OPTIONS, RISKS
from tests.planning.test_worlds import MEASURES

QUICK = numba.config.DISABLE_JIT
NUM_GRAPHS = 3 if QUICK else 10
CONFIG = SearchConfig(passes=6, risk_coef=1.0, final_ties="random")


class Detour:
    """Values with the answers of a table, but without the table, so that every pass goes through Python."""

    def __init__(self, values):
        self._values = values
        self.num_members = values.num_members

    def evaluate(self, observations):
        return self._values.evaluate(observations)


def draw(seed, state_size=11):
    rng = np.random.default_rng(seed)
    domain = CompiledGraph.of(RandomGraph.draw(rng), state_size)
    num_members = int(rng.integers(1, 6))
    table = rng.choice([0.0, 0.25, 0.5, 1.0, -0.5], size=(len(domain.target), num_members)).astype(np.float32)
    return domain, TableValues(table)


def make_sea(size=8, num_members=5):
    domain = DeepSea(DeepSeaConfig(size=size))
    config = ValuesConfig("linear", bias=False, num_members=num_members)
    return domain, Ensemble(config, OptimiserConfig(), domain.observation, seed=0)


def is_compiled(search):
    """Tells by the clock: in compiled code, the model is never called by itself."""
    search.step()
    return search.work.seconds["model"] == 0.0 and search.work.model_calls > 0


def told(episodes):
    parts = [[getattr(episode, field.name) for field in dataclasses.fields(episode)] for episode in episodes]
    return [[part.tolist() if isinstance(part, np.ndarray) else part for part in episode] for episode in parts]


# Against the plain-Python planner, after every pass.


@pytest.mark.kernels
@pytest.mark.parametrize("measure", MEASURES)
def test_deep_sea(measure):
    config = SearchConfig(passes=10, num_subsampled=3, avoid_loops=False, **measure)
    search, _ = play_in_lockstep(*make_sea(), config, batch=3, seed=1, steps=4 if QUICK else 25)
    assert QUICK or not search.active.any()
    assert search.work.seconds["model"] == 0.0


@pytest.mark.kernels
@pytest.mark.parametrize("risk", RISKS)
def test_every_risk_measure(risk):
    for seed in range(NUM_GRAPHS):
        config = SearchConfig(risk=risk, risk_coef=1.5, passes=5)
        search, _ = play_in_lockstep(*draw(seed), config, batch=3, seed=seed)
        assert search.work.seconds["model"] == 0.0


@pytest.mark.kernels
@pytest.mark.parametrize("options", OPTIONS)
def test_every_option(options):
    for seed in range(NUM_GRAPHS):
        config = SearchConfig(**{"risk_coef": 1.0, "passes": 6, **options})
        play_in_lockstep(*draw(100 + seed), config, batch=2, seed=seed)
        play_in_lockstep(*draw(100 + seed), config, batch=2, seed=seed, compare_passes=False)


@pytest.mark.kernels
@pytest.mark.parametrize("state_size", [11, 16])
@pytest.mark.parametrize("num_actions", [1, 3])
def test_states_with_and_without_padding(state_size, num_actions):
    domain, values = next(
        (domain, values)
        for domain, values in (draw(seed, state_size) for seed in range(100))
        if domain.target.shape[1] == num_actions
    )
    search, _ = play_in_lockstep(domain, values, CONFIG, batch=2, seed=0)
    assert search.work.seconds["model"] == 0.0


# Against the way through Python.


@pytest.mark.kernels
@pytest.mark.parametrize("steps", [1, 3, 100])
def test_many_steps_at_once_equal_lock_step(steps):
    """Episodes differ in length, so that slots begin anew at different steps, each with the seed that is due then."""
    lengths = set()
    drawn = (draw(200 + seed) for seed in range(100))
    domains = [(domain, values) for domain, values in drawn if domain.is_end.sum() > 3][:NUM_GRAPHS]
    for seed, (domain, values) in enumerate(domains):
        starts = domain.encode(np.flatnonzero(~domain.is_end))
        config = dataclasses.replace(CONFIG, num_subsampled=1)
        limited = {"batch": 4, "seed": seed, "num_episodes": 15, "starts": starts}
        fast, slow = MCTS(domain, values, config, **limited), MCTS(domain, Detour(values), config, **limited)
        for _ in range(4):
            expected = [episode for _ in range(steps) for episode in slow.step()]
            assert told(fast.step(steps)) == told(expected)
            assert (fast.work.model_calls, fast.work.network_calls) == (slow.work.model_calls, slow.work.network_calls)
            state, other = fast.state_dict(), slow.state_dict()
            assert {k: v.tobytes() for k, v in state.items()} == {k: v.tobytes() for k, v in other.items()}
            check_graph(fast.arena)
            if steps == 1:
                assert fast.actions[fast.active].tolist() == slow.actions[slow.active].tolist()
            lengths |= {len(episode) for episode in expected}
    assert steps == 1 or len(lengths) > 2


def test_lock_step_makes_many_steps_too():
    domain, values = draw(3)
    one, other = (MCTS(domain, Detour(values), CONFIG, batch=4, seed=1, num_episodes=9) for _ in range(2))
    expected = [episode for _ in range(5) for episode in one.step()]
    assert told(other.step(5)) == told(expected)


def test_play_equals_lock_step():
    domain, values = draw(7)
    fast, slow = (MCTS(domain, v, CONFIG, batch=3, num_episodes=11) for v in (values, Detour(values)))
    assert told(fast.play()) == told(slow.play())
    assert 0 < fast.work.network_batches <= fast.work.network_calls
    assert fast.work.seconds["model"] == 0.0 < fast.work.seconds["sweep"]
    assert slow.work.seconds["model"] > 0.0


@pytest.mark.kernels
def test_the_arena_grows_in_the_middle_of_a_step():
    domain, values = make_sea(size=20)
    config = SearchConfig(passes=60 if QUICK else 200, risk_coef=5.0, avoid_loops=False)
    fast, slow = (MCTS(domain, v, config, batch=2, seed=3, num_episodes=3) for v in (values, Detour(values)))
    before = fast.arena.nodes.shape
    assert told(fast.step(12)) == told([e for _ in range(12) for e in slow.step()])
    assert fast.arena.nodes.shape > before
    assert fast.state_dict()["arena.sums"].tobytes() == slow.state_dict()["arena.sums"].tobytes()


def test_what_was_learnt_is_seen_at_once():
    domain, values = make_sea()
    fast, slow = (MCTS(domain, v, CONFIG, batch=2, seed=1, num_episodes=8) for v in (values, Detour(values)))
    first = told(fast.step(9)), told(slow.step(9))
    values.load_weights({"table": values.weights()["table"][::-1]})
    second = told(fast.play()), told(slow.play())
    assert first[0] == first[1]
    assert second[0] == second[1]


# Where it is taken, and where not.


class Shallow(DeepSea):
    """Other rules than the compiled ones it inherits."""

    def successors(self, states):
        out = super().successors(states)
        return out._replace(rewards=out.rewards + ~out.terminal)


class Wrapped:
    """Passes everything on but the rules."""

    def __init__(self, domain):
        self._domain = domain

    def __getattr__(self, name):
        return getattr(self._domain, name)

    def successors(self, states):
        return Shallow(self._domain.config).successors(states)


class Doubled(Ensemble):
    """Other answers than those in the table it inherits."""

    def evaluate(self, observations):
        return 2 * super().evaluate(observations)


def test_it_is_taken_for_compiled_rules_and_a_table():
    assert is_compiled(MCTS(*make_sea(), CONFIG))
    assert is_compiled(MCTS(*draw(0), CONFIG))


def test_replaced_rules_and_values_are_not_bypassed():
    domain, values = make_sea()
    replaced = DeepSea(DeepSeaConfig(size=8))
    replaced.successors = Shallow(domain.config).successors
    doubled = Doubled(ValuesConfig("linear", bias=False), OptimiserConfig(), domain.observation, seed=0)
    for other in (Shallow(domain.config), Wrapped(domain), replaced):
        assert not is_compiled(MCTS(other, values, CONFIG))
    assert not is_compiled(MCTS(domain, doubled, CONFIG))


def test_another_model_is_asked():
    domain, values = make_sea()
    assert not is_compiled(MCTS(domain, values, CONFIG, model=DeepSea(domain.config)))


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda table: table.astype(np.float64), id="another type"),
        pytest.param(lambda table: np.asfortranarray(table), id="another order"),
        pytest.param(lambda table: np.concatenate([table, table]), id="another size"),
        pytest.param(lambda table: table.tolist(), id="no array"),
    ],
)
def test_a_table_that_does_not_fit_is_left_alone(spoil):
    domain, values = draw(1)
    detour = Detour(values)
    detour.table = spoil(np.repeat(values.table, 2, axis=1)[:, ::2])
    assert not is_compiled(MCTS(domain, detour, CONFIG))


def test_features_and_grids_are_left_alone():
    domain, values = draw(1)
    grid = dataclasses.replace(domain, observation=Categories((2, 1), len(domain.target)))
    assert not is_compiled(MCTS(grid, values, CONFIG))
    assert not is_compiled(MCTS(dataclasses.replace(domain, observation=Features(1)), values, CONFIG))


# What is refused.


def test_numbers_that_are_not_finite():
    domain, values = draw(2)
    search = MCTS(domain, values, CONFIG)
    values.table[1:] = np.nan
    with pytest.raises(BathysphereError, match=r"not finite.*learning rate"):
        search.step(20)


class Lost(CompiledGraph):
    """Its category is beside the table."""

    shift = 0

    def compiled_rules(self):
        return dataclasses.replace(super().compiled_rules(), category=far if self.shift > 0 else below)


def far(numbers, cells, state):
    return np.int64(state[0]) + 1000


def below(numbers, cells, state):
    return np.int64(-1)


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_category_beside_the_table(shift):
    graph, values = draw(2)
    domain = Lost.of(graph)
    domain.shift = shift
    with pytest.raises(BathysphereError, match=r"category .* outside 0 to \d+; .*check_domain"):
        MCTS(domain, values, CONFIG).step(20)
