"""JSON, CSV, levels and maps that are made to break their readers. benchmarks/hostile_texts.py tries 120,000 of them;
here are a few of each kind, and those that once ended in a traceback."""

import json
import random

import pytest
from benchmarks.hostile_texts import attack, prepare

from bathysphere.agents.card import Card
from bathysphere.errors import BathysphereError
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.listing import describe_run
from bathysphere.runs.metrics import MetricsWriter, last_row, read_rows
from bathysphere.storage.checkpoint import CheckpointStore
from bathysphere.storage.files import read_json
from bathysphere.storage.plain import read_as
from bathysphere.storage.tensors import header_fingerprint
from bathysphere.studies.folder import StudyFolder


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("good"))


@pytest.mark.parametrize("name", ["levels", "maps", "config", "meta", "result", "metrics", "study", "card"])
def test_no_text_ends_in_a_traceback(kinds, name, capsys):
    outcomes = {number: (outcome, told) for number, outcome, told in attack(name, kinds[name], range(60), seed=1)}
    assert not {number: told for number, (outcome, told) in outcomes.items() if outcome == "traceback"}
    assert len({outcome for outcome, _ in outcomes.values()} & {"loaded", "sentence"}) >= 1


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 5000, "{", "\x00"])
def test_json_that_cannot_be_read_is_a_sentence(tmp_path, text):
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(BathysphereError, match="damaged"):
        read_json(file)


@pytest.mark.parametrize(
    "change",
    [
        {"files": None},
        {"files": {"weights.safetensors": 3, "state.safetensors": {}}},
        {"files": {}},
        {"env_steps": "12"},
        {"env_steps": -1},
        {"seconds": float("nan")},
        {"config_hash": None},
    ],
)
def test_a_meta_with_the_right_fingerprint_and_impossible_content(kinds, tmp_path, change):
    kinds["meta"].make(tmp_path, random.Random(0))
    (path,) = (tmp_path / "checkpoints").iterdir()
    meta = {"format": 1, "bathysphere": "1", "config_hash": "x", "env_steps": 1, "seconds": 0.0}
    meta |= {"files": {name: {"bytes": 1, "sha256": ""} for name in ("weights.safetensors", "state.safetensors")}}
    meta |= change
    (path / "meta.json").write_text(json.dumps(meta | {"sha256": header_fingerprint(meta)}))
    with pytest.raises(BathysphereError, match="not what any version writes"):
        CheckpointStore(path.parent, "x").load()


@pytest.mark.parametrize(
    ("name", "value"), [("seconds", float("nan")), ("seconds", float("inf")), ("seconds", 10**400), ("env_steps", -1)]
)
def test_a_card_that_speaks_of_impossible_training(name, value):
    good = {"command": "", "seed": 0, "commit": None, "env_steps": 1, "seconds": 1.0, "machine": ""}
    assert read_as(Card, good)
    with pytest.raises(BathysphereError):
        read_as(Card, good | {name: value})


@pytest.mark.parametrize("line", ["[]", "3", '{"env_steps": "3"}', "{}", "[" * 100_000])
def test_lines_that_are_no_rows_end_the_metrics(tmp_path, line):
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"env_steps": 1}\n' + line + '\n{"env_steps": 3}\n')
    assert read_rows(file) == [{"env_steps": 1}]
    assert last_row(file) == {"env_steps": 3}
    MetricsWriter(file, tmp_path / "tensorboard", 2).close()
    assert file.read_text() == '{"env_steps": 1}\n'


def test_a_result_of_something_else(kinds, tmp_path):
    kinds["result"].make(tmp_path, random.Random(0))
    (tmp_path / "result.json").write_text("[]")
    assert describe_run(RunDirectory.open(tmp_path))["state"] == "damaged"
    (tmp_path / "result.json").write_text('{"win_rate_100": "x", "stopped_by": 3}')
    assert describe_run(RunDirectory.open(tmp_path))["win_rate_100"] == 0


@pytest.mark.parametrize("about", ["[]", "{}", '{"study": 3, "budget": "x", "command": ""}'])
def test_a_study_that_does_not_say_what_it_is(tmp_path, about):
    (tmp_path / "summary.json").write_text(about)
    (tmp_path / "results.csv").write_text("setting,case,seed,state\n")
    with pytest.raises(BathysphereError, match="does not say study, budget, command"):
        StudyFolder(tmp_path).load()


@pytest.mark.parametrize("rows", ["a,b\n1\n", "a,b\n1,2,3\n", "a\n\xff\n"])
def test_results_that_are_no_table(tmp_path, rows):
    (tmp_path / "summary.json").write_text('{"study": "x", "budget": "x", "command": ""}')
    (tmp_path / "results.csv").write_bytes(rows.encode("latin-1"))
    with pytest.raises(BathysphereError, match=r"results\.csv"):
        StudyFolder(tmp_path).load()
