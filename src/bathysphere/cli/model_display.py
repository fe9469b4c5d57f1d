"""Watching a world model being trained: a bar in a terminal, plain lines anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bathysphere.models.evaluation import Tally
from bathysphere.models.trainer import ModelTrainer


class ModelDisplay:
    """Shows the boards being made, the updates, and every report on held-out boards."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._console = console
        self._bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
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
        self._console.print(f"{trainer.num_updates:>9,} updates  {sentence(tally)}", soft_wrap=True)


def sentence(tally: Tally) -> str:
    """Says how often a model was right."""
    return (
        f"{tally.frames_right:.3%} of {tally.transitions:,} boards right, {tally.changed_cells_right:.3%} of changed "
        f"cells; {tally.false_rewards:,} false rewards, {tally.missed_rewards:,} of {tally.solved:,} missed"
    )
