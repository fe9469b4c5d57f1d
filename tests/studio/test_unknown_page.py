"""The page of what an agent does not know, in a real browser."""

from playwright.sync_api import expect

from tests.studio.browser import violations


def test_maps_over_training_and_now(page, server):
    page.goto(f"{server}/unknown?agent=sea-0")
    moment = page.get_by_label("Moment")
    expect(moment).to_be_enabled()
    last = moment.get_attribute("aria-valuetext")
    moment.fill("0")
    expect(moment).to_have_attribute("aria-valuetext", "step 0")
    assert last != "step 0"
    moment.press("ArrowRight")
    expect(moment).not_to_have_attribute("aria-valuetext", "step 0")
    expect(page.locator(".tiles figure").first).to_contain_text("std")
    expect(page.locator(".tiles figure")).to_have_count(12)
    page.get_by_role("button", name="Copy numbers").first.click()
    expect(page.get_by_text("Copied as comma-separated text.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith("steps,row,column,value")
    assert violations(page) == []


def test_other_agents_and_bad_seeds(page, server):
    page.goto(f"{server}/unknown?agent=sea-1")
    expect(page.get_by_label("Moment")).to_be_enabled()
    page.get_by_label("Agent").select_option("shipped:deep-sea")
    expect(page.get_by_label("Moment")).not_to_be_visible()
    expect(page.get_by_text("What it is worth")).to_be_visible()
    page.get_by_label("Seed of the start").fill("-1")
    page.get_by_role("button", name="New start").click()
    expect(page.get_by_text("expected a whole number from 0")).to_be_visible()
    page.goto(f"{server}/unknown?agent=nothing")
    expect(page.get_by_text("is no longer in")).to_be_visible()
