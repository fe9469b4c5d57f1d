"""Runs in environments go on bit for bit, also after the process was killed; what was saved holds no code."""

import os
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest

import bathysphere
from bathysphere.config.convert import config_hash
from bathysphere.domains import make_domain
from bathysphere.domains.adapters.memory import Origins, TransitionMemory, Transitions
from bathysphere.domains.worlds import GymnasiumConfig
from bathysphere.runs.directory import RunDirectory
from bathysphere.storage.checkpoint import CheckpointStore

WORLD = "gymnasium:MiniGrid-DoorKey-5x5-v0"
SMALL = {
    "batch": 2,
    "search": {"passes": 3, "num_subsampled": None},
    "values": {"num_members": 3, "hidden": [8]},
    "learning": {"min_episodes": 1},
    "domain": {"max_steps": 30, "key": "snapshot"},
}


def arrays(path):
    """Everything in the newest checkpoint but times."""
    directory = RunDirectory.open(path)
    store = CheckpointStore(directory.checkpoints, config_hash(directory.load_config()), 2)
    found = store.load().arrays
    return {name: array for name, array in found.items() if not name.startswith("meter.") and "seconds" not in name}


def test_a_killed_run_goes_on_as_if_it_had_not_been(tmp_path):
    settings = SMALL | {"run_dir": str(tmp_path / "killed"), "steps": 10**6, "checkpoint": {"seconds": 0.01}}
    child = subprocess.Popen(
        [sys.executable, "-c", f"import bathysphere; bathysphere.train({WORLD!r}, **{settings!r})"]
    )
    checkpoints = tmp_path / "killed" / "checkpoints"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (checkpoints.is_dir() and list(checkpoints.glob("step-*"))):
        assert child.poll() is None, "training ended by itself"
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed" / "result.json").exists()
    steps = int(arrays(tmp_path / "killed")["progress.counts"][0]) + 100
    resumed = bathysphere.resume(tmp_path / "killed", steps=steps, pictures=False)
    whole = bathysphere.train(WORLD, run_dir=tmp_path / "whole", pictures=False, steps=steps, **SMALL)
    assert resumed["env_steps"] == whole["env_steps"] == steps
    first, second = arrays(tmp_path / "whole"), arrays(tmp_path / "killed")
    assert any(name.startswith("pool.domain0.") for name in first)
    assert first.keys() == second.keys()
    assert [name for name in first if not np.array_equal(first[name], second[name])] == []


def test_rows_of_another_process_are_reached_again_by_their_actions():
    config = GymnasiumConfig("MiniGrid-DoorKey-5x5-v0", key="snapshot")
    here, there = make_domain(config), make_domain(config)
    rng, rows = np.random.default_rng(0), here.initial(2, np.random.default_rng(1))
    for _ in range(12):
        rows = here.successors(rows).states[np.arange(2), rng.integers(7, size=2)]
    with pytest.raises(bathysphere.BathysphereError, match="How a state of MiniGrid-DoorKey-5x5-v0 was reached is not"):
        there.successors(rows)
    there.load_state_dicts([here.state_dict()])
    for one, other in zip(here.successors(rows), there.successors(rows), strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(here.render(rows[0]), there.render(rows[0]))


def test_snapshots_may_be_forgotten(monkeypatch):
    monkeypatch.setattr("bathysphere.domains.adapters.simulated._SNAPSHOT_BYTES", 1)
    monkeypatch.setattr("bathysphere.domains.adapters.memory.TRANSITION_BYTES", 1)
    domain = bathysphere.from_gymnasium(lambda: gymnasium.make("CliffWalking-v1"))
    bathysphere.check_domain(domain, np.random.default_rng(0), 60)


def test_a_world_is_asked_once_about_a_state():
    domain = bathysphere.from_gymnasium(lambda: gymnasium.make("FrozenLake-v1", is_slippery=False))
    rows = domain.initial(1, np.random.default_rng(0))
    calls = []
    step = domain._simulator.step
    domain._simulator.step = lambda action: calls.append(action) or step(action)
    first = domain.successors(rows)
    assert len(calls) == 4
    again = domain.successors(rows)
    assert len(calls) == 4
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))


def test_memory_is_bounded_and_forgets_what_is_not_used():
    memory = TransitionMemory(state_size=4, num_actions=2, capacity=10 * (2 * 12 + 400))
    steps = Transitions(np.zeros((2, 4), np.uint8), np.zeros(2), ())
    for number in range(100):
        memory.put(number.to_bytes(16, "big"), steps)
        assert memory.get((0).to_bytes(16, "big")) is steps  # used all the time
        assert len(memory) <= 20
    assert memory.get((1).to_bytes(16, "big")) is None


def test_origins_keep_whole_ways():
    def key(number):
        return number.to_bytes(16, "big")

    origins = Origins(capacity=10)
    origins.add(key(0), None, 7)
    for number in range(1, 200):
        origins.add(key(number), key(number - 1) if number < 6 else key(0), number % 3)
        assert origins.touch(key(5)) is not None or number < 5
    at, way = key(5), []
    while at is not None:
        origin = origins.touch(at)
        way.append(origin.number)
        at = origin.parent
    assert way == [2, 1, 0, 2, 1, 7]
    assert origins.touch(key(50)) is None
    assert len(origins) < 40
    copy = Origins(capacity=10)
    copy.load_state_dicts([origins.state_dict()])
    one, other = origins.state_dict(), copy.state_dict()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert all(array.dtype.kind in "ui" for array in one.values())  # numbers only


@pytest.mark.parametrize(
    ("name", "place", "number", "said"),
    [
        ("parents", 1, 2, "in circles"),
        ("parents", 0, 0, "in circles"),
        ("parents", 1, 99, "begins nowhere"),
        ("numbers", 2, -2, "begins nowhere"),
        ("num_old", (), 2, "was forgotten"),
        ("num_old", (), 9, "missing"),
    ],
)
def test_ways_that_nobody_has_gone_are_refused(name, place, number, said):
    origins = Origins()
    keys = [bytes([number]) * 16 for number in range(4)]
    for child, parent in zip(keys, [None, *keys], strict=False):
        origins.add(child, parent, 1)
    state = origins.state_dict()
    Origins().load_state_dicts([state])
    state[name][place] = number
    with pytest.raises(bathysphere.BathysphereError, match=said):
        Origins().load_state_dicts([state])


def test_two_ways_to_one_state_are_refused():
    origins = Origins()
    for key in (b"a" * 16, b"b" * 16):
        origins.add(key, None, 1)
    state = origins.state_dict()
    state["keys"][1] = state["keys"][0]
    with pytest.raises(bathysphere.BathysphereError, match="two to one"):
        Origins().load_state_dicts([state])
