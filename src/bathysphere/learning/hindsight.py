"""Hindsight: pretend that what an unsolved episode did achieve was its goal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bathysphere.domains.base import Relabeller
from bathysphere.errors import BathysphereError
from bathysphere.planning import Episode


def with_hindsight(episode: Episode, domain: object, intensity: float, rng: np.random.Generator) -> Episode:
    """Relabels an unsolved episode with probability `intensity`; any other episode is returned as it is.

    A relabelled episode stays unsolved, as in the authors' code. Its search values are cut to its length but are of the
    old goal.

    Args:
      episode: a finished episode.
      domain: one with a `relabel` method, unless intensity is 0.
      intensity: probability in [0, 1].
      rng: decides, and chooses the goal.
    """
    if intensity == 0:
        return episode
    if not isinstance(domain, Relabeller):
        raise BathysphereError(
            f"hindsight needs a domain with a relabel method, and {type(domain).__name__} has none; "
            "set the hindsight intensity to 0."
        )
    # Drawn for solved episodes too, so that the stream of numbers does not depend on their outcome.
    is_chosen = rng.random() < intensity
    if episode.solved or len(episode) < 2 or not is_chosen:
        return episode
    states, rewards = domain.relabel(episode.states, rng)
    length = len(states)
    return replace(
        episode,
        states=states,
        rewards=rewards,
        actions=episode.actions[:length],
        search_values=episode.search_values[:length],
        graph_values=None if episode.graph_values is None else episode.graph_values[:length],
        policy=None if episode.policy is None else episode.policy[:length],
    )
