import pickle
from itertools import pairwise

import numpy as np
import pytest

import bathysphere
from bathysphere.config.convert import override
from bathysphere.domains import make_domain
from bathysphere.errors import BathysphereError
from bathysphere.learning.blocks import BlockPlayer, Knowledge, PlayersHere
from bathysphere.runs.build import make_trainer
from tests.domains.adapters.broken_environments import Corridor, Slippery
from tests.scale.small import WORLDS, in_blocks


def player_of(world, size=6, **changes):
    config = override(in_blocks(world), changes)
    trainer = make_trainer(config)
    player = BlockPlayer(
        make_domain(config.domain),
        trainer.values.snapshot(),
        config.search.for_training(trainer.max_steps),
        batch=config.batch,
        size=size,
        seed=np.random.SeedSequence(3),
    )
    return player, Knowledge(trainer.values.weights())


def told(played):
    return [(e.index, e.states.tobytes(), e.actions.tolist(), e.search_values.tobytes()) for e in played.episodes()]


@pytest.mark.parametrize("world", WORLDS)
def test_a_block_follows_from_its_number_and_weights(world):
    player, known = player_of(world)
    other = pickle.loads(pickle.dumps(player))
    changed = Knowledge({name: array * array.dtype.type(2) for name, array in known.weights.items()})
    third = player.play(3, known)
    other.play(7, changed)  # leaves nothing behind
    assert told(other.play(3, known)) == told(third)
    assert [episode.index for episode in third.episodes()] == list(range(18, 24))
    assert told(player.play(4, known)) != told(third)
    assert told(player.play(3, changed)) != told(third)
    assert third.work.steps == sum(map(len, third.episodes()))


def test_blocks_carry_the_mean_of_the_members_if_no_more_is_learnt_from():
    player, known = player_of("deep-sea")
    means = player.play(3, known).episodes()
    player.all_members = True
    for mean, every in zip(means, player.play(3, known).episodes(), strict=True):
        assert every.search_values.shape == (len(every), len(known.weights["table"].T))
        assert mean.search_values.tobytes() == every.search_values.mean(axis=1, keepdims=True).tobytes()
        assert mean.states.tobytes() == every.states.tobytes()


@pytest.mark.parametrize(("target", "all_members"), [("bootstrap", False), ("bootstrap_members", True)])
def test_members_that_learn_for_themselves_get_their_own_values(target, all_members):
    recording = Recording()
    trainer = make_trainer(in_blocks("deep-sea", learning={"target": target}), workers=recording)
    assert recording.players.player.all_members == all_members
    while (episodes := trainer.advance()) is None:
        pass
    columns = trainer.values.num_members if all_members else 1
    assert all(episode.search_values.shape == (len(episode), columns) for episode in episodes)


def test_numbered_starts_go_on_from_block_to_block():
    endless = {"domain": {"num_boards": None}}
    (short, known), (long, _) = player_of("sokoban", 3, **endless), player_of("sokoban", 6, **endless)
    starts = [episode.states[0].tobytes() for number in (0, 1) for episode in short.play(number, known).episodes()]
    assert starts == [episode.states[0].tobytes() for episode in long.play(0, known).episodes()]
    assert len(set(starts)) == 6


class Recorder(PlayersHere):
    """Takes down what was ordered, and what had been learnt from by then."""

    def __init__(self, player):
        super().__init__(player)
        self.player, self.orders, self.known, self.taken = player, [], [], 0

    def submit(self, number, version, knowledge):
        self.orders.append((number, version, self.taken))
        self.known.append(knowledge)
        super().submit(number, version, knowledge)

    def take(self, number, seconds):
        played = super().take(number, seconds)
        self.taken += played is not None
        return played


class Recording:
    number = 1

    def make_players(self, player):
        self.players = Recorder(player)
        return self.players


@pytest.mark.parametrize("distance", [1, 3])
def test_a_block_is_played_with_the_weights_left_by_the_block_before_at_the_distance(distance):
    recording = Recording()
    trainer = make_trainer(in_blocks("deep-sea", distance), workers=recording)
    weights = [trainer.values.weights()["table"]]
    while len(weights) < 8:
        if trainer.advance() is not None:
            weights.append(trainer.values.weights()["table"])
    orders = recording.players.orders
    assert [number for number, _, _ in orders] == list(range(7 + distance - 1))
    for number, version, taken in orders:
        assert version == max(0, number - distance + 1)
        assert taken == max(0, number - distance + 1)  # no sooner, and no later, than its weights are there
    assert all((a != b).any() for a, b in pairwise(weights[4:]))


def test_distance_one_learns_from_the_newest_weights():
    trainer = make_trainer(in_blocks("deep-sea", 1))
    for _ in range(30):
        trainer.advance()
    assert trainer.progress.updates > 0
    assert trainer.columns()["staleness"] == 0


def test_updates_are_those_of_the_steps_that_were_played():
    config = in_blocks("deep-sea")
    trainer = make_trainer(config)
    episodes = []
    while trainer.progress.env_steps < 1000:
        episodes += trainer.advance() or []
    steps = sum(map(len, episodes))
    assert trainer.progress.env_steps == trainer.work.steps == steps
    assert trainer.progress.updates == np.ceil(steps / config.learning.steps_per_update)
    assert [episode.index for episode in episodes] == list(range(len(episodes)))


def test_the_config_refuses_what_makes_no_sense():
    for changes, told in (
        ({"scale": {"block": 0}}, r"scale\.block is 0; expected at least 1"),
        ({"scale": {"distance": 0}}, r"scale\.distance is 0; expected at least 1"),
        ({"workers": 2}, r"both divide the play"),
    ):
        with pytest.raises(ValueError, match=told):
            override(in_blocks("deep-sea"), changes)


def test_worlds_whose_outcomes_are_counted_while_playing_are_refused(tmp_path):
    world = bathysphere.from_gymnasium(Slippery)
    with pytest.raises(BathysphereError, match=r"Slippery cannot be played in blocks.*counted.*Leave out scale\.block"):
        bathysphere.train(world, run_dir=tmp_path / "run", scale={"block": 4})


def test_a_learner_that_would_ask_about_states_of_its_workers_is_refused(tmp_path):
    world, learning = bathysphere.from_gymnasium(Corridor), {"target": "lookahead"}
    with pytest.raises(BathysphereError, match=r"lookahead.*only its workers have met. Choose another target"):
        bathysphere.train(world, run_dir=tmp_path / "run", scale={"block": 4}, learning=learning)


@pytest.mark.parametrize("model", ["network", "ensemble"])
def test_models_that_learn_from_every_step_are_refused(model):
    with pytest.raises(BathysphereError, match=r"learn from every step.*cannot be used in blocks.*the model memory"):
        make_trainer(override(in_blocks("deep-sea"), {"model": model}))


def test_a_block_is_planned_with_what_a_model_knew_by_then():
    recording = Recording()
    trainer = make_trainer(in_blocks("deep-sea", 2, model="memory"), workers=recording)
    sizes = [0]
    while len(sizes) < 8:
        if trainer.advance() is not None:
            sizes.append(len(trainer.model.state_dict()["seen"]))
    known = [len(knowledge.model["seen"]) for knowledge in recording.players.known]
    assert known == [sizes[max(0, number - 1)] for number in range(8)]
    assert sizes[0] < sizes[1] < sizes[-1]
