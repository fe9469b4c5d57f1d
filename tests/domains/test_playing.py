import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig, ToyMontezuma, ToyMontezumaConfig
from bathysphere.domains.playing import PlayedEpisode, parse_actions, play_episode, shortest_solution
from bathysphere.errors import BathysphereError


def episode_in(domain, max_steps=None):
    return PlayedEpisode(domain, domain.initial(1, np.random.default_rng(0))[0], max_steps)


def test_steps_follow_the_rules_and_can_be_taken_back():
    domain = DeepSea(DeepSeaConfig(4))
    episode = episode_in(domain)
    states, total = [episode.state], 0.0
    for action in (1, 0, 1):
        assert not episode.over
        out = domain.successors(states[-1][None])
        episode.step(action)
        states.append(out.states[0, action])
        total += out.rewards[0, action]
        np.testing.assert_array_equal(episode.states, states)
        assert episode.total_reward == total
    assert (episode.terminal, episode.solved, episode.over) == (True, bool(out.solved[0, 1]), True)
    assert episode.to_dict() == {
        "steps": 3,
        "reward": total,
        "terminal": True,
        "solved": episode.solved,
        "actions": ["action-1", "action-0", "action-1"],
    }
    episode.undo()
    assert (episode.actions, episode.over) == ([1, 0], False)
    np.testing.assert_array_equal(episode.state, states[2])
    episode.step(1)
    episode.restart()
    episode.undo()  # nothing is left to take back
    assert (episode.actions, episode.total_reward, episode.terminal, episode.solved) == ([], 0.0, False, False)
    np.testing.assert_array_equal(episode.states, states[:1])


def test_steps_that_were_taken_back_can_be_made_again_until_it_goes_on_in_another_way():
    episode = episode_in(DeepSea(DeepSeaConfig(5)))
    for action in (1, 0, 1):
        episode.step(action)
    states, reward = episode.states, episode.total_reward
    episode.restart()
    assert (episode.actions, episode.num_undone, episode.all_actions) == ([], 3, [1, 0, 1])
    episode.redo()
    episode.step(0)  # as before
    assert (episode.actions, episode.num_undone) == ([1, 0], 1)
    episode.redo()
    episode.redo()  # nothing is left to make again
    np.testing.assert_array_equal(episode.states, states)
    assert (episode.total_reward, episode.num_undone) == (reward, 0)
    episode.restart()
    episode.step(0)
    assert (episode.all_actions, episode.num_undone) == ([0], 0)


def test_an_episode_is_cut_off():
    domain = ToyMontezuma(ToyMontezumaConfig("one-room", max_steps=2))
    assert len(play_episode(domain, domain.initial(1, np.random.default_rng(0))[0], lambda state: 0).actions) == 2
    assert len(play_episode(domain, domain.initial(1, np.random.default_rng(0))[0], lambda state: 0, 1).actions) == 1
    episode = episode_in(domain, 0)
    assert (episode.over, episode.terminal) == (True, False)


def test_actions_by_name_and_number():
    domain = ToyMontezuma()
    assert parse_actions(domain, "0123") == parse_actions(domain, "north, east,south,west") == [0, 1, 2, 3]
    assert parse_actions(domain, "south") == [2]


def test_play_stops_at_the_end():
    domain = DeepSea(DeepSeaConfig(4))
    episode = play_episode(domain, domain.initial(1, np.random.default_rng(0))[0], lambda state: 1, 10)
    assert len(episode.actions) == 3
    assert episode.states.shape == (4, 4)
    assert episode.terminal


def test_shortest_solutions():
    rng = np.random.default_rng(0)
    domain = ToyMontezuma(ToyMontezumaConfig("hallway"))
    start = domain.initial(1, rng)[0]
    solution = shortest_solution(domain, start, 10_000)
    assert len(solution) == 47
    script = iter(solution)
    assert play_episode(domain, start, lambda state: next(script), len(solution)).solved
    with pytest.raises(BathysphereError, match="first 100 states"):
        shortest_solution(domain, start, 100)
    sea = DeepSea(DeepSeaConfig(4))
    with pytest.raises(BathysphereError, match="cannot be solved"):
        shortest_solution(sea, np.array([1, 0, 0, 0], np.uint8), 100)
