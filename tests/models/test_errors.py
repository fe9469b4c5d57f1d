"""Every kind of model error, made on purpose: the planner's correction against the plain planner."""

import numpy as np
import pytest

from bathysphere.planning import MCTS, SearchConfig
from tests.models.small import Erring, small_domain
from tests.oracles.random_graph import HashedValues
from tests.planning.lockstep import play_in_lockstep

CONFIG = SearchConfig(passes=5, risk_coef=1.0, episode_penalty=0.5, dead_end_value=-2.0, max_steps=25)
# What each mistake is counted as. A board predicted for the wrong action may be a solved one without being called so.
COUNTED = {
    "wrong_frame": {"wrong_state", "missed_end"},
    "wrong_reward": {"wrong_reward"},
    "false_end": {"false_end"},
    "missed_end": {"missed_end"},
    "impossible_board": {"wrong_state"},
}


@pytest.mark.kernels
@pytest.mark.parametrize("kind", Erring.KINDS)
def test_corrections_are_those_of_the_plain_planner(kind):
    domain = small_domain()
    model, counted = Erring(domain, kind), set()
    for seed in range(6):
        # Values of their own for every seed, so that episodes differ and some are solved.
        search, oracles = play_in_lockstep(
            domain, HashedValues(3, seed), CONFIG, batch=4, seed=seed, model=model, steps=25
        )
        totals = {name: sum(oracle.errors[name] for oracle in oracles) for name in search.work.model_errors}
        assert dict(search.work.model_errors) == totals
        counted |= {name for name, count in totals.items() if count}
    assert counted == COUNTED[kind]


@pytest.mark.parametrize("kind", Erring.KINDS)
def test_episodes_are_real_whatever_the_model_says(kind):
    domain = small_domain()
    search = MCTS(domain, HashedValues(3), CONFIG, batch=8, model=Erring(domain, kind), num_episodes=24, seed=3)
    episodes = search.play()
    assert any(episode.solved for episode in episodes)
    for episode in episodes:
        out = domain.successors(episode.states)
        rows = np.arange(len(episode))
        assert (out.states[rows[:-1], episode.actions[:-1]] == episode.states[1:]).all()
        assert (out.rewards[rows, episode.actions] == episode.rewards).all()
        ends = out.terminal[rows, episode.actions]
        assert not ends[:-1].any()
        assert ends[-1] == episode.solved == (not episode.truncated)


def test_a_state_falsely_called_an_end_keeps_its_zero():
    """The step onto it is corrected, and planning goes on from it; what was believed of it stays in its sum."""
    domain = small_domain()
    search = MCTS(domain, HashedValues(1), CONFIG, batch=1, model=Erring(domain, "false_end"), num_episodes=1, seed=0)
    values = HashedValues(1)
    while search.active.any():
        before = search.work.model_errors["false_end"]
        search.plan()
        arena, root = search.arena, int(search.arena.episodes["root"][0])
        children = int(arena.nodes["child"][0, root])
        kept = {a: arena.sums[0, arena.nodes["state"][0, children + a]].copy() for a in range(4)}
        search.act()
        if search.work.model_errors["false_end"] > before and search.active.any():
            state = int(search.arena.nodes["state"][0, search.arena.episodes["root"][0]])
            assert kept[int(search.actions[0])] == [0.0] == search.arena.sums[0, state]
            assert values.evaluate(domain.observe(search.root_states))[0, 0] != 0.0
            return
    raise AssertionError("no false end was met")
