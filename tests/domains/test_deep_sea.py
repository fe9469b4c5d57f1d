import numba
import numpy as np
import pytest

from bathysphere.domains.deep_sea.domain import DeepSea, DeepSeaConfig
from bathysphere.errors import BathysphereError
from bathysphere.testing import check_compiled_rules, check_domain
from tests.domains.walks import compare_walks
from tests.oracles.deep_sea import DeepSeaOracle

WALKS = 20 if numba.config.DISABLE_JIT else 300


def play(domain, actions):
    """Returns the visited states, uint8 [T + 1, 4], the rewards and the last step's terminal and solved."""
    state = domain.initial(1, np.random.default_rng(0))
    visited, rewards = [state[0]], []
    for action in map(int, actions):
        out = domain.successors(state)
        state = out.states[:, action]
        visited.append(state[0])
        rewards.append(out.rewards[0, action])
    return np.stack(visited), rewards, bool(out.terminal[0, action]), bool(out.solved[0, action])


@pytest.mark.kernels
@pytest.mark.parametrize("horizon", ["code", "paper"])
@pytest.mark.parametrize(("size", "mask_seed"), [(2, 0), (3, 5), (10, 0), (17, 3), (40, 0)])
def test_walks_equal_the_oracle(size, mask_seed, horizon):
    domain = DeepSea(DeepSeaConfig(size, mask_seed, horizon))
    oracle = DeepSeaOracle(size, mask_seed, horizon)
    ended, _ = compare_walks(domain, oracle, WALKS, domain.max_steps + 2, np.random.default_rng(size))
    assert ended == WALKS


@pytest.mark.kernels
@pytest.mark.parametrize("horizon", ["code", "paper"])
@pytest.mark.parametrize("size", [2, 9, 300])
def test_compiled_rules_equal_the_others_in_every_cell(size, horizon):
    domain = DeepSea(DeepSeaConfig(size, horizon=horizon))
    cells = np.array([(y, x) for y in range(domain.max_steps + 1) for x in range(y + 1)], "<u2")
    if size > 20:  # where a coordinate needs its second byte
        cells = cells[-200:]
    beside = np.array([[1, 900], [size + 5, 0]], "<u2")
    check_compiled_rules(domain, np.concatenate([cells, beside]).view(np.uint8))


@pytest.mark.parametrize("actions", ["000", "001001010", "0001001001010001111"])
def test_known_solutions(actions):
    size = len(actions) + 1
    states, rewards, terminal, solved = play(DeepSea(DeepSeaConfig(size)), actions)
    assert terminal
    assert solved
    assert states[-1].tolist() == [size - 1, 0, size - 1, 0]
    assert rewards[-1] == 1.0
    assert sum(rewards) == pytest.approx(1 - 0.01 * (size - 2) / (size - 1))


def test_known_masks():
    counts = [int(DeepSea(DeepSeaConfig(size)).mask.sum()) for size in (10, 20, 30, 40, 50)]
    assert counts == [49, 201, 435, 800, 1254]


def test_the_papers_horizon_is_one_step_longer_and_charges_the_last_step_too():
    domain = DeepSea(DeepSeaConfig(10, horizon="paper"))
    cells = np.arange(10)
    actions = np.where(domain.mask[cells, cells], 0, 1)
    states, rewards, terminal, solved = play(domain, actions)
    assert domain.max_steps == len(rewards) == 10
    assert terminal
    assert solved
    assert sum(rewards) == pytest.approx(1 - 0.01)
    assert domain.observe(states).ravel().tolist() == [12 * k for k in range(11)]


def test_sizes_beyond_a_byte():
    domain = DeepSea(DeepSeaConfig(300))
    cells = np.arange(299)
    states, _, _, solved = play(domain, np.where(domain.mask[cells, cells], 0, 1))
    assert solved
    assert domain.observe(states[-1:]).tolist() == [[300 * 300 - 1]]


@pytest.mark.parametrize("horizon", ["code", "paper"])
def test_conforms(horizon):
    check_domain(DeepSea(DeepSeaConfig(6, horizon=horizon)), np.random.default_rng(0))


def test_rows_no_dive_reaches_do_not_move():
    domain = DeepSea(DeepSeaConfig(5))
    row = np.array([[1, 0, 200, 3]], np.uint8)
    assert (domain.successors(row).states == row).all()


def test_text_and_pictures():
    domain = DeepSea(DeepSeaConfig(4))
    states, *_ = play(domain, "01")
    assert domain.text(states[-1]).splitlines() == [".", ". .", "o . .", ". . . $", "row 2 of 3, column 0"]
    still, trail = domain.render(states[-1]), domain.render_episode(states)
    assert still.shape == trail.shape == (560, 560, 3)
    assert (still != trail).any()
    assert DeepSea(DeepSeaConfig(50)).render(states[-1]).shape == (560, 560, 3)


@pytest.mark.parametrize("size", [0, 1, -3, 10_001, 2.5, True])
def test_bad_sizes_get_a_sentence(size):
    with pytest.raises(BathysphereError, match="whole number from 2"):
        DeepSeaConfig(size)


def test_other_bad_fields_get_a_sentence():
    with pytest.raises(BathysphereError, match="mask_seed"):
        DeepSeaConfig(5, mask_seed=-1)
    with pytest.raises(BathysphereError, match="'code' or 'paper'"):
        DeepSeaConfig(5, horizon="long")
    with pytest.raises(BathysphereError, match=r"uint8 \[n, 4\]"):
        DeepSea().successors(np.zeros((3, 5), np.uint8))
