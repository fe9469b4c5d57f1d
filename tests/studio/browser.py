"""Driving a browser: what tests and the tool that takes the screenshots share."""

from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import axe_playwright_python
from playwright.sync_api import expect, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
TIMEOUT = 60_000  # milliseconds: the first plan may compile
expect.set_options(timeout=TIMEOUT)


@contextmanager
def open_browser(chromium: str):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def watched_page(browser, *, width: int = 1280, height: int = 800, theme: str = "light"):
    """Opens a page that can reach this machine only; yields it and the list of what goes wrong in it."""
    problems: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    context.grant_permissions(["clipboard-read", "clipboard-write"])

    def pass_on(route):
        if urlsplit(route.request.url).hostname in ("localhost", "127.0.0.1"):
            route.continue_()
        else:
            problems.append(f"asked for {route.request.url}")
            route.abort()

    context.route("**/*", pass_on)
    page = context.new_page()
    page.set_default_timeout(TIMEOUT)
    page.on("console", lambda message: message.type == "error" and problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page, problems
    context.close()


def violations(page) -> list[str]:
    """Returns the serious violations of accessibility that axe-core finds."""
    if not page.evaluate("() => typeof axe !== 'undefined'"):
        page.evaluate(AXE)
    found = page.evaluate("() => axe.run()")["violations"]
    return [
        f"{each['impact']} {each['id']}: {[node['html'][:200] for node in each['nodes'][:3]]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
