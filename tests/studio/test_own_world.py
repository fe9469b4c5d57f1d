"""A world of the user's own in the studio: one state at a time, named by its import path, swept, watched, searched."""

import os
import re
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.studio.browser import violations, watched_page
from tests.studio.conftest import start_server, stop_server

WORLD = '''
import threading


class Stairs:
    """Climb to the seventh stair; a state is the stair. It knows one thread only, as many simulators do."""

    actions = ("down", "up")
    max_steps = 12
    thread = None

    def stay(self):
        Stairs.thread = Stairs.thread or threading.get_ident()
        assert Stairs.thread == threading.get_ident(), "called from another thread"

    def start(self, rng):
        return 0

    def step(self, stair, action):
        self.stay()
        stair = max(0, stair + (1 if action == "up" else -1))
        return stair, float(stair == 7), stair == 7

    def text(self, stair):
        self.stay()
        return f"stair {stair}"
'''

PATIENCE = 300_000  # milliseconds: two processes have to start, and perhaps to compile
GATED = """
import time
from pathlib import Path

from stairs import Stairs


class Gated(Stairs):
    # When one run of the sweep has finished, the next one waits for a file.
    def step(self, stair, action):
        while list(Path("runs/live").glob("runs/*/*/result.json")) and not Path("go").exists():
            time.sleep(0.01)
        return super().step(stair, action)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the world's file, and in it the runs and a sweep."""
    path = tmp_path_factory.mktemp("own")
    (path / "stairs.py").write_text(WORLD)
    (path / "gated.py").write_text(GATED)
    for words in (
        "train stairs:Stairs --steps 300 --no-pictures --json --run-dir runs/climb",
        "train stairs:Stairs --planner replan --model memory --steps 20 --no-pictures --json --run-dir runs/unsure",
        "train gymnasium:FrozenLake-v1 --steps 100 --no-pictures --json --run-dir runs/lake",
        "sweep stairs:Stairs --vary search.risk_coef=0,2 --seeds 1 --steps 200 --out runs/sweep --jobs 1",
    ):
        subprocess.run([sys.executable, "-m", "bathysphere", *words.split()], cwd=path, check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def own_server(place):
    """The URL of a studio that was opened where the world is."""
    before = os.getcwd()
    os.chdir(place)
    try:
        process, url = start_server(place / "runs")
    finally:
        os.chdir(before)
    yield url.rstrip("/")
    said = stop_server(process)
    assert "Traceback" not in said, said


@pytest.fixture
def own_page(browser, own_server):
    with watched_page(browser) as (opened, problems):
        yield opened
        assert not problems, problems


def test_it_is_watched_and_searched(own_page, own_server):
    own_page.goto(f"{own_server}/watch?agent=climb")
    status = own_page.get_by_role("status").first
    expect(status).to_contain_text("Step 0 of 12")
    expect(own_page.get_by_text("It chooses")).to_be_visible()
    expect(own_page.locator("p.line")).to_contain_text("It expects: up")
    expect(own_page.locator(".strip img").first).to_be_visible()
    own_page.locator("h1").click()
    own_page.keyboard.press("ArrowUp")
    expect(status).to_contain_text("last up")
    expect(own_page.get_by_text(re.compile("You chose up"))).to_be_visible()
    assert own_page.locator("img.board").evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    own_page.get_by_role("link", name="Inside the search").click()
    expect(own_page.get_by_role("heading", name="State")).to_be_visible()
    expect(own_page.locator("img.board.small")).to_have_attribute("alt", "stair 1")
    expect(own_page.get_by_text(re.compile(r"^\d+ states"))).to_be_visible()
    assert violations(own_page) == []


def test_a_world_with_chance_is_watched_and_searched(own_page, own_server):
    own_page.goto(f"{own_server}/watch?agent=lake")
    expect(own_page.get_by_text("It chooses")).to_be_visible()
    expect(own_page.locator("p.line")).to_contain_text("chance permitting")
    expect(own_page.get_by_role("button", name="0", exact=True)).to_contain_text("±")  # worth, for lack of places
    expect(own_page.get_by_label("Values on the board")).not_to_be_visible()
    assert violations(own_page) == []
    own_page.get_by_role("button", name="Step", exact=True).click()
    expect(own_page.get_by_role("status").first).to_contain_text("Step 1 of 100")
    own_page.get_by_role("link", name="Inside the search").click()
    expect(own_page.get_by_role("button", name=re.compile(r"→ .* \(33%\)")).first).to_be_visible()
    slider = own_page.get_by_label("Passes made")
    expect(slider).to_be_enabled()
    slider.press("Home")
    expect(own_page.get_by_text("Passes made 1", exact=True)).to_be_visible()


def test_plans_into_what_a_model_does_not_know_say_so(own_page, own_server):
    own_page.goto(f"{own_server}/watch?agent=unsure")
    expect(
        own_page.get_by_text(re.compile(r"\d+ steps? (is|are) planned, to what its model does not know"))
    ).to_be_visible()
    expect(own_page.locator("p.line")).to_contain_text("to what its model does not know.")
    expect(own_page.get_by_label("The actions and their numbers")).not_to_be_visible()
    own_page.get_by_role("link", name="Inside the search").click()
    expect(own_page.get_by_text("Open list", exact=True)).to_be_visible()
    marks = own_page.locator(".chart.graph svg text").filter(has_text="?")
    expect(marks.first).to_be_attached()
    own_page.get_by_role("button", name=re.compile("^up → ")).click()
    expect(own_page.get_by_text("Its model does not know what comes here")).to_be_visible()
    assert violations(own_page) == []


def test_its_most_disputed_states_are_shown(own_page, own_server):
    own_page.goto(f"{own_server}/unknown?agent=climb")
    expect(own_page.locator(".tiles figure").first).to_contain_text("std")
    expect(own_page.locator(".tiles img").first).to_have_attribute("alt", re.compile(r"stair \d"))
    expect(own_page.get_by_text("Over training")).not_to_be_visible()
    own_page.get_by_role("button", name="Copy numbers").last.click()
    expect(own_page.get_by_text("Copied as comma-separated text.")).to_be_visible()
    assert own_page.evaluate("navigator.clipboard.readText()").startswith("state,mean,std,members\n")


def test_a_sweep_is_a_study_and_its_runs_are_runs(own_page, own_server):
    own_page.goto(f"{own_server}/studies")
    expect(own_page.get_by_role("heading", name="sweep of stairs")).to_be_visible()
    expect(own_page.get_by_text("2 of 2 runs have finished.")).to_be_visible()
    expect(own_page.get_by_role("row", name="runs solved risk_coef = 2")).to_contain_text("%")
    image = own_page.locator("img.figure").first
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300
    own_page.get_by_role("link", name="Its runs").click()
    run = own_page.get_by_role("button", name="sweep/runs/risk_coef=2/seed0")
    expect(run).to_be_visible()
    expect(own_page.get_by_role("button", name="climb", exact=True)).to_have_count(0)
    run.click()
    own_page.get_by_role("link", name="Watch it").click()
    expect(own_page.get_by_text("It chooses")).to_be_visible()


def test_a_study_is_watched_while_it_runs(own_page, own_server, place):
    own_page.goto(f"{own_server}/studies")
    expect(own_page.get_by_role("heading", name="sweep of stairs")).to_be_visible()
    words = "sweep gated:Gated --vary search.risk_coef=0,2 --seeds 1 --steps 200 --out runs/live --jobs 1"
    command = [sys.executable, "-m", "bathysphere", *words.split()]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=place, **quiet) as study:
        try:
            card = own_page.locator(".card").filter(has_text="sweep of gated")
            expect(card).to_contain_text("1 of 2 runs have finished, 1 is running.", timeout=PATIENCE)
        finally:
            (place / "go").touch()
    assert study.returncode == 0
    expect(card).to_contain_text("2 of 2 runs have finished.", timeout=PATIENCE)
    expect(card.get_by_role("row", name="runs solved risk_coef = 2")).to_contain_text("%")
