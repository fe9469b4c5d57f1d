import io

import pytest
from rich.console import Console

from bathysphere.learning.progress import Progress
from bathysphere.runs.display import RunDisplay, duration, sparkline
from tests.runs.small import small_config


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], ""), ([0.0, 1.0], " █"), ([0.0] * 50 + [1.0] * 50, " █"), ([2.0, -1.0], "█ ")],
)
def test_sparkline(values, expected):
    assert sparkline(values, 2) == expected


def test_duration():
    assert [duration(s) for s in (0, 59.6, 3600)] == ["0:00", "1:00", "1:00:00"]


def _shown(tmp_path, *, terminal: bool) -> str:
    out = io.StringIO()
    display = RunDisplay(Console(file=out, force_terminal=terminal, width=100, color_system=None))
    display.start(small_config(), tmp_path)
    progress = Progress()
    for second in range(12):
        progress.env_steps += 100
        display.update(progress, float(second), {"ensemble_std": 0.1234, "loss": None, "graph_size": 40.0})
    display.stop()
    return out.getvalue()


def test_a_terminal_gets_a_panel(tmp_path):
    text = _shown(tmp_path, terminal=True)
    for part in ("deep-sea", "seed 0", "100%", "1,200", "0.123", "not yet", "win rate", "at most 0:00 left"):
        assert part in text


def test_anything_else_gets_few_plain_lines(tmp_path):
    lines = _shown(tmp_path, terminal=False).splitlines()
    assert len(lines) == 2
    assert "up to 1,200 steps" in lines[0]
    assert "1,100 steps" in lines[1]
    assert "\x1b" not in "".join(lines)


def test_the_first_look_tells_no_speed(tmp_path):
    """Before it, code was compiled: an estimate by that speed would be hours for seconds."""
    out = io.StringIO()
    display = RunDisplay(Console(file=out, force_terminal=False, width=100, color_system=None))
    display.start(small_config(), tmp_path)
    progress = Progress()
    progress.env_steps = 4
    display.update(progress, 27.0, None)
    assert "left" not in out.getvalue()
    progress.env_steps = 404
    display.update(progress, 37.0, None)
    assert "at most 0:20 left" in out.getvalue()  # 796 steps at 40 a second
