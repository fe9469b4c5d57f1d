"""What a finished episode's search graph has to teach besides the episode itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bathysphere.planning.episode import Episode, SeenStates
from bathysphere.planning.graph.best_known import best_known_values
from bathysphere.planning.search_graph import SearchGraph


def with_graph_values(episode: Episode, graph: SearchGraph, discount: float, most: int) -> Episode:
    """Returns an episode that says what its states are worth by the best continuation known, and hands on others.

    Args:
      episode: as it was played.
      graph: of its search, at the end.
      discount: of the values.
      most: how many further states to hand on, at most.
    """
    values = best_known_values(graph.child, graph.reward, graph.terminal, graph.member_values, discount)
    places = {state.tobytes(): number for number, state in enumerate(graph.states)}
    path = np.array([places[state.tobytes()] for state in episode.states], np.int64)
    seen = SeenStates.taken(graph.states, values, graph.child[:, 0] >= 0, path, most) if most else None
    return replace(episode, graph_values=values[path], seen=seen)
