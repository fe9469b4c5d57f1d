"""What a planner has to be, shown with a second one; and how many steps are made in one call."""

from types import SimpleNamespace

import numpy as np
import pytest

from bathysphere.agents.agent import Agent
from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.learning.config import LearningConfig
from bathysphere.learning.trainer import Trainer
from bathysphere.planning import MCTS, BestFirst, BestFirstConfig, Pool, SearchConfig, make_planner
from bathysphere.planning.inspect import search_graph
from bathysphere.planning.planner import TimedSteps, Work
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig
from tests.planning.random_planner import RandomConfig, RandomPlanner

SEA = DeepSea(DeepSeaConfig(size=4))


def make_values():
    config = ValuesConfig(network="linear", num_members=3, bias=False)
    return Ensemble(config, OptimiserConfig(name="delta", learning_rate=0.5), SEA.observation, 0)


def test_the_config_says_which_planner():
    assert isinstance(make_planner(SEA, make_values(), SearchConfig()), MCTS)
    assert isinstance(make_planner(SEA, make_values(), BestFirstConfig()), BestFirst)
    assert isinstance(make_planner(SEA, make_values(), RandomConfig()), RandomPlanner)


def test_pools_play_with_any_planner():
    episodes = Pool(SEA, make_values(), RandomConfig(), batch=4, workers=2, num_episodes=30, seed=5).play()
    assert [episode.index for episode in episodes] == list(range(30))
    assert len({tuple(episode.actions) for episode in episodes}) > 4


def test_training_learns_from_any_planner():
    values = make_values()
    learning = LearningConfig(target="factual_rewards", min_episodes=5, steps_per_update=1.0)
    trainer = Trainer(SEA, values, RandomConfig(), learning, batch=4, seed=0)
    while trainer.progress.episodes < 300:
        trainer.advance()
    assert trainer.progress.wins > 10  # an eighth of all dives, by chance
    last = np.array([[2, 0, 2, 0], [2, 0, 0, 0]], np.uint8)  # one step from the treasure, and where there is none
    near, far = values.evaluate(SEA.observe(last)).mean(axis=1)
    assert near > far + 0.2


def test_agents_act_with_any_planner():
    agent = Agent(SEA, make_values(), RandomConfig())
    state = SEA.initial(1, np.random.default_rng(0))[0]
    assert {agent.act(state) for _ in range(30)} == {0, 1}


@pytest.mark.parametrize(("config", "at_least"), [(SearchConfig(), 3), (BestFirstConfig(), 3), (RandomConfig(), 1)])
def test_any_planner_can_be_asked_for_its_graph(config, at_least):
    planner = make_planner(SEA, make_values(), config, batch=2)
    planner.plan()
    assert len(search_graph(planner, 1).states) >= at_least


def test_work_adds_up():
    one, other = Work(model_calls=2, network_calls=3), Work(model_calls=5)
    one.model_errors["false_end"] = other.model_errors["false_end"] = 4
    other.seconds["model"] = 1.5
    both = sum((one, other), Work())
    assert (both.model_calls, both.network_calls, both.model_errors["false_end"]) == (7, 3, 8)
    assert both.seconds == {**dict.fromkeys(both.seconds, 0.0), "model": 1.5}


class Player:
    """Takes the same time for every step, by a clock of its own."""

    def __init__(self, seconds_per_step):
        self.seconds_per_step = seconds_per_step
        self.asked, self.now = [], 0.0

    def step(self, steps=1):
        self.asked.append(steps)
        self.now += steps * self.seconds_per_step
        return [f"episode {steps}"]


@pytest.fixture
def play(monkeypatch):
    """Makes a player whose clock is the planner's."""

    def make(seconds_per_step):
        player = Player(seconds_per_step)
        clock = SimpleNamespace(perf_counter=lambda: player.now)
        monkeypatch.setattr("bathysphere.planning.planner.time", clock)
        return player

    return make


def test_calls_grow_gradually_towards_their_length(play):
    player, timed = play(0.001), TimedSteps(0.0205)
    assert timed.step(player) == ["episode 1"]
    for _ in range(4):
        timed.step(player)
    assert player.asked == [1, 4, 16, 20, 20]  # never more than four times as many as before


def test_slow_players_make_one_step_at_a_time(play):
    player, timed = play(0.01), TimedSteps(0.001)
    for _ in range(3):
        timed.step(player)
    assert player.asked == [1, 1, 1]
