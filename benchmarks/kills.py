"""Ends runs with SIGKILL at random moments, resumes them, and compares them with runs that nothing happened to.

python benchmarks/kills.py [--kills 200] [--runs deep-sea,sokoban,study] [--seed 0]

Every run of benchmarks/hostile_files.py (a family of presets each) saves a checkpoint every 20 ms, so that many kills
come while it saves. It is killed and resumed until it ends; then weights, state and metrics must be those of the
uninterrupted run, bit for bit. Three families more: `workers` is a run in blocks with two workers, of which learner or
workers are killed; `study` a sweep, of which the program or the process of a run is killed; `model-training` the
training of a learned model. Workers on Ray are killed by benchmarks/scale_kills.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.hostile_files import RUNS
from benchmarks.scale_kills import end_of
from safetensors.numpy import load_file

import bathysphere
from bathysphere.models import session
from bathysphere.models.config import DataConfig, ModelConfig, TrainingConfig
from bathysphere.models.model_file import read_model
from bathysphere.studies.folder import StudyFolder

SAVE_SECONDS = 0.02
VARY = {"search.risk_coef": [1.0, 10.0]}
STUDY: dict[str, Any] = {"domain": {"size": 10}, "steps": 4000, "log_every": 50}
MODEL = TrainingConfig(
    model=ModelConfig(channels=8),
    data=DataConfig(height=6, width=6, max_boxes=1, boards=40, episodes=4, held_out=10),
    batch_size=64,
    updates=1000,
    report_every=200,
)
OF_THE_MOMENT = ("wall_seconds", "env_steps_per_second")  # columns of results that hold times


class Family(NamedTuple):
    """Something that can be killed and continued."""

    play: Callable[[Path, float], None]  # begins it in a directory or continues it, and saves every so many seconds
    is_same: Callable[[Path, Path], bool]  # tells whether two ended in the same place, bit for bit
    has_processes: bool = False  # of its own, which are killed too
    fails_with_them: bool = False  # and has to be called again


def play(name: str, run_dir: Path, save_seconds: float, workers: int | None = None) -> None:
    """Begins a run, or continues it if it has begun."""
    preset, settings = RUNS[name]
    if (run_dir / "config.json").exists():
        bathysphere.resume(run_dir, pictures=False, workers=workers)
        return
    shutil.rmtree(run_dir, ignore_errors=True)  # what a process left that was killed before it could begin
    saves: dict[str, Any] = {"checkpoint": {"seconds": save_seconds}, "log_every": 50}
    bathysphere.train(preset, run_dir=run_dir, pictures=False, workers=workers, **settings, **saves)


def play_study(folder: Path, save_seconds: float) -> None:
    """Begins a sweep, or goes on with it."""
    bathysphere.sweep("deep-sea", VARY, seeds=2, jobs=1, out=folder, checkpoint={"seconds": save_seconds}, **STUDY)


class _Nobody:
    def boards(self, total: int) -> Callable[[], None]:
        return lambda: None

    def progress(self, trainer: object) -> None:
        """Shows nothing."""

    def report(self, trainer: object, tally: object) -> None:
        """Shows nothing."""


def train_model(folder: Path, save_seconds: float) -> None:
    """Begins the training of a model, or continues it."""
    folder.mkdir(exist_ok=True)
    out = folder / "model.safetensors"
    session._SAVE_SECONDS = save_seconds
    session.train_model(MODEL, out, _Nobody(), resume=session.checkpoint_file(out).exists())


def is_same(one: Path, other: Path) -> bool:
    """Tells whether two runs ended in the same place, bit for bit, along the same metrics."""
    (arrays, rows), (expected, expected_rows) = end_of(one), end_of(other)
    same = rows == expected_rows and arrays.keys() == expected.keys()
    return same and all(arrays[name].tobytes() == expected[name].tobytes() for name in expected)


def is_same_study(one: Path, other: Path) -> bool:
    """Tells whether two sweeps have the same results, from runs that ended in the same places."""
    runs, expected = (
        sorted(config.parent for config in folder.rglob("runs/**/config.json")) for folder in (one, other)
    )
    records, expected_records = (
        [{k: v for k, v in record.items() if k not in OF_THE_MOMENT} for record in StudyFolder(folder).load()[1]]
        for folder in (one, other)
    )
    same = records == expected_records and len(runs) == len(expected) == len(records) > 0
    return same and all(map(is_same, runs, expected))


def is_same_model(one: Path, other: Path) -> bool:
    """Tells whether two trainings of a model left the same weights and optimiser behind."""
    (state, weights), (expected, expected_weights) = (
        (load_file(session.checkpoint_file(out)), read_model(out).weights)
        for out in (one / "model.safetensors", other / "model.safetensors")
    )
    del state["seconds"], expected["seconds"]
    pairs = ((state, expected), (weights, expected_weights))
    return all(a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a) for a, b in pairs)


FAMILIES = {name: Family(partial(play, name), is_same) for name in RUNS}
FAMILIES |= {
    "workers": Family(partial(play, "blocks", workers=2), is_same, has_processes=True),
    "study": Family(play_study, is_same_study, has_processes=True, fails_with_them=True),
    "model-training": Family(train_model, is_same_model),
}


def forked(work: Callable[[], None]) -> int:
    """Does something in a process of its own; returns its id."""
    if (child := os.fork()) == 0:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            try:
                work()
            except BaseException:
                os._exit(1)
        os._exit(0)
    return child


def ended(child: int) -> int:
    """Waits for a process; returns its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def processes_of(parent: int) -> list[int]:
    """Returns the processes that a process has started itself."""
    try:
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except OSError:  # it has just ended
        return []


def kill_one(child: int, family: Family, rng: random.Random) -> bool:
    """Kills a process or one of its own; returns whether it was one of its own."""
    others = processes_of(child) if family.has_processes else []
    is_other = bool(others) and rng.random() < 0.5
    with suppress(ProcessLookupError):  # one of its own has just ended
        os.kill(rng.choice(others) if is_other else child, signal.SIGKILL)
        return is_other
    return False


class Count(NamedTuple):
    """What became of one family."""

    kills: int
    saved: int  # of the kills: there was a checkpoint to go on from
    runs: int  # that were brought to their end
    different: int


def torment(name: str, folder: Path, kills: int, rng: random.Random) -> Count:
    """Kills runs of one family and resumes them until they end."""
    family, whole = FAMILIES[name], folder / "whole"
    family.play(folder / "warm", 1e9)  # here, so that those that are killed have all code: else most die loading it
    began = time.monotonic()
    ended(forked(partial(family.play, whole, 1e9)))
    longest = time.monotonic() - began
    made, saved, runs, different = 0, 0, 0, 0
    while made < kills:
        run_dir, code = folder / f"{runs}", -signal.SIGKILL
        while code != 0:
            child, other_killed = forked(partial(family.play, run_dir, SAVE_SECONDS)), False
            if made < kills:
                time.sleep(rng.uniform(0, longest))
                other_killed = kill_one(child, family, rng)
            code = ended(child)
            if other_killed or code == -signal.SIGKILL:
                made, saved = made + 1, saved + any(run_dir.rglob("*.safetensors"))
            if code > 0 and not (other_killed and family.fails_with_them):
                print(f"{name}: a resumed run failed", flush=True)
                different += 1
                break
        else:
            different += not family.is_same(run_dir, whole)
        runs += 1
        shutil.rmtree(run_dir, ignore_errors=True)
    return Count(made, saved, runs, different)


def main() -> int:
    """Kills runs of every family and prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--runs", default=",".join(FAMILIES))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, names, different = random.Random(options.seed), options.runs.split(","), 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            count = torment(name, Path(folder), -(-options.kills // len(names)), rng)
        print(name, json.dumps(count._asdict()), flush=True)
        different += count.different
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
