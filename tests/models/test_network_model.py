"""Models that networks learn while acting, against the true rules and against plain loops."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
import torch

from bathysphere.config.convert import override
from bathysphere.config.presets import find_preset
from bathysphere.domains.adapters.gymnasium import from_gymnasium
from bathysphere.domains.base import AskedModel, LearningModel, PartialModel, Remembers, Successors
from bathysphere.errors import BathysphereError
from bathysphere.learning.graph_errors import graph_errors
from bathysphere.models.data import make_boards, play_randomly
from bathysphere.models.evaluation import on_states, positions
from bathysphere.models.network_model import EnsembleModel, NetworkModel
from bathysphere.models.predictors import RowsPredictor
from bathysphere.models.step_replay import MOST_KINDS, StepReplay
from bathysphere.models.trainer import make_domain
from bathysphere.planning import MCTS, BestFirstConfig, SearchConfig
from bathysphere.runs.build import make_trainer
from tests.models.small import DATA
from tests.models.test_memory import memory_of
from tests.oracles.random_graph import HashedValues, RandomGraph
from tests.planning.small_worlds import make_domain as make_world


def all_steps(world):
    """Returns every step of a world as `learn` is told it."""
    numbers, actions = np.indices(world.target.shape).reshape(2, -1)
    after = world.target[numbers, actions]
    outcomes = Successors(
        world.encode(after), world.reward[numbers, actions], world.is_end[after], world.is_solved[after]
    )
    return world.encode(numbers), actions, outcomes


def small_world(seed):
    """Draws a world with few kinds of reward."""
    world = RandomGraph.draw(np.random.default_rng(seed))
    world.reward = np.round(world.reward)
    return world


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_small_world_is_learnt_exactly(seed):
    world = small_world(seed)
    model, steps = NetworkModel(world, seed), all_steps(world)
    while model.num_steps < 3000:
        model.learn(*steps)
    states = world.encode(np.arange(len(world.target)))
    for told, true in zip(model.successors(states), world.successors(states), strict=True):
        assert (told == true).all()
    assert set(graph_errors(model, world).values()) == {0.0}


def test_sokoban_is_learnt_from_some_thousand_steps():
    domain = make_domain(DATA)
    starts = np.repeat(make_boards(DATA, held_out=False), 4, axis=0)
    played = play_randomly(domain, starts, DATA.max_steps, np.random.default_rng(0))
    model, ends = NetworkModel(domain, 0), played.done
    after = Successors(played.frames[played.before + 1], np.where(ends, 10.0, 0.0), ends, ends)
    model.learn(played.frames[played.before], played.actions, after)
    held_out = make_boards(DATA, held_out=True)
    tally = on_states(model, domain, positions(domain, held_out, DATA.max_steps, np.random.default_rng(1)))
    assert tally.frames_right > 0.98
    assert tally.missed_rewards < tally.solved / 2


def test_at_first_nothing_changes():
    world = small_world(0)
    model = NetworkModel(world, 0)
    assert isinstance(model, LearningModel)
    assert isinstance(model, AskedModel)
    assert not isinstance(model, PartialModel)  # it does not know what it does not know
    assert set(graph_errors(model, world).values()) == {None}
    states = world.encode(np.arange(len(world.target)))
    told = model.successors(states)
    assert (told.states == states[:, None]).all()
    assert not any(part.any() for part in told[1:])


def test_predictions_of_rows_equal_plain_loops():
    network, rng = RowsPredictor(2, 3, np.random.default_rng(0)), np.random.default_rng(1)
    weights = {name: tensor.detach().numpy().astype(float) for name, tensor in network.named_parameters()}
    weights["bits.bias"][:] = 0.0
    network.seen[:] = True
    with torch.no_grad():
        network.bits.bias.zero_()
    states = rng.integers(256, size=(5, 2), dtype=np.uint8)
    terminal = np.array([False, True, False])
    rows, kinds = network.predict(torch.from_numpy(states), torch.from_numpy(terminal))
    actions, after = rng.integers(3, size=5), rng.integers(256, size=(5, 2), dtype=np.uint8)
    wanted, expected_loss = rng.integers(3, size=5), 0.0
    for i, state in enumerate(states):
        h = np.maximum(sum(weights["first"][256 * place + int(byte)] for place, byte in enumerate(state)), 0)
        h = np.maximum(weights["second.weight"] @ h + weights["second.bias"], 0)
        bits = (weights["bits.weight"] @ h + weights["bits.bias"]).reshape(3, 2, 8)
        scores = (weights["kinds.weight"] @ h + weights["kinds.bias"]).reshape(3, MOST_KINDS)[:, :3]
        for action in range(3):
            for place in range(2):
                flipped = sum(2**bit for bit in range(8) if bits[action, place, bit] > 0)
                assert rows[i, action, place] == int(state[place]) ^ flipped
            assert kinds[i, action] == scores[action].argmax()
        for place in range(2):
            for bit in range(8):
                changes = (int(state[place]) ^ int(after[i, place])) >> bit & 1
                p = 1 / (1 + np.exp(-bits[actions[i], place, bit]))
                expected_loss -= 3.0 * np.log(p) if changes else np.log(1 - p)
        chosen = scores[actions[i]]
        expected_loss -= chosen[wanted[i]] - np.log(np.exp(chosen).sum())
    told = (torch.from_numpy(part) for part in (states, actions, after, wanted, terminal))
    assert network.loss(*told).item() == pytest.approx(expected_loss / 5, rel=1e-4)


def test_the_latest_steps_are_kept_and_rare_kinds_are_drawn_often():
    replay, rng = StepReplay(100, 1, 2), np.random.default_rng(0)
    states = np.arange(250, dtype=np.uint8)[:, None]
    ends = np.arange(250) == 240
    replay.add(states, np.zeros(250, int), Successors(states + 1, np.where(ends, 1.0, 0.0), ends, ends))
    drawn = replay.sample(4000, rng)
    assert len(replay) == 100
    assert set(drawn.before[:, 0].tolist()) == set(range(150, 250))
    assert (drawn.after == drawn.before + 1).all()
    assert 0.2 < (drawn.before == 240).mean() < 0.3
    assert replay.rewards[drawn.kinds[drawn.before[:, 0] == 240]].tolist() == [1.0] * int((drawn.before == 240).sum())


def test_further_kinds_count_as_the_nearest():
    replay, ends = StepReplay(100, 1, 2), np.zeros(60, bool)
    states = np.zeros((60, 1), np.uint8)
    replay.add(states, np.zeros(60, int), Successors(states, np.arange(60.0), ends, ends))
    assert replay.num_kinds == MOST_KINDS
    assert replay.state_dict()["kinds"].tolist() == [*range(MOST_KINDS), *[MOST_KINDS - 1] * (60 - MOST_KINDS)]


def test_what_is_saved_goes_on_bit_for_bit():
    world = small_world(1)
    steps = all_steps(world)
    whole, resumed = NetworkModel(world, 5), NetworkModel(world, 5)
    for _ in range(3):
        whole.learn(*steps)
    whole.successors(steps[0][:2])
    resumed.load_state_dict(whole.state_dict())
    for model in (whole, resumed):
        model.learn(*steps)
    one, other = whole.state_dict(), resumed.state_dict()
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("num_updates", lambda array: array + 1),
        ("asked", lambda array: array[:, :1]),
        ("replay.actions", lambda array: array + 7),
        ("replay.kinds", lambda array: array - 1),
        ("replay.rewards", lambda array: array + np.nan),
        ("replay.before", lambda array: array[1:]),
        ("network.0.first", lambda array: array[1:]),
        ("network.0.second.bias", lambda array: array + np.inf),
        ("optimiser.0.0.exp_avg", lambda array: array[1:]),
        ("optimiser.0.0.exp_avg_sq", lambda array: array - 1),
        ("optimiser.0.0.step", lambda array: 0 * array - 1),
        ("optimiser.0.0.step", lambda array: 0 * array + 1e30),
    ],
)
def test_a_state_that_nobody_saved_is_refused(name, change):
    world = small_world(1)
    model = NetworkModel(world, 5)
    model.learn(*all_steps(world))
    state = model.state_dict()
    with pytest.raises(BathysphereError, match="What was saved is impossible"):
        NetworkModel(world, 5).load_state_dict({**state, name: change(state[name])})


def test_a_run_with_a_network_goes_on_bit_for_bit_and_tells_its_errors():
    config = override(find_preset("deep-sea"), {"model": "network", "domain": {"size": 5}, "batch": 4})
    whole, resumed = make_trainer(config), make_trainer(config)
    for _ in range(40):
        whole.advance()
    resumed.load_state_dict(whole.state_dict())
    for _ in range(20):
        whole.advance()
        resumed.advance()
    one, other = whole.state_dict(), resumed.state_dict()
    assert any(name.startswith("model.network") for name in one)
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)
    errors = whole.columns()
    assert errors == resumed.columns()
    assert all(0.0 <= share <= 1.0 for share in errors.values())
    assert whole.progress.env_steps == 240
    assert whole.progress.imagined_steps > 0


@pytest.mark.parametrize("kind", ["network", "ensemble"])
def test_a_run_learns_its_model_from_every_step_when_it_is_made(kind):
    trainer = make_trainer(override(find_preset("deep-sea"), {"model": kind, "domain": {"size": 5}, "batch": 4}))
    told: list[tuple[np.ndarray, np.ndarray, Successors]] = []
    learn = trainer.model.learn
    trainer.model.learn = lambda *steps: (told.append(steps), learn(*steps))[1]
    episodes = []
    for made in range(1, 13):
        episodes += trainer.advance()
        assert trainer.model.num_steps == 4 * made == trainer.progress.env_steps
    assert len(episodes) == 12
    for episode in episodes:
        for step, state in enumerate(episode.states):
            after = episode.last_state if step + 1 == len(episode) else episode.states[step + 1]
            assert any(
                (states[i] == state).all()
                and actions[i] == episode.actions[step]
                and (outcomes.states[i] == after).all()
                and outcomes.rewards[i] == episode.rewards[step]
                and outcomes.terminal[i] == (step + 1 == len(episode))
                for states, actions, outcomes in told
                for i in range(4)
            )


@pytest.mark.parametrize(
    ("preset", "changes", "sentence"),
    [
        ("deep-sea", {"scale": {"block": 4}}, "cannot be used in blocks"),
        ("sokoban", {"domain": {"rewards": {"box_on_target": 1.0}}}, "predicts the final reward only"),
    ],
)
def test_what_networks_cannot_do_is_refused(preset, changes, sentence):
    with pytest.raises(BathysphereError, match=sentence):
        make_trainer(override(find_preset(preset), {"model": "network", **changes}))


def test_best_first_refuses_a_model_learnt_while_acting():
    config = replace(override(find_preset("sokoban"), {"model": "network"}), search=BestFirstConfig())
    with pytest.raises(BathysphereError, match="not best-first"):
        make_trainer(config)


def test_a_world_that_knows_only_states_it_has_met_is_refused():
    domain = from_gymnasium(gymnasium.make("MountainCar-v0"))
    assert isinstance(domain, Remembers)
    with pytest.raises(BathysphereError, match="Learn them with the model memory"):
        NetworkModel(domain, 0)


def test_long_rows_are_refused():
    world = small_world(0)
    world.state_size = 300
    with pytest.raises(BathysphereError, match="at most 256"):
        NetworkModel(world, 0)


def test_an_ensemble_knows_what_most_of_its_networks_say():
    world = small_world(1)
    model, steps = EnsembleModel(world, 0, 4, 2.0), all_steps(world)
    model.learn(*steps)
    states = world.encode(np.arange(len(world.target)))
    for network, bias in zip(model._networks, (0.0, 50.0, -50.0), strict=True):
        network.seen[:] = True
        with torch.no_grad():
            network.bits.bias.fill_(bias)
    imagined = model.imagine(states)
    answers = [model._told(*model._predict(number, states)) for number in range(3)]
    for i in range(len(states)):
        for action in range(world.target.shape[1]):
            said = [tuple(part[i, action].tobytes() for part in answer) for answer in answers]
            likeliest = max(said, key=said.count)
            assert imagined.is_known[i, action] == (said.count(likeliest) >= 2)
            if imagined.is_known[i, action]:
                assert tuple(part[i, action].tobytes() for part in imagined.successors) == likeliest
            assert imagined.values[i, action].any() != imagined.is_known[i, action]
    assert not imagined.is_known.all()
    loaded = EnsembleModel(world, 0, 4, 0.0)
    loaded.load_state_dict(model.state_dict())
    assert (loaded.imagine(states).values == imagined.values).all()


@pytest.mark.parametrize(("model_risk", "action"), [(20.0, 1), (-20.0, 0)])
def test_the_sign_of_model_risk_decides_about_the_unknown(model_risk, action):
    world = make_world({0: [1, 2]}, ends=(1, 2))
    memory = memory_of(world, np.array([[True, False], [False, False], [False, False]]), num_members=8)
    search = MCTS(world, HashedValues(8), SearchConfig(model_risk=model_risk), model=memory)
    search.step()
    assert search.actions[0] == action


def test_model_risk_needs_a_model_that_does_not_know_everything():
    with pytest.raises(BathysphereError, match="needs the model memory, relevance or ensemble"):
        override(find_preset("deep-sea"), {"model": "network", "search": {"model_risk": 1.0}})
