import numpy as np
import pytest

from bathysphere.domains.sokoban import GeneratorConfig, Sokoban, SokobanConfig
from bathysphere.learning.config import LearningConfig
from bathysphere.learning.trainer import Trainer
from bathysphere.planning import SearchConfig
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig


def play(learning, num_episodes, **search):
    """Plays short games on small boards, without an update; returns the trainer and the games."""
    domain = Sokoban(SokobanConfig(generator=GeneratorConfig(6, 6, num_boxes=2, max_states=2000), max_steps=30))
    values = Ensemble(ValuesConfig("mlp", num_members=2, hidden=(4,)), OptimiserConfig(), domain.observation, 0)
    trainer = Trainer(domain, values, SearchConfig(passes=2, **search), learning, batch=4, seed=1)
    games = []
    while len(games) < num_episodes:
        games += trainer.advance()
    return trainer, games


@pytest.mark.parametrize("target", ["bootstrap", "bootstrap_members"])
def test_a_game_with_a_new_goal_learns_from_what_it_returned(target):
    trainer, games = play(LearningConfig(target=target, hindsight=1.0, hindsight_as="solved", min_episodes=10**6), 20)
    num_wins = sum(game.solved for game in games)
    assert trainer.replay.num_solved_episodes > num_wins
    state = trainer.replay.state_dict()
    ends = np.cumsum(state["solved.lengths"])
    last = state["solved.targets"][ends - 1]
    # The move out of a relabelled game's last state earns the reward; a search that won may believe in less.
    assert (last == 10).all(axis=1).sum() >= trainer.replay.num_solved_episodes - num_wins
    first = ends - state["solved.lengths"]
    relabelled = (last == 10).all(axis=1)
    expected = 10 * 0.99 ** (state["solved.lengths"][relabelled] - 1)
    np.testing.assert_allclose(state["solved.targets"][first[relabelled], 0], expected, rtol=1e-5)


def test_relabelled_games_stay_with_the_unsolved_unless_told():
    trainer, games = play(LearningConfig(hindsight=1.0, min_episodes=10**6), 20)
    assert trainer.replay.num_solved_episodes == sum(game.solved for game in games)
    assert (trainer.replay.state_dict()["unsolved.targets"] == 10).any()


def test_games_of_training_do_not_wait():
    trainer, games = play(LearningConfig(min_episodes=10**6), 20, merge_nodes=True, patience=0.9)
    assert all((game.states[1:] != game.states[:-1]).any(axis=1).all() for game in games)
    assert trainer.search.patience == 0.9  # the agent's own is kept


def test_games_of_training_can_be_shorter_than_those_of_the_agent():
    trainer, games = play(LearningConfig(max_steps=7, min_episodes=10**6), 20)
    lost = [game for game in games if not game.solved]
    assert lost
    assert {(len(game), game.truncated) for game in lost} == {(7, True)}
    assert trainer.search.max_steps is None
    assert (trainer.max_steps, trainer.domain.max_steps) == (7, 30)
    assert play(LearningConfig(max_steps=31, min_episodes=10**6), 1)[0].max_steps == 30  # but not longer


def steady_trainer(steady):
    domain = Sokoban(SokobanConfig(generator=GeneratorConfig(6, 6, num_boxes=2, max_states=2000), max_steps=30))
    optimiser = OptimiserConfig(name="adam", learning_rate=0.05)
    values = Ensemble(ValuesConfig("mlp", num_members=2, hidden=(4,)), optimiser, domain.observation, 0)
    learning = LearningConfig(steady_values=steady, min_episodes=2)
    return Trainer(domain, values, SearchConfig(passes=4, risk_coef=1.0), learning, batch=4, seed=1)


def told(games):
    return [(game.index, game.actions.tolist(), game.search_values.tolist()) for game in games]


def test_steady_games_are_planned_with_the_values_of_their_beginning():
    steady, newest = steady_trainer(True), steady_trainer(False)
    games = [game for _ in range(150) for game in steady.advance()]
    assert told(games) != told(game for _ in range(150) for game in newest.advance())
    resumed = steady_trainer(True)
    resumed.load_state_dict(steady.state_dict())
    for _ in range(60):
        assert told(steady.advance()) == told(resumed.advance())
