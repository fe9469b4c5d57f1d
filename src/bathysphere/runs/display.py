"""Watching a run: a live panel in a terminal, plain lines anywhere else."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from pathlib import Path

from rich.console import Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bathysphere.config.run import RunConfig
from bathysphere.errors import printable
from bathysphere.learning.progress import Progress
from bathysphere.runs.metrics import Row
from bathysphere.terminal import Terminal

_BARS = " ▁▂▃▄▅▆▇█"
_CURVE = 48  # characters of the win rate's curve
_GAP = 2  # characters between the numbers of a panel
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

    def __init__(self, console: Terminal) -> None:
        self._console = console
        self._live: Live | None = None
        self._curve: list[tuple[float, float | None]] = []  # win rate and mean return
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
        self._curve.append((progress.win_rate(100), progress.mean_return))
        if len(self._curve) > 64 * _CURVE:
            self._curve = self._curve[::2]
        if self._live is not None:
            self._live.update(self._panel(progress, seconds, row), refresh=True)
        elif seconds - self._last_line >= _LINE_SECONDS:
            self._last_line = seconds
            self._console.print(self._line(progress, seconds, row or {}), soft_wrap=True)

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

    def _line(self, progress: Progress, seconds: float, row: Row) -> str:
        line = (
            f"{duration(seconds):>8}  {progress.env_steps:>11,} steps  {self._speed():>8,.0f}/s  "
            f"{progress.episodes:>8,} episodes  win rate {progress.win_rate(100):4.0%}  "
            f"return {_number(progress.mean_return):>6}  "
            f"{self._time_left(progress, seconds)}"
        )
        return "  ".join([line, *(f"{name} {text}" for name, text in _play(row).items())])

    def _panel(self, progress: Progress, seconds: float, row: Row | None) -> Panel:
        width = min(self._console.width, 88)
        inner = width - 6  # without border and padding
        done = min(progress.env_steps / self._config.steps, 1.0)
        bar = Table.grid(padding=(0, 2))
        bar.add_row(
            ProgressBar(
                total=1.0,
                completed=done,
                width=max(6, min(34, inner - 43)),
                complete_style="cyan",
                finished_style="green",
            ),
            f"{done:4.0%}",
            f"{duration(seconds)} gone",
            self._time_left(progress, seconds),
        )
        return Panel(
            Group(bar, "", _facts(self._numbers(progress, row or {}), inner), "", self._history(progress, inner)),
            title=Text.assemble((printable(self._config.preset), "bold"), f"  seed {self._config.seed}"),
            subtitle=Text(printable(str(self._directory)), style="dim"),
            title_align="left",
            subtitle_align="right",
            border_style="blue",
            width=width,
            padding=(1, 2),
        )

    def _numbers(self, progress: Progress, row: Row) -> dict[str, str]:
        return {
            "steps": f"{progress.env_steps:,}",
            "episodes": f"{progress.episodes:,}",
            "wins": f"{progress.wins:,}",
            "steps/s": f"{self._speed():,.0f}",
            "imagined": f"{progress.imagined_steps:,}",
            "updates": f"{progress.updates:,}",
            "return": _number(progress.mean_return),
            "ensemble std": _number(row.get("ensemble_std")),
            "loss": _number(row.get("loss")),
            "best return": _number(progress.best_return),
            "graph": _number(row.get("graph_size")),
            "solved": _moment(progress),
            **_play(row),
        }

    def _history(self, progress: Progress, width: int) -> Text:
        """Draws how the win rate grew; where nothing is won, how the return did."""
        if progress.wins or progress.best_return == progress.worst_return:
            name, now, curve = "win rate", f"{progress.win_rate(100):4.0%}", [rate for rate, _ in self._curve]
        else:
            assert progress.best_return is not None
            assert progress.worst_return is not None
            low, span = progress.worst_return, progress.best_return - progress.worst_return
            name, now = "return", _number(progress.mean_return)
            curve = [(mean - low) / span for _, mean in self._curve if mean is not None]
        style = "bold green" if progress.solved_step is not None else "bold"
        room = width - len(name) - len(now) - 2
        return Text.assemble((f"{name} ", "dim"), (f"{now} ", style), (sparkline(curve, min(_CURVE, room)), "cyan"))


def _facts(numbers: dict[str, str], width: int) -> Table:
    """Lays numbers with their names side by side: three in a row, or as many as there is room for."""
    pairs = list(numbers.items())
    for count in (3, 2, 1):
        columns = [pairs[column::count] for column in range(count)]
        needed = [max(len(name) for name, _ in column) + max(len(text) for _, text in column) for column in columns]
        if sum(needed) + _GAP * (2 * count - 1) <= width:
            break
    table = Table.grid(padding=(0, _GAP))
    for _ in range(count):
        table.add_column(style="dim", no_wrap=True)
        table.add_column(style="bold", justify="right", no_wrap=True)
    for first in range(0, len(pairs), count):
        table.add_row(*(cell for pair in pairs[first : first + count] for cell in pair))
    return table


def _play(row: Row) -> dict[str, str]:
    """Says how those who play blocks get on, as of the latest row; nothing of a run that is not in blocks."""
    if "workers" not in row:
        return {}
    speeds = row["worker_steps_per_second"].values()
    shown = [f"{most(speeds):,.0f}" for most in (min, max)] if speeds else []
    return {
        "workers": f"{row['workers']:,}",
        "each": f"{'-'.join(dict.fromkeys(shown))}/s" if shown else "–",
        "lost": f"{row['worker_restarts']:,}",
        "blocks in flight": f"{row['blocks_in_flight']:,}",
        "staleness": f"{row['staleness']:,}",
    }


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _moment(progress: Progress) -> str:
    return "not yet" if progress.solved_step is None else f"at {progress.solved_step:,}"
