import json
import shutil

import numpy as np
import pytest

from bathysphere.errors import BathysphereError
from bathysphere.storage.checkpoint import META, STATE, WEIGHTS, CheckpointStore
from bathysphere.storage.tensors import header_fingerprint

ARRAYS = {
    "values.table": np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32),
    "values.nothing": np.zeros((0, 0)),
    "rng": np.array([2**64 - 1, 0, 2**63], np.uint64),
    "flags": np.array([True, False, True]),
    "bytes": np.arange(7, dtype=np.uint8),
    "scalar": np.array(-3, np.int64),
    "int32": np.array([[-1, 2]], np.int32),
    "uint32": np.array([2**32 - 1], np.uint32),
    "turned": np.arange(6.0).reshape(2, 3).T,
    "special": np.array([np.nan, -0.0, np.inf]),
}


@pytest.fixture
def store(tmp_path):
    return CheckpointStore(tmp_path / "checkpoints", "hash", keep=2)


def test_arrays_survive_exactly(store):
    path = store.save(ARRAYS, 12, 3.5)
    loaded = store.load()
    assert path.name == "step-000000000012"
    assert (loaded.env_steps, loaded.seconds) == (12, 3.5)
    assert loaded.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert loaded.arrays[name].dtype == array.dtype
        assert loaded.arrays[name].shape == array.shape
        assert loaded.arrays[name].tobytes() == array.tobytes()
    assert store.read_weights(path).keys() == {"values.table", "values.nothing"}


def test_no_checkpoint_is_none(store):
    assert store.load() is None


def test_the_newest_are_kept(store):
    for step in (1, 2, 30):
        store.save(ARRAYS, step, 0.0)
    assert [int(path.name[5:]) for path in store.paths()] == [2, 30]
    assert sorted(path.name for path in store.folder.iterdir()) == [path.name for path in store.paths()]
    assert store.load().env_steps == 30


def _truncate(path):
    content = (path / STATE).read_bytes()
    (path / STATE).write_bytes(content[:-3])


def _flip(name):
    def damage(path):
        content = bytearray((path / name).read_bytes())
        content[len(content) // 2] ^= 1
        (path / name).write_bytes(content)

    return damage


def _version(path):
    meta = json.loads((path / META).read_text())
    meta |= {"format": 99}
    meta["sha256"] = header_fingerprint(meta)
    (path / META).write_text(json.dumps(meta))


def _delete(name):
    return lambda path: (path / name).unlink()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_truncate, "is damaged: it has"),
        (_flip(WEIGHTS), "is damaged: its content is not what was saved"),
        (_flip(STATE), "is damaged: its content is not what was saved"),
        (_flip(META), ""),
        (_version, "this version reads format 1"),
        (_delete(META), "Cannot read"),
        (_delete(STATE), "Cannot read"),
        (lambda path: (path / META).write_text("[]"), "its meta.json was changed"),
    ],
)
def test_damage_is_refused_and_the_last_good_one_used_if_told_to(store, damage, sentence):
    store.save(ARRAYS, 1, 0.0)
    bad = store.save(ARRAYS, 2, 0.0)
    damage(bad)
    with pytest.raises(BathysphereError) as error:
        store.load()
    assert sentence in str(error.value)
    assert "Add --fallback" in str(error.value)
    assert bad.is_dir()
    assert store.load(fallback=True).env_steps == 1
    assert not bad.exists()
    assert (store.folder / f"bad-{bad.name}").is_dir()
    assert store.load().env_steps == 1


def test_every_single_flipped_byte_is_noticed(store):
    path = store.save({"values.a": np.arange(3), "b": np.arange(2)}, 1, 0.0)
    for name in (META, WEIGHTS, STATE):
        content = (path / name).read_bytes()
        for position in range(len(content)):
            changed = bytearray(content)
            changed[position] ^= 0x20
            (path / name).write_bytes(changed)
            try:
                store.load()
            except BathysphereError:
                continue
            # Space and newline between the fields of JSON mean the same.
            assert name == META
            assert json.loads(changed) == json.loads(content)
        (path / name).write_bytes(content)


def test_a_foreign_checkpoint_is_refused(store):
    store.save(ARRAYS, 1, 0.0)
    with pytest.raises(BathysphereError, match="belongs to a run with other settings"):
        CheckpointStore(store.folder, "another").load()


def test_all_damaged_is_an_error_even_with_fallback(store):
    _truncate(store.save(ARRAYS, 1, 0.0))
    with pytest.raises(BathysphereError, match=r"No checkpoint in .* is good"):
        store.load(fallback=True)


def test_leftovers_of_a_crash_are_ignored_and_removed(store):
    store.save(ARRAYS, 1, 0.0)
    shutil.copytree(store.paths()[0], store.folder / ".new-step-000000000005")
    (store.folder / ".new-step-000000000005" / META).unlink()
    shutil.copytree(store.paths()[0], store.folder / ".old-step-000000000000")
    assert store.load().env_steps == 1
    store.save(ARRAYS, 2, 0.0)
    assert [path.name for path in sorted(store.folder.iterdir())] == [path.name for path in store.paths()]


def test_saving_a_moment_again_repairs_it(store):
    path = store.save(ARRAYS, 1, 0.0)
    _truncate(path)
    store.save(ARRAYS, 1, 0.0)
    assert store.load().env_steps == 1
