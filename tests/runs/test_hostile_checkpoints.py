"""Checkpoints with the right fingerprints and impossible content. Kernels have no bounds checks: what reaches them must
have been checked. benchmarks/hostile_files.py tries every array of several runs; here are those that did harm, and a
few drawn at random."""

import shutil

import numpy as np
import pytest
from benchmarks.hostile_files import DAMAGES, RUNS, Case, cases_of, damage_checkpoint, damaged

import bathysphere

STATE, WEIGHTS = "state.safetensors", "weights.safetensors"
POOL = "pool.worker0."
MORE = 60


def make_run(name, folder):
    preset, settings = RUNS[name]
    return bathysphere.train(preset, run_dir=folder / name, pictures=False, **settings).path


@pytest.fixture(scope="module")
def deep_sea(tmp_path_factory):
    return make_run("deep-sea", tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def replan(tmp_path_factory):
    return make_run("replan", tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def best_first(tmp_path_factory):
    return make_run("best-first", tmp_path_factory.mktemp("runs"))


def newest(run_dir):
    return sorted((run_dir / "checkpoints").glob("step-*"))[-1]


def resumed(run_dir, case, folder):
    """Continues a copy of the run after damage to its checkpoint."""
    copy = folder / "copy"
    shutil.copytree(run_dir, copy)
    assert damage_checkpoint(newest(copy), case)
    steps = bathysphere.load_run(run_dir)["env_steps"] + MORE
    return bathysphere.resume(copy, steps=steps, pictures=False)


@pytest.mark.parametrize(
    ("array", "damage"),
    [
        ("arena.nodes.child", "a million"),
        ("arena.nodes.parent", "a million"),
        ("arena.nodes.parent", "minus one"),
        ("arena.nodes.state", "a million"),
        ("arena.members", "a million"),
        ("arena.episodes.root", "a million"),
        ("arena.episodes.step", "a million"),
        ("arena.episodes.stamp", "zeros"),
        ("arena.episodes.num_states", "minus one"),
        ("arena.episodes.num_nodes", "a million"),
        ("arena.edges.child", "a million"),
        ("arena.stats.node", "a million"),
        ("arena.stats.count", "zeros"),
        ("arena.history.state", "a million"),
        ("arena.history.action", "minus one"),
        ("arena.sums", "not a number"),
        ("arena.words", "shorter"),
        ("arena.words", "zeros"),
        ("active", "zeros"),
        ("episode", "a million"),
        ("num_started", "minus one"),
        ("calls", "minus one"),
        ("rng", "zeros"),
    ],
)
def test_an_impossible_search_is_refused(deep_sea, tmp_path, array, damage):
    with pytest.raises(bathysphere.BathysphereError, match=r"The checkpoint of step .* cannot be used"):
        resumed(deep_sea, Case(STATE, POOL + array, damage), tmp_path)


@pytest.mark.parametrize(
    ("file", "array", "damage"),
    [
        (STATE, "progress.counts", "a million"),
        (STATE, "progress.moments", "largest"),
        (STATE, "progress.averages", "not a number"),
        (STATE, "progress.recent", "shorter"),
        (STATE, "progress.returns", "not a number"),
        (STATE, "replay.unsolved.lengths", "a million"),
        (STATE, "replay.unsolved.targets", "not a number"),
        (STATE, "meter.counts", "largest"),
        (STATE, "meter.last_row", "a million"),
        (STATE, "meter.stds", "not a number"),
        (STATE, "meter.returns", "not a number"),
        (STATE, "meter.returns", "shorter"),
        (STATE, "meter.new_states", "minus one"),
        (STATE, "meter.new_states", "largest"),
        (STATE, "snapshots.maps", "shorter"),
        (STATE, "rng", "another axis"),
        (WEIGHTS, "values.table", "not a number"),
        (WEIGHTS, "values.table", "another type"),
    ],
)
def test_an_impossible_run_is_refused(deep_sea, tmp_path, file, array, damage):
    with pytest.raises(bathysphere.BathysphereError, match=r"The checkpoint of step .* cannot be used"):
        resumed(deep_sea, Case(file, array, damage), tmp_path)


@pytest.mark.parametrize(
    ("array", "damage"),
    [
        ("store.records.parent", "a million"),
        ("store.records.chain", "zeros"),
        ("store.records.slot", "a million"),
        ("store.records.heap_child", "ones"),
        ("store.records.is_open", "zeros"),
        ("store.records.priority", "not a number"),
        ("store.records.action", "a million"),
        ("store.child", "a million"),
        ("store.searches.top", "a million"),
        ("store.searches.chain", "zeros"),
        ("store.searches.num_states", "a million"),
        ("store.searches.status", "minus one"),
        ("store.pool.num_used", "a million"),
        ("store.pool.free", "ones"),
        ("store.members", "not a number"),
    ],
)
def test_an_impossible_open_list_is_refused(best_first, tmp_path, array, damage):
    with pytest.raises(bathysphere.BathysphereError, match=r"The checkpoint of step .* cannot be used"):
        resumed(best_first, Case(STATE, POOL + array, damage), tmp_path)


@pytest.mark.parametrize(
    ("array", "damage"),
    [
        ("plan_actions", "a million"),
        ("plan_length", "a million"),
        ("plan_step", "minus one"),
        ("plan_rewards", "not a number"),
        ("past_actions", "minus one"),
        ("past_rewards", "not a number"),
        ("length", "a million"),
    ],
)
def test_an_impossible_plan_is_refused(replan, tmp_path, array, damage):
    with pytest.raises(bathysphere.BathysphereError, match=r"The checkpoint of step .* cannot be used"):
        resumed(replan, Case(STATE, POOL + array, damage), tmp_path)


def test_anything_else_is_a_sentence_or_a_run_that_goes_on(deep_sea, best_first, tmp_path):
    rng, refused = np.random.default_rng(7), 0
    for run_dir in (deep_sea, best_first):
        cases = list(cases_of(newest(run_dir)))
        for number in rng.choice(len(cases), size=12, replace=False).tolist():
            folder = tmp_path / f"{run_dir.name}-{number}"
            folder.mkdir()
            try:
                resumed(run_dir, cases[number], folder)
            except bathysphere.BathysphereError:
                refused += 1
            except AssertionError:
                continue  # that damage changes nothing here
    assert refused > 6


def test_every_damage_is_one():
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    for name, damage in DAMAGES.items():
        changed = damage(array)
        assert changed.shape != array.shape or changed.dtype != array.dtype or (changed != array).any(), name


def test_a_single_number_stays_one(deep_sea):
    arrays = damaged(newest(deep_sea) / STATE, Case(STATE, "meter.last_row", "a million"))
    assert arrays["meter.last_row"].shape == ()
    assert arrays["meter.last_row"] == 1_000_000


@pytest.mark.parametrize("damage", ["minus one", "smallest", "a million"])
def test_episodes_planned_with_values_that_were_never_taken(tmp_path, damage):
    run = make_run("toy-montezuma", tmp_path)
    with pytest.raises(bathysphere.BathysphereError, match="values that were never taken"):
        resumed(run, Case(STATE, POOL + "steady.used_by", damage), tmp_path)
