import io
import re
from dataclasses import MISSING, fields

import numpy as np
import pytest

from bathysphere.learning.progress import Progress
from bathysphere.planning import Episode
from bathysphere.runs.display import RunDisplay, duration, sparkline
from bathysphere.terminal import Terminal
from tests.runs.small import small_config


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], ""), ([0.0, 1.0], " █"), ([0.0] * 50 + [1.0] * 50, " █"), ([2.0, -1.0], "█ ")],
)
def test_sparkline(values, expected):
    assert sparkline(values, 2) == expected


def test_duration():
    assert [duration(s) for s in (0, 59.6, 3600)] == ["0:00", "1:00", "1:00:00"]


def _shown(tmp_path, *, terminal: bool, more=None, **config) -> str:
    out = io.StringIO()
    display = RunDisplay(Terminal(file=out, force_terminal=terminal, width=100, color_system=None))
    display.start(small_config(**config), tmp_path)
    progress = Progress()
    for second in range(12):
        progress.env_steps += 100
        progress.imagined_steps += 1234
        row = {"ensemble_std": 0.1234, "loss": None, "graph_size": 40.0, **(more or {})}
        display.update(progress, float(second), row)
    display.stop()
    return out.getvalue()


def test_a_terminal_gets_a_panel(tmp_path):
    text = _shown(tmp_path, terminal=True)
    for part in ("deep-sea", "seed 0", "100%", "1,200", "14,808", "0.123", "not yet", "win rate", "at most 0:00 left"):
        assert part in text


def test_anything_else_gets_few_plain_lines(tmp_path):
    lines = _shown(tmp_path, terminal=False).splitlines()
    assert len(lines) == 2
    assert "up to 1,200 steps" in lines[0]
    assert "1,100 steps" in lines[1]
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("terminal", [True, False])
def test_names_are_text(tmp_path, terminal):
    """They come from config files and folders."""
    text = _shown(tmp_path / "[/x]\x9b", terminal=terminal, preset="[/y]\x9b")
    assert "[/y]\\x9b" in text
    assert "[/x]\\x9b" in "".join(text.split())
    assert "\x9b" not in text


@pytest.mark.parametrize("terminal", [True, False])
def test_workers_are_shown_if_there_are_any(tmp_path, terminal):
    row = {
        "workers": 2,
        "worker_steps_per_second": {"here:1": 1234.5, "here:2": 987.6},
        "worker_restarts": 3,
        "blocks_in_flight": 4,
        "staleness": 1331,
    }
    words = " ".join(_shown(tmp_path, terminal=terminal, more=row).split())
    for part in ("workers 2", "each 988-1,234/s", "lost 3", "blocks in flight 4", "staleness 1,331"):
        assert part in words
    assert "blocks in flight" not in _shown(tmp_path, terminal=terminal)
    one = row | {"worker_steps_per_second": {"here:1": 1234.5}}
    assert "each 1,234/s" in " ".join(_shown(tmp_path, terminal=terminal, more=one).split())
    nobody_finished = row | {"worker_steps_per_second": {}}
    assert "each –" in " ".join(_shown(tmp_path, terminal=terminal, more=nobody_finished).split())


def test_the_first_look_tells_no_speed(tmp_path):
    """Before it, code was compiled: an estimate by that speed would be hours for seconds."""
    out = io.StringIO()
    display = RunDisplay(Terminal(file=out, force_terminal=False, width=100, color_system=None))
    display.start(small_config(), tmp_path)
    progress = Progress()
    progress.env_steps = 4
    display.update(progress, 27.0, None)
    assert "left" not in out.getvalue()
    progress.env_steps = 404
    display.update(progress, 37.0, None)
    assert "at most 0:20 left" in out.getvalue()  # 796 steps at 40 a second


def panel(tmp_path, width, *, solved):
    """Returns what a terminal shows of a run, line by line."""
    out = io.StringIO()
    console = Terminal(file=out, force_terminal=True, width=width, color_system=None)
    display = RunDisplay(console)
    display.start(small_config(steps=1_000_000_000), tmp_path)
    progress = Progress()
    for number in range(60):
        progress.env_steps += 1_000_000
        values = np.zeros(2)
        progress.record(
            Episode(
                index=number,
                states=np.zeros((2, 1), np.uint8),
                actions=np.zeros(2, np.int32),
                rewards=np.array([0.0, -20.0 + number / 4]),
                search_values=np.zeros((2, 1)),
                solved=solved,
                truncated=False,
                **_rest(values),
            )
        )
        row = {"ensemble_std": 0.12345, "loss": 1.23456e-5, "graph_size": 123.0}
        display.update(progress, 12345.0 + number, row)
    display.stop()
    return out.getvalue().split("╭")[-1].splitlines()


def _rest(values):
    """Returns what an episode has besides, at nothing."""
    known = {"index", "states", "actions", "rewards", "search_values", "solved", "truncated"}
    return {f.name: 0 for f in fields(Episode) if f.name not in known and f.default is MISSING}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_value_is_lost_in_a_narrow_terminal(width, tmp_path):
    lines = panel(tmp_path, width, solved=True)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert "…" not in text.replace("...", "")
    for part in ("60,000,000", "60", "0.123", "1.23e-05", "123", "best return", "-5.25", "win rate", "100%"):
        assert part in text
    assert "at most" in text
    assert "left" in text


def test_where_nothing_is_won_the_return_is_drawn(tmp_path):
    text = "\n".join(panel(tmp_path, 80, solved=False))
    assert "win rate" not in text
    assert re.search(r"return -11\.4 .*▁.*▅", text)
