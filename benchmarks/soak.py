"""Trains three presets for an hour, side by side, and says whether memory, speed and files stay as they are.

python benchmarks/soak.py [--minutes 60] [--presets paper/deep-sea,toy-montezuma,sokoban] [--out SAMPLES.jsonl]

Once a minute each run is asked for its memory, its processor time, its steps and the bytes in its directory. Speed is
steps of episodes in a second of processor time, so that other work on the machine does not count, nor what searches
imagine (the more an agent knows, the less). Samples count from the first update on, for a run that only plays is faster
and smaller; the first third of the processor time since then is warming up: replays and caches fill. After it, the last
third is compared with the first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bathysphere.runs.metrics import last_row

PRESETS = "paper/deep-sea,toy-montezuma,sokoban"
# A replay for 4,000 episodes would not be full within the hour, and until then it and its checkpoints grow.
SETTINGS = {"sokoban": ["--learning.replay.capacity", "200"]}
ENDLESS = 10**12  # steps: time ends the runs
LEAST_SAMPLES = 9  # since learning began: three in each third
MORE_MEMORY = 1.10  # of the last third against the first: allowed
LESS_SPEED = 0.80
MORE_BYTES = 1.10  # besides the rows of the metrics, which are one every `log_every` steps
ROWS = ("metrics.jsonl", "tensorboard")


def start(preset: str, folder: Path, seconds: float, seed: int) -> tuple[subprocess.Popen[bytes], Path]:
    """Begins a run; returns its process and its directory."""
    run_dir = folder / preset.replace("/", "-")
    words = [
        preset,
        "--log-every",
        "200",
        "--steps",
        str(ENDLESS),
        "--stop.seconds",
        str(seconds),
        "--seed",
        str(seed),
        "--no-pictures",
        *SETTINGS.get(preset, []),
    ]
    command = [sys.executable, "-m", "bathysphere", "train", *words, "--run-dir", str(run_dir), "--json"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL), run_dir


def sample(pid: int, run_dir: Path) -> dict[str, Any]:
    """Returns what a run takes and has done at this moment; nothing if it has ended."""
    try:
        _, pages, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_text().split())
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, IndexError):
        return {}
    row = last_row(run_dir / "metrics.jsonl")
    if not pages or row is None:
        return {}
    rows = sum(size_of(run_dir / name) for name in ROWS)
    return {
        "processor": (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"),
        "resident": pages * os.sysconf("SC_PAGE_SIZE"),
        "own": (pages - shared) * os.sysconf("SC_PAGE_SIZE"),  # without files that are mapped
        "env_steps": row["env_steps"],
        "imagined_steps": row["imagined_steps"],
        "updates": row["updates"],
        "replay": row["replay_solved"] + row["replay_unsolved"],
        "rows": rows,
        "files": size_of(run_dir) - rows,
    }


def size_of(path: Path) -> int:
    """Returns the bytes of a file, or of all files in a folder."""
    total = 0
    for file in [path, *path.rglob("*")]:
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:  # a checkpoint that was just replaced
            continue
    return total


def verdict(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Compares the last third of the samples with the first, after a third of warming up, all since learning began."""
    learning = [one for one in samples if one["updates"]]
    if len(learning) < LEAST_SAMPLES:
        return {"samples": len(samples), "learning": len(learning), "flat": False}
    # By processor time: a busy machine makes many samples of a run that hardly goes on.
    warm = learning[_share(learning, 1 / 3) :]
    first, last = warm[: _share(warm, 1 / 3) + 1], warm[_share(warm, 2 / 3) :]
    memory = max(one["resident"] for one in last) / max(one["resident"] for one in first)
    before = _speed(first)
    speed = _speed(last) / before if before else 0.0  # too few rows of metrics to tell
    # While one is saved, a run has a checkpoint more: the middle of the samples is not of such a moment.
    files = median(one["files"] for one in last) / median(one["files"] for one in first)
    return {
        "samples": len(samples),
        "learning": len(learning),
        "processor": samples[-1]["processor"],
        "updates": samples[-1]["updates"],
        "env_steps": samples[-1]["env_steps"],
        "megabytes": samples[-1]["resident"] / 1e6,
        "speed": _speed(warm),
        "row_megabytes": samples[-1]["rows"] / 1e6,
        "file_megabytes": samples[-1]["files"] / 1e6,
        "memory_ratio": memory,
        "speed_ratio": speed,
        "files_ratio": files,
        "flat": memory <= MORE_MEMORY and speed >= LESS_SPEED and files <= MORE_BYTES,
    }


def _share(samples: list[dict[str, Any]], share: float) -> int:
    """Returns which sample is the first after that share of their processor time."""
    first, last = samples[0]["processor"], samples[-1]["processor"]
    return next(i for i, one in enumerate(samples) if one["processor"] >= first + share * (last - first))


def _speed(samples: list[dict[str, Any]]) -> float:
    first, last = samples[0], samples[-1]
    return (last["env_steps"] - first["env_steps"]) / max(last["processor"] - first["processor"], 1e-9)


def main() -> int:
    """Runs the presets and prints a verdict for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", default=PRESETS)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two samples")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write all samples to this file")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        presets = options.presets.split(",")
        runs = {preset: start(preset, Path(folder), options.minutes * 60, options.seed) for preset in presets}
        samples: dict[str, list[dict[str, Any]]] = {preset: [] for preset in presets}
        began = time.monotonic()
        while any(process.poll() is None for process, _ in runs.values()):
            time.sleep(options.every)
            for preset, (process, run_dir) in runs.items():
                if one := sample(process.pid, run_dir):
                    samples[preset].append(one)
                    if options.out:
                        with options.out.open("a") as out:
                            out.write(json.dumps({"preset": preset, "seconds": time.monotonic() - began, **one}) + "\n")
        for preset, (process, _) in runs.items():
            told = verdict(samples[preset]) | {"exit": process.returncode}
            failed |= process.returncode != 0 or not told["flat"]
            print(preset, json.dumps(told), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
