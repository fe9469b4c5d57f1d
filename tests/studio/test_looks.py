"""Every page on a laptop and on a phone, light and dark: readable, no wider than the screen, accessible, no errors."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.studio.browser import violations, watched_page
from tests.studio.test_runs_page import compare

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def study(folder):
    path = folder / "study of looks"
    shutil.copytree(RESULTS / "deep-sea", path)
    yield path
    shutil.rmtree(path)


def show(page, server, name):
    """Opens a page and waits until it shows what it is for."""
    agent = "shipped:sokoban-10x10"
    if name == "runs":
        page.goto(server)
        compare(page, "sea-0", "sea-1", "neutral")
        page.get_by_role("button", name="sea-0", exact=True).click()
        expect(page.get_by_role("row", name="search.risk_coef")).to_be_visible()
        expect(page.locator(".chart svg")).to_contain_text("100%")
        page.get_by_role("button", name="Start a run").click()
    elif name == "watch":
        page.goto(f"{server}/watch?agent={agent}&seed=1")
        expect(page.get_by_text("It chooses")).to_be_visible()
        page.get_by_text("Sokoban levels: paste").click()
        expect(page.locator(".mark.chosen")).to_have_count(1)
    elif name == "search":
        page.goto(f"{server}/search?agent={agent}")
        expect(page.get_by_text(re.compile(r"^\d+ states"))).to_be_visible()
        expect(page.get_by_role("heading", name="State 0 (now)")).to_be_visible()
    elif name == "unknown":
        page.goto(f"{server}/unknown?agent=sea-0")
        expect(page.get_by_label("Moment")).to_be_enabled()
        expect(page.locator(".tiles figure").last).to_be_visible()
    else:
        page.goto(f"{server}/studies")
        expect(page.locator("img.figure").first).to_be_attached()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize("name", ["runs", "watch", "search", "unknown", "studies"])
def test_a_page_can_be_read(browser, server, study, name, width, height, theme):
    with watched_page(browser, width=width, height=height, theme=theme) as (page, problems):
        show(page, server, name)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        colours = page.evaluate(r"getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number)")
        assert (sum(colours) < 150) == (theme == "dark")
        assert violations(page) == []
        assert not problems, problems


CONTROLS = """() => {
  const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary")];
  window.wanted = all.filter((e) => e.checkVisibility() && !e.disabled);
  return window.wanted.map((e) => e.outerHTML.slice(0, 120));
}"""


@pytest.mark.parametrize("name", ["runs", "watch", "search", "unknown", "studies"])
def test_everything_can_be_reached_with_the_tab_key(browser, server, study, name):
    with watched_page(browser) as (page, problems):
        show(page, server, name)
        left = dict(enumerate(page.evaluate(CONTROLS)))
        page.evaluate("document.activeElement.blur()")
        for _ in range(2 * len(left) + 20):
            page.keyboard.press("Tab")
            left.pop(page.evaluate("window.wanted.indexOf(document.activeElement)"), None)
            if not left:
                break
        assert not left
        assert not problems, problems
