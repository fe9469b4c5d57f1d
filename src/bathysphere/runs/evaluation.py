"""How well a trained run plays."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bathysphere.errors import BathysphereError
from bathysphere.planning import Crew
from bathysphere.runs.agent import load_values


def evaluate(run_dir: Path, episodes: int = 100, seed: int = 0, **search: Any) -> dict[str, Any]:
    """Plays `episodes` games with a run's newest values, without learning, and counts.

    Args:
      run_dir: the run directory.
      episodes: number of games.
      seed: decides start states, ties and the members drawn.
      **search: fields of the search config to change; those that are None stay as in training.

    Returns:
      Win rate with its 95 % Wilson interval, mean lengths and graph size, and time.
    """
    if episodes < 1 or seed < 0:
        raise BathysphereError(f"episodes is {episodes} and seed {seed}; expected at least 1 and at least 0.")
    config, domain, values = load_values(run_dir)
    changes = {name: value for name, value in search.items() if value is not None}
    batch = min(episodes, config.batch)
    lanes = min(config.lanes, batch)
    crew = Crew(
        domain,
        values,
        replace(config.search, **changes),
        batch=batch,
        seed=seed,
        lanes=lanes,
        threads=min(lanes, os.cpu_count() or 1),
        num_episodes=episodes,
    )
    began = time.perf_counter()
    played = crew.play()
    seconds = time.perf_counter() - began
    wins = [episode for episode in played if episode.solved]
    low, high = wilson_interval(len(wins), episodes)
    return {
        "run_dir": str(run_dir),
        "preset": config.preset,
        "seed": seed,
        "episodes": episodes,
        "wins": len(wins),
        "win_rate": len(wins) / episodes,
        "win_rate_low": low,
        "win_rate_high": high,
        "mean_length": sum(map(len, played)) / episodes,
        "mean_solution_length": sum(map(len, wins)) / len(wins) if wins else None,
        "states_per_episode": sum(episode.num_states for episode in played) / episodes,
        "seconds": seconds,
        "changed": changes,
    }


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
