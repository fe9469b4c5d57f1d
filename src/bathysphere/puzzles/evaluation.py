"""How many levels of a file an agent solves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from bathysphere.agents.evaluation import given, wilson_interval
from bathysphere.domains.sokoban import Level
from bathysphere.errors import BathysphereError
from bathysphere.puzzles.player import LevelPlayer, LevelResult

Watch = Callable[[Iterable[LevelResult]], Iterable[LevelResult]]


def evaluate_levels(
    player: LevelPlayer,
    levels: Sequence[Level],
    seed: int = 0,
    watch: Watch = iter,
    **search: Any,
) -> dict[str, Any]:
    """Plays every level once, without learning, and counts.

    Args:
      player: the agent.
      levels: all of them; one that the agent cannot play is an error, for a share of the others would mislead.
      seed: decides ties and the members drawn.
      watch: is handed the results as they come and hands them on.
      **search: fields of the search config to change; those that are None stay as in training.

    Returns:
      Solve rate with its 95 % Wilson interval, means per level, time, and `results`: every level's own numbers.
    """
    if not levels or seed < 0:
        raise BathysphereError(f"Expected at least 1 level and a seed from 0; got {len(levels)} and {seed}.")
    for number, level in enumerate(levels, 1):
        if reason := player.refusal(level):
            raise BathysphereError(f"Level {number} ('{level.title}') {reason}. Leave it out.")
    config = replace(player.trained.config.search, **given(search))
    began = time.perf_counter()
    played = watch(player.play(list(enumerate(levels, 1)), config, seed))
    results = sorted(played, key=lambda result: result.number)
    seconds = time.perf_counter() - began
    solved, count = [r for r in results if r.solved], len(results)
    low, high = wilson_interval(len(solved), count)
    return {
        "agent": player.agent,
        "weights": player.trained.fingerprint,
        "preset": player.trained.config.preset,
        "seed": seed,
        "passes": config.passes,
        "max_steps": config.max_steps or player.max_steps,
        "levels": count,
        "solved": len(solved),
        "solve_rate": len(solved) / count,
        "solve_rate_low": low,
        "solve_rate_high": high,
        "mean_solution_length": sum(len(r.solution or "") for r in solved) / len(solved) if solved else None,
        "waits_per_level": sum(r.waits for r in results) / count,
        "states_per_level": sum(r.states for r in results) / count,
        "expansions_per_level": sum(r.expansions for r in results) / count,
        "model_calls_per_level": sum(r.model_calls for r in results) / count,
        "seconds": seconds,
        "seconds_per_level": seconds / count,
        "changed": given(search),
        "results": [asdict(result) for result in results],
    }
