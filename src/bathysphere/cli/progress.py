"""Progress of long work, on stderr: bars in a terminal, plain lines or nothing anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bathysphere.terminal import Terminal

if TYPE_CHECKING:  # these import PyTorch
    from bathysphere.models.evaluation import Tally
    from bathysphere.models.trainer import ModelTrainer
    from bathysphere.puzzles.evaluation import Track
    from bathysphere.puzzles.player import LevelResult
    from bathysphere.puzzles.solving import Solving


def track_levels(label: str, total: int) -> Track:
    """Returns a progress bar for levels, which passes on their results."""

    def track(results: Iterable[LevelResult]) -> Iterator[LevelResult]:
        with _bars(Terminal(stderr=True), TextColumn("levels, {task.fields[solved]} solved")) as bar:
            task, solved = bar.add_task(label, total=total, solved=0), 0
            for result in results:
                solved += result.solved
                bar.update(task, advance=1, solved=solved)
                yield result

    return track


@contextmanager
def track_episodes(total: int) -> Iterator[Callable[[int], Callable[[int], None]]]:
    """Shows a bar; what it hands out makes, from the episodes before a part of the work, what counts those of it."""
    with _bars(Terminal(stderr=True), TextColumn("episodes")) as bar:
        task = bar.add_task("playing", total=total)
        yield lambda before: lambda played: bar.update(task, completed=before + played)


def track_solving(solving: Solving, work: Iterable[None]) -> Iterator[None]:
    """Shows how far the work on levels is, while it is done."""
    with _bars(Terminal(stderr=True), TextColumn("levels, {task.fields[solved]} solved")) as bar:
        task = bar.add_task("solving", total=len(solving.levels), solved=0)
        for _ in work:
            bar.update(task, completed=solving.num_finished, solved=len(solving.solutions))
            yield


class ModelDisplay:
    """Shows the training of a learned model: the boards being made, the updates, every report on held-out boards."""

    def __init__(self, console: Terminal) -> None:
        self._console, self._bars = console, _bars(console)
        self._updates = self._bars.add_task("updates", total=None, visible=False)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def boards(self, total: int) -> Callable[[], None]:
        """Shows that boards are made; what it returns counts one."""
        task = self._bars.add_task("boards", total=total)
        return lambda: self._bars.advance(task)

    def progress(self, trainer: ModelTrainer) -> None:
        """Moves the bar."""
        self._bars.update(
            self._updates,
            total=trainer.config.updates,
            completed=trainer.num_updates,
            description=f"updates, loss {trainer.last_loss:.2g}",
            visible=True,
        )

    def report(self, trainer: ModelTrainer, tally: Tally) -> None:
        """Prints a line."""
        self._console.print(f"{trainer.num_updates:>9,} updates  {_sentence(tally)}", soft_wrap=True)


def _bars(console: Terminal, *more: TextColumn) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *more, TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _sentence(tally: Tally) -> str:
    """Says how often a model was right."""
    return (
        f"{tally.frames_right:.3%} of {tally.transitions:,} boards right, {tally.changed_cells_right:.3%} of changed "
        f"cells; {tally.false_rewards:,} false rewards, {tally.missed_rewards:,} of {tally.solved:,} missed"
    )
