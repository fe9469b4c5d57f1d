"""Files that version 0.1 wrote (tests/fixtures/v0.1) go on being read, with all that they say."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bathysphere.agents import agent_file
from bathysphere.agents.evaluation import evaluate, read_measurements
from bathysphere.agents.loading import load_agent, load_trained
from bathysphere.cli import main
from bathysphere.config.convert import to_dict
from bathysphere.runs.api import resume
from bathysphere.runs.directory import RunDirectory
from bathysphere.storage.plain import flat

OLD = Path(__file__).parents[1] / "fixtures" / "v0.1"
RUNS = ["deep-sea-run", "sokoban-run", "toy-run"]
AGENT = OLD / "deep-sea.safetensors"

# What version 0.1 called by another name: fields, and values of fields (by the field's present name).
FIELDS = {"lanes": "workers", "learning.min_games": "learning.min_episodes"}
VALUES = {("learning.mask.per", "game"): "episode", ("learning.replay.sampling", "game"): "episode"}


def settings_of(config: dict) -> dict:
    """Returns what a config of version 0.1, as plain data, says: by today's dotted names, with today's values."""
    named = {FIELDS.get(name, name): value for name, value in flat(config).items()}
    return {
        name: value if isinstance(value, list) else VALUES.get((name, value), value) for name, value in named.items()
    }


def kept(config, settings: dict) -> dict:
    """Returns what a loaded config says where version 0.1 said something."""
    now = flat(to_dict(config))
    return {name: now.get(name) for name in settings}


@pytest.fixture(params=RUNS)
def old_run(request, tmp_path):
    """A copy of an old run."""
    return shutil.copytree(OLD / request.param, tmp_path / request.param)


def test_the_fixtures_say_what_is_not_a_default():
    deep_sea, sokoban, toy = (settings_of(json.loads((OLD / run / "config.json").read_text())) for run in RUNS)
    assert deep_sea["workers"] == 2
    assert deep_sea["learning.replay.sampling"] == "length"
    assert deep_sea["learning.mask.per"] == "transition"
    for settings in (sokoban, toy):
        assert settings["learning.min_episodes"] == 2


def test_an_old_run_is_an_agent(old_run):
    settings = settings_of(json.loads((old_run / "config.json").read_text()))
    assert kept(load_trained(old_run).config, settings) == settings
    agent = load_agent(old_run)
    state = agent.domain.initial(1, np.random.default_rng(0))[0]
    assert 0 <= agent.act(state) < len(agent.domain.action_names)
    assert evaluate(old_run, episodes=2).count == 2


def test_old_runs_are_listed(capsys):
    assert main(["runs", str(OLD), "--json"]) == 0
    listed = {Path(run["run_dir"]).name: run for run in json.loads(capsys.readouterr().out)["runs"]}
    assert list(listed) == RUNS
    for name, run in listed.items():
        result = json.loads((OLD / name / "result.json").read_text())
        assert run["state"] == "steps"
        assert {key: run[key] for key in result.keys() & run.keys() - {"run_dir"}}.items() <= result.items()
    assert main(["runs", str(OLD)]) == 0
    assert "deep-sea-run" in capsys.readouterr().out


def test_an_old_run_goes_on(old_run):
    before = json.loads((old_run / "result.json").read_text())
    settings = settings_of(json.loads((old_run / "config.json").read_text()))
    result = resume(old_run, pictures=False, steps=settings["steps"] + 100)
    assert result["env_steps"] >= before["env_steps"] + 100
    for counter in ("episodes", "updates", "wall_seconds"):
        assert result[counter] > before[counter]
    assert result["wins"] >= before["wins"]
    assert result["first_solved_step"] == before["first_solved_step"] or before["first_solved_step"] is None
    expected = settings | {"steps": settings["steps"] + 100}
    assert kept(RunDirectory.open(old_run).load_config(), expected) == expected
    # What it wrote is of this version, and goes on too.
    again = resume(old_run, pictures=False, steps=settings["steps"] + 200)
    assert again["env_steps"] >= result["env_steps"] + 50


def test_an_old_agent_file_plays_as_it_did():
    settings = settings_of(json.loads((OLD / "deep-sea-run" / "config.json").read_text()))
    assert kept(agent_file.read(AGENT).config, settings) == settings
    then, now = json.loads((OLD / "evaluation.json").read_text()), evaluate(AGENT, episodes=20)
    assert now.weights == then["weights"]
    assert (now.count, now.solved, now.mean_length) == (then["episodes"], then["wins"], then["mean_length"])


def test_an_old_evaluation_is_accepted_for_the_card():
    (measurement,) = read_measurements(OLD / "evaluation.json", load_trained(AGENT).fingerprint)
    then = json.loads((OLD / "evaluation.json").read_text())
    assert (measurement.value, measurement.low, measurement.n) == (1.0, then["win_rate_low"], 20)
    assert measurement.command == "bathysphere evaluate deep-sea.safetensors --episodes 20"
