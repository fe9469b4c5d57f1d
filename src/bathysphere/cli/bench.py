"""`bathysphere bench`: how fast the parts are on this machine, one core, median of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import tyro

from bathysphere.cli.common import parse, say

_DESCRIPTION = """Measure speed on one core, median of several.

domains: successor states per second of each world (Deep-sea 40, Toy Montezuma full, Sokoban 10x10 with 4
boxes, registered ones with their defaults) and of the slow Python twins they are tested against, and Sokoban levels
generated per second. The twins are part of the tests, so they are measured only in a source checkout.

planner: steps per second at 10 passes per step on each world with the paper's settings, on one core and
on two, beside the plain-Python planner it is tested against.

sokoban: steps per second of training on fresh boards, with learning, on one core and on two; states per second
of the network alone, with batches of the same size; and which part of the time goes where.

planners: expansions per second of processor time, share of the time outside the network, and bytes per state: of every
planner on generated Sokoban boards with an agent's network, and of best-first search in compiled code on Deep-sea.

Examples:

bathysphere bench domains

bathysphere bench planner

bathysphere bench sokoban --preset paper/sokoban

bathysphere bench planners --agent sokoban --seconds 10

bathysphere bench domains --json
"""


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere bench`."""

    topic: tyro.conf.Positional[Literal["domains", "planner", "sokoban", "planners"]]
    """What to measure."""
    preset: str | None = None
    """sokoban: measure this preset only, instead of paper/sokoban and sokoban."""
    agent: str | None = None
    """sokoban: measure how this agent would be trained on, instead of a preset from its beginning. planners: with the
    network of this one, instead of sokoban."""
    seconds: float | None = None
    """planners: processor time for each of them. None: 5."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere bench <argv>` and returns the exit code."""
    options = parse(Options, argv, "bench", _DESCRIPTION)
    # Each topic imports what it needs: the domains need no PyTorch.
    if options.topic == "domains":
        from bathysphere.bench import domains

        result = domains.bench_domains()
        text = domains.describe(result)
    elif options.topic == "planner":
        from bathysphere.bench import planner

        result = planner.bench_planner()
        text = planner.describe(result)
    elif options.topic == "planners":
        from bathysphere.bench import planners

        result = planners.bench_planners(options.agent, options.seconds)
        text = planners.describe(result)
    else:
        from bathysphere.bench import sokoban

        result = sokoban.bench_sokoban(options.preset, options.agent)
        text = sokoban.describe(result)
    say(result, text, options.json)
    return 0
