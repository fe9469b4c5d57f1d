"""A progress bar for people who wait for levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bathysphere.puzzles.evaluation import Watch
from bathysphere.puzzles.player import LevelResult


def watch_levels(label: str, total: int) -> Watch:
    """Returns what shows results as they come, on stderr if that is a terminal, and hands them on."""

    def watch(results: Iterable[LevelResult]) -> Iterator[LevelResult]:
        console = Console(stderr=True)
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        counted = TextColumn("levels, {task.fields[solved]} solved")
        is_shown = console.is_terminal
        with Progress(
            *columns, counted, TimeRemainingColumn(), console=console, transient=True, disable=not is_shown
        ) as bar:
            task, solved = bar.add_task(label, total=total, solved=0), 0
            for result in results:
                solved += result.solved
                bar.update(task, advance=1, solved=solved)
                yield result

    return watch
