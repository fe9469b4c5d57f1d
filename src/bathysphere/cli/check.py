"""`bathysphere check`: what is wrong with a world, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from bathysphere.checking.world import check
from bathysphere.cli.common import parse, say
from bathysphere.cli.world_flags import world_of
from bathysphere.errors import BathysphereError
from bathysphere.terminal import Terminal

_DESCRIPTION = """Say what is wrong with a world and how to mend it, or what it is if all is well.

bathysphere check WORLD [OPTIONS]

WORLD is the import path of a world of yours (my_world:MyWorld, in the current folder or installed), gymnasium:ID, or
the name of a world that comes with the package. --domain... are its own arguments, as for train. Exit code 1 says that
something is wrong.

Examples:

bathysphere check my_world:MyWorld

bathysphere check my_world:MyWorld --domain.size 5

bathysphere check gymnasium:FrozenLake-v1 --domain.arguments is_slippery=false

bathysphere check deep-sea --json
"""


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere check`."""

    seed: int = 0
    """Seed of the random walks, from 0."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere check <argv>` and returns the exit code."""
    if not argv or argv[0].startswith("-"):
        options = parse(Options, argv, "check", _DESCRIPTION)
        raise BathysphereError("'bathysphere check' needs a world first, for instance my_world:MyWorld.")
    world, rest = world_of(argv[0], argv[1:], "check")
    options = parse(Options, rest, "check", _DESCRIPTION)
    if options.seed < 0:
        raise BathysphereError(f"--seed must be a whole number from 0; got {options.seed}.")
    with Terminal(stderr=True).status(Text(f"Walking about in {argv[0]} ...")):
        found = check(world, seed=options.seed)
    say(found.to_dict(), str(found), options.json)
    return 0 if found.is_fine else 1
