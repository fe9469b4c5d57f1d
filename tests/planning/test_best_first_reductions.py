"""Special cases in which best-first search must agree with something simpler, or keep what theory promises."""

import numpy as np
import pytest

from bathysphere.domains.playing import shortest_solution
from bathysphere.errors import BathysphereError
from bathysphere.planning import BestFirst, BestFirstConfig
from bathysphere.planning.planner import play_all
from tests.oracles.random_graph import RandomGraph, TableValues
from tests.planning.best_first_lockstep import Guided, told
from tests.planning.small_worlds import Recorder

SEEDS = range(40)
FAR = 10**6
MAX_STEPS = 300  # more than any plan needs


def draw_maze(seed, num_states=120):
    """Returns a world with long ways, shared states and circles, and one success far from the start."""
    rng = np.random.default_rng(seed)
    here = np.arange(num_states)[:, None]
    target = np.clip(here + rng.integers(-8, 9, size=(num_states, 3)), 0, num_states - 1)
    is_end = np.arange(num_states) == num_states - 1
    target[is_end] = num_states - 1
    return Recorder.of(RandomGraph(target, np.zeros(target.shape), is_end, is_end, MAX_STEPS))


def draw_tree(seed, num_actions, depth):
    """Returns a tree whose leaves are ends, some of them successes, and a random policy."""
    rng = np.random.default_rng(seed)
    num_inner = (num_actions**depth - 1) // (num_actions - 1)
    num_states = num_inner * num_actions + 1
    target = np.repeat(np.arange(num_states)[:, None], num_actions, axis=1)
    target[:num_inner] = 1 + np.arange(num_inner * num_actions).reshape(num_inner, num_actions)
    is_end = np.arange(num_states) >= num_inner
    is_solved = is_end & (rng.random(num_states) < 0.05)
    is_solved[rng.integers(num_inner, num_states)] = True
    policy = rng.dirichlet(np.full(num_actions, 0.5), size=num_states).astype(np.float32)
    graph = RandomGraph(target, np.zeros(target.shape), is_end, is_solved, MAX_STEPS)
    return Recorder.of(graph), np.maximum(policy, np.float32(1e-3))


def steps_to_success(domain):
    """Returns the fewest steps from every state to a success; FAR where there is no way."""
    steps = np.where(domain.is_solved, 0, FAR)
    for _ in steps:
        ahead = np.where(domain.is_end, steps, 1 + steps[domain.target].min(axis=1))
        steps = np.minimum(steps, np.minimum(ahead, FAR))
    return steps


def solvable_mazes():
    """Returns (seed, maze, steps from each state to a success) of those mazes that have a solution."""
    mazes = [(seed, domain, steps_to_success(domain)) for seed, domain in ((seed, draw_maze(seed)) for seed in SEEDS)]
    solvable = [maze for maze in mazes if maze[2][0] < FAR]
    assert len(solvable) > 20
    return solvable


def steps_from_start(domain):
    """Returns the fewest steps from state 0 to every state; FAR where there is no way."""
    steps = np.full(len(domain.target), FAR)
    frontier, depth = [0], 0
    while frontier:
        steps[frontier] = depth
        reached = {int(child) for state in frontier if not domain.is_end[state] for child in domain.target[state]}
        frontier, depth = [state for state in sorted(reached) if steps[state] == FAR], depth + 1
    return steps


def value_of(steps_to_go, discount=0.99):
    """Returns the values [states, 1] of a final reward of 1 so many steps before it; 0 where it is far."""
    share = discount ** (np.minimum(steps_to_go, 10_000) - 1.0)
    return TableValues(np.where(np.asarray(steps_to_go) >= FAR, 0.0, share)[:, None].astype(np.float32))


def search(domain, values, **options):
    config = BestFirstConfig(**{"max_expansions": 10_000, **options})
    (episode,) = play_all(BestFirst(domain, values, config, num_episodes=1))
    return episode


def random_values(seed, domain, num_members=1):
    rng = np.random.default_rng(seed)
    return TableValues(rng.random((len(domain.target), num_members)).astype(np.float32))


# Breadth first, and A*.


@pytest.mark.parametrize("order", ["steps", "value"])
def test_without_a_weight_it_is_breadth_first_search(order):
    """Exactly: whatever the values, the same plan, and states are expanded in order of discovery."""
    solved = 0
    for seed in SEEDS:
        domain = Recorder.of(RandomGraph.draw(np.random.default_rng(seed)))
        domain.max_steps = MAX_STEPS
        domain.reward[:] = 0.0 if order == "steps" else -1.0
        start = domain.encode(np.zeros(1, np.int64))[0]
        episode = search(domain, random_values(seed, domain), order=order, weight=0.0, discount=0.9)
        expanded = domain.expanded[: episode.num_model_calls]
        try:
            plan = shortest_solution(domain, start, max_states=1000)
        except BathysphereError:
            assert (episode.solved, episode.ended_by) == (False, "no state left")
        else:
            assert episode.actions.tolist() == plan
            solved += 1
        queue, seen = [0], {0}
        for number, state in enumerate(expanded):
            assert state == queue[number]
            for child in domain.target[state].tolist():
                if child not in seen:
                    seen.add(child)
                    if not domain.is_end[child]:
                        queue.append(child)
    assert solved > 5


def test_with_exact_distances_only_shortest_ways_are_looked_at():
    for _, domain, ahead in solvable_mazes():
        behind = steps_from_start(domain)
        episode = search(domain, value_of(ahead), weight=1.0)
        assert len(episode) == ahead[0]
        assert (ahead[domain.expanded] + behind[domain.expanded] == ahead[0]).all()


@pytest.mark.parametrize("reopen", [False, True])
def test_a_star_finds_shortest_plans_if_it_may_reopen(reopen):
    """Distances that are nowhere too long are enough; it matters where one step shortens them by more than one."""
    consistent, inconsistent = 0, 0
    for seed, domain, ahead in solvable_mazes():
        rng = np.random.default_rng(seed)
        share = rng.random()
        lower = np.where(ahead >= FAR, FAR, 1 + np.floor(share * np.maximum(ahead - 1, 0)))
        consistent += len(search(domain, value_of(lower), weight=1.0, reopen=reopen)) - ahead[0]
        ragged = np.where(ahead >= FAR, FAR, 1 + np.floor(rng.random(len(ahead)) * np.maximum(ahead - 1, 0)))
        inconsistent += len(search(domain, value_of(ragged), weight=1.0, reopen=reopen)) - ahead[0]
    assert consistent == 0
    assert (inconsistent == 0) == reopen


def test_a_weight_bounds_how_much_longer_plans_are():
    for seed, domain, ahead in solvable_mazes():
        rng = np.random.default_rng(seed)
        ragged = np.where(ahead >= FAR, FAR, 1 + np.floor(rng.random(len(ahead)) * np.maximum(ahead - 1, 0)))
        for weight in (1.5, 3.0):
            episode = search(domain, value_of(ragged), weight=weight, reopen=True)
            assert len(episode) <= weight * (ahead[0] - 1) + 1


def test_the_goal_reward_scales_values():
    for seed in SEEDS[:10]:
        domain = draw_maze(seed)
        values = random_values(seed, domain)
        larger = TableValues(values.table * 8)
        one, other = search(domain, values), search(domain, larger, goal_reward=8.0)
        assert one.actions.tolist() == other.actions.tolist()
        assert one.num_expansions == other.num_expansions


# Risk.


@pytest.mark.parametrize("order", ["steps", "value"])
def test_equal_members_are_risk_neutral(order):
    for seed in SEEDS[:15]:
        domain = draw_maze(seed)
        one = random_values(seed, domain)
        four = TableValues(np.repeat(one.table, 4, axis=1))
        neutral = search(domain, one, order=order)
        for risk in ("mean_std", "mean_variance"):
            for risk_coef in (50.0, -50.0):
                episode = search(domain, four, order=order, risk=risk, risk_coef=risk_coef)
                assert episode.actions.tolist() == neutral.actions.tolist()
                assert episode.num_expansions == neutral.num_expansions


def test_without_a_risk_coefficient_all_measures_are_one():
    for seed in SEEDS[:15]:
        domain = draw_maze(seed)
        values = random_values(seed, domain, num_members=4)
        measures = ("mean_std", "mean_variance", "second_moment", "exponential")
        neutral, *others = (told([search(domain, values, risk=risk)]) for risk in measures)
        assert others == [neutral] * 3


def test_risk_changes_what_is_found():
    found = set()
    domain = draw_maze(1)
    values = random_values(1, domain, num_members=4)
    for risk_coef in (-3.0, 0.0, 3.0):
        found.add(search(domain, values, risk_coef=risk_coef).num_expansions)
    assert len(found) == 3


# Search guided by a policy.


def ways_to_success(domain, policy):
    """Returns, for every success of a tree, the steps to the state before it, and their probability."""
    ways, todo = [], [(0, 0, 1.0)]
    while todo:
        state, depth, probability = todo.pop()
        for child, share in zip(domain.target[state].tolist(), policy[state].tolist(), strict=True):
            if domain.is_solved[child]:
                ways.append((depth, probability))
            elif not domain.is_end[child]:
                todo.append((child, depth + 1, probability * share))
    return ways


@pytest.mark.parametrize(("num_actions", "depth"), [(2, 6), (3, 4)])
def test_levin_expands_no_more_than_promised_on_trees(num_actions, depth):
    """For every success: at most (d + 1) / probability expansions, d steps and their probability before the last step.

    The last step itself needs no expansion, so this is stricter than the bound with the success's own depth.
    """
    for seed in SEEDS:
        domain, policy = draw_tree(seed, num_actions, depth)
        values = Guided(np.zeros((len(policy), 1), np.float32), policy / policy.sum(axis=1, keepdims=True))
        episode = search(domain, values, order="levin")
        assert episode.solved
        for steps, probability in ways_to_success(domain, values.policy):
            assert episode.num_expansions <= (steps + 1) / probability * (1 + 1e-5)


def test_levin_expands_no_more_than_promised_on_graphs():
    """For the plan that is found: states are expanded once, in order of what the ways to them cost."""
    solved = 0
    for seed in SEEDS:
        domain, rng = draw_maze(seed), np.random.default_rng(seed)
        policy = np.maximum(rng.dirichlet(np.full(3, 0.5), size=len(domain.target)), 1e-3).astype(np.float32)
        policy /= policy.sum(axis=1, keepdims=True)
        episode = search(domain, Guided(np.zeros((len(policy), 1), np.float32), policy), order="levin")
        if episode.solved:
            chosen = policy[domain.number(episode.states), episode.actions].astype(np.float64)
            assert episode.num_expansions <= len(episode) / chosen[:-1].prod() * (1 + 1e-5)
            solved += 1
    assert solved > 10


def test_phs_with_exact_distances_expands_little():
    """With a policy that knows nothing, only states from which there is success; with any, less than without values."""
    with_values = without = 0
    for seed in SEEDS:
        domain, policy = draw_tree(seed, 2, 6)
        ahead = steps_to_success(domain)
        table = value_of(ahead).table
        search(domain, Guided(table, np.full(policy.shape, 0.5, np.float32)), order="phs")
        assert (ahead[domain.expanded] < FAR).all()
        values = Guided(table, policy / policy.sum(axis=1, keepdims=True))
        with_values += search(domain, values, order="phs").num_expansions
        without += search(domain, values, order="levin").num_expansions
    assert with_values < 0.6 * without


def test_a_certain_policy_is_followed():
    """Levin and PHS expand the states of the shortest way only, if the policy is sure of it."""
    for _, domain, ahead in solvable_mazes():
        best = ahead[domain.target].argmin(axis=1)
        policy = np.eye(3, dtype=np.float32)[best]
        values = Guided(value_of(ahead).table, policy)
        for order in ("levin", "phs"):
            episode = search(domain, values, order=order)
            assert episode.num_expansions == len(episode) == ahead[0]
