"""The compiled inner loops of the search. Each works on all episodes of an `Arena` (see graph.py) in turn.

Nothing here allocates per episode, and no floating-point operation is reordered, so a slow Python twin
(tests/oracles/planner.py) gives the same bits. Helpers take the arrays they need rather than the arena: passing all of
it costs more than most of them do.
"""

from __future__ import annotations

import numpy as np

from bathysphere.planning.compiled import GOLDEN, MIX_1, S32, inlined, kernel
from bathysphere.planning.risk import bonus_at, joint_at, separable_at
from bathysphere.planning.scoring import best_action, random_below, score_joint, score_separable

# Why a pass stopped at its leaf.
EXPANDED = 0  # an unexpanded node, which has children now
TERMINAL = 1  # the state ends the episode
DEAD_END = 2  # every child's state is on the path already

# How an episode stands after a move.
RUNNING = 0
ENDED = 1
CUT_OFF = 2


@kernel
def _table_slot(row, size):
    """Returns where the search for a state begins in a table of `size` (a power of two) entries."""
    h = GOLDEN
    for word in row:
        h = (h ^ word) * MIX_1
        h = h ^ (h >> S32)
    return np.int64(h & np.uint64(size - 1))


@inlined
def _find_or_create(stats, edges, words, table, episodes, b, row, transpositions):
    """Returns (state, created) for a row of words.

    Mutates: on creation everything about the new state but its value and flags.
    """
    stamp = episodes[b]["stamp"]
    slot = np.int64(0)
    if transpositions:
        mask = table.shape[1] - 1
        slot = _table_slot(row, mask + 1)
        while table[b, slot]["stamp"] == stamp:
            state = np.int64(table[b, slot]["state"])
            same = True
            for w in range(row.shape[0]):
                if words[b, state, w] != row[w]:
                    same = False
                    break
            if same:
                return state, False
            slot = (slot + 1) & mask
    state = np.int64(episodes[b]["num_states"])
    episodes[b]["num_states"] = state + 1
    if transpositions:
        table[b, slot]["state"] = state
        table[b, slot]["stamp"] = stamp
    for w in range(row.shape[0]):
        words[b, state, w] = row[w]
    entry = stats[b, state]
    entry["count"] = 0
    entry["root_visits"] = 0
    entry["path_visits"] = 0
    entry["score_count"] = 0
    for a in range(edges.shape[2]):
        edges[b, state, a]["child"] = -1
    return state, True


@kernel
def rebuild_table(words, table, episodes):
    """Enters every state of every running episode into an empty table. Mutates: table."""
    mask = table.shape[1] - 1
    for b in range(episodes.shape[0]):
        stamp = episodes[b]["stamp"]
        for state in range(episodes[b]["num_states"]):
            slot = _table_slot(words[b, state], mask + 1)
            while table[b, slot]["stamp"] == stamp:
                slot = (slot + 1) & mask
            table[b, slot]["state"] = state
            table[b, slot]["stamp"] = stamp


@inlined
def _new_node(nodes, episodes, b, state, parent):
    node = np.int64(episodes[b]["num_nodes"])
    episodes[b]["num_nodes"] = node + 1
    entry = nodes[b, node]
    entry["state"] = state
    entry["parent"] = parent
    entry["child"] = -1
    return node


@inlined
def _hang_children(edges, nodes, episodes, b, node):
    """Gives `node` one child node per action, from the graph.

    Mutates: nodes, episodes[b].num_nodes and .num_expansions.
    """
    state = nodes[b, node]["state"]
    episodes[b]["num_expansions"] += 1
    nodes[b, node]["child"] = episodes[b]["num_nodes"]
    for a in range(edges.shape[2]):
        _new_node(nodes, episodes, b, edges[b, state, a]["child"], node)


@inlined
def _set_end(stats, sums, b, state, terminal, solved):
    """Flags a new state; an end is worth exactly zero to every member, so it needs no network."""
    stats[b, state]["terminal"] = terminal
    stats[b, state]["solved"] = solved
    if terminal:
        stats[b, state]["count"] = 1
        for i in range(sums.shape[2]):
            sums[b, state, i] = 0.0


@kernel
def start(arena, transpositions, slots, rows, seeds):
    """Begins an episode in each of `slots` [k] at state `rows` [k, W], with its own random stream.

    The start states' values are still missing; `store_values` brings them. They are state 0 and node 0.
    Mutates: everything about those episodes.
    """
    stats, edges, words, table = arena.stats, arena.edges, arena.words, arena.table
    nodes, episodes, members = arena.nodes, arena.episodes, arena.members
    num_members, num_drawn = arena.sums.shape[2], members.shape[1]
    for k in range(slots.shape[0]):
        b = slots[k]
        entry = episodes[b]
        entry["stamp"] += 1
        entry["num_states"] = 0
        entry["num_nodes"] = 0
        entry["num_expansions"] = 0
        entry["num_model_calls"] = 0
        entry["step"] = 0
        entry["rng"] = seeds[k]
        state, _ = _find_or_create(stats, edges, words, table, episodes, b, rows[k], transpositions)
        stats[b, state]["terminal"] = False
        stats[b, state]["solved"] = False
        entry["root"] = _new_node(nodes, episodes, b, state, -1)
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
def begin_step(arena, active):
    """Counts the root as visited once more by the episode. Mutates: root_visits, passes."""
    stats, nodes, episodes = arena.stats, arena.nodes, arena.episodes
    for b in range(active.shape[0]):
        if active[b]:
            episodes[b]["passes"] = 0
            stats[b, nodes[b, episodes[b]["root"]]["state"]]["root_visits"] += 1


@inlined
def _select(arena, scratch, rules, separable, joint, bonus, b):
    """Walks episode b from its root to a leaf. First half of a pass.

    A leaf whose state was expanded before gets its children from the graph at once.
    Mutates: leaf, leaf_kind, path_visits (undone by `_back_up`), nodes, rng, score caches.

    Returns:
      The leaf's state if only the model knows its children, else -1.
    """
    stats, edges, nodes, episodes = arena.stats, arena.edges, arena.nodes, arena.episodes
    eligible, scores = scratch.eligible, scratch.scores
    node = np.int64(episodes[b]["root"])
    unknown = np.int64(-1)
    while True:
        state = nodes[b, node]["state"]
        entry = stats[b, state]
        if entry["terminal"]:
            kind = TERMINAL
            break
        first = np.int64(nodes[b, node]["child"])
        if first < 0:
            kind = EXPANDED
            if edges[b, state, 0]["child"] >= 0:
                _hang_children(edges, nodes, episodes, b, node)
            else:
                unknown = np.int64(state)
            break
        if rules.tracks_path:
            entry["path_visits"] += 1
        any_eligible = False
        for a in range(edges.shape[2]):
            eligible[a] = not rules.avoid_loops or stats[b, nodes[b, first + a]["state"]]["path_visits"] == 0
            any_eligible |= eligible[a]
        if not any_eligible:
            kind = DEAD_END
            break
        if rules.is_joint:
            score_joint(arena, scratch, rules, b, node, joint, rules.risk_coef, bonus, rules.bonus_coef)
        else:
            score_separable(arena, scratch, rules, b, node, separable, rules.risk_coef, True, bonus, rules.bonus_coef)
        node = first + best_action(scores, eligible, episodes, b, False)
    episodes[b]["leaf"] = node
    episodes[b]["leaf_kind"] = kind
    return unknown


@kernel
def insert(arena, transpositions, slots, rows, rewards, terminal, solved, new_slots, new_states, new_rows):
    """Enters the model's answer for the pending leaves into the graph and hangs their children.

    Args: slots [k]; rows [k, A, W]; rewards, terminal, solved [k, A].
    Mutates: graph and tree; and names the states that need a network value in the three outputs [k * A].

    Returns:
      How many states need a value.
    """
    stats, edges, words, sums = arena.stats, arena.edges, arena.words, arena.sums
    table, nodes, episodes = arena.table, arena.nodes, arena.episodes
    num_new = 0
    for k in range(slots.shape[0]):
        b = slots[k]
        episodes[b]["num_model_calls"] += 1
        node = np.int64(episodes[b]["leaf"])
        state = nodes[b, node]["state"]
        for a in range(rows.shape[1]):
            child, created = _find_or_create(stats, edges, words, table, episodes, b, rows[k, a], transpositions)
            edges[b, state, a]["child"] = child
            edges[b, state, a]["reward"] = rewards[k, a]
            if created:
                _set_end(stats, sums, b, child, terminal[k, a], solved[k, a])
                if not terminal[k, a]:
                    new_slots[num_new] = b
                    new_states[num_new] = child
                    for w in range(rows.shape[2]):
                        new_rows[num_new, w] = rows[k, a, w]
                    num_new += 1
        _hang_children(edges, nodes, episodes, b, node)
    return num_new


@inlined
def _back_up(arena, scratch, rules, b):
    """Carries the value of episode b's leaf up to its root. Second half of a pass.

    The value is the leaf's own mean, zero at an end, or the dead-end value, which the dead end itself receives too.
    The leaf of an ordinary pass is not updated; every node above it is.
    Mutates: sums, count, path_visits (back to 0).
    """
    stats, edges, sums = arena.stats, arena.edges, arena.sums
    nodes, episodes = arena.nodes, arena.episodes
    value, discount = scratch.value, rules.discount
    num_members = value.shape[0]
    root = np.int64(episodes[b]["root"])
    node = np.int64(episodes[b]["leaf"])
    kind = episodes[b]["leaf_kind"]
    state = nodes[b, node]["state"]
    entry = stats[b, state]
    if kind == TERMINAL:
        value[:] = 0.0
    elif kind == DEAD_END and rules.dead_ends:
        value[:] = rules.dead_end_value
    else:
        for i in range(num_members):
            value[i] = sums[b, state, i] / entry["count"]
    if kind == DEAD_END:
        entry["path_visits"] -= 1
        if rules.dead_ends:
            entry["count"] += 1
            for i in range(num_members):
                sums[b, state, i] += value[i]
    while node != root:
        parent = np.int64(nodes[b, node]["parent"])
        state = nodes[b, parent]["state"]
        reward = edges[b, state, node - nodes[b, parent]["child"]]["reward"]
        entry = stats[b, state]
        if rules.tracks_path:
            entry["path_visits"] -= 1
        entry["count"] += 1
        row = sums[b, state]
        for i in range(num_members):
            carried = reward + discount * value[i]
            value[i] = carried
            row[i] += carried
        node = parent


@kernel
def sweep(arena, scratch, rules, addresses, active, num_passes, pending_slots, pending_rows):
    """Takes every active episode as far as it gets without the model: to `num_passes` passes of this move, or to a leaf
    whose children only the model knows.

    An episode that waited for the model begins by ending that pass. About half of all passes need no model; running
    them one after another finds the top of the tree still in the cache.
    Leaves for the model are named in `pending_slots` [B], their states in `pending_rows` [B, W].
    Mutates: see `_back_up` and `_select`; passes, is_waiting; the two outputs.

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
                _back_up(arena, scratch, rules, b)
                entry["passes"] += 1
            if entry["passes"] >= num_passes:
                break
            state = _select(arena, scratch, rules, separable, joint, bonus, b)
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
def correct(
    arena,
    transpositions,
    slots,
    actions,
    rows,
    rewards,
    terminal,
    solved,
    errors,
    fresh_nodes,
    new_slots,
    new_states,
):
    """Repairs the chosen edge of every episode in `slots` [k] where the model had predicted it wrongly.

    The truth is rows [k, W], rewards, terminal, solved [k]. A wrong reward or end flag is overwritten. After a wrong
    state, a fresh node for the true one is made (`fresh_nodes` [B]; untouched where the prediction held), which loses
    the subtree; its statistics are found in the table or begun anew. Values backed up before are not corrected.
    Mutates: graph and tree; errors [4] += wrong rewards, false ends, missed ends, wrong states; the outputs.

    Returns:
      How many states need a value.
    """
    stats, edges, words, sums = arena.stats, arena.edges, arena.words, arena.sums
    table, nodes, episodes = arena.table, arena.nodes, arena.episodes
    num_new = 0
    for k in range(slots.shape[0]):
        b = slots[k]
        state = nodes[b, episodes[b]["root"]]["state"]
        edge = edges[b, state, actions[b]]
        child = edge["child"]
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
        truth, created = _find_or_create(stats, edges, words, table, episodes, b, rows[k], transpositions)
        if created:
            _set_end(stats, sums, b, truth, terminal[k], solved[k])
            if not terminal[k]:
                new_slots[num_new] = b
                new_states[num_new] = truth
                num_new += 1
        stats[b, truth]["terminal"] = terminal[k]
        stats[b, truth]["solved"] = solved[k]
        fresh_nodes[b] = _new_node(nodes, episodes, b, truth, -1)
    return num_new


@kernel
def advance(arena, active, actions, fresh_nodes, outcomes):
    """Makes the chosen moves: the child node becomes the root and keeps its subtree.

    Mutates: history, step, root, outcomes [B] (RUNNING, ENDED or CUT_OFF).
    """
    stats, edges, nodes = arena.stats, arena.edges, arena.nodes
    episodes, history = arena.episodes, arena.history
    for b in range(active.shape[0]):
        if not active[b]:
            continue
        entry = episodes[b]
        root, action, step = np.int64(entry["root"]), actions[b], np.int64(entry["step"])
        state = nodes[b, root]["state"]
        moment = history[b, step]
        moment["state"] = state
        moment["action"] = action
        moment["reward"] = edges[b, state, action]["reward"]
        entry["step"] = step + 1
        if fresh_nodes[b] >= 0:
            entry["root"] = fresh_nodes[b]
        else:
            entry["root"] = nodes[b, root]["child"] + action
        if stats[b, nodes[b, entry["root"]]["state"]]["terminal"]:
            outcomes[b] = ENDED
        elif entry["step"] == history.shape[1]:
            outcomes[b] = CUT_OFF
        else:
            outcomes[b] = RUNNING
