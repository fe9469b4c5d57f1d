"""Every example runs, and says what it promises."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def _run(name: str, *arguments: str, cwd: Path) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_train_deep_sea(tmp_path):
    out = _run("train_deep_sea.py", cwd=tmp_path)
    assert out.startswith("solved at step ")
    assert "of 50 episodes" in out


def test_minimal_tells_the_same_story_twice(tmp_path):
    out = _run("minimal.py", "12", cwd=tmp_path)
    assert re.fullmatch(r"( +\d+ episodes, treasure in .*\n)+solved after \d+ episodes\n", out)
    assert _run("minimal.py", "12", cwd=tmp_path) == out
    assert _run("minimal.py", "12", "1", cwd=tmp_path) != out


def test_agent_in_gym(tmp_path):
    assert _run("agent_in_gym.py", cwd=tmp_path).startswith("solved: ")


def test_demo(tmp_path):
    out = _run("demo.py", "here", cwd=tmp_path)
    assert "What happened" in out
    assert "What to try next" in out
    assert {"uncertainty.png", "learning.png", "dive.gif"} <= {file.name for file in (tmp_path / "here").iterdir()}


def test_the_short_example_is_short():
    lines = (EXAMPLES / "train_deep_sea.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 15
