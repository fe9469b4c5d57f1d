"""A fuzzer (Hypothesis) drives the readers: whatever a file says, it is read or refused with a sentence.

benchmarks/hostile_texts.py counts seeded damage to good files; here cases are built from what the formats are made of,
and the smallest one that fails is shown. Levels have such tests in tests/domains/test_sokoban_formats.py.
"""

import json

import pytest
from benchmarks._mutations import VALUES
from hypothesis import given, settings
from hypothesis import strategies as st

from bathysphere.agents.card import Card
from bathysphere.config.convert import config_hash, from_dict, to_dict
from bathysphere.config.presets import PRESETS, find_preset
from bathysphere.config.run import RunConfig
from bathysphere.domains.toy_montezuma.maps import CHARACTERS, parse_map
from bathysphere.errors import BathysphereError
from bathysphere.runs.metrics import last_row, read_rows, sample_rows
from bathysphere.storage.checkpoint import CheckpointStore
from bathysphere.storage.files import parse_json
from bathysphere.storage.plain import flat, read_as
from bathysphere.storage.tensors import header_fingerprint

CASES = settings(max_examples=200, derandomize=True)

TILES = st.sampled_from("".join(CHARACTERS) + "@")
ROOMS = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10), st.sampled_from(VALUES)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)


@CASES
@given(ROOMS, st.data())
def test_maps(sizes, data):
    width, height, columns, rows = sizes
    picture = data.draw(
        st.lists(st.text(TILES, min_size=width * columns, max_size=width * columns), min_size=1, max_size=rows * height)
    )
    text = f"room size: {width} x {height}\nfirst room: 1, 1\n" + "\n".join(picture)
    try:
        world = parse_map(text, "text")
    except BathysphereError:
        return
    assert world.tiles.shape[1] == width * columns
    assert world.rooms()


@CASES
@given(st.text(max_size=200))
def test_maps_of_any_text(text):
    with pytest.raises(BathysphereError):
        parse_map(text, "text")


@CASES
@given(st.sampled_from(sorted(PRESETS)), st.data())
def test_configs(preset, data):
    plain = to_dict(find_preset(preset))
    field = data.draw(st.sampled_from(sorted(flat(plain)) + sorted(plain)))
    part = plain
    *sections, name = field.split(".")
    for section in sections:
        part = part[section]
    part[name] = data.draw(JSON)
    try:
        config = from_dict(plain)
    except BathysphereError:
        return
    assert isinstance(config, RunConfig)
    assert config_hash(from_dict(to_dict(config))) == config_hash(config)


@CASES
@given(JSON)
def test_anything_as_a_config_or_a_card(data):
    for kind in (RunConfig, Card):
        try:
            assert isinstance(read_as(kind, data), kind)
        except BathysphereError:
            continue


@CASES
@given(st.text(max_size=50) | st.binary(max_size=50))
def test_json(text):
    try:
        parse_json(text)
    except ValueError:
        return


@settings(max_examples=100, derandomize=True)
@given(st.lists(st.one_of(JSON.map(json.dumps), st.text(max_size=20), st.just('{"env_steps": 3}')), max_size=8))
def test_metrics(tmp_path_factory, lines):
    file = tmp_path_factory.mktemp("rows") / "metrics.jsonl"
    file.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    rows = read_rows(file)
    assert all(type(row["env_steps"]) is int for row in rows)
    assert last_row(file) is None or isinstance(last_row(file), dict)
    assert sample_rows(file, 3) is not None


@settings(max_examples=100, derandomize=True)
@given(st.sampled_from(["format", "bathysphere", "config_hash", "env_steps", "seconds", "files"]), JSON)
def test_metas(tmp_path_factory, name, value):
    path = tmp_path_factory.mktemp("checkpoints") / "step-000000000001"
    path.mkdir()
    meta = {"format": 1, "bathysphere": "1", "config_hash": "x", "env_steps": 1, "seconds": 0.0}
    meta |= {"files": {file: {"bytes": 1, "sha256": ""} for file in ("weights.safetensors", "state.safetensors")}}
    meta |= {name: value}
    (path / "meta.json").write_text(json.dumps(meta | {"sha256": header_fingerprint(meta)}))
    with pytest.raises(BathysphereError):
        CheckpointStore(path.parent, "x").load()
