"""Studies in a folder, and their page in a real browser."""

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from bathysphere.errors import BathysphereError
from bathysphere.studio.folder import RunsFolder
from bathysphere.studio.study_view import find_studies, picture_file, study_csv
from tests.studio.browser import violations
from tests.studio.test_guard import ask

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def study(folder):
    """A study of the repository, with one run that has finished."""
    shutil.copytree(RESULTS / "deep-sea", folder / "study")
    shutil.copytree(folder / "sea-0", folder / "study" / "runs" / "kappa-50" / "size10-seed0")
    return folder / "study"


def test_the_numbers_are_those_of_the_summary(study, folder):
    (view,) = find_studies(RunsFolder(folder))
    summary = json.loads((study / "summary.json").read_text())
    assert len(view.rows) == len(summary["rows"])
    assert view.command == summary["command"]
    assert (view.num_finished, view.num_running, view.num_runs) == (1, 0, 1)
    assert "study/figure.png" in view.pictures
    assert len(study_csv(view).splitlines()) == 1 + len(view.rows)
    assert any(row["paper"] != "–" for row in view.rows)


def test_what_is_no_study_is_left_out(tmp_path):
    for name, content in (("a", "{"), ("b", "[]"), ("c", '{"study": 3}'), ("d", '{"study": "x", "rows": [1]}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(content)
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "summary.json").write_text('{"study": "deep-sea", "command": "c", "budget": "small"}')
    assert [view.name for view in find_studies(RunsFolder(tmp_path))] == ["begun"]


def test_pictures_stay_inside_the_folder(study, folder, server):
    runs = RunsFolder(folder)
    assert picture_file(runs, "study/figure.png").is_file()
    (folder.parent / "secret.png").write_bytes(b"secret")
    (folder / "way.png").symlink_to(folder.parent / "secret.png")
    for name in ("../secret.png", "study/summary.json", "way.png", "none.png"):
        with pytest.raises(BathysphereError):
            picture_file(runs, name)
    (folder / "way.png").unlink()
    assert ask(server, "/drawn/study/figure.png")[0] == 200
    for path in ("/drawn/..%2fsecret.png", "/drawn/../secret.png", "/drawn/%2e%2e/secret.png", "/static/..%2fguard.py"):
        assert ask(server, path)[0] == 404


def test_the_page_shows_paper_and_ours(study, page, server):
    page.goto(f"{server}/studies")
    expect(page.get_by_role("heading", name="Deep-sea", exact=False).first).to_be_visible()
    expect(page.get_by_role("columnheader", name="paper").first).to_be_visible()
    image = page.locator("img.figure").first
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300
    assert violations(page) == []
