"""Measures how much slower a training is while it is watched in the studio.

    python -m benchmarks.studio_slowdown --preset sokoban

The same training, step for step, is made again and again in one process. In turns, a browser on the same machine has
the page of runs open with its curve, or an empty page. Each watched time is compared with the mean of the times before
and after it. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import stdtrit
from tests.studio.browser import open_browser, watched_page
from tests.studio.conftest import start_server, stop_server

from bathysphere.config.convert import override
from bathysphere.config.presets import find_preset
from bathysphere.runs.runner import run
from bathysphere.storage.versions import describe_machine

TRAININGS: dict[str, dict[str, Any]] = {  # of some seconds
    "deep-sea": {"steps": 300_000},
    "sokoban": {"steps": 3_000, "batch": 16, "log_every": 64, "start_from": "sokoban"},
}


def train(preset: str, folder: Path) -> None:
    """Trains once for every line on stdin, into the run that it names; prints seconds and processor seconds."""
    config = override(find_preset(preset), TRAININGS[preset])
    for line in sys.stdin:
        wall, processor = time.perf_counter(), time.process_time()
        run(config, folder / line.strip(), pictures=False)
        print(json.dumps([time.perf_counter() - wall, time.process_time() - processor]), flush=True)


def measure(preset: str, turns: int) -> list[list[float]]:
    """Returns seconds and processor seconds of every training; those with an odd number are watched."""
    taken = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        server, url = start_server(folder)
        command = [sys.executable, "-m", "benchmarks.studio_slowdown", "--preset", preset, "--folder", temporary]
        trainer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert trainer.stdin is not None
        assert trainer.stdout is not None
        with open_browser(shutil.which("chromium") or "chromium") as browser, watched_page(browser) as (page, _):
            page.goto(url)  # compiled, and in the browser's cache
            for number in range(-1, 2 * turns + 1):  # the first one does not count: it compiles
                page.goto(url if number % 2 and number > 0 else "about:blank")
                if number % 2 and number > 0:
                    page.get_by_label(
                        "compare training", exact=True
                    ).wait_for()  # the one before: its name stays ticked
                page.wait_for_timeout(1000)
                shutil.rmtree(folder / "training", ignore_errors=True)
                trainer.stdin.write("training\n")
                trainer.stdin.flush()
                taken.append(json.loads(trainer.stdout.readline()))
        trainer.stdin.close()
        trainer.wait()
        stop_server(server)
    return taken[1:]


def slowdown(seconds: list[float]) -> dict[str, Any]:
    """Compares every second time with its neighbours: the mean slowdown, its 95% interval, and all of them."""
    alone = np.array(seconds[::2])
    more = np.array(seconds[1::2]) / ((alone[1:] + alone[:-1]) / 2) - 1
    spread = float(stdtrit(len(more) - 1, 0.975) * more.std(ddof=1) / np.sqrt(len(more)))
    mean = float(more.mean())
    return {"mean": mean, "low": mean - spread, "high": mean + spread, "all": more.round(4).tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=TRAININGS, default="sokoban")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        train(options.preset, options.folder)
        return
    taken = measure(options.preset, options.turns)
    told = {
        "machine": describe_machine(),
        "preset": options.preset,
        "seconds_alone": float(np.median([wall for wall, _ in taken[::2]])),
        "slowdown": slowdown([wall for wall, _ in taken]),
        "slowdown_by_processor_time": slowdown([processor for _, processor in taken]),
    }
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
