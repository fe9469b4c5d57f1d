"""Runs that are deleted while somebody looks at them, and a folder that is not there yet."""

import os
import re
import shutil

import pytest
from playwright.sync_api import expect

from tests.studio.browser import watched_page
from tests.studio.conftest import start_server, stop_server


@pytest.fixture
def doomed(folder):
    """A run that its test deletes."""
    path = folder / "doomed"
    shutil.copytree(folder / "sea-0", path)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_an_episode_goes_on_without_its_run_and_a_new_start_says_why_not(page, server, doomed):
    page.goto(f"{server}/watch?agent=doomed")
    expect(page.get_by_text("It chooses")).to_be_visible()
    shutil.rmtree(doomed)
    page.get_by_role("button", name="Step", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Step 1 of 5")
    page.get_by_role("button", name="New start").click()
    expect(page.get_by_text(re.compile("doomed is no longer in"))).to_be_visible()
    page.get_by_label("Agent").select_option("sea-1")
    expect(page.get_by_role("status").first).to_contain_text("Step 0 of 5")


def test_what_was_seen_of_a_deleted_run_stays(page, server, doomed):
    page.goto(f"{server}/unknown?agent=doomed")
    expect(page.get_by_label("Moment")).to_be_enabled()
    shutil.rmtree(doomed)
    expect(page.get_by_text(re.compile("doomed is no longer in"))).to_have_count(1)
    expect(page.get_by_label("Moment")).to_be_visible()
    page.get_by_label("Agent").select_option("sea-1")
    expect(page.get_by_text(re.compile("doomed is no longer in"))).to_have_count(0)
    expect(page.get_by_label("Moment")).to_be_enabled()


def test_there_need_be_no_folder_yet(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    process, url = start_server("runs")
    try:
        with watched_page(browser) as (page, problems):
            page.goto(url)
            expect(page.get_by_text("There are no runs here yet.")).to_be_visible()
            page.goto(f"{url}studies")
            expect(page.get_by_text("There is no study in")).to_be_visible()
            page.goto(f"{url}watch")
            expect(page.get_by_text("It chooses")).to_be_visible()
            assert not os.path.exists("runs")
            page.goto(url)
            page.get_by_role("button", name="Start a run").click()
            page.get_by_label("Options").fill("--steps 300 --domain.size 4 --seed 5")
            page.get_by_label("Name (free to choose)").fill("first")
            page.get_by_role("button", name="Start", exact=True).click()
            row = page.get_by_role("row", name=re.compile("compare first "))
            expect(row).to_contain_text("finished", timeout=120_000)
            expect(page.get_by_text("There are no runs here yet.")).not_to_be_visible()
            assert not problems
    finally:
        assert "Traceback" not in stop_server(process)
