"""A real studio in a process of its own, and a real browser that sees nothing but this machine."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.studio.browser import open_browser, watched_page

MISSING = "needs Chromium: install it (Debian: apt-get install chromium), or name it in CHROMIUM"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder of small runs; tests may add to it."""
    from bathysphere.runs.runner import run
    from tests.runs.small import small_config

    path = tmp_path_factory.mktemp("studio") / "runs"
    for seed in (0, 1):
        run(small_config(seed=seed), path / f"sea-{seed}", pictures=False)
    run(small_config(search={"risk_coef": 0.0}), path / "neutral", pictures=False)
    return path


def start_server(folder: Path, *options: str) -> tuple[subprocess.Popen, str]:
    """Starts `bathysphere studio`, and returns its process and URL."""
    command = [sys.executable, "-m", "bathysphere", "studio", str(folder), "--port", "0", "--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    if not line:
        raise AssertionError(process.communicate()[1])
    return process, json.loads(line)["url"]


def stop_server(process: subprocess.Popen) -> str:
    """Ends a studio as Ctrl-C does; returns what it wrote on stderr."""
    process.terminate()
    return process.communicate(timeout=30)[1]


@pytest.fixture(scope="session")
def server(folder):
    """The URL of a studio, without slash at the end."""
    process, url = start_server(folder)
    yield url.rstrip("/")
    said = stop_server(process)
    assert "Traceback" not in said, said


@pytest.fixture(scope="session")
def browser():
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail(f"The studio's tests {MISSING}.")
        pytest.skip(MISSING)
    with open_browser(chromium) as opened:
        yield opened


@pytest.fixture
def page(browser, server):
    """A fresh page. Its test fails if the console showed an error or anything but the studio was asked for."""
    with watched_page(browser) as (opened, problems):
        yield opened
        assert not problems, problems
    assert urlsplit(server).hostname == "localhost"
