"""A picture of a search graph. Imports matplotlib only when asked to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.planning.search_graph import SearchGraph

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_graph(graph: SearchGraph, positions: NDArray[Any] | None = None, title: str = "") -> Figure:
    """Draws states as dots coloured by the members' standard deviation, larger the more they were visited.

    Known edges are thin lines, the way the episode has come is a thick one. The root has a ring, ends are
    squares, a success is a star.

    Args:
      graph: from `search_graph`.
      positions: where to draw each state, numbers [N, 2], y downwards; rows by distance from the start if not
        given.
      title: a line above the picture.

    Returns:
      A figure; save it with `figure.savefig(path)`.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    where = layers(graph) if positions is None else np.asarray(positions, float)
    width, height = np.ptp(where, axis=0)
    figure = Figure(figsize=(min(3.0 + 0.35 * width, 12.0), min(1.5 + 0.35 * height, 12.0)), layout="constrained")
    axes = figure.subplots()
    sources, actions = np.nonzero(graph.child >= 0)
    targets = graph.child[sources, actions]
    lines = np.stack([where[sources], where[targets]], axis=1)
    axes.add_collection(LineCollection(list(lines), colors="0.8", linewidths=0.8, zorder=1))
    walked = (graph.root_visits[sources] > 0) & ((graph.root_visits[targets] > 0) | (targets == graph.root))
    axes.add_collection(LineCollection(list(lines[walked]), colors="0.25", linewidths=2.5, zorder=2))

    scale: dict[str, Any] = {"vmin": 0.0, "vmax": max(float(graph.std.max()), 1e-12), "cmap": "viridis"}
    sizes = 25.0 + 30.0 * np.sqrt(graph.count)
    kinds = {
        "o": ~graph.terminal,
        "s": graph.terminal & ~graph.solved,
        "*": graph.solved,
    }
    for marker, which in kinds.items():
        dots = axes.scatter(
            where[which, 0],
            where[which, 1],
            c=graph.std[which],
            s=sizes[which] * (3 if marker == "*" else 1),
            marker=marker,
            edgecolors="0.25",
            linewidths=0.6,
            zorder=3,
            **scale,
        )
    ring: dict[str, Any] = {"facecolors": "none", "edgecolors": "crimson", "linewidths": 2, "zorder": 4}
    axes.scatter(where[graph.root, 0], where[graph.root, 1], s=sizes[graph.root] + 160, **ring)
    figure.colorbar(dots, ax=axes, label="standard deviation between members", shrink=0.8)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title)
    return figure


def layers(graph: SearchGraph) -> NDArray[np.float64]:
    """Returns positions [N, 2]: one row per distance from the start of the episode, centred."""
    depth = np.full(len(graph.states), -1)
    frontier, row = [0], 0
    where = np.zeros((len(graph.states), 2))
    while frontier:
        depth[frontier] = row
        where[frontier, 0] = np.arange(len(frontier)) - (len(frontier) - 1) / 2
        where[frontier, 1] = row
        reached = dict.fromkeys(int(c) for state in frontier for c in graph.child[state] if c >= 0)
        frontier, row = [state for state in reached if depth[state] < 0], row + 1
    return where
