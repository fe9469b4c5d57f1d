"""Measures the studio: first paint with many runs and rows, what an open page costs, a step with its search.

    python -m benchmarks.studio --runs 200 --rows 10000000

Rows are written into a temporary folder (about 100 bytes each). Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.studio.browser import open_browser, watched_page
from tests.studio.conftest import start_server, stop_server

from bathysphere.agents.loading import load_agent
from bathysphere.config.convert import override
from bathysphere.config.presets import find_preset
from bathysphere.runs.runner import run
from bathysphere.storage.versions import describe_machine
from bathysphere.studio.agents import SHIPPED, Agents, agent_in, start_states
from bathysphere.studio.folder import RunsFolder
from bathysphere.studio.lines import told_lines, told_marks
from bathysphere.studio.watched import Watched

WATCHED_SECONDS = 20


def fill(folder: Path, runs: int, rows: int) -> None:
    """Makes many runs out of one, with long metrics."""
    config = override(find_preset("deep-sea"), {"domain": {"size": 5}, "steps": 200, "log_every": 100})
    run(config, folder / "run-000", pictures=False)
    row = {"episodes": 1, "win_rate_100": 0.5, "win_rate_1000": 0.5, "loss": 0.1, "env_steps_per_second": 9.0}
    lines = (json.dumps({"env_steps": 10 * i, **row}) + "\n" for i in range(rows // runs))
    content = "".join(lines)
    for number in range(runs):
        path = folder / f"run-{number:03d}"
        if number:
            shutil.copytree(folder / "run-000", path)
        (path / "metrics.jsonl").write_text(content)


def first_paint(folder: Path, runs: int) -> dict[str, float]:
    """Returns seconds until a browser shows table and curves on a fresh server, and what an open page costs."""
    process, url = start_server(folder)
    with open_browser(shutil.which("chromium") or "chromium") as browser, watched_page(browser) as (page, _):
        began = time.perf_counter()
        page.goto(url, wait_until="commit")
        page.get_by_label("compare run-000").wait_for()
        table = time.perf_counter() - began
        page.locator(".chart svg text").first.wait_for()
        curves = time.perf_counter() - began
        again = time.perf_counter()
        page.reload(wait_until="commit")
        page.get_by_label("compare run-000").wait_for()
        second = time.perf_counter() - again
        page.wait_for_timeout(3000)
        before = cpu_seconds(process.pid)
        page.wait_for_timeout(WATCHED_SECONDS * 1000)
        share = (cpu_seconds(process.pid) - before) / WATCHED_SECONDS
    memory = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    stop_server(process)
    told = {"table": table, "curves": curves, "table_again": second, "server_mb": memory / 2**20}
    return told | {"share_of_a_core_while_watching": share}


def cpu_seconds(pid: int) -> float:
    """Returns how long a process has computed."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def look_seconds(folder: Path) -> dict[str, float]:
    """Returns seconds of computing for the first look at the folder, the next one, and one curve."""
    runs, told = RunsFolder(folder), {}
    for name, look in (("first", runs.runs), ("next", runs.runs), ("curve", lambda: runs.rows("run-000"))):
        began = time.process_time()
        look()
        told[name] = time.process_time() - began
        time.sleep(1.1)  # a look serves everybody for a second
    return told


def step_seconds(agents: Agents, name: str, steps: int = 20) -> dict[str, float]:
    """Returns seconds of a step with its search and the lines it expects, once everything is compiled."""
    known = agents.load(f"{SHIPPED}{name}")
    domain, start = start_states(known, 0)
    watched = Watched(agent_in(known, domain), start)
    thought = watched.think()
    told_marks(thought.report, told_lines(thought.graph, thought.lines(), domain, "{}"))
    watched.act()
    taken = []
    for _ in range(steps):
        if watched.episode.over:
            watched.restart()
        began = time.perf_counter()
        watched.act()
        if not watched.episode.over:
            thought = watched.think()
            lines = told_lines(thought.graph, thought.lines(), domain, "{}")
            told_marks(thought.report, lines)
        taken.append(time.perf_counter() - began)
    return {"median": statistics.median(taken), "worst": max(taken)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    load_agent("deep-sea")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        fill(folder, options.runs, options.rows)
        agents = Agents(RunsFolder(folder))
        told = {
            "machine": describe_machine(),
            "runs": options.runs,
            "rows": options.rows,
            "step_seconds": {name: step_seconds(agents, name) for name in ("deep-sea", "sokoban-10x10", "sokoban")},
            "look_cpu_seconds": look_seconds(folder),
            "paint_seconds": first_paint(folder, options.runs),
        }
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
