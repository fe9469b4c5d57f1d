"""`bathysphere runs`: list and compare runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from bathysphere.cli.common import parse, say
from bathysphere.errors import BathysphereError
from bathysphere.runs.listing import find_runs

_DESCRIPTION = """List and compare the runs in a folder.

Examples:

bathysphere runs

bathysphere runs studies/deep-sea --json
"""


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere runs`."""

    folder: tyro.conf.Positional[Path] = Path("runs")
    """Folder whose runs are listed, one or two levels deep; or one run."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere runs <argv>` and returns the exit code."""
    options = parse(Options, argv, "runs", _DESCRIPTION)
    if not options.folder.is_dir():
        raise BathysphereError(
            f"There is no folder {options.folder}. Train something first: bathysphere train deep-sea"
        )
    runs = find_runs(options.folder)
    if options.json or not runs:
        say({"runs": runs}, f"There are no runs in {options.folder}.", options.json)
    else:
        # A pipe or a file has no width, so the table takes what it needs.
        width = None if sys.stdout.isatty() else 200
        Console(highlight=False, width=width).print(_table(runs, options.folder))
    return 0


def _table(runs: list[dict[str, Any]], folder: Path) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("run", "preset", "state"):
        table.add_column(name, overflow="fold")
    for name in ("seed", "steps", "episodes", "won/100", "won/1000", "1st win", "solved", "steps/s"):
        table.add_column(name, justify="right")
    for run in runs:
        speed = run["env_steps_per_second"]
        table.add_row(
            str(Path(run["run_dir"]).relative_to(folder)),
            run["preset"],
            run["state"],
            str(run["seed"]),
            f"{run['env_steps']:,}",
            f"{run['episodes']:,}",
            f"{run['win_rate_100']:.0%}",
            f"{run['win_rate_1000']:.0%}",
            _step(run["first_solved_step"]),
            _step(run["solved_step"]),
            "–" if speed is None else f"{speed:,.0f}",
        )
    return table


def _step(step: int | None) -> str:
    return "–" if step is None else f"{step:,}"
