"""Takes the pictures of the studio's pages into docs/pictures: `python -m tools.studio_pictures` (a minute).

It needs Chromium and the extra `dev`: the browser is driven as in the tests.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from tests.studio.browser import open_browser, watched_page
from tests.studio.conftest import start_server, stop_server

from bathysphere.config.convert import override
from bathysphere.config.presets import find_preset
from bathysphere.runs.runner import run

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"


def fill(folder: Path) -> None:
    """Trains a few small runs, and brings a study along."""
    base = override(find_preset("deep-sea"), {"domain": {"size": 20}, "steps": 40_000, "log_every": 400})
    for seed in range(3):
        run(override(base, {"seed": seed}), folder / f"kappa-10-seed{seed}", pictures=False)
        neutral = override(base, {"seed": seed, "search": {"risk_coef": 0.0}})
        run(neutral, folder / f"kappa-0-seed{seed}", pictures=False)
    run(override(find_preset("toy-montezuma-unknown"), {"steps": 6_000}), folder / "rules-unknown", pictures=False)
    shutil.copytree(ROOT / "results" / "deep-sea", folder / "study")


def take(page, name: str, cards: int, *, keep: bool = False) -> None:
    """Saves the page down to the end of one of its cards, in few colours; `keep` leaves the mouse where it is."""
    page.evaluate("scrollTo(0, 0)")
    if not keep:
        page.mouse.move(0, 0)
    page.wait_for_timeout(1500)
    box = page.locator(".card:visible").nth(cards - 1).bounding_box()
    clip = {"x": 0, "y": 0, "width": 1280, "height": box["y"] + box["height"] + 24}
    save(name, page.screenshot(full_page=True, clip=clip))


def save(name: str, screenshot: bytes) -> None:
    """Saves a screenshot in few colours."""
    picture = Image.open(io.BytesIO(screenshot)).convert("RGB")
    picture.quantize(224, dither=Image.Dither.NONE).save(PICTURES / f"studio-{name}.png", optimize=True)


def step(page, times: int) -> None:
    """Has the agent make some steps."""
    for _ in range(times):
        page.get_by_role("button", name="Step", exact=True).click()
        page.wait_for_timeout(700)


def main() -> int:
    """Takes all pictures."""
    chromium = shutil.which("chromium") or "chromium"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "runs"
        fill(folder)
        process, url = start_server(folder)
        url = url.rstrip("/")
        with open_browser(chromium) as browser, watched_page(browser) as (page, problems):
            page.goto(url)
            for number in range(3):
                page.get_by_label(f"compare kappa-10-seed{number}").set_checked(True)
                page.get_by_label(f"compare kappa-0-seed{number}").set_checked(True)
            take(page, "runs", cards=2)
            page.goto(f"{url}/watch?agent=shipped:sokoban-10x10&seed=1")
            page.get_by_text("It chooses").wait_for()
            step(page, 3)
            page.get_by_role("heading", name="What it thinks").click()
            take(page, "watch", cards=1)
            page.get_by_label("The actions and their numbers").locator("tbody tr").first.hover()
            take(page, "line", cards=1, keep=True)
            page.get_by_role("link", name="Inside the search").click()
            page.get_by_role("heading", name="State").wait_for()
            take(page, "search", cards=2)
            page.get_by_role("link", name="Watch the episode").click()
            step(page, 3)
            page.locator(".mark:not(.chosen)").first.click()
            page.wait_for_timeout(700)
            step(page, 9)
            page.get_by_label("Step shown").fill("5")
            page.get_by_label("Step shown").blur()
            page.wait_for_timeout(1500)
            save("episode", page.locator(".card").filter(has_text="The episode so far").screenshot())
            page.goto(f"{url}/watch?agent=rules-unknown")
            page.get_by_text("It chooses").wait_for()
            take(page, "plan", cards=1)
            page.goto(f"{url}/unknown?agent=shipped:sokoban-10x10")
            page.get_by_text("How far members differ").wait_for()
            page.locator("select").last.select_option("single pushes")
            take(page, "unknown", cards=1)
            page.goto(f"{url}/unknown?agent=kappa-10-seed0")
            page.get_by_label("Moment").wait_for()
            page.get_by_label("Moment").fill("6")
            take(page, "training", cards=1)
            page.goto(f"{url}/studies")
            page.locator("img.figure").first.wait_for()
            take(page, "studies", cards=1)
        stop_server(process)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
