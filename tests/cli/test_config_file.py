"""`--config FILE`: a run's own config.json makes an equal run, flags come before it, and mistakes are sentences."""

import json

import pytest

from bathysphere import cli
from bathysphere.runs.directory import RunDirectory
from tests.runs.subprocesses import contents

SMALL = ["--domain.size", "6", "--steps", "600", "--log-every", "100", "--no-pictures", "--json"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = tmp_path_factory.mktemp("config") / "run"
    flags = ["--seed", "3", "--search.risk-coef", "4", "--planner", "mcts", "--run-dir", str(run)]
    assert cli.main(["train", "deep-sea", *SMALL, *flags]) == 0
    return run


def train(*arguments):
    return cli.main(["train", *map(str, arguments), "--no-pictures", "--json"])


def test_the_config_of_a_run_makes_an_equal_run(trained, tmp_path):
    again = tmp_path / "again"
    assert train("--config", trained / "config.json", "--run-dir", again) == 0
    assert (again / "config.json").read_text() == (trained / "config.json").read_text()
    (arrays, rows), (other_arrays, other_rows) = contents(trained), contents(again)
    assert rows == other_rows
    assert {name: array.tobytes() for name, array in arrays.items()} == {
        name: array.tobytes() for name, array in other_arrays.items()
    }


def test_flags_come_before_the_file_and_the_file_before_the_preset(tmp_path):
    (tmp_path / "mine.toml").write_text("steps = 200\nseed = 7\n[domain]\nsize = 5\n[search]\nrisk_coef = 2\n")
    run = tmp_path / "run"
    assert train("deep-sea", "--config", tmp_path / "mine.toml", "--seed", "8", "--run-dir", run) == 0
    config = RunDirectory.open(run).load_config()
    assert (config.steps, config.seed, config.domain.size, config.search.risk_coef) == (200, 8, 5, 2.0)
    assert config.values.num_members == 20  # the preset's


def test_whole_numbers_may_be_written_with_an_exponent(tmp_path):
    (tmp_path / "mine.json").write_text('{"preset": "deep-sea", "steps": 2e2, "domain": {"size": 5}}')
    assert train("--config", tmp_path / "mine.json", "--log-every", "1e2", "--run-dir", tmp_path / "run") == 0
    config = RunDirectory.open(tmp_path / "run").load_config()
    assert (config.steps, config.log_every) == (200, 100)


def test_the_preset_may_be_in_the_file(tmp_path):
    (tmp_path / "mine.yaml").write_text("preset: deep-sea\nsteps: 100\ndomain: {size: 5}\nlearning: {min_games: 7}\n")
    run = tmp_path / "run"
    assert train(f"--config={tmp_path / 'mine.yaml'}", "--run-dir", run) == 0
    config = RunDirectory.open(run).load_config()
    assert (config.preset, config.steps, config.values.num_members) == ("deep-sea", 100, 20)
    assert config.learning.min_episodes == 7  # under its old name


def test_planners_that_share_a_batch_are_for_runs_of_earlier_versions(tmp_path, capsys):
    (tmp_path / "mine.yaml").write_text("preset: deep-sea\nsteps: 100\nlanes: 2\n")
    assert train(f"--config={tmp_path / 'mine.yaml'}", "--run-dir", tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert "The config has workers 2" in said
    assert "Leave it out, and say --workers" in " ".join(said.split())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"preset": "deep-sea", "serch": {}}, "There is no field 'serch'. Did you mean 'search'?"),
        ({"preset": "deep-sea", "search": {"pases": 3}}, "Did you mean 'search.passes'?"),
        ({"preset": "deep-sea", "domain": {"sise": 3}}, "Did you mean 'domain.size'?"),
        ({"preset": "deep-sea", "steps": "many"}, "steps should be a whole number; got 'many'"),
        ({"steps": 100}, "neither which preset nor which domain"),
    ],
)
def test_mistakes_are_sentences(content, said, tmp_path, capsys):
    (tmp_path / "mine.json").write_text(json.dumps(content))
    assert train("--config", tmp_path / "mine.json", "--run-dir", tmp_path / "run") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_resumed_run_takes_no_file(trained, capsys):
    assert train("--resume", trained, "--config", trained / "config.json") == 2
    assert "leave out --config" in capsys.readouterr().err
