import numpy as np
import pytest
import torch

from bathysphere.errors import BathysphereError
from bathysphere.models.config import ModelConfig, TrainingConfig
from bathysphere.models.learned import read_codes
from bathysphere.models.network import build_network, loss, num_parameters

CODES, ACTIONS = 7, 4


def build(kind="local", channels=8, seed=0):
    return build_network(ModelConfig(kind=kind, channels=channels), CODES, ACTIONS, np.random.default_rng(seed))


def boards(n=6, height=6, width=8, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, CODES, (n, height, width)))


def test_the_papers_network_has_the_papers_parameters():
    network = build_network(ModelConfig(kind="paper", cells="sigmoid", channels=64), 7, 4, np.random.default_rng(0))
    assert num_parameters(network) == 120_648
    assert [tuple(p.shape) for p in network.first.parameters()] == [(64, 11, 5, 5), (64,)]


@pytest.mark.parametrize("kind", ["local", "paper"])
def test_all_actions_at_once_are_the_actions_one_by_one(kind):
    network, states = build(kind), boards()
    cells, done = network(states)
    assert cells.shape == (6, ACTIONS, 6, 8, CODES)
    assert done.shape == (6, ACTIONS)
    for actions in (torch.zeros(6, dtype=torch.long), torch.tensor([3, 1, 0, 2, 3, 1])):
        some_cells, some_done = network.predict(states, actions)
        rows = torch.arange(6)
        torch.testing.assert_close(some_cells, cells[rows, actions])
        torch.testing.assert_close(some_done, done[rows, actions])


def test_weights_come_from_the_seed_alone():
    state = torch.random.get_rng_state()
    one, two, other = build(seed=1), build(seed=1), build(seed=2)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.first.weight, other.first.weight)


def test_the_local_network_knows_one_rule_and_turns_it():
    """Turning a board clockwise turns up into right, right into down, and so on, and predictions with them."""
    network, states = build(), boards()
    cells, done = network(states)
    turned_cells, turned_done = network(torch.rot90(states, -1, (1, 2)))
    for action in range(ACTIONS):
        expected = torch.rot90(cells[:, action], -1, (1, 2))
        torch.testing.assert_close(turned_cells[:, (action + 1) % 4], expected)
        torch.testing.assert_close(turned_done[:, (action + 1) % 4], done[:, action])


def test_the_local_network_starts_with_nothing_changing():
    network, states = build(channels=1), boards()
    for parameter in network.heads.parameters():
        torch.nn.init.zeros_(parameter)
    assert torch.equal(network(states)[0].argmax(-1), states[:, None].expand(-1, ACTIONS, -1, -1))


def test_done_is_that_no_cell_objects():
    """P(done) is the product over cells of 1 - p, whatever the size of the board."""
    network = build()
    for height, width in ((6, 8), (10, 10)):
        states = boards(height=height, width=width)
        _, done = network(states)
        codes = torch.nn.functional.one_hot(states, CODES).double().permute(0, 3, 1, 2)
        first, heads = network.first.double(), network.heads.double()
        objection = torch.sigmoid(heads(first(codes).relu().permute(0, 2, 3, 1))[..., -1])
        expected = (1 - objection).flatten(1).prod(1)
        torch.testing.assert_close(torch.sigmoid(done[:, 0].double()), expected, rtol=1e-4, atol=1e-6)
        network = build()


def test_one_objection_is_enough_and_certainty_is_finite():
    network, states = build(), boards()
    with torch.no_grad():
        network.heads.weight.zero_()
        network.heads.bias[-1] = -60.0
        assert (network(states)[1] > 10).all()
        network.heads.bias[-1] = 60.0
        done = network(states)[1]
    assert (done < -1000).all()
    assert torch.isfinite(done).all()


def test_how_cells_are_read():
    """Six cells: sure, unsure, nothing, two things, all things, the first code."""
    logits = torch.full((1, 1, 1, 6, CODES), -3.0)
    for cell, codes in enumerate([{4: 5.0}, {2: -1.0}, {}, {1: 2.0, 5: 3.0}, dict.fromkeys(range(7), 1.0), {0: 1.0}]):
        for code, logit in codes.items():
            logits[0, 0, 0, cell, code] = logit
    softmax = read_codes(logits, ModelConfig(cells="softmax"))
    assert softmax.flatten().tolist() == [4, 2, 0, 5, 0, 0]
    sigmoid = read_codes(logits, ModelConfig(cells="sigmoid"))
    assert sigmoid.flatten().tolist() == [4, 0, 0, 0, 0, 0]  # what is not exactly one thing becomes a wall


def test_the_authors_loss_is_two_mean_cross_entropies():
    rng = np.random.default_rng(0)
    cells, done = torch.from_numpy(rng.normal(size=(3, 2, 2, CODES))), torch.from_numpy(rng.normal(size=3))
    before, after = (torch.from_numpy(rng.integers(0, CODES, (3, 2, 2))) for _ in range(2))
    is_done = torch.tensor([True, False, False])
    total, count = 0.0, 0
    for index in np.ndindex(3, 2, 2, CODES):
        p = 1 / (1 + np.exp(-float(cells[index])))
        total -= np.log(p if int(after[index[:3]]) == index[3] else 1 - p)
        count += 1
    wins = [1 / (1 + np.exp(-float(d))) for d in done]
    expected = total / count - np.mean([np.log(p if y else 1 - p) for p, y in zip(wins, is_done.tolist(), strict=True)])
    assert float(loss(cells, done, before, after, is_done, "sigmoid", 1.0)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_the_right_answer_costs_nothing_and_changed_cells_cost_more(kind):
    before, after = boards(seed=1), boards(seed=2)
    right = 100.0 * (2 * torch.nn.functional.one_hot(after, CODES).float() - 1)
    is_done = torch.tensor([True, False] * 3)
    done = torch.where(is_done, 100.0, -100.0)
    assert float(loss(right, done, before, after, is_done, kind, 7.0)) == pytest.approx(0.0, abs=1e-6)
    once, often = (float(loss(-right, done, before, after, is_done, kind, weight)) for weight in (1.0, 7.0))
    share = float((before != after).float().mean())
    assert often == pytest.approx(once * (1 + 6 * share), rel=1e-4)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: ModelConfig(kind="deep"), "kind is 'deep'; expected local or paper"),
        (lambda: ModelConfig(cells="tanh"), "cells is 'tanh'"),
        (lambda: ModelConfig(channels=0), "channels is 0"),
        (lambda: TrainingConfig(updates=0), "updates is 0"),
        (lambda: TrainingConfig(learning_rate=0.0), "learning_rate is 0"),
        (lambda: TrainingConfig(schedule="fast"), "schedule is 'fast'"),
        (lambda: TrainingConfig(seconds=0.0), "seconds is 0"),
        (lambda: TrainingConfig(frames_right=1.5), "frames_right is 1.5"),
    ],
)
def test_bad_settings_are_a_sentence(make, complaint):
    with pytest.raises(BathysphereError, match=complaint):
        make()
