"""How fast runs in blocks are, for each way of playing them, measured in turns.

python benchmarks/scale.py sokoban --steps 6000 --repeats 3
python benchmarks/scale.py deep-sea --ways here two

Each way makes the same run; a turn is one run with each of them. Measured are the last four fifths of the steps, for
by then all processes have started and compiled. The machine should have nothing else to do: for a machine that has, the
processor time that this process and its children used is printed too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from bathysphere.config.convert import override
from bathysphere.config.presets import find_preset
from bathysphere.learning.progress import Progress
from bathysphere.planning import Episode
from bathysphere.runs.runner import run
from bathysphere.runs.workers import Workers

STARTING = 0.2  # share of a run's steps that is not measured
WAYS = {
    "loop": None,
    "here": None,
    "one": Workers(1),
    "two": Workers(2),
    "ray-one": Workers(1, "local"),
    "ray-two": Workers(2, "local"),
}
PRESETS = {
    "sokoban": ("sokoban", 12_000, {}),
    # Without updates: what planning alone gains.
    "deep-sea": ("paper/deep-sea", 4_000_000, {"learning": {"min_episodes": 10**9}, "stop": {"on_solved": False}}),
    "toy-montezuma": ("toy-montezuma", 400_000, {"learning": {"min_episodes": 10**9}, "stop": {"on_solved": False}}),
}


def measure(name: str, way: str, steps: int | None, block: int | None) -> tuple[float, float, float]:
    """Returns steps per second, and microseconds of processor time per step here and in children."""
    preset, usual, changes = PRESETS[name]
    config = override(find_preset(preset), {"steps": steps or usual, "log_every": 10**9, **changes})
    if way != "loop":
        config = override(config, {"scale": {"block": block or config.batch // 4}})
    moments: list[tuple[float, int]] = []  # seconds and steps at each episode

    def note(episode: Episode, progress: Progress) -> None:
        moments.append((time.perf_counter(), progress.env_steps))

    before = os.times()
    with tempfile.TemporaryDirectory() as folder:
        result = run(config, Path(folder) / "run", pictures=False, workers=WAYS[way], on_episode=note)
        after = os.times()
    began, first = next(moment for moment in moments if moment[1] >= STARTING * config.steps)
    ended, last = moments[-1]
    here = after.user + after.system - before.user - before.system
    children = after.children_user + after.children_system - before.children_user - before.children_system
    return (last - first) / (ended - began), *(1e6 * t / result["env_steps"] for t in (here, children))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["loop", "here", "one", "two", "ray-one"])
    parser.add_argument("--steps", type=int)
    parser.add_argument("--block", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    speeds: dict[str, list[float]] = {way: [] for way in options.ways}
    for _ in range(options.repeats):
        for way in options.ways:
            speed, here, children = measure(options.preset, way, options.steps, options.block)
            speeds[way].append(speed)
            print(
                f"{way:8} {speed:10,.0f} steps/s; processor microseconds per step: {here:.1f} here, "
                f"{children:.1f} in processes that ended",
                flush=True,
            )
    median = {way: statistics.median(found) for way, found in speeds.items()}
    base = median[options.ways[0]]
    print("median: " + ", ".join(f"{way} {speed:,.0f} ({speed / base:.2f})" for way, speed in median.items()))


if __name__ == "__main__":
    main()
