"""`bathysphere solve`: solutions for Sokoban levels of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from bathysphere.cli.common import parse, say
from bathysphere.cli.progress import track_levels
from bathysphere.domains.sokoban import read_levels
from bathysphere.errors import BathysphereError
from bathysphere.puzzles.player import LevelPlayer
from bathysphere.puzzles.solutions import check_solutions_file, write_solutions
from bathysphere.puzzles.solving import Solving, attempt, begin, schedule

_DESCRIPTION = """Solve Sokoban levels, and write the solutions to a .sok file (l, u, r, d; capitals push a box).

What the first attempt leaves unsolved is tried again with five times the passes of planning, up to --max-passes. Every
solution is played through the rules before it is written. The file is written after every attempt, and when you press
Ctrl-C. The levels that could not be solved are named, and are in the file without a solution.

Examples:

bathysphere solve mylevels.txt

bathysphere solve mylevels.xsb --out solved.sok --max-passes 1000 --max-steps 400

bathysphere solve mylevels.txt --agent runs/sokoban-seed0-1 --json
"""

_SHOWN = 20  # unsolved levels named one by one


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere solve`."""

    levels: tyro.conf.Positional[Path]
    """Level file (Boxoban, XSB or .sok), or folder of level files."""
    agent: str = "sokoban"
    """Name of a shipped agent, agent file, or run directory."""
    out: Path | None = None
    """The .sok file to write, or to replace. None: NAME-solved.sok in this folder, unless it exists."""
    passes: int | None = None
    """Planning passes per step in the first attempt. None: as in training."""
    max_passes: int = 200
    """Planning passes per step in the last attempt."""
    max_steps: int | None = None
    """Moves before a level is given up. None: as in training."""
    seed: int = 0
    """Decides ties and the members drawn."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere solve <argv>` and returns the exit code: 0 also if some level was not solved."""
    options = parse(Options, argv, "solve", _DESCRIPTION)
    if options.seed < 0:
        raise BathysphereError(f"--seed is {options.seed}; expected a number from 0.")
    out = _choose_out(options)
    levels = read_levels(options.levels)
    player = LevelPlayer(options.agent)
    first = min(player.trained.config.search.passes, options.max_passes) if options.passes is None else options.passes
    passes, solving = schedule(first, options.max_passes), begin(player, levels)
    for number in passes:
        try:
            made = attempt(
                player, solving, number, options.seed + len(solving.attempts), track_levels, max_steps=options.max_steps
            )
        finally:
            write_solutions(out, levels, solving.solutions)
        if not options.json:
            text = f"{number} passes a step: {made.solved:,} of {made.levels:,} levels solved, {made.seconds:.1f} s"
            say({}, text, as_json=False)
        if len(solving.unsolved) == len(solving.refused):
            break
    result = {"agent": options.agent, "levels_file": str(options.levels), "out": str(out), **solving.summary()}
    say(result, _sentence(solving, result, out), options.json)
    return 0


def _choose_out(options: Options) -> Path:
    """Returns the file to write; refuses one that cannot be, before any work is done."""
    out = options.out
    if out is None:
        out = Path(f"{options.levels.resolve().stem}-solved.sok")
        if out.exists():
            raise BathysphereError(f"{out} exists already. Name another file with --out, or this one to replace it.")
    check_solutions_file(out, options.levels)
    return out


def _sentence(solving: Solving, result: dict[str, Any], out: Path) -> str:
    count, unsolved = len(solving.levels), result["unsolved"]
    lines = [f"Solved {len(solving.solutions):,} of {count:,} levels. The solutions are in {out}."]
    if unsolved:
        lines.append("Not solved:")
        lines += [
            f"  {level['number']} ({level['title'] or 'untitled'}): {level['reason']}" for level in unsolved[:_SHOWN]
        ]
        if len(unsolved) > _SHOWN:
            lines.append(f"  and {len(unsolved) - _SHOWN:,} more")
    if len(unsolved) > len(solving.refused):
        last = solving.attempts[-1].passes
        lines.append(f"More passes may help: --passes {last} --max-passes {5 * last}; so may --max-steps.")
    return "\n".join(lines)
