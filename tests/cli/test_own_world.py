"""A world in the user's own file, from the command line: trained, killed, resumed, watched, exported, and refused."""

import json
import subprocess
import sys
import time

import pytest

WORLD = '''
import numpy as np

from bathysphere.domains.base import Categories, Successors


class MyWorld:
    """Cells in a row; the right end is the goal."""

    def __init__(self, length: int = 5, goal: float = 1.0):
        self.length, self.goal = length, goal
        self.name, self.state_size, self.action_names, self.max_steps = "MyWorld", 1, ("left", "right"), 30
        self.observation = Categories((1,), length + 1)

    def initial(self, n, rng):
        return np.zeros((n, 1), np.uint8)

    def successors(self, states):
        cells = states.astype(int)
        over = cells == self.length
        moved = np.where(over, cells, np.clip(cells + [[-1, 1]], 0, self.length)).astype(np.uint8)
        ended = moved == self.length
        return Successors(moved[:, :, None], self.goal * (ended & ~over), ended, ended)

    def observe(self, states):
        return states.astype(np.int32)
'''
SHORT = ["--steps", "400", "--no-pictures", "--json"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my_world.py").write_text(WORLD)
    return tmp_path


def bathysphere(folder, *arguments, fine=True):
    """Runs a verb in a process of its own; returns what it printed, or what it complained."""
    command = [sys.executable, "-P", "-m", "bathysphere", *arguments]  # -P: as the installed command finds modules
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == fine, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if fine else done.stderr


def test_it_is_trained_resumed_evaluated_watched_and_exported(folder):
    result = json.loads(bathysphere(folder, "train", "my_world:MyWorld", "--domain.length", "7", *SHORT))
    assert result["run_dir"] == "runs/my-world-seed0-1"
    assert result["wins"] > 0
    run = folder / result["run_dir"]
    domain = json.loads((run / "config.json").read_text())["domain"]
    assert (domain["name"], domain["world"], domain["settings"]) == ("python", "my_world:MyWorld", {"length": 7})
    longer = json.loads(bathysphere(folder, "train", "--resume", str(run), "--steps", "800", "--no-pictures", "--json"))
    assert longer["env_steps"] >= 800 > result["env_steps"]
    assert json.loads(bathysphere(folder, "evaluate", str(run), "--episodes", "5", "--json"))["wins"] == 5
    assert "Won 1 of 1, in 7 steps." in bathysphere(folder, "watch", str(run))
    bathysphere(folder, "agents", "export", str(run), "mine.safetensors")
    assert "Won 1 of 1, in 7 steps." in bathysphere(folder, "watch", "mine.safetensors")


def test_choices_are_shown_with_their_reasons(folder):
    said = bathysphere(folder, "train", "my_world:MyWorld", "--steps", "100", "--no-pictures")
    assert "values.network linear" in said
    assert "an observation is one of 6 numbers: a table" in said


def test_killed_it_goes_on_as_if_nothing_had_happened(folder):
    often = ["--checkpoint.seconds", "0.001", "--domain.length", "9"]
    rest = ["--steps", "40000", "--no-pictures", "--json"]
    command = [sys.executable, "-m", "bathysphere", "train", "my_world:MyWorld", *often, *rest, "--run-dir", "killed"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not list((folder / "killed" / "checkpoints").glob("*/*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    bathysphere(folder, "train", "--resume", "killed", "--steps", "3000", "--no-pictures", "--json")
    bathysphere(folder, "train", "my_world:MyWorld", *often, "--steps", "3000", *rest[2:], "--run-dir", "whole")
    left = ("seconds", "env_steps_per_second", "share_")

    def rows(run):
        read = [json.loads(line) for line in (folder / run / "metrics.jsonl").read_text().splitlines()]
        return [{name: cell for name, cell in row.items() if not name.startswith(left)} for row in read]

    both = rows("killed"), rows("whole")
    shared = min(map(len, both))
    assert shared >= 2
    assert both[0][:shared] == both[1][:shared]


def test_a_world_that_has_changed_is_refused_until_it_is_named(folder):
    bathysphere(folder, "train", "my_world:MyWorld", *SHORT, "--run-dir", "run")
    (folder / "my_world.py").write_text(WORLD + "# changed\n")
    for arguments in (("train", "--resume", "run"), ("watch", "run"), ("evaluate", "run")):
        complaint = bathysphere(folder, *arguments, fine=False)
        assert "my_world.py is not what it was when this was saved" in complaint
        assert "--import my_world" in complaint
    assert "my-world" in bathysphere(folder, "runs", ".")
    (folder / "my_world.py").unlink()
    assert "there is no module my_world here" in bathysphere(folder, "watch", "run", fine=False)
    assert "my-world" in bathysphere(folder, "runs", ".")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["my_world:Mine"], "error: my_world:Mine cannot be used"),
        (["my_word:MyWorld"], "error: There is no module my_word"),
        (["my_world:MyWorld", "--domain.lenght", "3"], "--domain.length"),
        (["my_world.py"], "is a file. Name a world by its import path"),
        (["nothing"], "error: There is no preset 'nothing', and no world of that name"),
        (["my_world:np"], "error: module is no world"),
    ],
)
def test_mistakes_are_sentences(folder, arguments, said):
    assert said in bathysphere(folder, "train", *arguments, fine=False)
    assert not (folder / "runs").exists()


def test_the_help_shows_the_arguments_of_the_world(folder):
    said = bathysphere(folder, "train", "my_world:MyWorld", "--help")
    assert "--domain.length" in said
    assert "--search.passes" in said
