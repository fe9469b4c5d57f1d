"""A search graph as it is drawn: pruned to what matters, laid out as a tree, with ends, dead ends and loops marked."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Hopeless
from bathysphere.planning.search_graph import SearchGraph

MOST_NODES = 150
KINDS = ("root", "state", "end", "dead end", "success", "unknown")


@dataclass(frozen=True)
class Node:
    """A state that is drawn."""

    state: int  # number in the graph
    x: float
    y: float
    kind: str  # of KINDS
    is_on_path: bool  # of what the planner expects to happen
    count: int
    mean: float
    std: float


@dataclass(frozen=True)
class Edge:
    """An action that is drawn, from one state to another."""

    source: int
    target: int
    action: int
    kind: str  # path, tree, other (a second way to a state) or loop (back to where one comes from)


@dataclass(frozen=True)
class GraphView:
    """What is drawn of a graph."""

    nodes: list[Node]
    edges: list[Edge]
    num_states: int  # of the whole graph
    num_hidden: int


def view_graph(graph: SearchGraph, path: Sequence[int], domain: Domain, most: int = MOST_NODES) -> GraphView:
    """Chooses what to draw of a graph, and where.

    Args:
      graph: of a search.
      path: states that the planner expects to pass, from the root.
      domain: may know hopeless states.
      most: states to draw; of more the most visited ones are kept, each with its way from the root.
    """
    parent = _parents(graph)
    for state, after in itertools.pairwise(path):
        if graph.depth[state] >= 0 and graph.depth[after] == graph.depth[state] + 1:
            parent[after] = state  # of several shortest ways the planner's, so that it is drawn as a straight line
    reachable = np.flatnonzero(graph.depth >= 0)
    order = sorted(reachable.tolist(), key=lambda s: (-int(graph.count[s]), int(graph.depth[s]), s))
    kept: dict[int, None] = {graph.root: None}
    for state in [*(s for s in path if graph.depth[s] >= 0), *order]:
        way = []
        while state not in kept:
            way.append(state)
            state = int(parent[state])
        if len(kept) + len(way) > most:
            continue
        kept.update(dict.fromkeys(reversed(way)))
    x = _places(list(kept), parent, graph.root, path)
    dead = dead_ends(graph, domain)
    on_path = set(path)
    nodes = []
    for state in kept:
        kind = "success" if graph.solved[state] else "end" if graph.terminal[state] else "state"
        kind = "dead end" if kind == "state" and dead[state] else kind
        kind = "unknown" if graph.unknown is not None and graph.unknown[state] else kind
        kind = "root" if state == graph.root else kind
        depth = int(graph.depth[state])
        told = int(graph.count[state]), float(graph.mean[state]), float(graph.std[state])
        nodes.append(Node(state, x[state], float(depth), kind, state in on_path, *told))
    edges = _edges(graph, kept, parent, list(path))
    return GraphView(nodes, edges, len(graph.states), len(graph.states) - len(kept))


def dead_ends(graph: SearchGraph, domain: Domain) -> NDArray[np.bool_]:
    """Tells which states lead nowhere, bool [N]: all that follows is known, and ends without success or goes back."""
    goes_on = graph.solved if graph.unknown is None else graph.solved | graph.unknown
    lost = graph.terminal & ~goes_on
    is_known = graph.child >= 0
    can_happen = np.ones_like(is_known) if graph.chances is None else graph.chances.reshape(is_known.shape) > 0
    is_expanded = is_known.any(axis=1) & (is_known | ~can_happen).all(axis=1)
    if isinstance(domain, Hopeless):
        lost = lost | (domain.hopeless(graph.states) & ~goes_on)
    itself = graph.child == np.arange(len(graph.child))[:, None]
    while True:
        now = lost | (is_expanded & (itself | lost[graph.child] | ~can_happen).all(axis=1) & ~goes_on)
        if (now == lost).all():
            return lost & ~graph.terminal
        lost = now


def _parents(graph: SearchGraph) -> NDArray[np.int64]:
    """Returns the state before each one on a shortest way from the root, int64 [N]; -1 if there is none."""
    parent = np.full(len(graph.states), -1, np.int64)
    sources, actions = np.nonzero(graph.child >= 0)
    targets = graph.child[sources, actions]
    fits = (graph.depth[sources] >= 0) & (graph.depth[targets] == graph.depth[sources] + 1)
    for source, target in zip(sources[fits][::-1], targets[fits][::-1], strict=True):
        parent[target] = source  # the first found wins
    return parent


def _places(kept: list[int], parent: NDArray[np.int64], root: int, path: Sequence[int]) -> dict[int, float]:
    """Returns where each state stands from left to right.

    What the planner expects is a straight line; other states stand on both sides of it, as near as those of the same
    depth allow, and above the middle of what follows them.
    """
    children: dict[int, list[int]] = {state: [] for state in kept}
    for state in kept:
        if state != root:
            children[int(parent[state])].append(state)
    trunk = set(path)
    trees: dict[int, _Tree] = {}
    for state in _leaves_first(children, root):
        below = sorted(children[state])
        middle = next((child for child in below if child in trunk), None)
        tree = _Tree() if middle is None else trees.pop(middle)
        for number, child in enumerate(each for each in below if each != middle):
            tree.join(trees.pop(child), 1 if middle is None or number % 2 == 0 else -1)
        tree.add_root(state, None if middle is None else tree.x[middle])
        trees[state] = tree
    return trees[root].x


def _leaves_first(children: dict[int, list[int]], root: int) -> list[int]:
    order = [root]
    for state in order:
        order += children[state]
    return order[::-1]


class _Tree:
    """Places of some states that stand beside each other, and how far they reach at each depth below their parent."""

    def __init__(self) -> None:
        self.x: dict[int, float] = {}
        self.roots: list[float] = []
        self.ends: list[tuple[float, float]] = []  # leftmost and rightmost place, by depth

    def join(self, other: _Tree, side: int) -> None:
        """Puts another tree at the right (1) or left (-1), one place apart where they are nearest."""
        met = list(zip(self.ends, other.ends, strict=False))
        gaps = [mine[1] - its[0] if side > 0 else its[1] - mine[0] for mine, its in met]
        move = side * (max(gaps) + 1.0) if gaps else 0.0
        self.x |= {state: x + move for state, x in other.x.items()}
        self.roots += [x + move for x in other.roots]
        moved = [(low + move, high + move) for low, high in other.ends]
        both = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(self.ends, moved, strict=False)]
        self.ends = both + self.ends[len(both) :] + moved[len(both) :]

    def add_root(self, state: int, x: float | None) -> None:
        """Puts a state above all: at `x`, or above their middle."""
        middle = (min(self.roots) + max(self.roots)) / 2 if self.roots else 0.0
        self.x[state] = middle if x is None else x
        self.roots, self.ends = [self.x[state]], [(self.x[state], self.x[state]), *self.ends]


def _edges(graph: SearchGraph, kept: dict[int, None], parent: NDArray[np.int64], path: list[int]) -> list[Edge]:
    steps = set(itertools.pairwise(path))
    drawn: dict[tuple[int, int], Edge] = {}
    for source in kept:
        for action, target in enumerate(graph.child[source].tolist()):
            if target < 0 or target not in kept or target == source or (source, target) in drawn:
                continue
            kind = "other"
            if (source, target) in steps:
                kind = "path"
            elif parent[target] == source:
                kind = "tree"
            elif _is_above(target, source, parent):
                kind = "loop"
            drawn[source, target] = Edge(source, target, action, kind)
    return list(drawn.values())


def _is_above(state: int, below: int, parent: NDArray[np.int64]) -> bool:
    while below >= 0:
        if below == state:
            return True
        below = int(parent[below])
    return False
