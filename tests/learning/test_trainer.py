import numpy as np
import pytest

from bathysphere.domains.sokoban import GeneratorConfig, Sokoban, SokobanConfig
from bathysphere.errors import BathysphereError
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


# Policies.


def guided_trainer(learning, policy=True, max_steps=20, **search):
    """Returns a trainer on a few easy boards with a small network of values and policies."""
    generator = GeneratorConfig(6, 6, num_boxes=1, max_states=2000)
    domain = Sokoban(SokobanConfig(generator=generator, num_boards=4, max_steps=max_steps))
    network = ValuesConfig("board", 2, conv_layers=3, conv_channels=4, dense=8, policy=policy)
    optimiser = OptimiserConfig(name="adam", learning_rate=0.01)
    values = Ensemble(network, optimiser, domain.observation, 0, num_actions=4)
    return Trainer(domain, values, SearchConfig(**{"passes": 4, **search}), learning, batch=4, seed=1)


def advance_until(trainer, is_enough):
    episodes = []
    for _ in range(400):
        episodes += trainer.advance()
        if is_enough(episodes):
            return episodes
    raise AssertionError(f"after {len(episodes)} episodes there is still something missing")


def has_both(episodes):
    return len({episode.solved for episode in episodes}) == 2 and len(episodes) > 12


def kept(trainer, part):
    """Returns what replay holds of episodes of a class: states, targets and policies, oldest first."""
    state = trainer.replay.state_dict()
    targets = state[f"{part}.targets"]
    return state[f"{part}.states"], targets[:, :1], targets[:, 1:]


NO_UPDATES = {"min_episodes": 10**6}


def test_policies_learn_what_won_and_else_where_the_search_looked():
    trainer = guided_trainer(LearningConfig(**NO_UPDATES))
    episodes = advance_until(trainer, has_both)
    for part, wanted in (("solved", True), ("unsolved", False)):
        chosen = [episode for episode in episodes if episode.solved == wanted]
        states, targets, policy = kept(trainer, part)
        assert np.array_equal(states, np.concatenate([episode.states for episode in chosen]))
        values = np.concatenate([episode.search_values.mean(axis=1) for episode in chosen])
        np.testing.assert_allclose(targets[:, 0], values, rtol=1e-6)
        told = [np.eye(4)[episode.actions] if wanted else episode.policy for episode in chosen]
        np.testing.assert_allclose(policy, np.concatenate(told), rtol=1e-6)


def test_policies_learn_the_way_to_a_new_goal():
    trainer = guided_trainer(LearningConfig(hindsight=1.0, hindsight_as="solved", **NO_UPDATES), passes=2)
    episodes = advance_until(trainer, lambda episodes: sum(not e.solved for e in episodes) > 8)
    relabelled = trainer.replay.num_solved_episodes - sum(episode.solved for episode in episodes)
    assert relabelled > 2
    _, _, policy = kept(trainer, "solved")
    assert np.array_equal(np.sort(policy, axis=1), np.broadcast_to([0, 0, 0, 1], policy.shape))
    lengths = trainer.replay.state_dict()["solved.lengths"].tolist()
    done = [row.argmax(axis=1).tolist() for row in np.split(policy, np.cumsum(lengths)[:-1])]
    played = [episode.actions.tolist() for episode in episodes]
    assert all(any(actions[: len(way)] == way for actions in played) for way in done)
    # What reached no goal at all still has its visits.
    _, _, policy = kept(trainer, "unsolved")
    assert (policy.sum(axis=1) > 0.99).any()


def test_without_policies_nothing_is_kept_of_them():
    trainer = guided_trainer(LearningConfig(**NO_UPDATES), policy=False)
    advance_until(trainer, lambda episodes: len(episodes) > 3)
    assert kept(trainer, "unsolved")[2].shape[1] == 0
    assert trainer.replay.sample(1, 4, np.random.default_rng(0)).policy is None


@pytest.mark.parametrize(
    ("learning", "search"),
    [
        ({}, {"prior_coef": 1.0}),
        ({"symmetries": True, "hindsight": 0.5}, {"risk": "vote", "final_ties": "random"}),
        ({"target": "graph", "graph_states": 6, "symmetries": True}, {"prior_coef": 0.5}),
    ],
    ids=str,
)
def test_a_resumed_trainer_goes_on_bit_for_bit(learning, search):
    settings = LearningConfig(min_episodes=2, batch_size=8, **learning)
    trainer, resumed = (guided_trainer(settings, **search) for _ in range(2))
    advance_until(trainer, lambda episodes: len(episodes) > 8)
    assert trainer.progress.updates > 3
    resumed.load_state_dict(trainer.state_dict())
    for _ in range(25):
        assert told(trainer.advance()) == told(resumed.advance())
    saved, expected = resumed.state_dict(), trainer.state_dict()
    assert saved.keys() == expected.keys()
    for name, array in saved.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def test_policies_do_learn():
    """After learning from what it did, the agent's policy thinks the winning moves likelier than it did before."""
    trainer = guided_trainer(LearningConfig(min_episodes=5, steps_per_update=2.0))
    before = trainer.values.snapshot()
    advance_until(trainer, lambda episodes: len(episodes) > 40)
    states, _, policy = kept(trainer, "solved")
    observations = trainer.domain.observe(states)
    likely = [
        (values.evaluate_with_policy(observations)[1] * policy).sum(axis=1) for values in (before, trainer.values)
    ]
    assert likely[1].mean() > likely[0].mean() + 0.05


# Targets from the graph.


@pytest.mark.parametrize("policy", [True, False])
def test_graph_targets_and_further_states(policy):
    trainer = guided_trainer(LearningConfig(target="graph", graph_states=5, **NO_UPDATES), policy)
    episodes = advance_until(trainer, has_both)
    expected = {"solved": [], "unsolved": []}
    for episode in episodes:
        part = "solved" if episode.solved else "unsolved"
        told_policy = np.eye(4)[episode.actions] if episode.solved else episode.policy
        expected[part].append((episode.states, episode.graph_values.mean(axis=1), told_policy))
        seen = episode.seen
        if len(seen.states):  # beside the way, whatever came of it
            assert len(seen.states) <= 5
            expected["unsolved"].append((seen.states, seen.values.mean(axis=1), np.zeros((len(seen.states), 4))))
    assert trainer.replay.num_unsolved_episodes == len(expected["unsolved"]) > sum(not e.solved for e in episodes)
    for part, entries in expected.items():
        states, targets, kept_policy = kept(trainer, part)
        assert np.array_equal(states, np.concatenate([entry[0] for entry in entries]))
        np.testing.assert_allclose(targets[:, 0], np.concatenate([entry[1] for entry in entries]), rtol=1e-6)
        if policy:
            np.testing.assert_allclose(kept_policy, np.concatenate([entry[2] for entry in entries]), rtol=1e-6)
    # A solved episode's states are worth the way that was found.
    solved = next(episode for episode in episodes if episode.solved)
    assert solved.graph_values[-1].tolist() == [10.0] * 2


def test_without_further_states_replay_holds_episodes_only():
    trainer = guided_trainer(LearningConfig(target="graph", **NO_UPDATES))
    episodes = advance_until(trainer, lambda episodes: len(episodes) > 4)
    assert trainer.replay.num_episodes_added == len(episodes)
    assert all(episode.seen is None and episode.graph_values is not None for episode in episodes)


def test_other_targets_leave_the_graph_alone():
    episodes = advance_until(guided_trainer(LearningConfig(**NO_UPDATES)), lambda episodes: len(episodes) > 2)
    assert all(episode.seen is None and episode.graph_values is None for episode in episodes)


@pytest.mark.parametrize("target", ["bootstrap", "bootstrap_members", "factual"])
def test_further_states_beside_other_targets(target):
    trainer = guided_trainer(LearningConfig(target=target, graph_states=3, **NO_UPDATES))
    episodes = advance_until(trainer, lambda episodes: len(episodes) > 6)
    with_more = [episode for episode in episodes if len(episode.seen.states)]
    assert with_more
    assert trainer.replay.num_episodes_added == len(episodes) + len(with_more)
    state = trainer.replay.state_dict()
    lengths = state["unsolved.lengths"].tolist()
    last = np.split(state["unsolved.targets"], np.cumsum(lengths)[:-1])[-1]
    worth = with_more[-1].seen.values
    expected = worth if target == "bootstrap_members" else worth.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(last[:, : expected.shape[1]], expected, rtol=1e-6)


def test_fewer_further_states_than_none():
    with pytest.raises(BathysphereError, match=r"learning\.graph_states is -1; expected at least 0"):
        LearningConfig(target="graph", graph_states=-1)


def test_more_further_states_than_an_episode_has_steps():
    learning = LearningConfig(target="graph", graph_states=20)
    assert guided_trainer(learning).max_steps == 20
    with pytest.raises(BathysphereError, match=r"graph_states is 20, but replay has room for the 19 steps"):
        guided_trainer(learning, max_steps=19)


def test_priors_of_steady_values_are_refused():
    with pytest.raises(BathysphereError, match=r"learning\.steady_values off"):
        guided_trainer(LearningConfig(steady_values=True), prior_coef=1.0)
