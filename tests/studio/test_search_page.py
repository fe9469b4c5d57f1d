"""Pointing at the graph of a search, in a real browser."""

import re

import pytest
from playwright.sync_api import expect

NODES = ".chart.graph svg path[fill^='#'], .chart.graph svg path[fill^='rgb']"
EXTENT = f"""() => {{
  const boxes = [...document.querySelectorAll("{NODES}")].map(node => node.getBoundingClientRect());
  return Math.max(...boxes.map(box => box.y)) - Math.min(...boxes.map(box => box.y));
}}"""


@pytest.fixture
def graph(page, server):
    """The page of a search, with its graph drawn."""
    page.goto(f"{server}/search?agent=sea-0")
    expect(page.locator(NODES).nth(3)).to_be_attached()
    expect(page.get_by_text(re.compile(r"^\d+ states"))).to_be_visible()
    return page


def test_a_state_that_is_pointed_at_shows_its_board(graph):
    graph.locator(NODES).last.hover(force=True)
    board = graph.locator(".chart.graph img")
    expect(board).to_be_visible()
    assert board.evaluate("image => image.decode().then(() => image.naturalWidth)") > 50
    told = board.locator("xpath=..").inner_text()
    number = re.search(r"/picture/[^/]+/(\d+)\?", board.get_attribute("src"))[1]
    assert re.search(rf"{number}: value \S+, std \S+, visits \d+", told)


def test_the_wheel_zooms_in_and_out(graph):
    graph.locator(".chart.graph").hover()
    before = graph.evaluate(EXTENT)
    graph.mouse.wheel(0, -300)
    graph.wait_for_function(f"({EXTENT})() > {before} * 1.05")
    larger = graph.evaluate(EXTENT)
    graph.mouse.wheel(0, 300)
    graph.wait_for_function(f"({EXTENT})() < {larger} * 0.96")
