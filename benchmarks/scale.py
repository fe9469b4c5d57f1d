"""How fast runs in blocks are, for each way of playing them, measured in turns.

python benchmarks/scale.py sokoban --steps 6000 --repeats 3
python benchmarks/scale.py deep-sea --ways here two

Each way makes the same run; a turn is one run with each of them. Seconds are those of training after the first block
(processes have started and compiled by then). The machine should have nothing else to do: for a machine that has, the
seconds of processor time that this process and its children used are printed too.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from bathysphere.config.convert import override
from bathysphere.config.presets import find_preset
from bathysphere.runs.runner import run
from bathysphere.runs.workers import Workers

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
    "deep-sea": ("paper/deep-sea", 400_000, {"learning": {"min_episodes": 10**9}, "stop": {"on_solved": False}}),
    "toy-montezuma": ("toy-montezuma", 60_000, {"learning": {"min_episodes": 10**9}, "stop": {"on_solved": False}}),
}


def measure(name: str, way: str, steps: int | None, block: int | None) -> tuple[float, float, float]:
    """Returns steps per second, and seconds of processor time per 1000 steps here and in children."""
    preset, usual, changes = PRESETS[name]
    config = override(find_preset(preset), {"steps": steps or usual, "log_every": 10**9, **changes})
    if way != "loop":
        config = override(config, {"scale": {"block": block or config.batch // 4}})
    first: list[tuple[float, int]] = []

    def begin(episode: object, progress: object) -> None:
        if not first:
            first.append((time.perf_counter(), progress.env_steps))  # type: ignore[attr-defined]

    before = os.times()
    with tempfile.TemporaryDirectory() as folder:
        result = run(config, Path(folder) / "run", pictures=False, workers=WAYS[way], on_episode=begin)
        after, ended = os.times(), time.perf_counter()
    began, began_steps = first[0]
    steps_made = result["env_steps"] - began_steps
    here = after.user + after.system - before.user - before.system
    children = after.children_user + after.children_system - before.children_user - before.children_system
    return steps_made / (ended - began), *(1000 * t / result["env_steps"] for t in (here, children))


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
                f"{way:8} {speed:10,.0f} steps/s; processor seconds per 1000 steps: {here:.2f} here, "
                f"{children:.2f} in processes that ended",
                flush=True,
            )
    best = {way: max(found) for way, found in speeds.items()}
    base = best[options.ways[0]]
    print("best of each: " + ", ".join(f"{way} {speed:,.0f} ({speed / base:.2f})" for way, speed in best.items()))


if __name__ == "__main__":
    main()
