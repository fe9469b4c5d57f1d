"""`bathysphere evaluate`: how well a trained run plays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from bathysphere.cli.common import parse, say
from bathysphere.runs.evaluation import evaluate

_DESCRIPTION = """Let a trained run play, without learning, and count its wins.

Planning is as in training unless an option changes it: a run that was trained to seek uncertainty still
does, so --risk-coef 0 shows what it can do when it only wants to win.

Examples:

bathysphere evaluate runs/deep-sea-seed0-1

bathysphere evaluate runs/deep-sea-seed0-1 --episodes 1000 --risk-coef 0 --json
"""


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere evaluate`."""

    run: tyro.conf.Positional[Path]
    """The run directory."""
    episodes: int = 100
    """Games to play."""
    passes: int | None = None
    """Planning passes per move. None: as in training, and so for the next ones."""
    max_steps: int | None = None
    """Moves before a game is cut off."""
    risk: str | None = None
    """Risk measure."""
    risk_coef: float | None = None
    """Weight of uncertainty in the risk measure."""
    seed: int = 0
    """Decides start states, ties and the members drawn."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere evaluate <argv>` and returns the exit code."""
    options = parse(Options, argv, "evaluate", _DESCRIPTION)
    result = evaluate(
        options.run,
        options.episodes,
        options.seed,
        passes=options.passes,
        max_steps=options.max_steps,
        risk=options.risk,
        risk_coef=options.risk_coef,
    )
    text = (
        f"Won {result['wins']:,} of {result['episodes']:,} games: {result['win_rate']:.1%} "
        f"(95 % interval {result['win_rate_low']:.1%} to {result['win_rate_high']:.1%}).\n"
        f"Per game {result['mean_length']:.1f} moves and a graph of {result['states_per_episode']:.1f} "
        f"states; {result['seconds']:.2f} s in all."
    )
    say(result, text, options.json)
    return 0
