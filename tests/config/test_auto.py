"""Settings chosen for a world: what they follow from, and that a run keeps them."""

import time
from dataclasses import replace

import numpy as np

import bathysphere
from bathysphere.config.auto import choose, look_around
from bathysphere.config.convert import with_planner
from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.domains.adapters.per_state import from_steps
from bathysphere.domains.base import DomainConfig
from bathysphere.domains.worlds import describe
from bathysphere.runs.build import make_trainer
from tests.checking.broken_worlds import Ring
from tests.domains.per_state_worlds import Drops, Lamps
from tests.domains.toll import Toll


def chosen(domain):
    config, choices = choose(domain, DomainConfig())
    return config, {choice.setting: choice.reason for choice in choices}


def test_the_risk_coefficient_follows_from_how_near_success_is():
    near, why = chosen(from_steps(Lamps))
    assert near.search.risk_coef == 0.0
    assert "of random walks came next to success" in why["search.risk_coef 0"]
    far, why = chosen(DeepSea(DeepSeaConfig(size=20)))
    assert far.search.risk_coef == 3.0
    assert "random walks hardly meet success" in why["search.risk_coef 3"]
    assert look_around(Toll()).near == 0.0


def test_the_network_follows_from_the_observation():
    assert chosen(from_steps(Lamps))[0].values.network == "mlp"
    assert chosen(Toll())[0].values.network == "linear"
    board = from_steps(Lamps)
    board.observation = type(board.observation)((3, 4), 2)
    assert chosen(board)[0].values.network == "cnn"


def test_scale_and_discount_follow_from_rewards_and_the_time_limit():
    config, why = chosen(from_steps(Drops))
    assert config.values.scale == 2.0
    assert config.search.discount == 0.995
    assert "episodes have up to 200 steps" in why["search.discount 0.995"]


def test_step_costs_do_not_set_the_scale_of_a_success_that_random_walks_never_meet():
    config, why = chosen(DeepSea(DeepSeaConfig(size=10)))
    assert config.values.scale == 1.0
    assert "no reward above 0.0011 in size" in why["values.scale 1"]
    trainer, episodes = make_trainer(replace(config, domain=DeepSeaConfig(size=10))), []
    while len(episodes) < 60:
        episodes += trainer.advance()
    assert sum(bool(episode.solved) for episode in episodes) > 30


class Tiring(Ring):
    """A world that can become slower."""

    work = 0

    def step(self, state, action):
        np.ones((self.work, self.work)).sum()
        return super().step(state, action)


def test_slow_worlds_play_few_episodes_at_a_time(monkeypatch):
    monkeypatch.setattr(
        Lamps, "step", lambda self, state, action, step=Lamps.step: time.sleep(1e-3) or step(self, state, action)
    )
    config, why = chosen(from_steps(Lamps))
    assert config.batch == 4
    assert "come to an end sooner" in why["batch 4"]


def test_what_a_world_offers_to_learn_more_from_is_used():
    config, why = chosen(from_steps(Lamps))
    assert (config.learning.hindsight, config.learning.hindsight_as, config.learning.symmetries) == (
        0.5,
        "solved",
        True,
    )
    assert {"learning.hindsight 0.5", "learning.symmetries"} <= why.keys()
    plain = chosen(from_steps(Drops))[0].learning
    assert (plain.hindsight, plain.symmetries) == (0.0, False)


def test_without_a_planner_symmetries_are_not_learnt_from():
    """A symmetry says which states are alike, not which actions, so the run would be refused."""
    config = replace(with_planner(chosen(from_steps(Lamps))[0], "none"), domain=describe(Lamps)[0])
    assert config.learning == replace(chosen(from_steps(Lamps))[0].learning, symmetries=False)
    assert make_trainer(config).advance() is not None


def test_a_resumed_run_keeps_what_was_chosen(tmp_path, monkeypatch):
    run = bathysphere.train(Tiring, run_dir=tmp_path / "run", steps=200, pictures=False)
    monkeypatch.setattr(Tiring, "work", 1500)
    assert chosen(from_steps(Tiring))[0].search.passes == 10
    longer = run.resume(steps=220, pictures=False)
    assert longer.config.search == run.config.search
