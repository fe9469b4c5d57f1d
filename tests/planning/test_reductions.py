"""Special cases in which the planner must agree with something simpler."""

import numpy as np
import pytest

from bathysphere.planning import MCTS, SearchConfig
from tests.oracles.random_graph import RandomGraph, TableValues
from tests.planning.small_worlds import make_domain, make_search, plan

SEPARABLE = ["mean_std", "mean_variance", "second_moment", "exponential"]


def draw(seed, num_members=4, **kwargs):
    """Returns a world without ties (rewards and values are all different) and its values."""
    rng = np.random.default_rng(seed)
    domain = RandomGraph.draw(rng, **kwargs)
    domain.reward = np.where(domain.is_end[:, None], 0.0, rng.normal(size=domain.reward.shape))
    return domain, rng.normal(size=(len(domain.target), num_members)).astype(np.float32)


def play(domain, table, **options):
    config = SearchConfig(**{"passes": 8, **options})
    return MCTS(domain, TableValues(table), config, batch=3, seed=5, num_episodes=6).play()


def chosen(episodes):
    return [episode.actions.tolist() for episode in episodes]


def optimal_values(domain, discount):
    """Returns V* and Q* of an acyclic world by dynamic programming from the last state back."""
    value, q = np.zeros(len(domain.target)), np.zeros(domain.target.shape)
    for state in reversed(range(len(domain.target))):
        if not domain.is_end[state]:
            q[state] = domain.reward[state] + discount * value[domain.target[state]]
            value[state] = q[state].max()
    return value, q


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("risk", ["mean_std", "mean_variance"])
def test_equal_members_are_risk_neutral(risk, seed):
    """Holds for the measures that weigh only the spread. (The other two also weigh the size of a value.)"""
    domain, table = draw(seed)
    table = np.repeat(table[:, :1], 4, axis=1)
    neutral = chosen(play(domain, table, risk=risk, risk_coef=0.0))
    assert chosen(play(domain, table, risk=risk, risk_coef=50.0)) == neutral
    assert chosen(play(domain, table, risk=risk, risk_coef=-50.0)) == neutral


@pytest.mark.parametrize("seed", range(10))
def test_without_a_risk_coefficient_all_measures_are_one(seed):
    domain, table = draw(seed)
    neutral, *others = (chosen(play(domain, table, risk=risk, risk_coef=0.0)) for risk in SEPARABLE)
    assert all(other == neutral for other in others)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("risk", [*SEPARABLE, "vote", "vote_once"])
def test_permuting_members_changes_nothing(risk, seed):
    domain, table = draw(seed, num_members=5)
    shuffled = table[:, np.random.default_rng(seed).permutation(5)]
    options = {"risk": risk, "risk_coef": 1.5, "avoid_loops": seed % 2 == 0, "final_risk": "mean_std"}
    ours, theirs = play(domain, table, **options), play(domain, shuffled, **options)
    assert chosen(ours) == chosen(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            one.search_values.mean(axis=1), other.search_values.mean(axis=1), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("seed", range(10))
def test_one_member_equals_several_equal_ones_and_ignores_the_spread(seed):
    domain, table = draw(seed, num_members=1)
    scalar = play(domain, table, risk_coef=0.0)
    assert chosen(play(domain, table, risk_coef=9.0)) == chosen(scalar)
    assert chosen(play(domain, np.repeat(table, 2, axis=1), risk_coef=9.0)) == chosen(scalar)
    for episode in scalar:
        assert episode.search_values.shape[1] == 1


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("passes", [1, 7, 50])
def test_true_values_are_a_fixed_point(passes, seed):
    """With V* in every member, selection is greedy in Q*, so every value backed up is V* again.

    This holds for any number of passes. Values arrive as float32, hence the tolerance on optimality.
    """
    domain, _ = draw(seed, acyclic=True)
    value, q = optimal_values(domain, 0.9)
    table = np.repeat(value[:, None], 3, axis=1).astype(np.float32)
    for episode in play(domain, table, discount=0.9, risk_coef=5.0, passes=passes, max_steps=60):
        numbers = domain.number(episode.states)
        np.testing.assert_allclose(episode.search_values.mean(axis=1), value[numbers], atol=1e-5)
        np.testing.assert_allclose(q[numbers, episode.actions], value[numbers], atol=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_a_decision_right_before_the_end_is_exact(seed):
    """Ends are worth exactly 0, so the index of a last step is its reward, whatever the network says."""
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=4)
    domain = make_domain({0: [(a + 1, rewards[a]) for a in range(4)]}, ends=(1, 2, 3, 4))
    search = make_search(domain, rng.normal(size=(5, 3)), risk_coef=3.0)
    (episode,) = search.step()
    assert episode.actions.tolist() == [np.argmax(rewards)]


@pytest.mark.parametrize("seed", range(10))
def test_enough_passes_settle_a_choice_between_corridors(seed):
    """A provable case: one decision, then corridors without choice, and values that are nowhere too low.

    In a corridor every value backed up is at least the true one, and exact once the end has been reached.
    So a corridor's mean never falls below its true value and tends to it. The best corridor thus always
    scores at least its true value, while a worse one is selected only finitely often before it scores less.
    """
    rng = np.random.default_rng(seed)
    num_corridors, length = 3, 4
    edges: dict[int, list] = {0: [1 + length * c for c in range(num_corridors)]}
    for c in range(num_corridors):
        for i in range(length - 1):
            here = 1 + length * c + i
            edges[here] = [(here + 1, rng.normal())] * num_corridors
    ends = [length * (c + 1) for c in range(num_corridors)]
    domain = make_domain(edges, ends=ends)
    returns = [sum(edges[1 + length * c + i][0][1] for i in range(length - 1)) for c in range(num_corridors)]
    search = make_search(domain, np.full((len(domain.target), 2), 12.0), discount=1.0, passes=2000, risk_coef=1.0)
    plan(search)
    search.act()
    assert search.actions[0] == np.argmax(returns)


@pytest.mark.parametrize("seed", range(20))
def test_enough_passes_find_the_optimal_first_step(seed):
    """Small acyclic worlds with shared states, values too high everywhere, no risk.

    A node averages everything that ever went through it and is left alone once it looks worse than its
    neighbours, so for arbitrary values no number of passes helps. Even for optimistic ones we know no proof
    when choices follow each other: an average can dip below the true value while a bad branch below it is
    being unmasked. On these worlds the first step is nevertheless exactly that of dynamic programming.
    """
    domain, _ = draw(seed, acyclic=True)
    value, q = optimal_values(domain, 0.9)
    optimistic = np.full((len(value), 1), max(3.0, value.max() + 1.0))
    search = make_search(domain, optimistic, discount=0.9, passes=1000)
    plan(search)
    search.act()
    assert search.actions[0] == np.argmax(q[0])
