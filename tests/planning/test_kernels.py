"""The compiled planner against the plain-Python one: every field, after every pass."""

import numba
import numpy as np
import pytest

from bathysphere.planning import SearchConfig
from tests.oracles.random_graph import RandomGraph, TableValues
from tests.planning.lockstep import play_in_lockstep

pytestmark = pytest.mark.kernels

NUM_GRAPHS = 6 if numba.config.DISABLE_JIT else 30
RISKS = ["mean_std", "mean_variance", "second_moment", "exponential", "vote", "vote_once"]


def draw(seed, **kwargs):
    """Returns a random world and values for it; few distinct values, so that ties happen."""
    rng = np.random.default_rng(seed)
    domain = RandomGraph.draw(rng, **kwargs)
    num_members = int(rng.integers(1, 6))
    table = rng.choice([0.0, 0.25, 0.5, 1.0, -0.5], size=(len(domain.target), num_members)).astype(np.float32)
    return domain, TableValues(table), rng


OPTIONS = [
    pytest.param({}, id="defaults"),
    pytest.param({"avoid_loops": False}, id="loops allowed"),
    pytest.param({"avoid_loops": False, "transpositions": False}, id="no table"),
    pytest.param({"dead_end_value": None}, id="dead ends off"),
    pytest.param({"dead_end_value": -2.0}, id="dead ends -2"),
    pytest.param({"episode_penalty": 0.2}, id="episode penalty"),
    pytest.param({"path_penalty": 0.3, "avoid_loops": False}, id="path penalty"),
    pytest.param({"bonus": "ucb1", "bonus_coef": 0.5}, id="ucb1"),
    pytest.param({"bonus": "ucb_v"}, id="ucb_v"),
    pytest.param({"bonus": "moss", "final_bonus": False}, id="moss"),
    pytest.param({"final_ties": "random"}, id="random final ties"),
    pytest.param({"final_risk": "mean_std", "final_risk_coef": 0.0}, id="act by the mean"),
    pytest.param({"final_risk": "vote", "final_ties": "random"}, id="act by vote"),
    pytest.param({"passes": 1}, id="one pass"),
    pytest.param({"merge_nodes": True}, id="merged"),
    pytest.param({"merge_nodes": True, "patience": 0.5, "episode_penalty": 0.2}, id="merged, patient"),
    pytest.param({"merge_nodes": True, "patience": 0.9, "max_steps": 3, "passes": 3}, id="merged, patient, short"),
    pytest.param({"discount": 1.0, "max_steps": 3}, id="no discount, short"),
]


@pytest.mark.parametrize("risk", RISKS)
def test_every_risk_measure(risk):
    for seed in range(NUM_GRAPHS):
        domain, values, rng = draw(seed)
        config = SearchConfig(risk=risk, risk_coef=float(rng.choice([0.0, 1.0, 3.0, -1.0])), passes=5)
        play_in_lockstep(domain, values, config, batch=3, seed=seed)


@pytest.mark.parametrize("options", OPTIONS)
def test_every_option(options):
    for seed in range(NUM_GRAPHS):
        domain, values, _ = draw(1000 + seed)
        config = SearchConfig(**{"risk": "mean_std", "risk_coef": 1.0, "passes": 6, **options})
        play_in_lockstep(domain, values, config, batch=2, seed=seed)


def test_some_of_the_patient_wait():
    waits = 0
    for seed in range(NUM_GRAPHS):
        domain, values, _ = draw(1000 + seed)
        config = SearchConfig(passes=3, merge_nodes=True, patience=0.5)
        search, _ = play_in_lockstep(domain, values, config, batch=2, seed=seed)
        waits += int(search.arena.episodes["num_waits"].sum())
    assert waits


def test_subsampled_members():
    for seed in range(NUM_GRAPHS):
        domain, values, _ = draw(2000 + seed)
        config = SearchConfig(risk_coef=2.0, passes=5, num_subsampled=max(1, values.num_members // 2))
        play_in_lockstep(domain, values, config, batch=3, seed=seed)


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_a_model_that_errs(rate):
    seen = dict.fromkeys(("wrong_reward", "false_end", "missed_end", "wrong_state"), 0)
    for seed in range(NUM_GRAPHS):
        domain, values, rng = draw(3000 + seed)
        model = domain.misled(rng, rate)
        config = SearchConfig(risk_coef=1.0, passes=5)
        search, oracles = play_in_lockstep(domain, values, config, batch=2, seed=seed, model=model)
        for name in seen:
            assert search.work.model_errors[name] == sum(oracle.errors[name] for oracle in oracles)
            seen[name] += search.work.model_errors[name]
    assert numba.config.DISABLE_JIT or all(seen.values()), f"an error was never made: {seen}"


def test_running_on_without_the_model_equals_pass_by_pass():
    for seed in range(NUM_GRAPHS):
        domain, values, _ = draw(4000 + seed)
        config = SearchConfig(risk_coef=1.0, passes=7, episode_penalty=0.1)
        play_in_lockstep(domain, values, config, batch=3, seed=seed, compare_passes=False, steps=20)


def test_known_states_cost_no_model_call():
    domain, values, _ = draw(17)
    search, oracles = play_in_lockstep(domain, values, SearchConfig(passes=20), batch=1, seed=0)
    assert search.work.model_calls == oracles[0].model_calls
    expanded = {state.key for state in oracles[0].states if state.children}
    assert search.work.model_calls == len(expanded)
