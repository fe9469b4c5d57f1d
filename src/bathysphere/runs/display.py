"""Watching a run: a live panel in a terminal, plain lines anywhere else."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bathysphere.config.run import RunConfig
from bathysphere.learning.progress import Progress
from bathysphere.runs.metrics import Row

_BARS = " ▁▂▃▄▅▆▇█"
_CURVE = 48  # characters of the win rate's curve
_LINE_SECONDS = 10.0  # between plain lines


def sparkline(values: list[float], width: int) -> str:
    """Draws shares from 0 to 1 as bars, the whole history squeezed into `width` characters.

    >>> sparkline([0.0, 0.5, 1.0], 3)
    ' ▄█'
    """
    if not values:
        return ""
    width = min(width, len(values))
    edges = [len(values) * k // width for k in range(width + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    return "".join(_BARS[round(min(max(mean, 0.0), 1.0) * (len(_BARS) - 1))] for mean in means)


def duration(seconds: float) -> str:
    """Writes a number of seconds as 1:05 or 2:01:05.

    >>> duration(65), duration(7265)
    ('1:05', '2:01:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class RunDisplay:
    """Shows a run on a console: live if that is a terminal, otherwise a line every ten seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._curve: list[float] = []
        self._speeds: deque[tuple[float, int]] = deque(maxlen=25)  # (seconds, steps) of the last five seconds
        self._last_line = 0.0

    def start(self, config: RunConfig, directory: Path) -> None:
        """Opens the panel, or says what begins."""
        self._config, self._directory = config, directory
        if self._console.is_terminal:
            self._live = Live(Text("diving ..."), console=self._console, auto_refresh=False)
            self._live.start()
        else:
            self._console.print(
                f"{config.preset}, seed {config.seed}: up to {config.steps:,} steps, in {directory}",
                soft_wrap=True,
            )

    def update(self, progress: Progress, seconds: float, row: Row | None) -> None:
        """Shows how far the run is."""
        self._speeds.append((seconds, progress.env_steps))
        self._curve.append(progress.win_rate(100))
        if len(self._curve) > 64 * _CURVE:
            self._curve = self._curve[::2]
        if self._live is not None:
            self._live.update(self._panel(progress, seconds, row), refresh=True)
        elif seconds - self._last_line >= _LINE_SECONDS:
            self._last_line = seconds
            self._console.print(self._line(progress, seconds), soft_wrap=True)

    def stop(self) -> None:
        """Closes the panel; its last picture stays."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _speed(self) -> float:
        (s0, n0), (s1, n1) = self._speeds[0], self._speeds[-1]
        return (n1 - n0) / (s1 - s0) if s1 > s0 else 0.0  # the first look is at steps for which code was compiled

    def _time_left(self, progress: Progress, seconds: float) -> str:
        """Says how long the run can still take; nothing before that can be told."""
        speed, limit = self._speed(), self._config.stop.seconds
        if speed == 0.0:
            return ""
        left = (self._config.steps - progress.env_steps) / speed
        if limit is not None:
            left = min(left, limit - seconds)
        return f"at most {duration(max(left, 0.0))} left"

    def _line(self, progress: Progress, seconds: float) -> str:
        return (
            f"{duration(seconds):>8}  {progress.env_steps:>11,} steps  {self._speed():>8,.0f}/s  "
            f"{progress.episodes:>8,} episodes  win rate {progress.win_rate(100):4.0%}  "
            f"{self._time_left(progress, seconds)}"
        )

    def _panel(self, progress: Progress, seconds: float, row: Row | None) -> Panel:
        done = min(progress.env_steps / self._config.steps, 1.0)
        bar = Table.grid(padding=(0, 2))
        bar.add_row(
            ProgressBar(total=1.0, completed=done, width=34, complete_style="cyan", finished_style="green"),
            f"{done:4.0%}",
            f"{duration(seconds)} gone",
            self._time_left(progress, seconds),
        )
        facts = Table.grid(padding=(0, 3))
        for style in ("dim", "bold", "dim", "bold", "dim", "bold"):
            facts.add_column(style=style, justify="right" if style == "bold" else "left", min_width=9)
        row = row or {}
        facts.add_row(
            "steps",
            f"{progress.env_steps:,}",
            "episodes",
            f"{progress.episodes:,}",
            "wins",
            f"{progress.wins:,}",
        )
        facts.add_row(
            "steps/s",
            f"{self._speed():,.0f}",
            "updates",
            f"{progress.updates:,}",
            "graph",
            _number(row.get("graph_size")),
        )
        facts.add_row(
            "ensemble std",
            _number(row.get("ensemble_std")),
            "loss",
            _number(row.get("loss")),
            "solved",
            _moment(progress),
        )
        curve = Text.assemble(
            ("win rate ", "dim"),
            (f"{progress.win_rate(100):4.0%} ", "bold green" if progress.solved_step is not None else "bold"),
            (sparkline(self._curve, _CURVE), "cyan"),
        )
        title = f"[bold]{self._config.preset}[/]  seed {self._config.seed}"
        return Panel(
            Group(bar, "", facts, "", curve),
            title=title,
            subtitle=Text(str(self._directory), style="dim"),
            title_align="left",
            subtitle_align="right",
            border_style="blue",
            width=min(self._console.width, 88),
            padding=(1, 2),
        )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _moment(progress: Progress) -> str:
    return "not yet" if progress.solved_step is None else f"at {progress.solved_step:,}"
