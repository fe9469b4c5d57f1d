"""`bathysphere runs` in terminals of different widths."""

import io
from pathlib import Path

import pytest

from bathysphere.cli.runs import runs_table
from bathysphere.terminal import Terminal

RUN = {
    "preset": "paper/sokoban-learned-model",
    "seed": 12,
    "state": "unfinished",
    "env_steps": 11_500_000,
    "episodes": 123_456,
    "win_rate_100": 0.97,
    "win_rate_1000": 0.9,
    "return_mean_50": -13.25,
    "first_solved_step": None,
    "solved_step": 10_000_000,
    "env_steps_per_second": 1234.5,
}
NAME = "paper-sokoban-learned-model-seed12-1"


def shown(width):
    table, left_out = runs_table([RUN | {"run_dir": f"runs/{NAME}"}], Path("runs"), width)
    out = io.StringIO()
    Terminal(file=out, width=width).print(table)
    return out.getvalue().splitlines(), left_out


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_names_stay_whole(width):
    (head, row), _ = shown(width)
    assert row.startswith(NAME)
    assert "…" not in row
    assert len(row.rstrip()) <= width
    assert "return" in head
    assert "-13.25" in row


def test_a_wide_terminal_has_everything_and_a_narrow_one_says_what_it_has_not():
    (head, row), left_out = shown(200)
    assert left_out == []
    assert "paper/sokoban-learned-model" in row
    (head, row), left_out = shown(80)
    assert {"won/1000", "preset"} <= set(left_out)
    assert not set(left_out) & set(head.split())
