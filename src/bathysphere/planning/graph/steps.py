"""The steps of a search in one episode `b` of an `Arena` (see arena.py), as kernels put them together.

Nothing here allocates, and no floating-point operation is reordered, so a slow Python twin (tests/oracles/planner.py)
gives the same bits. Small helpers take the arrays they need rather than the arena: passing all of it costs more than
most of them do.
"""

from __future__ import annotations

import numpy as np

from bathysphere.planning.graph.compiled import GOLDEN, MIX_1, S32, inlined, kernel
from bathysphere.planning.graph.scoring import best_action, score_joint, score_separable

# Why a pass stopped at its leaf.
EXPANDED = 0  # an unexpanded node, which has children now
TERMINAL = 1  # the state ends the episode
DEAD_END = 2  # every child's state is on the path already

# How an episode stands after a step.
RUNNING = 0
ENDED = 1
CUT_OFF = 2


@kernel
def lookup_slot(row, size):
    """Returns where the search for a state begins in a lookup of `size` (a power of two) entries."""
    h = GOLDEN
    for word in row:
        h = (h ^ word) * MIX_1
        h = h ^ (h >> S32)
    return np.int64(h & np.uint64(size - 1))


@inlined
def find_or_create(stats, edges, words, lookup, episodes, b, row, transpositions):
    """Returns (state, created) for a row of words.

    Mutates: on creation everything about the new state but its value and flags.
    """
    stamp = episodes[b]["stamp"]
    slot = np.int64(0)
    if transpositions:
        mask = lookup.shape[1] - 1
        slot = lookup_slot(row, mask + 1)
        while lookup[b, slot]["stamp"] == stamp:
            state = np.int64(lookup[b, slot]["state"])
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
        lookup[b, slot]["state"] = state
        lookup[b, slot]["stamp"] = stamp
    for w in range(row.shape[0]):
        words[b, state, w] = row[w]
    entry = stats[b, state]
    entry["count"] = 0
    entry["root_visits"] = 0
    entry["path_visits"] = 0
    entry["score_count"] = 0
    entry["node"] = -1
    entry["unknown"] = False
    entry["score"] = 0.0  # never read, nor are rewards without a child, but saved searches are compared bit for bit
    for a in range(edges.shape[2]):
        edges[b, state, a]["child"] = -1
        edges[b, state, a]["reward"] = 0.0
    return state, True


@inlined
def new_node(nodes, episodes, b, state, parent):
    """Returns a node without children. Mutates: nodes, episodes[b].num_nodes."""
    node = np.int64(episodes[b]["num_nodes"])
    episodes[b]["num_nodes"] = node + 1
    entry = nodes[b, node]
    entry["state"] = state
    entry["parent"] = parent
    entry["child"] = -1
    return node


@inlined
def hang_children(stats, edges, nodes, episodes, b, node):
    """Gives `node` one child node per action, from the graph.

    Mutates: nodes, the state's node, episodes[b].num_nodes and .num_expansions.
    """
    state = nodes[b, node]["state"]
    episodes[b]["num_expansions"] += 1
    nodes[b, node]["child"] = episodes[b]["num_nodes"]
    stats[b, state]["node"] = episodes[b]["num_nodes"]
    for a in range(edges.shape[2]):
        new_node(nodes, episodes, b, edges[b, state, a]["child"], node)


@inlined
def set_end(stats, sums, b, state, terminal, solved):
    """Flags a new state; an end is worth exactly zero to every member, so it needs no network."""
    stats[b, state]["terminal"] = terminal
    stats[b, state]["solved"] = solved
    if terminal:
        stats[b, state]["count"] = 1
        for i in range(sums.shape[2]):
            sums[b, state, i] = 0.0


@inlined
def insert_child(arena, transpositions, b, state, action, row, reward, terminal, solved):
    """Enters into the graph where an action leads from a state: a row of words, its reward and end flags.

    Mutates: the edge; on creation everything about the child but its value, unless it is an end.

    Returns:
      The child, and whether it needs a value.
    """
    stats, edges, episodes = arena.stats, arena.edges, arena.episodes
    child, created = find_or_create(stats, edges, arena.words, arena.lookup, episodes, b, row, transpositions)
    edges[b, state, action]["child"] = child
    edges[b, state, action]["reward"] = reward
    if created:
        set_end(stats, arena.sums, b, child, terminal, solved)
    return child, created and not terminal


@inlined
def insert_unknown(arena, b, state, action, values):
    """Enters into the graph that nobody knows where an action leads from a state: an end that is worth `values` [E].

    It is no state, so no lookup finds it; its words are those of the state it comes from.
    Mutates: the edge; on creation everything about the child.
    """
    stats, edges, episodes = arena.stats, arena.edges, arena.episodes
    row = arena.words[b, state]
    child, _ = find_or_create(stats, edges, arena.words, arena.lookup, episodes, b, row, False)
    edges[b, state, action]["child"] = child
    edges[b, state, action]["reward"] = 0.0
    entry = stats[b, child]
    entry["terminal"], entry["solved"], entry["unknown"] = True, False, True
    entry["count"] = 1
    for i in range(values.shape[0]):
        arena.sums[b, child, i] = values[i]


@inlined
def mend(arena, b, state, action, child):
    """Makes an action lead from a state to another child than was predicted, in the graph and at all nodes there.

    What was planned beyond the predicted one is cut off. Mutates: the edge, nodes.
    """
    nodes, latest = arena.nodes[b], arena.stats[b, state]["node"]
    arena.edges[b, state, action]["child"] = child
    # Merged, a state keeps its latest children although the node that had them may have been cut off.
    if latest >= 0:
        nodes[latest + action]["state"] = child
        nodes[latest + action]["child"] = -1
    for node in range(arena.episodes[b]["num_nodes"]):
        if nodes[node]["state"] == state and nodes[node]["child"] >= 0:
            wrong = nodes[nodes[node]["child"] + action]
            wrong["state"] = child
            wrong["child"] = -1


@inlined
def begin_step(arena, b):
    """Counts the root as visited once more by the episode. Mutates: root_visits, passes."""
    episodes = arena.episodes
    episodes[b]["passes"] = 0
    arena.stats[b, arena.nodes[b, episodes[b]["root"]]["state"]]["root_visits"] += 1


@inlined
def select(arena, scratch, rules, separable, joint, bonus, b):
    """Walks episode b from its root to a leaf. First half of a pass.

    A node whose state was expanded before gets its children from the graph at once, and is the leaf; or, if nodes are
    merged, shares those of the other node and is passed through. As no state is twice on a path then, children have
    one parent in each pass, which `back_up` finds there.
    Mutates: leaf, leaf_kind, path_visits (undone by `back_up`), nodes, rng, score caches.

    Returns:
      The leaf's state if only the model knows its children, else -1.
    """
    stats, edges, nodes, episodes = arena.stats[b], arena.edges[b], arena.nodes[b], arena.episodes
    eligible, scores = scratch.eligible, scratch.scores
    risk_coef, bonus_coef, prior_coef = rules.risk_coef, rules.bonus_coef, rules.prior_coef
    node = np.int64(episodes[b]["root"])
    unknown = np.int64(-1)
    while True:
        state = nodes[node]["state"]
        entry = stats[state]
        if entry["terminal"]:
            kind = TERMINAL
            break
        first = np.int64(nodes[node]["child"])
        if first < 0 and rules.merge_nodes:
            first = np.int64(entry["node"])
            nodes[node]["child"] = first
        if first < 0:
            kind = EXPANDED
            if edges[state, 0]["child"] >= 0:
                hang_children(arena.stats, arena.edges, arena.nodes, episodes, b, node)
            else:
                unknown = np.int64(state)
            break
        if rules.tracks_path:
            entry["path_visits"] += 1
        any_eligible = False
        for a in range(edges.shape[1]):
            eligible[a] = not rules.avoid_loops or stats[nodes[first + a]["state"]]["path_visits"] == 0
            any_eligible |= eligible[a]
        if not any_eligible:
            kind = DEAD_END
            break
        if rules.is_joint:
            score_joint(arena, scratch, rules, b, node, joint, risk_coef, bonus, bonus_coef, prior_coef)
        else:
            score_separable(arena, scratch, rules, b, node, separable, risk_coef, True, bonus, bonus_coef, prior_coef)
        parent, node = node, first + best_action(scores, eligible, episodes, b, False)
        if rules.merge_nodes:
            nodes[node]["parent"] = parent
    episodes[b]["leaf"] = node
    episodes[b]["leaf_kind"] = kind
    return unknown


@inlined
def back_up(arena, scratch, rules, b):
    """Carries the value of episode b's leaf up to its root. Second half of a pass.

    The value is the leaf's own mean (of an unknown outcome too), zero at an end, or the dead-end value, which the dead
    end itself receives too. The leaf of an ordinary pass is not updated; every node above it is.
    Mutates: sums, count, path_visits (back to 0).
    """
    stats, edges, sums = arena.stats[b], arena.edges[b], arena.sums[b]
    nodes, episodes = arena.nodes[b], arena.episodes
    value, discount = scratch.value, rules.discount
    num_members = value.shape[0]
    root = np.int64(episodes[b]["root"])
    node = np.int64(episodes[b]["leaf"])
    kind = episodes[b]["leaf_kind"]
    state = nodes[node]["state"]
    entry = stats[state]
    if kind == TERMINAL and not entry["unknown"]:
        value[:] = 0.0
    elif kind == DEAD_END and rules.dead_ends:
        value[:] = rules.dead_end_value
    else:
        for i in range(num_members):
            value[i] = sums[state, i] / entry["count"]
    if kind == DEAD_END:
        entry["path_visits"] -= 1
        if rules.dead_ends:
            entry["count"] += 1
            for i in range(num_members):
                sums[state, i] += value[i]
    while node != root:
        parent = np.int64(nodes[node]["parent"])
        state = nodes[parent]["state"]
        reward = edges[state, node - nodes[parent]["child"]]["reward"]
        entry = stats[state]
        if rules.tracks_path:
            entry["path_visits"] -= 1
        entry["count"] += 1
        row = sums[state]
        for i in range(num_members):
            carried = reward + discount * value[i]
            value[i] = carried
            row[i] += carried
        node = parent


@inlined
def make_step(arena, b, action):
    """Makes the chosen step: the child node becomes the root, and keeps its subtree. Mutates: history, step, root.

    Returns:
      RUNNING, ENDED or CUT_OFF.
    """
    nodes, history = arena.nodes, arena.history
    entry = arena.episodes[b]
    root, step = np.int64(entry["root"]), np.int64(entry["step"])
    state = nodes[b, root]["state"]
    moment = history[b, step]
    moment["state"] = state
    moment["action"] = action
    moment["reward"] = arena.edges[b, state, action]["reward"]
    entry["step"] = step + 1
    entry["root"] = nodes[b, root]["child"] + action
    if arena.stats[b, nodes[b, entry["root"]]["state"]]["terminal"]:
        outcome = ENDED
    elif entry["step"] == history.shape[1]:
        outcome = CUT_OFF
    else:
        outcome = RUNNING
    return outcome
