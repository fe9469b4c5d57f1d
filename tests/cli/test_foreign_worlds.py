"""Worlds of users through every verb: one state at a time, batched and registered, and of an installed package."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

STEPS = '''
class Ladder:
    """Rungs; the top is the goal, and letting go ends it."""

    actions = ("up", "wait", "let go")
    max_steps = 12

    def __init__(self, rungs: int = 4):
        self.rungs = rungs

    def start(self, rng):
        return 0

    def step(self, rung, action):
        if action == "let go":
            return rung, -1.0, True
        rung += action == "up"
        return rung, float(rung == self.rungs), rung == self.rungs, rung == self.rungs

    def text(self, rung):
        return f"rung {rung} of {self.rungs}"
'''
BATCHED = '''
from dataclasses import dataclass

import numpy as np

from bathysphere import register_domain
from bathysphere.domains.base import Categories, DomainConfig, Successors


@dataclass(frozen=True)
class RowConfig(DomainConfig):
    """A row of cells."""

    length: int = 5
    """Cells."""


@register_domain
class Row:
    """The right end is the goal."""

    name, Config = "row", RowConfig
    state_size, action_names, max_steps = 1, ("left", "right"), 30

    def __init__(self, config):
        self.config = config
        self.observation = Categories((1,), config.length + 1)

    def initial(self, n, rng):
        return np.zeros((n, 1), np.uint8)

    def successors(self, states):
        cells, end = states.astype(int), self.config.length
        moved = np.where(cells == end, cells, np.clip(cells + [[-1, 1]], 0, end)).astype(np.uint8)
        return Successors(moved[:, :, None], 1.0 * ((moved == end) & (cells < end)), moved == end, moved == end)

    def observe(self, states):
        return states.astype(np.int32)
'''
SHORT = ["--steps", "400", "--log-every", "100", "--no-pictures", "--json"]


def bathysphere(folder, *arguments, fine=True, keys=None):
    """Runs a verb in a process of its own; returns what it printed, or what it complained."""
    command = [sys.executable, "-P", "-m", "bathysphere", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, input=keys or "", capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == fine, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if fine else done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ladders.py").write_text(STEPS)
    (tmp_path / "rows.py").write_text(BATCHED)
    return tmp_path


def all_verbs(folder, train, world, length, keys, extra=()):
    """Trains a world that takes `length` steps, and has every verb treat the run, the agent and the world."""
    result = json.loads(bathysphere(folder, "train", *train, *SHORT, "--run-dir", "run", *extra))
    assert result["wins"] > 0
    assert result["return_best"] == 1.0
    longer = json.loads(bathysphere(folder, "train", "--resume", "run", "--steps", "600", "--json", *extra))
    assert longer["env_steps"] >= 600
    assert (folder / "run/pictures/learning.png").is_file()
    told = json.loads(bathysphere(folder, "evaluate", "run", "--episodes", "5", "--risk-coef", "0", "--json", *extra))
    assert (told["wins"], told["mean_return"]) == (5, 1.0)
    bathysphere(folder, "agents", "export", "run", "mine.safetensors", *extra)
    for agent in ("run", "mine.safetensors"):
        said = bathysphere(folder, "watch", agent, "--risk-coef", "0", *extra)
        assert f"Won 1 of 1, in {length} steps. Return 1." in said
    bathysphere(folder, "watch", "run", "--gif", "film.gif", *extra)
    assert (folder / "film.gif").read_bytes()[:3] == b"GIF"
    (entry,) = json.loads(bathysphere(folder, "runs", ".", "--json", *extra))["runs"]
    assert entry["return_mean_50"] == pytest.approx(longer["return_mean_50"])
    played = json.loads(bathysphere(folder, "play", *world, "--json", *extra, keys=keys * length))
    assert played["solved"]
    drawn = json.loads(bathysphere(folder, "draw", *world, "--by", "breadth-first", "--json", *extra))
    assert (drawn["solved"], drawn["steps"]) == (True, length)
    board = EventAccumulator(str(folder / "run/tensorboard"))
    board.Reload()
    assert len(board.Scalars("play/win_rate_100")) >= 4


def test_a_world_written_one_state_at_a_time(folder):
    world = ("ladders:Ladder", "--domain.rungs", "6")
    all_verbs(folder, world, world, 6, "0")
    assert "rung 6 of 6" in bathysphere(folder, "watch", "run")


def test_a_registered_world_by_its_name(folder):
    extra = ("--import", "rows")
    all_verbs(folder, ("row", "--domain.length", "7"), ("row", "--length", "7"), 7, "d", extra)
    for arguments in (("train", "--resume", "run"), ("watch", "run"), ("train", "row")):
        complaint = bathysphere(folder, *arguments, fine=False)
        assert "row" in complaint
        assert "--import" in complaint


def test_a_registered_world_by_its_import_path(folder):
    result = json.loads(bathysphere(folder, "train", "rows:Row", "--domain.length", "3", *SHORT, "--run-dir", "run"))
    assert result["wins"] > 0
    assert "Won 1 of 1, in 3 steps" in bathysphere(folder, "watch", "run", "--risk-coef", "0")


def test_a_missing_or_changed_module_is_a_sentence(folder):
    assert "There is no module nothing" in bathysphere(folder, "runs", "--import", "nothing", fine=False)
    assert "--import needs the name of a module" in bathysphere(folder, "runs", "--import", fine=False)
    bathysphere(folder, "train", "ladders:Ladder", *SHORT, "--run-dir", "run")
    (folder / "ladders.py").write_text(STEPS + "# changed\n")
    for arguments in (
        ("watch", "run"),
        ("train", "--config", "run/config.json"),
        ("agents", "export", "run", "a.safetensors"),
    ):
        complaint = bathysphere(folder, *arguments, fine=False)
        assert "is not what it was when this was saved" in complaint
    assert "Return" in bathysphere(folder, "watch", "run", "--import", "ladders")
    (folder / "ladders.py").unlink()
    assert "there is no module ladders here" in bathysphere(folder, "evaluate", "run", fine=False)


def install(site: Path) -> None:
    """Writes what an installer leaves of a package that names a world."""
    (site / "climbing").mkdir(parents=True)
    (site / "climbing/__init__.py").write_text(STEPS)
    about = site / "climbing-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: climbing\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[bathysphere.domains]\nladder = climbing:Ladder\n")


def test_an_installed_package_names_its_worlds(tmp_path, monkeypatch):
    site, folder = tmp_path / "site", tmp_path / "elsewhere"
    install(site)
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(site))
    result = json.loads(bathysphere(folder, "train", "ladder", "--domain.rungs", "5", *SHORT, "--run-dir", "run"))
    assert result["wins"] > 0
    bathysphere(folder, "train", "--resume", "run", "--steps", "500", "--no-pictures", "--json")
    assert "Won 1 of 1, in 5 steps" in bathysphere(folder, "watch", "run", "--risk-coef", "0")
    assert json.loads(bathysphere(folder, "play", "ladder", "--json", keys="0000"))["solved"]
    swept = json.loads(
        bathysphere(folder, "sweep", "ladder", "--vary", "domain.rungs=3,4", "--seeds", "1", "--steps", "200", "--json")
    )
    assert {row["setting"] for row in swept["rows"]} == {"rungs=3", "rungs=4"}
    complaint = bathysphere(folder, "train", "lader", fine=False)
    assert "Did you mean 'ladder'?" in complaint
