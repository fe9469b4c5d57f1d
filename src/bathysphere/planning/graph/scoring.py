"""How actions are ranked: the compiled half of `SearchConfig.risk`, penalties, bonuses and tie rules."""

from __future__ import annotations

import numpy as np

from bathysphere.planning.graph.compiled import GOLDEN, MIX_1, MIX_2, S11, S27, S30, S31, inlined, kernel
from bathysphere.planning.graph.risk import bonus_at, joint_at, separable_at


@kernel
def random_below(episodes, b, n):
    """Returns a uniform integer in [0, n) from episode b's splitmix64 stream. Mutates: episodes[b].rng."""
    z = episodes[b]["rng"] + GOLDEN
    episodes[b]["rng"] = z
    z = (z ^ (z >> S30)) * MIX_1
    z = (z ^ (z >> S27)) * MIX_2
    z = z ^ (z >> S31)
    return np.int64(float(z >> S11) * 2.0**-53 * n)


@kernel
def _member_std(sums, members, b, state, count):
    """Returns the population std of the drawn members' values of a state."""
    num, share = members.shape[1], 1.0 / count
    mean = 0.0
    for i in range(num):
        mean += sums[b, state, members[b, i]] * share
    mean /= num
    variance = 0.0
    for i in range(num):
        difference = sums[b, state, members[b, i]] * share - mean
        variance += difference * difference
    return np.sqrt(variance / num)


@inlined
def _extra(arena, stats, rules, b, state, action, child, bonus, bonus_coef, prior_coef):
    """Returns what is added to a child's score besides its value: bonus and prior minus penalties."""
    entry = stats[child]
    extra = 0.0
    if bonus_coef != 0.0:
        count, num_drawn = np.int64(entry["count"]), np.int64(arena.members.shape[1])
        std = _member_std(arena.sums, arena.members, b, child, count)
        extra += bonus_coef * bonus(np.int64(stats[state]["count"]), count, std, num_drawn)
    if prior_coef != 0.0:
        trust = np.sqrt(stats[state]["count"]) / (1.0 + entry["count"])
        extra += prior_coef * np.float64(arena.priors[b, state, action]) * trust
    if rules.has_penalties:
        extra -= rules.episode_penalty * entry["root_visits"]
        extra -= rules.path_penalty * entry["path_visits"]
    return extra


@inlined
def score_separable(arena, scratch, rules, b, node, measure, risk_coef, cached, bonus, bonus_coef, prior_coef):
    """Scores eligible actions at a node: reward + discount * (measure(child's members) + extra).

    With `cached`, a child's measure is computed only if its count has moved since last time.
    Children are found through the tree, whose nodes lie side by side, not through the edges: one wait less for memory.
    Mutates: scratch.scores, scratch.drawn, and with `cached` score and score_count.
    """
    eligible, scores, values, drawn = scratch.eligible, scratch.scores, scratch.drawn, arena.members[b]
    nodes, stats, edges, sums = arena.nodes[b], arena.stats[b], arena.edges[b], arena.sums[b]
    state, first = nodes[node]["state"], np.int64(nodes[node]["child"])
    for a in range(eligible.shape[0]):
        if not eligible[a]:
            continue
        child = nodes[first + a]["state"]
        entry = stats[child]
        count = entry["count"]
        if cached and entry["score_count"] == count:
            risk = entry["score"]
        else:
            row, share = sums[child], 1.0 / count
            for i in range(values.shape[0]):
                values[i] = row[drawn[i]] * share
            risk = measure(values, risk_coef)
            if cached:
                entry["score"] = risk
                entry["score_count"] = count
        extra = _extra(arena, stats, rules, b, state, a, child, bonus, bonus_coef, prior_coef)
        scores[a] = edges[state, a]["reward"] + rules.discount * (risk + extra)


@inlined
def score_joint(arena, scratch, rules, b, node, measure, risk_coef, bonus, bonus_coef, prior_coef):
    """Scores eligible actions at a node by a joint measure of all members' estimates of all actions.

    Mutates: scratch.scores, scratch.q; the state's score, which joint measures do not use, to nan if one returns that.
    """
    eligible, q, drawn = scratch.eligible, scratch.q, arena.members[b]
    nodes, stats, edges, sums = arena.nodes[b], arena.stats[b], arena.edges[b], arena.sums[b]
    state, first = nodes[node]["state"], np.int64(nodes[node]["child"])
    for a in range(eligible.shape[0]):
        if not eligible[a]:
            for i in range(q.shape[1]):
                q[a, i] = -np.inf
            continue
        child = nodes[first + a]["state"]
        share = 1.0 / stats[child]["count"]
        reward = edges[state, a]["reward"]
        extra = _extra(arena, stats, rules, b, state, a, child, bonus, bonus_coef, prior_coef)
        for i in range(q.shape[1]):
            q[a, i] = reward + rules.discount * (sums[child, drawn[i]] * share + extra)
    measure(q, eligible, risk_coef, scratch.scores)
    for a in range(eligible.shape[0]):
        if eligible[a] and np.isnan(scratch.scores[a]):
            stats[state]["score"] = np.nan


@inlined
def best_action(scores, eligible, episodes, b, highest):
    """Returns the best eligible action, or -1 if none is. Exact ties: the highest action, or a random one.

    Mutates: episodes[b].rng, only when a random tie has to be broken.
    """
    best = -1
    ties = 0
    for a in range(scores.shape[0]):
        if eligible[a]:
            if best < 0 or scores[a] > scores[best]:
                best = a
                ties = 1
            elif scores[a] == scores[best]:
                ties += 1
                if highest:
                    best = a
    if ties > 1 and not highest:
        skip = random_below(episodes, b, ties)
        for a in range(best, scores.shape[0]):
            if eligible[a] and scores[a] == scores[best]:
                if skip == 0:
                    return a
                skip -= 1
    return best


@kernel
def score_root(arena, scratch, rules, addresses, b):
    """Scores the actions at episode b's root with the final measure, by what planning has found: without the prior.

    Actions that stay where they are are not eligible with loop avoidance, unless there is no other.
    Mutates: scratch.eligible and scratch.scores hold the answer.
    """
    eligible = scratch.eligible
    bonus, risk_coef, bonus_coef = bonus_at(addresses.bonus), rules.final_risk_coef, rules.final_bonus_coef
    root = np.int64(arena.episodes[b]["root"])
    state = arena.nodes[b, root]["state"]
    any_eligible = False
    for a in range(eligible.shape[0]):
        eligible[a] = not (rules.avoid_loops and arena.edges[b, state, a]["child"] == state)
        any_eligible |= eligible[a]
    if not any_eligible:
        eligible[:] = True
    if rules.final_is_joint:
        joint = joint_at(addresses.final_joint)
        score_joint(arena, scratch, rules, b, root, joint, risk_coef, bonus, bonus_coef, 0.0)
    else:
        separable = separable_at(addresses.final_separable)
        score_separable(arena, scratch, rules, b, root, separable, risk_coef, False, bonus, bonus_coef, 0.0)


@inlined
def can_be_taken_back(edges, state, action):
    """Tells whether an action stays where it is or, as far as the graph knows, leads where another one leads back."""
    child = edges[state, action]["child"]
    found = child == state
    for a in range(edges.shape[1]):
        found |= edges[child, a]["child"] == state
    return found


@kernel
def put_off(arena, b, action):
    """Returns the action to wait with in place of `action`: one that can be taken back, best one that stays.

    That is `action` itself if it can be taken back, if nothing else can, or if the graph holds a success.
    """
    stats, edges = arena.stats[b], arena.edges[b]
    state = arena.nodes[b, arena.episodes[b]["root"]]["state"]
    if can_be_taken_back(edges, state, action):
        return action
    for known in range(arena.episodes[b]["num_states"]):
        if stats[known]["solved"]:
            return action
    wait = action
    for a in range(edges.shape[1]):
        if edges[state, a]["child"] == state:
            return a
        if can_be_taken_back(edges, state, a):
            wait = a
    return wait


@kernel
def choose_one(arena, scratch, rules, addresses, b):
    """Returns the next action of episode b.

    Mutates: rng; if it waits, num_waits and root_visits, in which waits do not count.
    """
    entry = arena.episodes[b]
    score_root(arena, scratch, rules, addresses, b)
    action = np.int64(best_action(scratch.scores, scratch.eligible, arena.episodes, b, rules.final_highest))
    if entry["num_waits"] < np.int64(rules.patience * arena.history.shape[1]):
        wait = put_off(arena, b, action)
        if wait != action:
            entry["num_waits"] += 1
            arena.stats[b, arena.nodes[b, entry["root"]]["state"]]["root_visits"] -= 1
            action = wait
    return action


@kernel
def choose(arena, scratch, rules, addresses, active, actions):
    """Chooses the next action of every active episode. Mutates: actions [B]; see `choose_one`."""
    for b in range(active.shape[0]):
        if active[b]:
            actions[b] = choose_one(arena, scratch, rules, addresses, b)


@kernel
def choose_by_values(is_joint, address, risk_coef, eligible, drawn, slots, q, members, streams, scores, actions):
    """Chooses an action for each of `slots` [k] by a risk measure of the drawn members' values; ties at random.

    Args: eligible [A], all true; q [k, A, E]; members [B, L].
    Mutates: drawn [A, L], scratch; scores [k, A]; actions [B]; streams [B], where ties are broken.
    """
    separable, joint = separable_at(address), joint_at(address)
    num_actions, num_drawn = drawn.shape
    for k in range(slots.shape[0]):
        b = slots[k]
        for a in range(num_actions):
            for i in range(num_drawn):
                drawn[a, i] = q[k, a, members[b, i]]
        if is_joint:
            joint(drawn, eligible, risk_coef, scores[k])
        else:
            for a in range(num_actions):
                scores[k, a] = separable(drawn[a], risk_coef)
        actions[b] = best_action(scores[k], eligible, streams, b, False)
