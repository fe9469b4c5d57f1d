"""What must hold of search graphs between passes, for tests and for graphs that come from a file.

Kernels have no bounds checks. They rely on every index here, so nothing that was loaded reaches them unchecked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bathysphere.errors import BathysphereError
from bathysphere.planning.graph.arena import NO_CHILD, Arena

Promise = tuple[Any, str]  # whether it is kept, and what is wrong if it is not
_MOST_EPISODES = 2**30  # in one slot; stamps must not run over


def check_graph(arena: Arena, *, transpositions: bool = True, merged: bool = True) -> None:
    """Refuses an arena that no search can have led to.

    Args:
      arena: the graphs, between two passes.
      transpositions: whether each state has one entry only.
      merged: whether nodes of one state may share their children.

    Raises:
      BathysphereError: names the first promise that is not kept.
    """
    for b, episode in enumerate(arena.episodes):
        if episode["num_states"] == 0 and episode["num_nodes"] == 0 and episode["step"] == 0:
            continue  # nothing was ever played here
        parts = _counts(arena, b), _states(arena, b, transpositions), _nodes(arena, b, merged), _steps(arena, b)
        for promises in parts:  # one after the other: each relies on those before
            for is_kept, complaint in promises:
                if not is_kept:
                    raise BathysphereError(f"The search graph of episode {b} is impossible: {complaint}.")


def _counts(arena: Arena, b: int) -> Iterator[Promise]:
    """What the numbers of an episode must be for the rest to be looked at."""
    episode, num_actions = arena.episodes[b], arena.edges.shape[2]
    num_nodes = int(episode["num_nodes"])
    yield 1 <= episode["num_states"] <= arena.stats.shape[1], "it has no room for its states"
    yield 1 <= num_nodes <= arena.nodes.shape[1], "it has no room for its nodes"
    yield 1 <= episode["stamp"] <= _MOST_EPISODES, "its number is out of range"
    yield 0 <= episode["root"] < num_nodes, "the root does not exist"
    yield 0 <= episode["step"] < arena.history.shape[1] + 1, "it has more steps than an episode"
    yield 0 <= episode["num_waits"] <= episode["step"] + 1, "it waited more often than it stepped"
    yield episode["passes"] >= 0, "it made less than no passes"
    yield not episode["is_waiting"], "a pass was not ended"
    members = arena.members[b].astype(np.int64)
    yield (np.diff(members) > 0).all(), "a member was drawn twice"
    yield (members < arena.sums.shape[2]).all(), "a member does not exist"
    moments = arena.history[b, : episode["step"]]
    yield ((moments["state"] >= 0) & (moments["state"] < episode["num_states"])).all(), "a step led from nowhere"
    yield ((moments["action"] >= 0) & (moments["action"] < num_actions)).all(), "a step was no action"
    yield np.isfinite(moments["reward"]).all(), "a reward is not finite"


def _states(arena: Arena, b: int, transpositions: bool) -> Iterator[Promise]:
    """What must hold of the graph."""
    episode = arena.episodes[b]
    num_states = int(episode["num_states"])
    stats, edges = arena.stats[b, :num_states], arena.edges[b, :num_states]
    if transpositions:
        is_state = np.flatnonzero(~stats["unknown"])
        rows = np.ascontiguousarray(arena.words[b, is_state])
        # One opaque value a row: much faster to compare than rows of numbers.
        distinct = np.unique(rows.view(np.dtype((np.void, rows.shape[1] * 8))))
        yield len(distinct) == len(is_state), "two entries hold one state"
        in_use = arena.lookup[b][arena.lookup[b]["stamp"] == episode["stamp"]]
        agree = np.array_equal(np.sort(in_use["state"]), is_state)
        yield agree, "lookup and states disagree"
    yield (stats["count"] >= 1).all(), "a state has no value"
    yield np.isfinite(arena.sums[b, :num_states]).all(), "a sum is not finite"
    cached = stats["score_count"] == stats["count"]
    yield np.isfinite(stats["score"][cached]).all(), "a score is not finite"
    yield (arena.priors[b, :num_states] >= 0).all(), "a prior is no probability"
    yield not arena.priors[b, num_states:].any(), "a prior was not cleared"
    yield (stats["path_visits"] == 0).all(), "a path was not undone"
    yield not (stats["solved"] & ~stats["terminal"]).any(), "a solved state goes on"
    yield not (stats["unknown"] & ~stats["terminal"]).any(), "the unknown goes on"
    children = edges["child"]
    expanded = children[:, 0] != NO_CHILD
    yield ((children != NO_CHILD) == expanded[:, None]).all(), "a state is half expanded"
    known = children[expanded]
    yield ((known >= 0) & (known < num_states)).all(), "a child does not exist"
    yield np.isfinite(edges["reward"][expanded]).all(), "a reward is not finite"
    yield episode["num_model_calls"] == expanded.sum(), "a question to the model was not counted"


def _nodes(arena: Arena, b: int, merged: bool) -> Iterator[Promise]:
    """What must hold of the tree over the graph."""
    episode, num_actions = arena.episodes[b], arena.edges.shape[2]
    num_states, num_nodes = int(episode["num_states"]), int(episode["num_nodes"])
    nodes, children = arena.nodes[b, :num_nodes], arena.edges["child"][b, :num_states]
    yield ((nodes["state"] >= 0) & (nodes["state"] < num_states)).all(), "a node points at no state"
    parents = np.flatnonzero(nodes["child"] != NO_CHILD)
    first = nodes["child"][parents].astype(np.int64)
    yield ((first >= 0) & (first + num_actions <= num_nodes)).all(), "a node's children do not exist"
    families, counts = np.unique(first, return_counts=True)
    # Those that led to a wrong prediction were cut off when the step was made.
    yield episode["num_expansions"] >= len(families), "an expansion was not counted"
    kids = first[:, None] + np.arange(num_actions)
    yield (nodes["state"][kids] == children[nodes["state"][parents]]).all(), "tree and graph disagree"
    is_shared = bool((counts > 1).any())
    yield merged or not is_shared, "two nodes share their children"
    if not is_shared:
        # Children are younger than their parents, so every way up ends.
        yield (first > parents).all(), "a child is older than its parent"
        yield (nodes["parent"][kids] == parents[:, None]).all(), "a child does not know its parent"
    parent = nodes["parent"]
    yield ((parent >= NO_CHILD) & (parent < num_nodes)).all(), "a parent does not exist"
    latest = arena.stats["node"][b, :num_states]
    owners = np.flatnonzero(latest != NO_CHILD)
    own = latest[owners].astype(np.int64)
    yield ((own >= 0) & (own + num_actions <= num_nodes)).all(), "a state's children do not exist"
    kids = own[:, None] + np.arange(num_actions)
    yield (nodes["state"][kids] == children[owners]).all(), "a state's children are not its own"


def _steps(arena: Arena, b: int) -> Iterator[Promise]:
    """What must hold of the steps made so far."""
    episode = arena.episodes[b]
    num_states = int(episode["num_states"])
    steps = arena.history["state"][b, : episode["step"]]
    surplus = arena.stats["root_visits"][b, :num_states] - np.bincount(steps, minlength=num_states)
    yield (surplus >= 0).all() or episode["num_waits"], "a step was not counted"
    yield 0 <= surplus.sum() + episode["num_waits"] <= 1, "a step was counted twice, or not at all"
