"""`bathysphere runs`: list and compare runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from bathysphere.cli.common import parse, say
from bathysphere.errors import BathysphereError
from bathysphere.runs.listing import find_runs
from bathysphere.terminal import Terminal

_DESCRIPTION = """List and compare the runs in a folder.

Examples:

bathysphere runs

bathysphere runs studies/deep-sea --json
"""

_GAP = 2  # characters between columns
# Columns that a narrow terminal does without; the name of a run usually has its preset and its seed.
_FIRST_TO_GO = (
    *("won/1000", "1st win", "seed", "preset", "steps/s", "episodes", "steps", "state", "solved", "return", "won/100"),
)


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere runs`."""

    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")] = Path("runs")
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
        console = Terminal(width=None if sys.stdout.isatty() else 200)
        table, left_out = runs_table(runs, options.folder, console.width)
        console.print(table)
        if left_out:
            console.print(f"Left out here: {', '.join(left_out)}. A wider terminal or --json has them.", style="dim")
    return 0


def runs_table(runs: list[dict[str, Any]], folder: Path, width: int) -> tuple[Table, list[str]]:
    """Returns a table that fits into `width` characters with every name whole, and the columns that had no room."""
    columns = {
        "run": [str(Path(run["run_dir"]).relative_to(folder)) for run in runs],
        "preset": [run["preset"] for run in runs],
        "state": [run["state"] for run in runs],
        "seed": [_number(run["seed"], "d") for run in runs],
        "steps": [f"{run['env_steps']:,}" for run in runs],
        "episodes": [f"{run['episodes']:,}" for run in runs],
        "won/100": [f"{run['win_rate_100']:.0%}" for run in runs],
        "won/1000": [f"{run['win_rate_1000']:.0%}" for run in runs],
        "return": [_number(run["return_mean_50"], ".4g") for run in runs],
        "1st win": [_number(run["first_solved_step"], ",") for run in runs],
        "solved": [_number(run["solved_step"], ",") for run in runs],
        "steps/s": [_number(run["env_steps_per_second"], ",.0f") for run in runs],
    }
    left_out = []
    for name in _FIRST_TO_GO:
        if sum(max(map(len, [title, *cells])) + _GAP for title, cells in columns.items()) - _GAP <= width:
            break
        del columns[name]
        left_out.append(name)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, _GAP, 0, 0))
    for name in columns:
        is_name = name in ("run", "preset", "state")
        table.add_column(name, justify="left" if is_name else "right", overflow="fold", no_wrap=len(columns) > 1)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table, left_out


def _number(number: float | None, style: str) -> str:
    return "–" if number is None else format(number, style)
