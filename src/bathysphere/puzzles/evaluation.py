"""How many levels of a file an agent solves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from bathysphere.agents.evaluation import Evaluation, Outcome, counts, given
from bathysphere.domains.sokoban import Level
from bathysphere.errors import BathysphereError
from bathysphere.planning.named import planner_name
from bathysphere.puzzles.player import LevelPlayer, LevelResult

Track = Callable[[Iterable[LevelResult]], Iterable[LevelResult]]  # as a progress bar does: passes results on


def evaluate_levels(
    player: LevelPlayer,
    levels: Sequence[Level],
    seed: int = 0,
    track: Track = iter,
    planner: str | None = None,
    **search: Any,
) -> Evaluation:
    """Plays every level once, without learning, and counts.

    Args:
      player: the agent.
      levels: all of them; one that the agent cannot play is an error, for a share of the others would mislead.
      seed: decides ties and the members drawn.
      track: passes on the results as they come.
      planner: mcts, best-first, levin, phs or none; as in training if not given.
      **search: settings of the planner to change; those that are None stay as they are.
    """
    if not levels or seed < 0:
        raise BathysphereError(f"Expected at least 1 level and a seed from 0; got {len(levels)} and {seed}.")
    for number, level in enumerate(levels, 1):
        if reason := player.refusal(level):
            raise BathysphereError(f"Level {number} ('{level.title}') {reason}. Leave it out.")
    config = player.settings(planner, **search)
    began = time.perf_counter()
    played = track(player.play(list(enumerate(levels, 1)), config, seed))
    results = sorted(played, key=lambda result: result.number)
    seconds = time.perf_counter() - began
    return Evaluation(
        unit="level",
        agent=player.agent,
        weights=player.trained.fingerprint,
        preset=player.trained.config.preset,
        seed=seed,
        planner=planner_name(config),
        passes=getattr(config, "passes", None),
        max_steps=config.max_steps or player.max_steps,
        changed=given(search),
        seconds=seconds,
        results=tuple(asdict(result) for result in results),
        **counts([_outcome(result) for result in results]),
    )


def _outcome(r: LevelResult) -> Outcome:
    return Outcome(r.solved, r.moves, len(r.solution or ""), r.waits, r.states, r.expansions, r.model_calls)
