"""`bathysphere polish`: let an agent learn once more from the games its run remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bathysphere.cli.common import parse, say
from bathysphere.runs.display import duration
from bathysphere.runs.polish import PolishConfig, polish

_DESCRIPTION = """Let a trained agent learn once more from the games its run remembers, in larger batches and with a
learning rate that falls to zero. It plays no games, so it takes minutes.

The run stays as it is; the polished one is a run directory of its own. Interrupt it and repeat the command: it goes on
where it was.

Examples:

bathysphere polish runs/sokoban-seed0-1

bathysphere polish runs/mine --out runs/mine-polished --updates 8000

bathysphere evaluate runs/mine-polished --passes 10
"""


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere polish`."""

    run: tyro.conf.Positional[Path]
    """The run directory."""
    how: PolishConfig = field(default_factory=PolishConfig)
    out: Path | None = None
    """Directory of the polished run: a new or empty folder. None: RUN-polished."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere polish <argv>` and returns the exit code."""
    options = parse(Options, argv, "polish", _DESCRIPTION)
    out = options.out or options.run.with_name(f"{options.run.name}-polished")
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("updates", total=options.how.updates)

        def watch(done: int, loss: float) -> None:
            bars.update(task, completed=done, description=f"updates, loss {loss:.3f}")

        told = polish(options.run, out, options.how, watch)
    text = f"{told['updates']:,} updates in {duration(told['seconds'])}. The polished run is in {out}"
    say({"run_dir": str(out), **told}, text, options.json)
    return 0
