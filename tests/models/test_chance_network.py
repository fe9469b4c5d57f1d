"""Networks that learn a world with chance: their probabilities, what they leave unknown, and how they are saved."""

import gymnasium
import numpy as np
import pytest
import torch

from bathysphere.config.auto import choose
from bathysphere.config.convert import override
from bathysphere.domains.adapters.gymnasium import from_gymnasium
from bathysphere.domains.adapters.tables import TableDomain
from bathysphere.domains.base import AskedModel, Chance, LearningModel, Model, PartialChance, PartialModel, Successors
from bathysphere.domains.real_steps import take_steps
from bathysphere.errors import BathysphereError
from bathysphere.learning.graph_errors import graph_errors
from bathysphere.models import chance_network
from bathysphere.models.chance_memory import ChanceMemory
from bathysphere.models.chance_network import ChanceNetworks
from bathysphere.planning import Expectimax, ExpectimaxConfig
from bathysphere.planning.inspect import root_report
from bathysphere.runs.build import make_trainer
from tests.oracles.chance import RandomMDP, optimal
from tests.planning.test_expectimax import Table


def world(seed):
    """Draws a world with few kinds of reward."""
    mdp = RandomMDP.draw(np.random.default_rng(seed))
    mdp.reward = np.round(mdp.reward)
    return mdp


def learn(model, mdp, num_steps, rng):
    """Tells a model so many steps, each from any state by any action."""
    states = mdp.encode(rng.choice(np.flatnonzero(~mdp.is_end), size=num_steps))
    actions = rng.integers(mdp.target.shape[1], size=num_steps).astype(np.int32)
    model.learn(states, actions, Successors(*take_steps(mdp, states, actions, rng)))
    return states


@pytest.mark.parametrize(("seed", "num_networks"), [(0, 1), (3, 3)])
def test_a_small_world_is_learnt_with_its_chances(seed, num_networks):
    mdp, rng = world(seed), np.random.default_rng(0)
    model = ChanceNetworks(mdp, 0, 4, 1.0, num_networks)
    states = learn(model, mdp, 3000, rng)
    told, unknown, _ = model.imagine_outcomes(states[:200])
    assert (told.probabilities >= 0).all()
    assert told.probabilities.sum(axis=2) + unknown == pytest.approx(np.ones(unknown.shape))
    assert unknown.max() < 0.1
    assert graph_errors(model, mdp)["model_graph_wrong_chance"] < 0.1
    assert model.outcomes(states[:200]).probabilities.sum(axis=2) == pytest.approx(np.ones(unknown.shape))


def test_planning_with_what_was_learnt_chooses_as_value_iteration_does():
    config = ExpectimaxConfig(passes=400, discount=0.8)
    for seed in range(2):
        mdp, rng = world(seed), np.random.default_rng(seed)
        best, q = optimal(mdp, 0.8, sweeps=200)
        model = ChanceNetworks(mdp, 0, 3, 1.0)
        learn(model, mdp, 3000, rng)
        planner = Expectimax(mdp, Table(20.0 + rng.normal(size=(len(mdp.target), 3))), config, seed=seed, model=model)
        planner.plan()
        planner.act()
        assert q[0, int(planner.actions[0])] == pytest.approx(best[0], abs=0.3)


def test_at_first_everything_is_unknown():
    mdp = world(0)
    model = ChanceNetworks(mdp, 0, 4, 1.5)
    for protocol in (Model, Chance, PartialChance, LearningModel, AskedModel):
        assert isinstance(model, protocol)
    assert not isinstance(model, PartialModel)
    assert graph_errors(model, mdp) == {"model_graph_wrong_chance": None}
    states = mdp.encode(np.arange(len(mdp.target)))
    told, unknown, values = model.imagine_outcomes(states)
    assert (unknown == 1.0).all()
    assert not told.probabilities.any()
    assert values.std() == pytest.approx(1.5, abs=0.4)
    assert (model.successors(states).states == states[:, None]).all()
    assert graph_errors(model, mdp) == {"model_graph_wrong_chance": 0.0}


def test_luck_that_networks_agree_on_is_no_ignorance_and_what_they_disagree_on_is():
    """By hand: of two networks, one is sure of what the other thinks impossible; then both think it even."""
    mdp = RandomMDP(
        np.array([[[0, 1]], [[0, 1]]]), np.full((2, 1, 2), 0.5), np.zeros((2, 1, 2)), np.array([False, False])
    )
    model = ChanceNetworks(mdp, 0, 4, 1.0, num_networks=2)
    learn(model, mdp, 200, np.random.default_rng(0))
    state, other = mdp.encode(np.array([0, 1]))[:, None]
    stays, goes = (model._numbers[(after - state)[0].tobytes() + b"\0"] for after in (state, other))
    for biases, is_luck in (((50.0, -50.0), False), ((0.0, 0.0), True)):
        for network, bias in zip(model._networks, biases, strict=True):
            with torch.no_grad():
                network.outcomes.weight.zero_()
                network.outcomes.bias.fill_(-200.0)
                network.outcomes.bias[stays], network.outcomes.bias[goes] = bias, -bias
        told, unknown, _ = model.imagine_outcomes(state)
        assert unknown[0, 0] == pytest.approx(0.0 if is_luck else 1.0, abs=1e-6)
        assert told.probabilities[0, 0, :2] == pytest.approx([0.5, 0.5] if is_luck else [0.0, 0.0], abs=1e-6)


def test_what_leads_to_a_byte_that_no_step_began_with_is_unknown():
    rows = {
        0: {0: [(0.5, 1, 0.0, False), (0.5, 2, 1.0, True)]},
        1: {0: [(1.0, 1, 0.0, False)]},
        2: {0: [(1.0, 2, 0.0, True)]},
    }
    lake = TableDomain(rows, [1.0, 0.0, 0.0])
    rng = np.random.default_rng(0)
    model, start = ChanceNetworks(lake, 0, 4, 1.0), lake.initial(500, rng)
    actions = np.zeros(500, np.int32)
    for _ in range(4):
        model.learn(start, actions, Successors(*take_steps(lake, start, actions, rng)))
    told, unknown, _ = model.imagine_outcomes(start[:1])
    assert unknown[0, 0] == pytest.approx(0.5, abs=0.1)  # nobody has gone on from state 1; state 2 is an end
    assert told.solved[0, 0, told.probabilities[0, 0] > 0.3].tolist() == [True]


def test_the_likeliest_are_told_and_the_rest_is_unknown(monkeypatch):
    num = 12
    mdp = RandomMDP(
        np.broadcast_to(np.arange(num), (num, 1, num)).copy(),
        np.full((num, 1, num), 1 / num),
        np.zeros((num, 1, num)),
        np.zeros(num, bool),
    )
    model = ChanceNetworks(mdp, 0, 4, 1.0)
    states = learn(model, mdp, 2000, np.random.default_rng(0))
    told, unknown, _ = model.imagine_outcomes(states[:50])
    assert told.probabilities.shape == (50, 1, 8)
    assert 0.15 < unknown.mean() < 0.35  # the last 4 of 12
    monkeypatch.setattr(chance_network, "MOST_CHANGES", 3)
    few = ChanceNetworks(mdp, 0, 4, 1.0)
    learn(few, mdp, 2000, np.random.default_rng(0))
    assert (
        few.imagine_outcomes(states[:50]).unknown.mean() > 0.7
    )  # two changes are listed, and the others learnt as one


def test_what_is_saved_goes_on_bit_for_bit_and_what_nobody_saved_is_refused():
    mdp = world(3)
    whole, resumed = (ChanceNetworks(mdp, 5, 4, spread, 3) for spread in (1.0, 0.0))
    states = learn(whole, mdp, 300, np.random.default_rng(0))
    whole.imagine_outcomes(states[:3])
    resumed.load_state_dict(whole.state_dict())
    for model in (whole, resumed):
        learn(model, mdp, 100, np.random.default_rng(1))
    one, other = whole.state_dict(), resumed.state_dict()
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)
    for name, wrong in (
        ("spread", np.array(np.nan)),
        ("changes", one["changes"][:, 1:]),
        ("changes", np.concatenate([one["changes"], one["changes"][-1:]])),
        ("changes", one["changes"] | 64),
        ("seen", one["seen"][1:]),
    ):
        with pytest.raises(BathysphereError, match="What was saved is impossible"):
            ChanceNetworks(mdp, 5, 4, 1.0, 3).load_state_dict({**one, name: wrong})


@pytest.mark.parametrize("kind", ["network", "ensemble"])
def test_a_run_learns_chances_from_its_steps_and_goes_on_bit_for_bit(kind):
    lake = from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=True))
    chosen, _ = choose(lake, lake.config)
    config = override(chosen, {"model": kind, "search": {"passes": 2}})
    whole, resumed = make_trainer(config), make_trainer(config)
    for made in range(1, 31):
        whole.advance()
        assert whole.model.num_steps == 4 * made == whole.progress.env_steps
    resumed.load_state_dict(whole.state_dict())
    for _ in range(20):
        whole.advance()
        resumed.advance()
    one, other = whole.state_dict(), resumed.state_dict()
    assert any(name.startswith("model.network") for name in one)
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)
    assert 0.0 <= whole.columns()["model_graph_wrong_chance"] == resumed.columns()["model_graph_wrong_chance"] <= 1.0
    assert whole.progress.imagined_steps > 0


def test_a_run_with_a_network_may_weigh_what_it_does_not_know():
    lake = from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=True))
    chosen, _ = choose(lake, lake.config)
    for model in ("network", "ensemble"):
        assert override(chosen, {"model": model, "search": {"model_risk": -3.0}}).knows_limits
    with pytest.raises(BathysphereError, match=r"model_risk is nan; expected a finite number"):
        override(chosen, {"model": "network", "search": {"model_risk": float("nan")}})


@pytest.mark.parametrize(("model_risk", "action"), [(20.0, 1), (-20.0, 0)])
def test_the_sign_of_model_risk_decides_about_the_unknown(model_risk, action):
    """Of two actions one has always stayed, for nothing, and the other was never tried."""
    mdp = RandomMDP(np.zeros((2, 2, 1), int), np.ones((2, 2, 1)), np.zeros((2, 2, 1)), np.array([False, False]))
    memory = ChanceMemory(mdp.state_size, 2, 8, 1.0, 0)
    start = mdp.encode(np.zeros(500, np.int64))
    memory.learn(
        start,
        np.zeros(500, int),
        Successors(*take_steps(mdp, start, np.zeros(500, np.int32), np.random.default_rng(0))),
    )
    config = ExpectimaxConfig(model_risk=model_risk, passes=2)
    planner = Expectimax(mdp, Table(np.zeros((2, 8))), config, model=memory)
    planner.step()
    assert planner.actions[0] == action


def test_what_cannot_be_observed_is_unknown():
    """States 0 to 299 in a row, of which 0, 1 and 255 to 258 are met: bytes alone would allow 256 + 255 as well."""
    rows = {n: {0: [(0.5, min(n + 1, 299), 0.0, False), (0.5, n, 0.0, False)]} for n in range(300)}
    table, rng = TableDomain(rows, [1 / 300] * 300), np.random.default_rng(0)
    model = ChanceNetworks(table, 0, 4, 1.0)
    met = np.repeat(np.array([0, 1, 254, 255, 256, 257]), 200).astype("<u2")[:, None].view(np.uint8)
    steps = met, np.zeros(len(met), np.int32)
    model.learn(*steps, Successors(*take_steps(table, *steps, rng)))
    last = np.array([[254, 1]], np.uint8)  # 510
    assert table.observe(last) == 510
    told, unknown, _ = model.imagine_outcomes(last)
    assert unknown[0, 0] == 1.0
    assert (told.states == last).all()


def test_what_is_hardly_probable_is_not_told_so_that_no_state_counts_as_an_end_for_it():
    """State 1 is gone on from, and never an end; steps by the same number of cells elsewhere are ends."""
    rows = {
        0: {0: [(1.0, 0, 0.0, False)], 1: [(1.0, 1, 0.0, False)]},
        1: {0: [(1.0, 2, 0.0, True)], 1: [(1.0, 2, 1.0, True)]},
        2: {0: [(1.0, 2, 0.0, True)], 1: [(1.0, 2, 0.0, True)]},
    }
    table, rng = TableDomain(rows, [1.0, 0.0, 0.0]), np.random.default_rng(0)
    model, states = ChanceNetworks(table, 0, 3, 0.0), np.repeat(np.array([[0, 0], [1, 0]], np.uint8), 500, axis=0)
    actions = rng.integers(2, size=1000).astype(np.int32)
    model.learn(states, actions, Successors(*take_steps(table, states, actions, rng)))
    told = model.imagine_outcomes(states[:1]).outcomes
    assert told.probabilities[told.probabilities > 0].min() >= 0.01
    planner = Expectimax(table, Table(np.zeros((3, 3))), ExpectimaxConfig(passes=20), model=model)
    planner.plan()
    assert root_report(planner, 0).q[1].mean() > 0.9  # the way to 1 by 1, although +1 from 1 is an end
