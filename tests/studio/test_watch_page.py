"""Watching an agent and looking inside its search, in a real browser."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.cli.test_own_world import SHORT, WORLD
from tests.studio.browser import violations, watched_page

LEVEL = "#######\n#     #\n# @$. #\n#     #\n#     #\n#     #\n#######\nTitle: <b>short</b>\n"


@pytest.fixture(scope="module", autouse=True)
def _boxes(folder, sokoban_run):
    """The folder has a Sokoban agent too."""
    if not (folder / "boxes").exists():
        shutil.copytree(sokoban_run, folder / "boxes")


def step(page):
    page.get_by_role("button", name="Step", exact=True).click()


def test_an_episode_is_stepped_played_and_judged(page, server):
    page.goto(f"{server}/watch?agent=sea-0")
    status = page.get_by_role("status").first
    expect(status).to_contain_text("Step 0 of 5")
    expect(page.get_by_text("It chooses")).to_be_visible()
    step(page)
    expect(status).to_contain_text("Step 1 of 5")
    page.get_by_role("button", name="Back", exact=True).click()
    expect(status).to_contain_text("Step 0 of 5")
    page.get_by_role("button", name="action-0").click()
    expect(status).to_contain_text("Step 1 of 5")
    expect(page.get_by_text(re.compile("You chose action-0"))).to_be_visible()
    page.locator("h1").click()
    page.keyboard.press("n")
    expect(status).to_contain_text("Step 2 of 5")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(status).to_contain_text("Step 5 of 5")
    expect(page.get_by_text("The episode is over.")).to_be_visible()
    page.get_by_role("button", name="Restart").click()
    expect(status).to_contain_text("Step 0 of 5")
    page.get_by_role("button", name="Forward").click()  # the steps that were taken back are still there
    expect(status).to_contain_text("Step 1 of 5")
    page.get_by_label("Step shown").fill("4")
    expect(status).to_contain_text("Step 4 of 5")
    page.locator("h1").click()
    page.keyboard.press("b")
    expect(status).to_contain_text("Step 3 of 5")
    page.keyboard.press("f")
    expect(status).to_contain_text("Step 4 of 5")
    dot = page.get_by_label("Value and disagreement at every step").locator("path[fill^='#'], path[fill^='rgb']").nth(2)
    dot.click(force=True)
    expect(status).not_to_contain_text("Step 4 of 5")
    page.get_by_label("Step shown").fill("0")
    expect(status).to_contain_text("Step 0 of 5")
    assert page.locator("img.board").evaluate("image => image.decode().then(() => image.naturalWidth)") == 560
    assert violations(page) == []


def name_in(row):
    """The action of a row; below it may stand a note."""
    return row.locator("td").first.inner_text().split()[0]


def test_pointing_at_an_action_draws_the_line_that_is_expected_after_it(page, server):
    page.goto(f"{server}/watch?agent=boxes&seed=4")
    expect(page.get_by_text("It expects:")).to_be_visible()
    marks, line = page.locator(".mark"), page.locator(".expected.pointed polyline").last
    expect(page.locator(".mark.chosen")).to_have_count(1)
    expect(line).to_have_count(0)
    names = page.get_by_label("The actions and their numbers").locator("tbody tr")
    for place in (0, marks.count() - 1):
        names.nth(place).hover()
        expect(page.locator("p.line")).to_contain_text(f"After that step: {name_in(names.nth(place))}")
        assert len(line.get_attribute("points").split()) > 1
        expect(page.locator("img.ghost")).to_have_js_property("complete", True)
    page.locator("h1").hover()
    expect(line).to_have_count(0)
    page.get_by_role("button", name="up", exact=True).focus()
    page.get_by_role("button", name="down", exact=True).focus()
    chosen = name_in(names.first)
    page.get_by_role("button", name=chosen, exact=True).focus()
    expect(page.locator("p.line")).to_contain_text(f"After that step: {chosen}")
    page.get_by_label("Values on the board").set_checked(False)
    expect(marks).to_have_count(0)
    page.locator("h1").click()
    expect(page.get_by_text("It expects:")).to_have_count(0)
    page.get_by_label("Values on the board").set_checked(True)
    with page.expect_response(re.compile("/picture/.*/now")):  # the board follows when the next step is planned
        page.locator(".mark.chosen").click()
    expect(page.get_by_role("status").first).to_contain_text("Step 1 of")
    expect(page.get_by_text(f"You chose {chosen}, and so would the agent.")).to_be_visible()
    page.get_by_role("button", name="Copy numbers").last.click()
    expect(page.get_by_text("Copied as comma-separated text.")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert copied[0] == "step,choice,made,mean,std"
    assert len(copied) == 3
    assert violations(page) == []


def test_kappa_changes_the_choice(page, server):
    page.goto(f"{server}/watch?agent=sea-0")
    told = page.get_by_text(re.compile("It chooses"))
    expect(told).to_be_visible()
    choices = set()
    for _ in range(4):
        for kappa in ("1000", "-1000"):
            page.get_by_label("κ (weight of uncertainty)").fill(kappa)
            with page.expect_response(re.compile("/picture/")):
                page.get_by_role("button", name="Set κ").click()
            expect(page.get_by_label("κ (weight of uncertainty)")).to_have_value(kappa)
            page.wait_for_timeout(300)
            choices.add((page.get_by_role("status").first.inner_text(), told.inner_text().split(":")[0]))
        if len({choice for _, choice in choices}) > 1:
            break
        step(page)
    by_step = {}
    for status, choice in choices:
        by_step.setdefault(status, set()).add(choice)
    assert any(len(found) == 2 for found in by_step.values())
    page.get_by_label("Slide κ").fill("-2.5")
    expect(page.get_by_label("κ (weight of uncertainty)")).to_have_value("-2.5")
    for kappa in range(-4, 5):  # faster than it plans: the last one counts
        page.get_by_label("Slide κ").fill(str(kappa))
        page.wait_for_timeout(110)
    expect(page.get_by_label("κ (weight of uncertainty)")).to_have_value("4")
    page.get_by_label("κ (weight of uncertainty)").fill("much")
    page.get_by_label("κ (weight of uncertainty)").press("Enter")
    expect(page.get_by_text("expected a number")).to_be_visible()


def test_a_level_is_pasted_drawn_and_played(page, server):
    page.goto(f"{server}/watch?agent=boxes")
    expect(page.get_by_text("It chooses")).to_be_visible()
    page.get_by_text("Sokoban levels: paste").click()
    page.get_by_label("Levels as text").fill("#####\n#@ .#\n#####\n")
    page.get_by_role("button", name="Read the text").click()
    expect(page.get_by_text("0 boxes and 1 targets")).to_be_visible()
    page.get_by_label("Levels as text").fill(LEVEL)
    page.get_by_role("button", name="Read the text").click()
    page.locator("select").filter(has_text="choose one of 1").select_option("1. <b>short</b>")
    status = page.get_by_role("status").first
    box = page.get_by_role("button", name="row 3, column 4: box")
    expect(box).to_be_visible()
    page.get_by_role("button", name="floor", exact=True).click()
    box.click()
    expect(page.get_by_text("0 boxes and 1 targets").last).to_be_visible()
    page.get_by_role("button", name="box", exact=True).click()
    page.get_by_role("button", name="row 4, column 5: floor").press("Enter")
    page.get_by_role("button", name="Play the board as drawn").click()
    expect(status).to_contain_text("Step 0")
    expect(page.get_by_role("button", name="row 4, column 5: box")).to_be_visible()
    page.get_by_role("button", name="down", exact=True).click()
    expect(status).to_contain_text("last down")
    page.get_by_role("button", name="Generate one").click()
    expect(page.get_by_role("button", name=re.compile("row 8, column 8: wall"))).to_be_visible()
    page.set_input_files("input[type=file]", {"name": "x.sok", "mimeType": "text/plain", "buffer": LEVEL.encode() * 2})
    expect(page.get_by_text("2 levels read.")).to_be_visible()
    big = {"name": "x.sok", "mimeType": "text/plain", "buffer": b"#" * (2 << 20)}
    page.set_input_files("input[type=file]", big)
    expect(page.get_by_text("This file is refused")).to_be_visible()
    assert violations(page) == []


def test_the_search_grows_with_the_slider_and_states_open(page, server):
    page.goto(f"{server}/watch?agent=boxes&seed=4")
    expect(page.get_by_text("It chooses")).to_be_visible()
    page.get_by_role("link", name="Inside the search").click()
    counted = page.get_by_text(re.compile(r"^\d[\d,]* states"))
    expect(counted).to_be_visible()
    after_all = int(re.match(r"[\d,]+", counted.inner_text())[0].replace(",", ""))
    page.get_by_label("Passes made").fill("1")
    expect(counted).not_to_contain_text(f"{after_all:,} states")
    page.get_by_label("Colour states by").select_option("value")
    page.get_by_label("Open state number").fill("1")
    page.get_by_role("button", name="Open", exact=True).click()
    expect(page.get_by_role("heading", name="State 1")).to_be_visible()
    assert page.locator("img.board.small").evaluate("image => image.decode().then(() => image.naturalWidth)") == 7 * 24
    page.locator(".chart svg").first.locator("path[fill^='#'], path[fill^='rgb']").last.click(force=True)
    expect(page.get_by_role("heading", name=re.compile(r"State \d"))).to_be_visible()
    step(page)
    expect(page.get_by_text("Step 1.")).to_be_visible()
    page.get_by_role("button", name="Copy numbers").first.click()
    expect(page.get_by_text("Copied as comma-separated text.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith("state,depth,visits")
    assert violations(page) == []


def test_best_first_shows_its_open_list(page, server):
    page.goto(f"{server}/watch?agent=boxes&seed=4")
    expect(page.get_by_text("It chooses")).to_be_visible()
    page.get_by_label("Planner").select_option("best-first")
    expect(page.get_by_text(re.compile("steps are planned"))).to_be_visible()
    page.get_by_role("link", name="Inside the search").click()
    expect(page.get_by_text("Open list", exact=True)).to_be_visible()
    page.get_by_label("States expanded").fill("2")
    rows = page.get_by_label("The open list").get_by_role("row")
    expect(rows.nth(1)).to_be_visible()
    rows.nth(1).get_by_role("button").click()
    expect(page.get_by_role("heading", name=re.compile(r"State \d+"))).to_be_visible()


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("/watch?agent=nothing", "is no longer in"),
        ("/watch?agent=../../etc", "is not inside"),
        ("/watch?agent=shipped:nothing", "There is no agent"),
        ("/search?session=nothing", "no longer in memory"),
        ("/watch?agent=broken", "is damaged"),
        ("/watch?agent=strange", "cannot be used"),
        ("/watch?agent=half", "has no checkpoint"),
        ("/watch?agent=foreign", "there is no module my_lost_world here"),
    ],
)
def test_what_cannot_be_shown_says_why(page, server, folder, where, said):
    name = where.rpartition("=")[2]
    if name in ("broken", "strange", "half"):
        shutil.copytree(folder / "sea-0", folder / name)
    if name == "broken":
        (weights,) = list((folder / name).glob("checkpoints/*/weights.safetensors"))[-1:]
        weights.write_bytes(weights.read_bytes()[:-10])
    if name == "half":  # killed while it wrote its first metrics
        shutil.rmtree(folder / name / "checkpoints")
        (folder / name / "result.json").unlink()
        (folder / name / "metrics.jsonl").write_text('{"env_steps": 1')
    if name == "strange":
        config = json.loads((folder / name / "config.json").read_text())
        (folder / name / "config.json").write_text(json.dumps(config | {"of_the_future": 1}))
    if name == "foreign":
        (folder.parent / "my_lost_world.py").write_text(WORLD)
        command = [
            sys.executable,
            "-m",
            "bathysphere",
            "train",
            "my_lost_world:MyWorld",
            *SHORT,
            "--run-dir",
            "runs/foreign",
        ]
        subprocess.run(command, cwd=folder.parent, check=True, capture_output=True)
    try:
        page.goto(server + where)
        expect(page.get_by_text(said).first).to_be_visible()
        page.goto(server)
        expect(page.get_by_text("sea-0").first).to_be_visible()
    finally:
        shutil.rmtree(folder / name, ignore_errors=True)


def test_two_windows_show_one_episode(page, server, browser):
    page.goto(f"{server}/watch?agent=sea-0")
    expect(page.get_by_text("It chooses")).to_be_visible()
    session = re.search(r"session=([^&]+)", page.get_by_role("link", name="Inside the search").get_attribute("href"))[1]
    with watched_page(browser) as (other, problems):
        other.goto(f"{server}/watch?session={session}")
        expect(other.get_by_role("status").first).to_contain_text("Step 0 of 5")
        step(page)
        expect(other.get_by_role("status").first).to_contain_text("Step 1 of 5")
        step(other)
        expect(page.get_by_role("status").first).to_contain_text("Step 2 of 5")
        assert not problems
