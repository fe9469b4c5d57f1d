"""`bathysphere solve`: solutions for Sokoban levels of one's own."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from bathysphere.cli.common import nothing_printed, parse, say, with_address
from bathysphere.cli.progress import track_solving
from bathysphere.domains.sokoban import read_levels
from bathysphere.errors import BathysphereError
from bathysphere.puzzles.jobs import work_here, work_in_processes, work_on_cluster
from bathysphere.puzzles.player import LevelPlayer
from bathysphere.puzzles.solutions import check_solutions_file, write_solutions
from bathysphere.puzzles.solving import Count, Effort, Solving
from bathysphere.scale.cluster import Cluster

_DESCRIPTION = """Solve Sokoban levels, and write the solutions to a .sok file (l, u, r, d; capitals push a box).

All levels are searched together for a moment, then each that is left by itself until its seconds are over: push by push
without the network for half of them, then with it. Every solution is played through the rules before it is written. The
file is written again and again while the work goes on, and when you press Ctrl-C. The levels that could not be solved
are named, and are in the file without a solution.

Examples:

bathysphere solve mylevels.txt

bathysphere solve mylevels.xsb --out solved.sok --seconds 60 --jobs 4

bathysphere solve mylevels.xsb --ray 10.0.0.1:6379 --jobs 16

bathysphere solve mylevels.xsb --improve moves

bathysphere solve mylevels.txt --agent runs/sokoban-seed0-1 --json
"""

_SHOWN = 20  # unsolved levels named one by one
_WRITE_SECONDS = 2.0  # between two writings of the file
_GONE = ("--passes", "--max-passes", "--max-steps", "--seed")


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere solve`."""

    levels: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="LEVELS")]
    """Level file (Boxoban, XSB or .sok), or folder of level files."""
    agent: str = "sokoban"
    """Name of a shipped agent, agent file, or run directory."""
    out: Path | None = None
    """The .sok file to write, or to replace. None: NAME-solved.sok in this folder, unless it exists."""
    seconds: float = Effort.seconds
    """For each level, at most."""
    jobs: int = 1
    """Processes that share the levels; with --ray, workers."""
    ray: str | None = None
    """Let them work on Ray: --ray for one on this machine, --ray HOST:PORT for a cluster, whose machines must find the
    agent under the same name."""
    improve: Count | None = None
    """Spend what is left of a level's seconds on a solution with fewer moves, or fewer pushes."""
    planner: str = Effort.planner
    """best-first, or levin or phs if the agent has a policy."""
    width: int = Effort.width
    """States expanded at once in the search of a level by itself."""
    max_expansions: int | None = None
    """Give a level up after so many expansions, even if time is left."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere solve <argv>` and returns the exit code: 0 also if some level was not solved."""
    _refuse_old(argv)
    options = parse(Options, with_address(argv), "solve", _DESCRIPTION)
    if options.jobs < 1:
        raise BathysphereError(f"--jobs is {options.jobs}; expected at least 1.")
    effort = Effort(options.seconds, options.max_expansions, options.planner, options.width, options.improve)
    out = _choose_out(options)
    levels = read_levels(options.levels)
    player = LevelPlayer(options.agent)
    jobs = min(options.jobs, len(levels))
    solving = Solving(player, levels, effort, jobs)
    began = time.perf_counter()
    with nothing_printed() if options.json else nullcontext():
        _work(solving, player, jobs, out, options.ray)
    result = {
        "agent": options.agent,
        "levels_file": str(options.levels),
        "out": str(out),
        "seconds": time.perf_counter() - began,
        **solving.summary(),
    }
    say(result, _sentence(solving, result), options.json)
    return 0


def _refuse_old(argv: list[str]) -> None:
    """Refuses options of version 0.1, which planned every move by itself."""
    for word in argv:
        name = word.partition("=")[0].replace("_", "-")
        if name in _GONE:
            raise BathysphereError(
                f"solve has no {name} any more: it searches for whole solutions, for as long as --seconds says. "
                "'bathysphere evaluate AGENT --levels FILE --planner mcts' plans move by move."
            )


def _choose_out(options: Options) -> Path:
    """Returns the file to write; refuses one that cannot be, before any work is done."""
    out = options.out
    if out is None:
        out = Path(f"{options.levels.resolve().stem}-solved.sok")
        if out.exists():
            raise BathysphereError(f"{out} exists already. Name another file with --out, or this one to replace it.")
    check_solutions_file(out, options.levels)
    return out


def _work(solving: Solving, player: LevelPlayer, jobs: int, out: Path, ray: str | None) -> None:
    """Solves the levels, and keeps the file up to date, whatever ends the work."""
    if ray is not None:
        work = work_on_cluster(player.agent, solving, Cluster(ray, jobs))
    else:
        work = work_here(player, solving) if jobs == 1 else work_in_processes(player.agent, solving, jobs)
    written = time.monotonic()
    try:
        for _ in track_solving(solving, work):
            if time.monotonic() - written > _WRITE_SECONDS:
                write_solutions(out, solving.levels, solving.solutions)
                written = time.monotonic()
    finally:
        work.close()  # ends the processes, if there are any
        write_solutions(out, solving.levels, solving.solutions)


def _sentence(solving: Solving, result: dict[str, Any]) -> str:
    count, unsolved = len(solving.levels), result["unsolved"]
    lines = [
        f"Solved {len(solving.solutions):,} of {count:,} levels in {result['seconds']:.1f} s. "
        f"The solutions are in {result['out']}."
    ]
    if unsolved:
        lines.append("Not solved:")
        lines += [
            f"  {level['number']} ({level['title'] or 'untitled'}): {level['reason']}" for level in unsolved[:_SHOWN]
        ]
        if len(unsolved) > _SHOWN:
            lines.append(f"  and {len(unsolved) - _SHOWN:,} more")
    lines += solving.failures
    if any(record.ended_by == "max_seconds" for record in solving.records.values()):
        lines.append(f"More time may help: --seconds {5 * solving.effort.seconds:g}.")
    return "\n".join(lines)
