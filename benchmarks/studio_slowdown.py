"""Measures how much slower a training is while it is watched in the studio.

    python -m benchmarks.studio_slowdown --preset sokoban --page runs

One training goes on throughout. In turns a browser on the same machine has the page open or an empty one; the speed of
each watched window is compared with the mean of the windows before and after it, so that what changes slowly does not
count. Prints one JSON object.
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
from benchmarks.studio import cpu_seconds
from scipy.special import stdtrit
from tests.studio.browser import open_browser, watched_page
from tests.studio.conftest import start_server, stop_server

from bathysphere.runs.metrics import last_row
from bathysphere.storage.versions import describe_machine

LOG_EVERY = {"deep-sea": 2000, "sokoban": 64}
SETTLE_SECONDS = 1.0  # after a page was opened or left, before a window begins


def show(page: Any, url: str, kind: str) -> None:
    """Opens the page that watches the run."""
    if kind == "runs":
        page.goto(url)
        page.get_by_label("compare training").wait_for()
    else:
        page.goto(f"{url}watch?agent=training")
        page.get_by_text("It chooses").wait_for()
        page.get_by_role("button", name="Play", exact=True).click()


def window(page: Any, process: subprocess.Popen[bytes], metrics: Path, seconds: float) -> tuple[float, float]:
    """Returns the training's steps per second, by its own clock, and per second of its processor time."""
    page.wait_for_timeout(1000 * SETTLE_SECONDS)
    first, cpu, began = last_row(metrics), cpu_seconds(process.pid), time.perf_counter()
    page.wait_for_timeout(1000 * seconds)
    last, share = last_row(metrics), (cpu_seconds(process.pid) - cpu) / (time.perf_counter() - began)
    assert first is not None
    assert last is not None
    speed = (last["env_steps"] - first["env_steps"]) / (last["seconds"] - first["seconds"])
    return speed, speed / share


def slowdowns(speeds: list[float]) -> dict[str, Any]:
    """Compares every second window with its neighbours: the mean slowdown, its 95% interval, and all of them."""
    alone = np.array(speeds[::2])
    lost = 1 - np.array(speeds[1::2]) / ((alone[1:] + alone[:-1]) / 2)
    spread = float(stdtrit(len(lost) - 1, 0.975) * lost.std(ddof=1) / np.sqrt(len(lost)))
    return {
        "mean": float(lost.mean()),
        "low": float(lost.mean()) - spread,
        "high": float(lost.mean()) + spread,
        "all": lost.round(4).tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=LOG_EVERY, default="sokoban")
    parser.add_argument("--page", choices=("runs", "watch"), default="runs")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--warm-up", type=float, default=10.0, help="seconds before the first window")
    options = parser.parse_args()
    speeds: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as temporary:
        run, said = Path(temporary) / "training", Path(temporary) / "said.txt"
        command = [sys.executable, "-m", "bathysphere", "train", options.preset, "--steps", "1000000000"]
        command += ["--log-every", str(LOG_EVERY[options.preset]), "--json", "--no-pictures", "--run-dir", str(run)]
        with said.open("wb") as output:
            training = subprocess.Popen(command, stdout=output, stderr=output)
        server, url = start_server(Path(temporary))
        try:
            while last_row(run / "metrics.jsonl") is None and training.poll() is None:
                time.sleep(0.1)
            with open_browser(shutil.which("chromium") or "chromium") as browser, watched_page(browser) as (page, _):
                if options.page == "watch":
                    show(page, url, options.page)  # loaded and compiled once
                page.goto("about:blank")
                page.wait_for_timeout(1000 * options.warm_up)
                for turn in range(2 * options.turns + 1):
                    show(page, url, options.page) if turn % 2 else page.goto("about:blank")
                    speeds.append(window(page, training, run / "metrics.jsonl", options.seconds))
        finally:
            training.terminate()
            training.wait()
            stop_server(server)
        if training.returncode not in (0, 130):
            raise SystemExit(said.read_text())
    told = {
        "machine": describe_machine(),
        "preset": options.preset,
        "page": options.page,
        "steps_per_second_alone": float(np.median([speed for speed, _ in speeds[::2]])),
        "slowdown": slowdowns([speed for speed, _ in speeds]),
        "slowdown_by_processor_time": slowdowns([per_cpu for _, per_cpu in speeds]),
    }
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
