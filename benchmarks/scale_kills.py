"""Kills workers and learners of a run on Ray at random moments, and compares it with a run that nothing happened to.

python benchmarks/scale_kills.py --kills 50 --seed 0
python benchmarks/scale_kills.py --world deep-sea --kills 50 --steps 1500000

A run is begun and resumed, each time on Ray with another number of workers. At random moments a
worker of it (two of three times) or the learner itself is ended with SIGKILL. The end must have the weights, the replay
and the metrics of the same run in one process, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from bathysphere.runs.metrics import TIME_COLUMNS, last_row, read_rows

FLAGS = ["--batch", "8", "--scale.block", "8", "--no-pictures"]
WORLDS = {
    "toy-montezuma": ["--domain.max-steps", "100", "--log-every", "2000"],
    "deep-sea": ["--domain.size", "30", "--log-every", "5000"],
    "sokoban": [
        *("--domain.generator.height", "7", "--domain.generator.width", "7", "--domain.generator.num-boxes", "1"),
        *("--domain.num-boards", "20", "--domain.max-steps", "40", "--search.passes", "10", "--log-every", "500"),
        *("--values.conv-layers", "1", "--values.conv-channels", "4", "--values.dense", "8"),
    ],
}
LONGEST = 8.0  # seconds between two kills


def train(*words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bathysphere", "train", *words, "--json"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def worker_of(run: Path) -> int | None:
    """Returns a process that played for the run lately, and still lives."""
    row = last_row(run / "metrics.jsonl") or {}
    pids = [int(name.rpartition(":")[2]) for name in row.get("worker_steps_per_second", {})]
    alive = [pid for pid in pids if _is_player(pid)]
    return random.choice(alive) if alive else None


def _is_player(pid: int) -> bool:
    try:
        return b"ray::" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def newest(run: Path) -> Path | None:
    return max((run / "checkpoints").glob("step-*"), default=None)


def end_of(run: Path) -> tuple[dict[str, np.ndarray], list[dict]]:
    folder = newest(run)
    assert folder is not None
    arrays = load_file(folder / "weights.safetensors") | load_file(folder / "state.safetensors")
    rows = [{k: v for k, v in row.items() if k not in TIME_COLUMNS} for row in read_rows(run / "metrics.jsonl")]
    return arrays, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world", choices=WORLDS, default="toy-montezuma")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    folder = Path(tempfile.mkdtemp())
    words = [options.world, *WORLDS[options.world], *FLAGS, "--steps", str(options.steps)]
    assert train(*words, "--run-dir", str(folder / "whole")).wait() == 0
    run = folder / "run"
    kills = {"worker": 0, "learner": 0}
    begin = [*words, "--checkpoint.seconds", "1", "--run-dir", str(run)]
    while True:
        process = train(*begin, "--ray", "--workers", str(random.randint(1, 4)))
        begin = ["--resume", str(run), "--no-pictures"]
        before = newest(run)
        while process.poll() is None:
            time.sleep(random.uniform(0.5, LONGEST))
            if sum(kills.values()) >= options.kills:
                process.wait()
            elif random.random() < 0.67:
                if (pid := worker_of(run)) is not None:
                    os.kill(pid, signal.SIGKILL)
                    kills["worker"] += 1
            elif process.poll() is None and newest(run) != before:  # it has come further than the one before
                process.kill()
                kills["learner"] += 1
                process.wait()
            print(
                json.dumps({"kills": kills, "at": (last_row(run / "metrics.jsonl") or {}).get("env_steps")}), flush=True
            )
        if process.returncode == 0:
            break
        if not (run / "config.json").exists():
            begin = [*words, "--checkpoint.seconds", "1", "--run-dir", str(run)]
    (arrays, rows), (expected, expected_rows) = end_of(run), end_of(folder / "whole")
    same = rows == expected_rows and arrays.keys() == expected.keys()
    same = same and all(arrays[name].tobytes() == expected[name].tobytes() for name in expected)
    print(f"{kills} kills; {len(rows)} rows and {len(arrays)} arrays: {'all equal' if same else 'NOT EQUAL'}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
