"""Agents as files: what is in them, and what is refused."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load, save

import bathysphere
from bathysphere.agents import agent_file
from bathysphere.agents.card import train_command
from bathysphere.agents.evaluation import evaluate
from bathysphere.agents.loading import find_agent, load_agent, load_trained
from bathysphere.cli.run_flags import read_run
from bathysphere.cli.train import _VERB
from bathysphere.config.convert import override, plain_hash
from bathysphere.config.presets import find_preset
from bathysphere.errors import BathysphereError
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.export import export
from bathysphere.storage.checkpoint import CheckpointStore
from bathysphere.storage.tensors import fingerprint, halved, header_fingerprint
from tests.runs.small import small_config


@pytest.fixture(scope="module")
def deep_sea_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("agent-file") / "run"
    bathysphere.train(small_config(), run_dir=path, pictures=False, stop={"on_solved": True}, steps=20_000)
    return path


@pytest.fixture
def file(deep_sea_run, tmp_path):
    path = tmp_path / "mine.safetensors"
    export(deep_sea_run, path)
    return path


def _header(path):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["bathysphere.agent"])


def _rewrite(path, header, weights=None):
    """Writes the file anew, with fingerprints that fit."""
    if weights is None:
        weights = load(path.read_bytes())
    header["weights"] = fingerprint(weights)
    header["sha256"] = header_fingerprint(header)
    path.write_bytes(save(weights, metadata={"bathysphere.agent": json.dumps(header)}))


def test_a_file_holds_half_precision_weights_config_and_card_and_nothing_else(deep_sea_run, file):
    arrays = load(file.read_bytes())
    directory = RunDirectory.open(deep_sea_run)
    result, versions = directory.load_result(), json.loads(directory.versions_file.read_text())
    assert {name: (array.dtype, array.shape) for name, array in arrays.items()} == {"table": (np.float16, (36, 20))}
    agent = agent_file.read(file)
    assert agent.config == directory.load_config()
    assert agent.weights["table"].dtype == np.float32
    assert (agent.card.seed, agent.card.env_steps) == (0, result["env_steps"])
    assert 0 < agent.card.seconds <= result["wall_seconds"]
    assert (agent.card.commit, agent.card.machine) == (versions["commit"], versions["machine"])
    assert agent.card.command == (  # as many steps as it took, not as many as it might have taken
        f"bathysphere train deep-sea --steps {result['env_steps']} --log-every 100 --domain.size 6 --stop.on-solved"
    )
    assert agent.card.results == ()


def test_the_loaded_values_are_the_runs_rounded_to_half_precision(deep_sea_run, file):
    cells = np.arange(36, dtype=np.int32)[:, None]
    run, loaded = load_trained(deep_sea_run), load_trained(file)
    wanted = run.values.evaluate(cells).astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(loaded.values.evaluate(cells), wanted)
    assert loaded.fingerprint != run.fingerprint


def test_a_file_plays_like_any_agent(file):
    assert evaluate(file, episodes=20, risk_coef=0.0).solved > 10
    agent = load_agent(str(file))
    assert agent.act(agent.domain.initial(1, np.random.default_rng(0))[0]) in (0, 1)


def test_an_agent_trained_on_a_level_file_needs_it_no_more(tmp_path, sokoban_run):
    trained = load_trained(sokoban_run)
    config = override(trained.config, {"domain": {"num_boards": None, "level_file": str(tmp_path / "gone.txt")}})
    card = agent_file.Card("command", 0, None, 1, 1.0, "machine")
    weights = halved(trained.values.weights())
    agent_file.write(tmp_path / "a.safetensors", config, trained.observation, card, weights)
    assert load_trained(tmp_path / "a.safetensors").observation == trained.observation
    with pytest.raises(BathysphereError, match=r"Cannot read .*gone.txt"):
        load_agent(tmp_path / "a.safetensors")  # plays in the world it was trained in


def test_a_run_of_an_earlier_version_becomes_an_agent_too(deep_sea_run, tmp_path):
    """Its config had fewer fields, and so another fingerprint, which its checkpoints carry."""
    old = tmp_path / "old"
    shutil.copytree(deep_sea_run, old)
    plain = json.loads((old / "config.json").read_text())
    del plain["values"]["shared_trunk"]
    (old / "config.json").write_text(json.dumps(plain))
    with pytest.raises(BathysphereError, match="belongs to a run with other settings"):
        CheckpointStore(old / "checkpoints", plain_hash(plain)).read_meta(next((old / "checkpoints").iterdir()))
    for meta_file in (old / "checkpoints").glob("*/meta.json"):
        meta = json.loads(meta_file.read_text()) | {"config_hash": plain_hash(plain)}
        meta_file.write_text(json.dumps(meta | {"sha256": header_fingerprint(meta)}))
    assert (
        export(old, tmp_path / "a.safetensors").fingerprint
        == export(deep_sea_run, tmp_path / "b.safetensors").fingerprint
    )
    plain["values"]["num_members"] = 19
    (old / "config.json").write_text(json.dumps(plain))
    with pytest.raises(BathysphereError, match="belongs to a run with other settings"):
        export(old, tmp_path / "a.safetensors")


def test_every_single_flipped_bit_is_noticed(file):
    content = file.read_bytes()
    original = agent_file.read(file)
    for position in range(0, len(content), 29):
        changed = bytearray(content)
        changed[position] ^= 1 << position % 8
        file.write_bytes(changed)
        try:
            agent = agent_file.read(file)
        except BathysphereError:
            continue
        assert agent.fingerprint == original.fingerprint  # what JSON does not care for, such as a space
        assert agent[:3] == original[:3]


def _cut(path):
    path.write_bytes(path.read_bytes()[:-3])


def _other_format(path):
    _rewrite(path, _header(path) | {"format": 99, "bathysphere": "9.9"})


def _no_format(path):
    header = _header(path)
    del header["format"]
    _rewrite(path, header)


def _changed_header(path):
    header = _header(path)
    header["card"]["env_steps"] += 1
    path.write_bytes(save(load(path.read_bytes()), metadata={"bathysphere.agent": json.dumps(header)}))


def _changed_weights(path):
    arrays = load(path.read_bytes())
    arrays["table"][0, 0] += 1
    path.write_bytes(save(arrays, metadata={"bathysphere.agent": json.dumps(_header(path))}))


def _unknown_field(path):
    header = _header(path)
    header["config"]["values"]["wings"] = 2
    _rewrite(path, header)


def _unknown_card_field(path):
    header = _header(path)
    header["card"]["comandd"] = "?"
    _rewrite(path, header)


def _missing_field(path):
    header = _header(path)
    del header["card"]["seed"]
    _rewrite(path, header)


def _misfit(path):
    _rewrite(path, _header(path), {"table": np.zeros((35, 20), np.float16)})


def _not_a_number(path):
    _rewrite(path, _header(path), {"table": np.full((36, 20), np.nan, np.float16)})


def _torch_only(path):
    import torch
    from safetensors.torch import save as torch_save

    path.write_bytes(torch_save({"table": torch.zeros(3, dtype=torch.bfloat16)}))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_cut, "is not an agent, or it is damaged"),
        (lambda path: path.write_text("Dear diary,"), "is not an agent, or it is damaged"),
        (lambda path: path.write_bytes(b""), "is not an agent, or it is damaged"),
        (_torch_only, "mine.safetensors is"),
        (lambda path: path.write_bytes(save({"a": np.zeros(2)})), "is a safetensors file, but not an agent"),
        (_other_format, r"has format 99 \(bathysphere 9.9\); this version reads format 1"),
        (_no_format, "has format None"),
        (_changed_header, "is damaged: its header is not what was saved"),
        (_changed_weights, "is damaged: its weights are not what was saved"),
        (_unknown_field, "There is no field 'config.values.wings'"),
        (_unknown_card_field, "There is no field 'card.comandd'. Did you mean 'card.command'"),
        (_missing_field, "The field 'card.seed' is missing"),
        (_misfit, "cannot be used: the saved values hold table"),
        (_not_a_number, "cannot be used. .*the weights table are not finite"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(file, damage, sentence):
    damage(file)
    with pytest.raises(BathysphereError, match=sentence):
        load_trained(file)


def test_weights_beyond_half_precision_are_refused():
    with pytest.raises(BathysphereError, match="do not fit half precision"):
        halved({"w": np.array([1e5], np.float32)})
    integers = np.array([100_000])
    assert halved({"base": integers})["base"] is integers


def test_export_refuses_other_names_running_runs_and_runs_without_checkpoint(deep_sea_run, tmp_path):
    with pytest.raises(BathysphereError, match=r"called something.safetensors"):
        export(deep_sea_run, tmp_path / "agent.pt")
    with RunDirectory.open(deep_sea_run).lock(), pytest.raises(BathysphereError, match="is being trained right now"):
        export(deep_sea_run, tmp_path / "a.safetensors")
    RunDirectory.create(tmp_path / "young", small_config())
    with pytest.raises(BathysphereError, match="has no checkpoint yet"):
        export(tmp_path / "young", tmp_path / "a.safetensors")
    with pytest.raises(BathysphereError, match="is not a run directory"):
        export(tmp_path, tmp_path / "a.safetensors")
    assert not (tmp_path / "a.safetensors").exists()


def test_results_get_on_the_card_only_if_they_are_this_agents(deep_sea_run, file, tmp_path):
    measured = tmp_path / "measured.json"
    own = evaluate(file, episodes=20).to_dict() | {"command": "bathysphere evaluate mine"}
    measured.write_text(
        json.dumps({"evaluations": [own, own | {"passes": 3, "changed": {"risk": "vote", "passes": 3}}]})
    )
    first, second = export(deep_sea_run, file, [measured]).card.results
    assert (first.value, first.low, first.high, first.n) == (
        own["win_rate"],
        own["win_rate_low"],
        own["win_rate_high"],
        20,
    )
    assert (first.command, first.what) == (
        "bathysphere evaluate mine",
        "episodes won, 10 passes a step, at most 5 steps",
    )
    assert second.what == "episodes won, 3 passes a step, at most 5 steps, risk vote"
    measured.write_text(json.dumps(evaluate(deep_sea_run, episodes=20).to_dict() | {"command": "?"}))
    with pytest.raises(BathysphereError, match="was measured with other weights"):
        export(deep_sea_run, file, [measured])
    for content in ({}, [], {"win_rate": 1.0}, {"evaluations": [3]}):
        measured.write_text(json.dumps(content))
        with pytest.raises(BathysphereError, match="is not an evaluation"):
            export(deep_sea_run, file, [measured])
    assert agent_file.read(file).card.results == (first, second)


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("deep-sea", {}),
        ("paper/deep-sea", {"seed": 3, "domain": {"size": 7}, "values": {"bias": True}, "stop": {"seconds": 2.5}}),
        ("sokoban", {"domain": {"level_file": "my levels.txt"}, "search": {"risk_coef": -0.5, "final_bonus": False}}),
        (
            "sokoban-single",
            {"values": {"hidden": [3, 4, 5]}, "search": {"num_subsampled": None, "dead_end_value": None}},
        ),
    ],
)
def test_the_command_on_the_card_gives_the_config(preset, changes):
    import shlex

    config = override(find_preset(preset), changes)
    program, verb, name, *flags = shlex.split(train_command(config))
    assert (program, verb, name) == ("bathysphere", "train", preset)
    assert read_run(_VERB, [name, *flags]).config == config


def test_a_config_that_no_flags_describe_has_no_command():
    config = override(find_preset("sokoban"), {"preset": "deep-sea"})
    assert train_command(config).startswith("bathysphere.train(config)")
    assert train_command(override(config, {"preset": "mine"})).startswith("bathysphere.train(config)")


def test_agents_are_found_by_file_run_directory_and_name(deep_sea_run, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shipped = find_agent("deep-sea")
    assert shipped.name == "deep-sea.safetensors"
    (tmp_path / "deep-sea").mkdir()
    assert find_agent("deep-sea") == shipped  # a folder that is no run hides nothing
    RunDirectory.create(tmp_path / "deep-sea", small_config())
    assert str(find_agent("deep-sea")) == "deep-sea"
    assert find_agent(file) == file
    assert find_agent(deep_sea_run) == deep_sea_run
    (tmp_path / "folder").mkdir()
    with pytest.raises(BathysphereError, match="folder is not a run directory"):
        find_agent("folder")
    with pytest.raises(BathysphereError, match=r"There is no agent 'deep-see'.* Did you mean 'deep-sea'"):
        find_agent("deep-see")
