"""How well an agent plays."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bathysphere.agents.loading import load_trained, make_model
from bathysphere.domains import make_domain
from bathysphere.errors import BathysphereError
from bathysphere.planning import Crew


def evaluate(agent: str | Path, episodes: int = 100, seed: int = 0, **search: Any) -> dict[str, Any]:
    """Plays `episodes` games with an agent, without learning, and counts.

    Args:
      agent: name of a shipped agent, agent file, or run directory (as of its newest checkpoint).
      episodes: number of games.
      seed: decides start states, ties and the members drawn.
      **search: fields of the search config to change; those that are None stay as in training.

    Returns:
      Win rate with its 95 % Wilson interval, means per game, and time.
    """
    if episodes < 1 or seed < 0:
        raise BathysphereError(f"episodes is {episodes} and seed {seed}; expected at least 1 and at least 0.")
    trained = load_trained(agent)
    config, domain = trained.config, make_domain(trained.config.domain)
    changed = replace(config.search, **given(search))
    batch = min(episodes, config.batch)
    lanes = min(config.lanes, batch)
    crew = Crew(
        domain,
        trained.values,
        changed,
        batch=batch,
        seed=seed,
        lanes=lanes,
        processes=min(lanes, os.cpu_count() or 1),
        num_episodes=episodes,
        model=make_model(config, domain, trained.path),
    )
    began = time.perf_counter()
    played = crew.play()
    seconds = time.perf_counter() - began
    wins = [episode for episode in played if episode.solved]
    low, high = wilson_interval(len(wins), episodes)
    return {
        "agent": str(agent),
        "weights": trained.fingerprint,
        "preset": config.preset,
        "seed": seed,
        "passes": changed.passes,
        "max_steps": changed.max_steps or domain.max_steps,
        "episodes": episodes,
        "wins": len(wins),
        "win_rate": len(wins) / episodes,
        "win_rate_low": low,
        "win_rate_high": high,
        "mean_length": sum(map(len, played)) / episodes,
        "mean_solution_length": sum(map(len, wins)) / len(wins) if wins else None,
        "waits_per_episode": sum(episode.num_waits for episode in played) / episodes,
        "states_per_episode": sum(episode.num_states for episode in played) / episodes,
        "expansions_per_episode": sum(episode.num_expansions for episode in played) / episodes,
        "model_calls_per_episode": sum(episode.num_model_calls for episode in played) / episodes,
        "seconds": seconds,
        "changed": given(search),
    }


def given(changes: dict[str, Any]) -> dict[str, Any]:
    """Returns the changes that are not None."""
    return {name: value for name, value in changes.items() if value is not None}


def wilson_interval(wins: int, games: int) -> tuple[float, float]:
    """Returns the 95 % Wilson score interval of a win rate.

    >>> [round(bound, 4) for bound in wilson_interval(8, 10)]
    [0.4902, 0.9433]
    """
    z = 1.959963984540054
    rate = wins / games
    centre = rate + z * z / (2 * games)
    spread = z * math.sqrt(rate * (1 - rate) / games + z * z / (4 * games * games))
    scale = 1 + z * z / games
    return max((centre - spread) / scale, 0.0), min((centre + spread) / scale, 1.0)
