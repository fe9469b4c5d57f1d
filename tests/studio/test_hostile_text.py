"""Names from files of strangers are text in the studio: nothing in them becomes markup or runs."""

import json
import shutil
from pathlib import Path

from playwright.sync_api import expect

from tests.studio.browser import watched_page
from tests.studio.conftest import start_server, stop_server

RESULTS = Path(__file__).parents[2] / "results"
HOSTILE = "<img src=x onerror=hacked=1><script>hacked=1<&#47;script>'\"`${hacked=1}`{{hacked=1}}"


def hostile_folder(good: Path, folder: Path) -> Path:
    """Makes a folder with a run and a study whose names and settings are markup."""
    run, study = folder / f"run {HOSTILE}", folder / f"study {HOSTILE}"
    shutil.copytree(good, run)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"preset": f"preset {HOSTILE}"}))
    shutil.copytree(RESULTS / "deep-sea", study)
    summary = json.loads((study / "summary.json").read_text()) | {"command": f"command {HOSTILE}"}
    (study / "summary.json").write_text(json.dumps(summary))
    return folder


def test_names_are_text(browser, folder, tmp_path):
    process, url = start_server(hostile_folder(folder / "sea-0", tmp_path / "runs"))
    try:
        with watched_page(browser) as (page, problems):
            page.goto(url)
            page.get_by_label(f"compare run {HOSTILE}", exact=True).set_checked(True)
            page.locator(".chart svg").hover()
            page.get_by_role("button", name=f"run {HOSTILE}", exact=True).click()
            expect(page.get_by_text(f"preset {HOSTILE}").first).to_be_visible()
            page.get_by_role("link", name="Watch it").click()
            expect(page.locator("option:checked", has_text=f"run {HOSTILE}")).to_have_count(1)
            page.goto(f"{url}studies")
            expect(page.get_by_text(f"command {HOSTILE}")).to_be_visible()
            assert page.evaluate("typeof hacked") == "undefined"
        assert not problems, problems
    finally:
        said = stop_server(process)
    assert "Traceback" not in said
