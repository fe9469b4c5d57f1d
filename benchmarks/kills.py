"""Ends runs with SIGKILL at random moments, resumes them, and compares them with runs that nothing happened to.

python benchmarks/kills.py [--kills 200] [--runs deep-sea,sokoban] [--seed 0]

Every run of benchmarks/hostile_files.py (a family of presets each) saves a checkpoint every 20 ms, so that many kills
come while it saves. It is killed and resumed until it ends; then weights, state and metrics must be those of the
uninterrupted run, bit for bit. Workers on Ray are killed by benchmarks/scale_kills.py.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

from benchmarks.hostile_files import RUNS
from benchmarks.scale_kills import end_of

import bathysphere

SAVE_SECONDS = 0.02


def play(name: str, run_dir: Path, save_seconds: float) -> None:
    """Begins a run, or continues it if it has begun."""
    preset, settings = RUNS[name]
    if (run_dir / "config.json").exists():
        bathysphere.resume(run_dir, pictures=False)
        return
    shutil.rmtree(run_dir, ignore_errors=True)  # what a process left that was killed before it could begin
    saves = {"checkpoint": {"seconds": save_seconds}, "log_every": 50}
    bathysphere.train(preset, run_dir=run_dir, pictures=False, **settings, **saves)  # type: ignore[arg-type]


def forked(work: Callable[[], None], kill_after: float | None) -> int:
    """Does something in a process of its own, which is killed after so many seconds; returns how it ended."""
    if (child := os.fork()) == 0:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            try:
                work()
            except BaseException:
                os._exit(1)
        os._exit(0)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_same(one: Path, other: Path) -> bool:
    """Tells whether two runs ended in the same place, bit for bit, along the same metrics."""
    (arrays, rows), (expected, expected_rows) = end_of(one), end_of(other)
    same = rows == expected_rows and arrays.keys() == expected.keys()
    return same and all(arrays[name].tobytes() == expected[name].tobytes() for name in expected)


def torment(name: str, folder: Path, kills: int, rng: random.Random) -> tuple[int, int, int]:
    """Kills runs of one family; returns the kills, the runs that were brought to their end, and those that differ."""
    whole = folder / f"{name}-whole"
    if forked(lambda: play(name, folder / f"{name}-warm", 1e9), None) != 0:  # compiles what is needed
        raise SystemExit(f"{name} does not come to its end even without kills.")
    began = time.monotonic()
    forked(lambda: play(name, whole, 1e9), None)
    longest = time.monotonic() - began
    made, ended, different = 0, 0, 0
    while made < kills:
        run_dir, code = folder / f"{name}-{ended}", -signal.SIGKILL
        while code != 0:
            code = forked(partial(play, name, run_dir, SAVE_SECONDS), rng.uniform(0, longest) if made < kills else None)
            made += code == -signal.SIGKILL
            if code > 0:
                print(f"{name}: a resumed run failed", flush=True)
                different += 1
                break
        else:
            different += not is_same(run_dir, whole)
        ended += 1
        shutil.rmtree(run_dir, ignore_errors=True)
    return made, ended, different


def main() -> int:
    """Kills runs of every family and prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--runs", default=",".join(RUNS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, names, total = random.Random(options.seed), options.runs.split(","), 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            made, ended, different = torment(name, Path(folder), -(-options.kills // len(names)), rng)
        print(f"{name}: {made} kills, {ended} runs, {different} different", flush=True)
        total += different
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
