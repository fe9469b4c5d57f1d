import numpy as np
import pytest

from bathysphere.domains.sokoban import GeneratorConfig, Sokoban, SokobanConfig
from bathysphere.learning.config import LearningConfig
from bathysphere.learning.trainer import Trainer
from bathysphere.planning import SearchConfig
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig


def play(learning, num_episodes, **search):
    """Plays short episodes on small boards, without an update; returns the trainer and the episodes."""
    domain = Sokoban(SokobanConfig(generator=GeneratorConfig(6, 6, num_boxes=2, max_states=2000), max_steps=30))
    values = Ensemble(ValuesConfig("mlp", num_members=2, hidden=(4,)), OptimiserConfig(), domain.observation, 0)
    trainer = Trainer(domain, values, SearchConfig(passes=2, **search), learning, batch=4, seed=1)
    episodes = []
    while len(episodes) < num_episodes:
        episodes += trainer.advance()
    return trainer, episodes


@pytest.mark.parametrize("target", ["bootstrap", "bootstrap_members"])
def test_an_episode_with_a_new_goal_learns_from_what_it_returned(target):
    trainer, episodes = play(
        LearningConfig(target=target, hindsight=1.0, hindsight_as="solved", min_episodes=10**6), 20
    )
    num_wins = sum(episode.solved for episode in episodes)
    assert trainer.replay.num_solved_episodes > num_wins
    state = trainer.replay.state_dict()
    ends = np.cumsum(state["solved.lengths"])
    last = state["solved.targets"][ends - 1]
    # The step out of a relabelled episode's last state earns the reward; a search that won may believe in less.
    assert (last == 10).all(axis=1).sum() >= trainer.replay.num_solved_episodes - num_wins
    first = ends - state["solved.lengths"]
    relabelled = (last == 10).all(axis=1)
    expected = 10 * 0.99 ** (state["solved.lengths"][relabelled] - 1)
    np.testing.assert_allclose(state["solved.targets"][first[relabelled], 0], expected, rtol=1e-5)


def test_relabelled_episodes_stay_with_the_unsolved_unless_told():
    trainer, episodes = play(LearningConfig(hindsight=1.0, min_episodes=10**6), 20)
    assert trainer.replay.num_solved_episodes == sum(episode.solved for episode in episodes)
    assert (trainer.replay.state_dict()["unsolved.targets"] == 10).any()


def test_episodes_of_training_do_not_wait():
    trainer, episodes = play(LearningConfig(min_episodes=10**6), 20, merge_nodes=True, patience=0.9)
    assert all((episode.states[1:] != episode.states[:-1]).any(axis=1).all() for episode in episodes)
    assert trainer.search.patience == 0.9  # the agent's own is kept


def test_episodes_of_training_can_be_shorter_than_those_of_the_agent():
    trainer, episodes = play(LearningConfig(max_steps=7, min_episodes=10**6), 20)
    lost = [episode for episode in episodes if not episode.solved]
    assert lost
    assert {(len(episode), episode.truncated) for episode in lost} == {(7, True)}
    assert trainer.search.max_steps is None
    assert (trainer.max_steps, trainer.domain.max_steps) == (7, 30)
    assert play(LearningConfig(max_steps=31, min_episodes=10**6), 1)[0].max_steps == 30  # but not longer


def steady_trainer(steady):
    domain = Sokoban(SokobanConfig(generator=GeneratorConfig(6, 6, num_boxes=2, max_states=2000), max_steps=30))
    optimiser = OptimiserConfig(name="adam", learning_rate=0.05)
    values = Ensemble(ValuesConfig("mlp", num_members=2, hidden=(4,)), optimiser, domain.observation, 0)
    learning = LearningConfig(steady_values=steady, min_episodes=2)
    return Trainer(domain, values, SearchConfig(passes=4, risk_coef=1.0), learning, batch=4, seed=1)


def told(episodes):
    return [(episode.index, episode.actions.tolist(), episode.search_values.tolist()) for episode in episodes]


def test_steady_episodes_are_planned_with_the_values_of_their_beginning():
    steady, newest = steady_trainer(True), steady_trainer(False)
    episodes = [episode for _ in range(150) for episode in steady.advance()]
    assert told(episodes) != told(episode for _ in range(150) for episode in newest.advance())
    resumed = steady_trainer(True)
    resumed.load_state_dict(steady.state_dict())
    for _ in range(60):
        assert told(steady.advance()) == told(resumed.advance())
