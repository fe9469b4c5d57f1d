"""Steps of a search in a world with chance, in one episode `b` of an `Arena` (see arena.py).

Outcome c of action a is edge a * C + c of a state, and `priors` holds how probable it is. If planning goes by a model
that does not know everything, the last outcome of every action is the unknown. The sums of a state are its members'
values themselves, with a count of 1, and the one node of an episode points at the state it is in.
"""

from __future__ import annotations

import numpy as np

from bathysphere.planning.graph.compiled import kernel
from bathysphere.planning.graph.risk import joint_at, separable_at
from bathysphere.planning.graph.scoring import best_action, random_below
from bathysphere.planning.graph.steps import find_or_create, insert_child, insert_unknown, set_end

_BITS = 2.0**-53


@kernel
def expect(arena, discount, b, state, q, luck):
    """Computes every member's expectation over the outcomes of every action in a state.

    Mutates: q [A, E]; luck [A], the standard deviation over outcomes that are known, mean square over members.
    """
    edges, chances, sums, stats = arena.edges[b, state], arena.priors[b, state], arena.sums[b], arena.stats[b]
    num_actions, num_members = q.shape
    num_outcomes = edges.shape[0] // num_actions
    for a in range(num_actions):
        q[a] = 0.0
        for k in range(a * num_outcomes, (a + 1) * num_outcomes):
            for e in range(num_members):
                q[a, e] += chances[k] * (edges[k]["reward"] + discount * sums[edges[k]["child"], e])
        total = 0.0
        for k in range(a * num_outcomes, (a + 1) * num_outcomes):
            if stats[edges[k]["child"]]["unknown"]:
                continue
            for e in range(num_members):
                difference = edges[k]["reward"] + discount * sums[edges[k]["child"], e] - q[a, e]
                total += chances[k] * difference * difference
        luck[a] = np.sqrt(total / num_members)


@kernel
def score_actions(arena, rules, addresses, aleatoric, scratch, b, state, q, luck):
    """Scores every action of an expanded state: the risk measure of the drawn members, and luck.

    Mutates: scratch.scores; q, luck (see `expect`); scratch.q; the state's score, not used here, to nan if one is that.
    """
    expect(arena, rules.discount, b, state, q, luck)
    separable, joint = separable_at(addresses.separable), joint_at(addresses.joint)
    drawn, scores, members = scratch.q, scratch.scores, arena.members[b]
    for a in range(q.shape[0]):
        for i in range(members.shape[0]):
            drawn[a, i] = q[a, members[i]]
    if rules.is_joint:
        joint(drawn, scratch.eligible, rules.risk_coef, scores)
    else:
        for a in range(q.shape[0]):
            scores[a] = separable(drawn[a], rules.risk_coef)
    for a in range(q.shape[0]):
        scores[a] += aleatoric * luck[a]
        if np.isnan(scores[a]):
            arena.stats[b, state]["score"] = np.nan


@kernel
def choose(arena, rules, addresses, aleatoric, scratch, b, state, q, luck):
    """Returns the best action in an expanded state; ties at random. Mutates: see `score_actions`; rng."""
    score_actions(arena, rules, addresses, aleatoric, scratch, b, state, q, luck)
    return best_action(scratch.scores, scratch.eligible, arena.episodes, b, False)


@kernel
def walk(arena, rules, addresses, aleatoric, scratch, b, q, luck, path):
    """Walks episode b from its root to a leaf: actions by score, outcomes by chance. First half of a pass.

    A walk also ends at an end, or when the path is full.
    Mutates: path [D], the states on the way, a leaf that is to be expanded among them; rng; scratch.

    Returns:
      How many states are on the path, and whether only the model can expand the last of them.
    """
    num_outcomes = arena.edges.shape[2] // q.shape[0]
    state = np.int64(arena.nodes[b, arena.episodes[b]["root"]]["state"])
    length = 0
    while not arena.stats[b, state]["terminal"] and length < path.shape[0]:
        path[length] = state
        length += 1
        if arena.edges[b, state, 0]["child"] < 0:
            return length, True
        first = num_outcomes * choose(arena, rules, addresses, aleatoric, scratch, b, state, q, luck)
        left = random_below(arena.episodes, b, 1 << 53) * _BITS
        outcome = first
        for k in range(first, first + num_outcomes):
            if arena.priors[b, state, k] > 0.0:
                outcome = k
                left -= arena.priors[b, state, k]
                if left < 0.0:
                    break
        state = np.int64(arena.edges[b, state, outcome]["child"])
    return length, False


@kernel
def back_up(arena, discount, b, q, luck, path, length):
    """Sets the states on a path, last to first, to each member's best expectation. Second half of a pass.

    Mutates: sums; q, luck.
    """
    for k in range(length - 1, -1, -1):
        state = path[k]
        expect(arena, discount, b, state, q, luck)
        for e in range(q.shape[1]):
            best = q[0, e]
            for a in range(1, q.shape[0]):
                best = max(best, q[a, e])
            arena.sums[b, state, e] = best


@kernel
def sweep(arena, rules, addresses, aleatoric, scratch, active, num_passes, q, luck, paths, lengths, pending):
    """Takes every active episode as far as it gets without the model: to `num_passes` passes of a step, or to a leaf.

    An episode that waited for the model begins by ending that pass.
    Mutates: see `walk` and `back_up`; paths [B, D], lengths [B]; passes, is_waiting; pending [B] names the episodes
    that wait, whose leaf is the last state on their path.

    Returns:
      How many wait.
    """
    num_pending = 0
    for b in range(active.shape[0]):
        if not active[b]:
            continue
        entry = arena.episodes[b]
        is_walked = entry["is_waiting"]
        entry["is_waiting"] = False
        while True:
            if is_walked:
                back_up(arena, rules.discount, b, q, luck, paths[b], lengths[b])
                entry["passes"] += 1
            if entry["passes"] >= num_passes:
                break
            lengths[b], is_waiting = walk(arena, rules, addresses, aleatoric, scratch, b, q, luck, paths[b])
            is_walked = True
            if is_waiting:
                entry["is_waiting"] = True
                pending[num_pending] = b
                num_pending += 1
                break
    return num_pending


@kernel
def insert_outcomes(
    arena, slots, states, rows, chances, rewards, terminal, solved, unknown, worth, new_slots, new_states, new_rows
):
    """Enters what may happen at the leaves `states` [k] of episodes `slots` [k] into the graph.

    Args: rows [k, A, C or more, W]; chances, rewards, terminal, solved [k, A, C]; unknown [k, A], how probable the
      unknown is, and worth [k, A, E], its value to members. Their A is 0 if everything is known.
    Mutates: the graph; and names the states that need a network value in the three outputs.

    Returns:
      How many states need a value.
    """
    num_new = 0
    for k in range(slots.shape[0]):
        b, state = slots[k], states[k]
        arena.episodes[b]["num_model_calls"] += 1
        edge = 0
        for a in range(rows.shape[1]):
            for c in range(chances.shape[2]):
                is_end, is_success = terminal[k, a, c], solved[k, a, c]
                row, reward = rows[k, a, c], rewards[k, a, c]
                child, is_new = insert_child(arena, True, b, state, edge, row, reward, is_end, is_success)
                arena.priors[b, state, edge] = chances[k, a, c]
                edge += 1
                if is_new:
                    new_slots[num_new] = b
                    new_states[num_new] = child
                    for w in range(row.shape[0]):
                        new_rows[num_new, w] = row[w]
                    num_new += 1
            if unknown.shape[1] > 0:
                insert_unknown(arena, b, state, edge, worth[k, a])
                arena.priors[b, state, edge] = unknown[k, a]
                edge += 1
    return num_new


@kernel
def choose_all(arena, rules, addresses, aleatoric, scratch, active, q, luck, actions):
    """Chooses the next action of every active episode. Mutates: actions [B]; see `choose`."""
    for b in range(active.shape[0]):
        if active[b]:
            root = np.int64(arena.nodes[b, arena.episodes[b]["root"]]["state"])
            actions[b] = choose(arena, rules, addresses, aleatoric, scratch, b, root, q, luck)


@kernel
def arrive(arena, slots, actions, num_outcomes, rows, rewards, terminal, solved, new_slots, new_states, new_rows):
    """Makes steps: episodes `slots` [k] took `actions` [B], earned `rewards` [k] and are now at `rows` [k, W].

    By the world's own outcomes the graph has these states already. A model may not have foreseen them, or have taken an
    end for none, or none for an end: then they are begun anew, and the edges stay as they were planned with. Whether a
    state is a success is what the world says.
    Mutates: history, step, the root's node; the graph; and names the states that need a network value in the outputs.

    Returns:
      How many states need a value, and how many steps the model had not thought possible.
    """
    num_new, num_surprises = 0, 0
    for k in range(slots.shape[0]):
        b = slots[k]
        entry = arena.episodes[b]
        node = arena.nodes[b, entry["root"]]
        moment = arena.history[b, entry["step"]]
        moment["state"] = node["state"]
        moment["action"] = actions[b]
        moment["reward"] = rewards[k]
        entry["step"] += 1
        first, found = actions[b] * num_outcomes, np.int64(-1)
        for edge in range(first, first + num_outcomes):
            child = arena.edges[b, moment["state"], edge]["child"]
            same = arena.priors[b, moment["state"], edge] > 0.0 and not arena.stats[b, child]["unknown"]
            for w in range(rows.shape[1]):
                same &= arena.words[b, child, w] == rows[k, w]
            if same:
                found = np.int64(child)
                break
        is_new = False
        if found < 0:
            found, is_new = find_or_create(
                arena.stats, arena.edges, arena.words, arena.lookup, arena.episodes, b, rows[k], True
            )
            num_surprises += 1
        elif arena.stats[b, found]["terminal"] != terminal[k] or arena.stats[b, found]["solved"] != solved[k]:
            num_surprises += 1
        arena.stats[b, found]["solved"] = solved[k]
        if is_new or arena.stats[b, found]["terminal"] != terminal[k]:
            set_end(arena.stats, arena.sums, b, found, terminal[k], solved[k])
            if not terminal[k]:
                new_slots[num_new] = b
                new_states[num_new] = found
                for w in range(rows.shape[1]):
                    new_rows[num_new, w] = rows[k, w]
                num_new += 1
        node["state"] = found
    return num_new, num_surprises
