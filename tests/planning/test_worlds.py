"""The compiled planner against the plain-Python one on the three real worlds."""

import numba
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig, Sokoban, SokobanConfig, ToyMontezuma
from bathysphere.planning import SearchConfig
from tests.oracles.random_graph import HashedValues
from tests.planning.lockstep import play_in_lockstep

pytestmark = pytest.mark.kernels

QUICK = numba.config.DISABLE_JIT
STEPS = 4 if QUICK else 25
MEASURES = [
    pytest.param({"risk": "mean_std", "risk_coef": 3.0}, id="mean_std"),
    pytest.param({"risk": "mean_variance", "risk_coef": -1.0}, id="mean_variance"),
    pytest.param({"risk": "exponential", "risk_coef": 2.0}, id="exponential"),
    pytest.param({"risk": "vote", "final_ties": "random"}, id="vote"),
]
SOKOBAN_SEEDS = 1 if QUICK else 2


@pytest.mark.parametrize("measure", MEASURES)
def test_deep_sea(measure):
    domain = DeepSea(DeepSeaConfig(size=8))
    config = SearchConfig(passes=10, num_subsampled=3, avoid_loops=False, **measure)
    search, _ = play_in_lockstep(domain, HashedValues(5), config, batch=3, seed=1, steps=STEPS)
    assert QUICK or not search.active.any()  # seven steps end a dive


@pytest.mark.parametrize("measure", MEASURES)
def test_toy_montezuma(measure):
    config = SearchConfig(passes=10, num_subsampled=4, episode_penalty=0.2, max_steps=20, **measure)
    search, _ = play_in_lockstep(ToyMontezuma(), HashedValues(6), config, batch=3, seed=2, steps=STEPS)
    assert QUICK or not search.active.any()  # the step limit


@pytest.mark.parametrize("measure", MEASURES)
def test_sokoban(measure):
    domain = Sokoban(SokobanConfig(num_boards=2))
    config = SearchConfig(passes=10, episode_penalty=2.0, dead_end_value=-2.0, **measure)
    for seed in range(SOKOBAN_SEEDS):
        play_in_lockstep(domain, HashedValues(3, seed), config, batch=2, seed=seed, steps=STEPS)
