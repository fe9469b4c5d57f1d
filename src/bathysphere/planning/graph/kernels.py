"""The compiled inner loops of the search. Each works on all episodes of an `Arena` (see arena.py) in turn."""

from __future__ import annotations

import numpy as np

from bathysphere.planning.graph.compiled import kernel
from bathysphere.planning.graph.risk import bonus_at, joint_at, separable_at
from bathysphere.planning.graph.scoring import random_below
from bathysphere.planning.graph.steps import (
    back_up,
    begin_step,
    find_or_create,
    hang_children,
    insert_child,
    insert_unknown,
    lookup_slot,
    make_step,
    mend,
    new_node,
    select,
    set_end,
)


@kernel
def rebuild_lookup(arena):
    """Enters every state of every running episode into an empty lookup. Mutates: lookup."""
    words, lookup, episodes = arena.words, arena.lookup, arena.episodes
    mask = lookup.shape[1] - 1
    for b in range(episodes.shape[0]):
        stamp = episodes[b]["stamp"]
        for state in range(episodes[b]["num_states"]):
            if arena.stats[b, state]["unknown"]:
                continue
            slot = lookup_slot(words[b, state], mask + 1)
            while lookup[b, slot]["stamp"] == stamp:
                slot = (slot + 1) & mask
            lookup[b, slot]["state"] = state
            lookup[b, slot]["stamp"] = stamp


@kernel
def start(arena, transpositions, slots, rows, seeds):
    """Begins an episode in each of `slots` [k] at state `rows` [k, W], with its own random stream.

    The start states' values are still missing; `store_values` brings them. They are state 0 and node 0.
    Mutates: everything about those episodes.
    """
    stats, edges, words, lookup = arena.stats, arena.edges, arena.words, arena.lookup
    nodes, episodes, members = arena.nodes, arena.episodes, arena.members
    num_members, num_drawn = arena.sums.shape[2], members.shape[1]
    for k in range(slots.shape[0]):
        b = slots[k]
        entry = episodes[b]
        arena.priors[b, : entry["num_states"]] = 0.0  # of the episode before; ends get none of their own
        entry["stamp"] += 1
        entry["num_states"] = 0
        entry["num_nodes"] = 0
        entry["num_expansions"] = 0
        entry["num_model_calls"] = 0
        entry["step"] = 0
        entry["num_waits"] = 0
        entry["rng"] = seeds[k]
        state, _ = find_or_create(stats, edges, words, lookup, episodes, b, rows[k], transpositions)
        stats[b, state]["terminal"] = False
        stats[b, state]["solved"] = False
        entry["root"] = new_node(nodes, episodes, b, state, -1)
        # Draw L of E members without replacement, in increasing order: each is taken with probability
        # (places left) / (members left).
        taken = 0
        for i in range(num_members):
            if random_below(episodes, b, num_members - i) < num_drawn - taken:
                members[b, taken] = i
                taken += 1


@kernel
def store_values(arena, slots, states, values):
    """Gives new states their network values [k, E] as their first visit. Mutates: sums, count.

    Returns:
      Whether all values are finite.
    """
    stats, sums = arena.stats, arena.sums
    total = 0.0  # what is not finite makes it nan: x - x is 0 for every number
    for k in range(slots.shape[0]):
        b, state = slots[k], states[k]
        stats[b, state]["count"] = 1
        for i in range(values.shape[1]):
            sums[b, state, i] = values[k, i]
            total += values[k, i] - values[k, i]
    return total == 0.0


@kernel
def begin_steps(arena, active):
    """Begins a step in every active episode. Mutates: see `begin_step`."""
    for b in range(active.shape[0]):
        if active[b]:
            begin_step(arena, b)


@kernel
def insert(arena, transpositions, slots, rows, rewards, terminal, solved, new_slots, new_states, new_rows):
    """Enters the model's answer for the pending leaves into the graph and hangs their children.

    Args: slots [k]; rows [k, A, W]; rewards, terminal, solved [k, A].
    Mutates: graph and tree; and names the states that need a network value in the three outputs [k * A].

    Returns:
      How many states need a value.
    """
    nodes, episodes = arena.nodes, arena.episodes
    num_new = 0
    for k in range(slots.shape[0]):
        b = slots[k]
        episodes[b]["num_model_calls"] += 1
        node = np.int64(episodes[b]["leaf"])
        state = nodes[b, node]["state"]
        for a in range(rows.shape[1]):
            row, reward, is_end, is_success = rows[k, a], rewards[k, a], terminal[k, a], solved[k, a]
            child, is_new = insert_child(arena, transpositions, b, state, a, row, reward, is_end, is_success)
            if is_new:
                new_slots[num_new] = b
                new_states[num_new] = child
                for w in range(rows.shape[2]):
                    new_rows[num_new, w] = row[w]
                num_new += 1
        hang_children(arena.stats, arena.edges, nodes, episodes, b, node)
    return num_new


@kernel
def insert_partly(
    arena, transpositions, slots, rows, rewards, terminal, solved, known, values, new_slots, new_states, new_rows
):
    """As `insert`, for a model that knows its answer only where `known` [k, A] is true; the rest is worth `values`.

    Args: values [k, A, E].
    """
    nodes, episodes = arena.nodes, arena.episodes
    num_new = 0
    for k in range(slots.shape[0]):
        b = slots[k]
        episodes[b]["num_model_calls"] += 1
        node = np.int64(episodes[b]["leaf"])
        state = nodes[b, node]["state"]
        for a in range(rows.shape[1]):
            if not known[k, a]:
                insert_unknown(arena, b, state, a, values[k, a])
                continue
            row, reward, is_end, is_success = rows[k, a], rewards[k, a], terminal[k, a], solved[k, a]
            child, is_new = insert_child(arena, transpositions, b, state, a, row, reward, is_end, is_success)
            if is_new:
                new_slots[num_new] = b
                new_states[num_new] = child
                for w in range(rows.shape[2]):
                    new_rows[num_new, w] = row[w]
                num_new += 1
        hang_children(arena.stats, arena.edges, nodes, episodes, b, node)
    return num_new


@kernel
def sweep(arena, scratch, rules, addresses, active, num_passes, pending_slots, pending_rows):
    """Takes every active episode as far as it gets without the model: to `num_passes` passes of this step, or to a leaf
    whose children only the model knows.

    An episode that waited for the model begins by ending that pass. About half of all passes need no model; running
    them one after another finds the top of the tree still in the cache.
    Leaves for the model are named in `pending_slots` [B], their states in `pending_rows` [B, W].
    Mutates: see `back_up` and `select`; passes, is_waiting; the two outputs.

    Returns:
      How many leaves are pending.
    """
    separable, joint, bonus = separable_at(addresses.separable), joint_at(addresses.joint), bonus_at(addresses.bonus)
    num_pending = 0
    for b in range(active.shape[0]):
        if not active[b]:
            continue
        entry = arena.episodes[b]
        is_selected = entry["is_waiting"]
        entry["is_waiting"] = False
        while True:
            if is_selected:
                back_up(arena, scratch, rules, b)
                entry["passes"] += 1
            if entry["passes"] >= num_passes:
                break
            state = select(arena, scratch, rules, separable, joint, bonus, b)
            is_selected = True
            if state >= 0:
                entry["is_waiting"] = True
                pending_slots[num_pending] = b
                for w in range(pending_rows.shape[1]):
                    pending_rows[num_pending, w] = arena.words[b, state, w]
                num_pending += 1
                break
    return num_pending


@kernel
def correct(arena, transpositions, slots, actions, rows, rewards, terminal, solved, errors, new_slots, new_states):
    """Repairs the chosen edge of every episode in `slots` [k] where the model had predicted it wrongly, or not at all.

    The truth is rows [k, W], rewards, terminal, solved [k]. A wrong reward or end flag is overwritten. An edge to a
    wrong state, or to the unknown, leads to the true one from then on, whose statistics are found in the lookup or
    begun anew; what was planned beyond the wrong one is lost. Values backed up before are not corrected.
    Mutates: graph and tree; errors [5] += wrong rewards, false ends, missed ends, wrong states, and steps into the
    unknown, which are no errors; the outputs.

    Returns:
      How many states need a value.
    """
    stats, edges, words, sums = arena.stats, arena.edges, arena.words, arena.sums
    lookup, nodes, episodes = arena.lookup, arena.nodes, arena.episodes
    num_new = 0
    for k in range(slots.shape[0]):
        b = slots[k]
        state = nodes[b, episodes[b]["root"]]["state"]
        edge = edges[b, state, actions[b]]
        child = edge["child"]
        if stats[b, child]["unknown"]:
            errors[4] += 1
            edge["reward"] = rewards[k]
        else:
            if edge["reward"] != rewards[k]:
                errors[0] += 1
                edge["reward"] = rewards[k]
            if stats[b, child]["terminal"] and not terminal[k]:
                errors[1] += 1
            if terminal[k] and not stats[b, child]["terminal"]:
                errors[2] += 1
            stats[b, child]["terminal"] = terminal[k]
            stats[b, child]["solved"] = solved[k]
            same = True
            for w in range(rows.shape[1]):
                same &= words[b, child, w] == rows[k, w]
            if same:
                continue
            errors[3] += 1
        truth, created = find_or_create(stats, edges, words, lookup, episodes, b, rows[k], transpositions)
        if created:
            set_end(stats, sums, b, truth, terminal[k], solved[k])
            if not terminal[k]:
                new_slots[num_new] = b
                new_states[num_new] = truth
                num_new += 1
        stats[b, truth]["terminal"] = terminal[k]
        stats[b, truth]["solved"] = solved[k]
        mend(arena, b, state, actions[b], truth)
    return num_new


@kernel
def advance(arena, active, actions, outcomes):
    """Makes the chosen step of every active episode. Mutates: see `make_step`; outcomes [B]."""
    for b in range(active.shape[0]):
        if active[b]:
            outcomes[b] = make_step(arena, b, actions[b])
