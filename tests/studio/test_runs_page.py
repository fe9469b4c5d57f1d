"""The page of runs in a real browser."""

import re
import shutil
import threading

from playwright.sync_api import expect

from tests.runs.small import small_config
from tests.studio.browser import violations, watched_page

PATIENCE = 120_000  # milliseconds: a training has to import PyTorch, and perhaps to compile


def row_of(page, name):
    return page.get_by_role("row", name=re.compile(f"compare {name} "))


def compare(page, *names):
    """Ticks these runs and no others."""
    expect(page.get_by_role("checkbox", checked=True, name=re.compile("^compare")).first).to_be_visible()
    for box in page.get_by_role("checkbox", name=re.compile("^compare")).all():
        box.set_checked(box.get_attribute("aria-label").removeprefix("compare ") in names)


def test_runs_are_listed_compared_and_opened(page, server):
    page.goto(server)
    row = row_of(page, "sea-0")
    expect(row).to_contain_text("deep-sea")
    expect(row).to_contain_text("finished")
    compare(page, "sea-0", "sea-1", "neutral")
    expect(page.get_by_role("row", name="search.risk_coef")).to_contain_text("0.0")
    expect(page.locator(".chart svg")).to_contain_text("100%")
    page.get_by_label("Metric").select_option("graph_size")
    expect(page.locator(".chart svg")).to_contain_text("search graph")
    page.get_by_label("Smoothing").fill("0.5")
    page.get_by_role("button", name="Copy numbers").click()
    expect(page.get_by_text("Copied as comma-separated text.")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("curve,steps,value,low,high\n")
    assert re.search(r'"deep-sea, (.*, )?search.risk_coef 10.0(, .*)?, 2 seeds",', copied)
    page.get_by_role("button", name="sea-0", exact=True).click()
    expect(page.get_by_role("link", name="Watch it")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()
    page.get_by_label("Filter").fill("neutral deep")
    expect(row_of(page, "sea-1")).to_have_count(0)
    assert violations(page) == []


def test_the_table_sorts_with_the_keyboard(page, server):
    page.goto(server)
    page.get_by_role("button", name="run", exact=True).focus()
    page.keyboard.press("Enter")
    names = page.locator("table.numbers").first.locator("tbody button.link")
    first = names.first.inner_text()
    page.keyboard.press("Enter")
    expect(names.last).to_have_text(first)


def test_a_live_training_is_followed_and_a_deleted_run_leaves(page, server, folder):
    from bathysphere.runs.runner import run

    def on_episode(episode, progress):
        if progress.env_steps > 300:
            shown.wait(60)

    shown = threading.Event()
    path = folder / "live"
    arguments = {"pictures": False, "on_episode": on_episode}
    training = threading.Thread(target=run, args=(small_config(seed=7), path), kwargs=arguments)
    page.goto(server)
    training.start()
    try:
        row = row_of(page, "live")
        expect(row).to_contain_text("running")
        expect(row).to_contain_text("300")
        page.get_by_role("button", name="live", exact=True).click()
        expect(page.get_by_role("button", name="Stop")).to_be_enabled()
    finally:
        shown.set()
        training.join()
    expect(row).to_contain_text("finished")
    shutil.rmtree(path)
    expect(row).to_have_count(0)
    expect(page.get_by_text("is no longer in").or_(page.get_by_text("is no longer there"))).to_be_visible()


def test_titles_from_files_are_shown_as_text(page, server, folder):
    path = folder / "<img src=x onerror=alert(1)>"
    shutil.copytree(folder / "sea-0", path)
    try:
        page.goto(server)
        expect(page.get_by_role("button", name="<img src=x onerror=alert(1)>")).to_be_visible()
        assert page.locator("img[src=x]").count() == 0
    finally:
        shutil.rmtree(path)


def start(page, name, options):
    page.get_by_role("button", name="Start a run").click()
    page.get_by_label("Preset or world").fill("deep-sea")
    page.get_by_label("Options").fill(options)
    page.get_by_label("Name (free to choose)").fill(name)


def test_a_run_is_started_from_the_page(page, server, folder):
    page.goto(server)
    start(page, "from-page", "--steps 300 --domain.size 4 --seed 5")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(row_of(page, "from-page")).to_contain_text("finished", timeout=PATIENCE)
    shutil.rmtree(folder / "from-page")


def test_a_run_is_stopped_and_resumed_from_the_page(page, server, folder):
    page.goto(server)
    start(page, "long", "--steps 100000000 --domain.size 5")
    page.get_by_label("Name (free to choose)").press("Enter")
    row = row_of(page, "long")
    expect(row).to_contain_text("running", timeout=PATIENCE)  # perhaps it has not made a step yet
    page.get_by_role("button", name="long", exact=True).click()
    for press, state in (("Stop", "interrupted"), ("Resume", "running"), ("Stop", "interrupted")):
        button = page.get_by_role("button", name=press, exact=True)
        expect(button).to_be_enabled(timeout=PATIENCE)
        button.click()
        expect(row).to_contain_text(state, timeout=PATIENCE)
    shutil.rmtree(folder / "long")


def test_it_can_be_read_on_a_phone_in_the_dark_and_by_two_at_once(browser, server):
    with watched_page(browser, width=390, height=844, theme="dark") as (phone, problems):
        phone.goto(server)
        expect(row_of(phone, "sea-0")).to_be_visible()
        with watched_page(browser) as (laptop, more):
            laptop.goto(server)
            laptop.get_by_label("compare neutral", exact=True).set_checked(True)
            expect(row_of(laptop, "neutral")).to_have_class(re.compile("chosen"))
            assert not more
        width = phone.evaluate("document.documentElement.scrollWidth")
        assert width <= 390
        assert violations(phone) == []
        assert not problems
