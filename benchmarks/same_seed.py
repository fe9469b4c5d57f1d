"""Runs the same seed under other circumstances, and compares every run with the first, bit for bit.

python benchmarks/same_seed.py [--runs deep-sea,sokoban] [--out FILE.json]

Every run of benchmarks/hostile_files.py (a family of presets each) is trained in a process of its own: twice as it is,
with another PYTHONHASHSEED, with another number of threads, and with an empty folder for compiled code, which is then
compiled anew. Runs that play in blocks are also trained with one and with two workers. Weights, state and metrics at
the end must be the same.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.hostile_files import RUNS
from benchmarks.kills import is_same

import bathysphere

CIRCUMSTANCES: dict[str, dict[str, str]] = {
    "first": {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
    "again": {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
    "other hash seed": {"PYTHONHASHSEED": "4711", "OMP_NUM_THREADS": "1"},
    "two threads": {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "2"},
    "cold caches": {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": "cold", "XDG_CACHE_HOME": "cold"},
}


def play(name: str, run_dir: Path, workers: int | None) -> None:
    """Trains one run in this process."""
    preset, settings = RUNS[name]
    bathysphere.train(preset, run_dir=run_dir, pictures=False, log_every=50, workers=workers, **settings)


def in_process(name: str, run_dir: Path, variables: dict[str, str], workers: int | None = None) -> None:
    """Trains one run in a process of its own, with other variables of the environment."""
    command = [sys.executable, "-m", "benchmarks.same_seed", "--runs", name, "--child", str(run_dir)]
    command += [] if workers is None else ["--workers", str(workers)]
    root = str(Path(__file__).parents[1])
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    environment = os.environ | {"PYTHONPATH": paths} | variables
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name} under {variables} failed:\n{done.stderr[-2000:]}")


def compare(name: str, folder: Path, cold: Path) -> dict[str, bool]:
    """Returns for every circumstance whether the run of that name ended as the first did."""
    same: dict[str, bool] = {}
    for circumstance, variables in CIRCUMSTANCES.items():
        changed = {key: str(cold / key) if value == "cold" else value for key, value in variables.items()}
        in_process(name, folder / circumstance, changed)
        same[circumstance] = is_same(folder / circumstance, folder / "first")
    if "scale" in RUNS[name][1]:
        for workers in (1, 2):
            in_process(name, folder / f"{workers} workers", CIRCUMSTANCES["first"], workers)
            same[f"{workers} workers"] = is_same(folder / f"{workers} workers", folder / "first")
    return same


def main() -> int:
    """Compares all runs and prints what is equal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default=",".join(RUNS))
    parser.add_argument("--out", type=Path, help="write what was equal to this JSON file")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        play(options.runs, options.child, options.workers)
        return 0
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.runs.split(","):
            results[name] = compare(name, Path(folder) / name, Path(folder) / "cold")
            print(name, json.dumps(results[name]), flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1))
    return int(not all(all(same.values()) for same in results.values()))


if __name__ == "__main__":
    sys.exit(main())
