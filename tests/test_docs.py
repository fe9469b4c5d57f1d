"""What the README and the docs show is what happens.

Code runs, commands are understood, links lead somewhere, generated pages are fresh, and the site needs no network.

A block of code is run unless its first line says why not, for readers to see: ```python title="Not run: needs a GPU".
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tools import api_page, fields, pages

import bathysphere
from bathysphere.cli import common, main
from bathysphere.domains import user_code
from bathysphere.domains.toy_montezuma.maps import parse_map
from bathysphere.runs.metrics import read_rows

ROOT = Path(__file__).parents[1]
DOCS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", *DOCS]
FENCE = re.compile(r"^```(.*?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_RUN = re.compile(r'(python|sh) title="Not run: [^"]{8,}"')


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, kind: str) -> list[str]:
    return [text for info, text in FENCE.findall(read(page)) if info == kind]


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_of_known_kinds(page):
    for info, _ in FENCE.findall(read(page)):
        assert info in ("", "python", "sh", "text") or NOT_RUN.fullmatch(info), f"{page} has a block ```{info}"


@pytest.mark.parametrize("info", ["python no-run", 'python title="Not run"', 'python title="Not run: slow"', "bash"])
def test_a_block_that_is_not_run_says_why(info):
    assert not NOT_RUN.fullmatch(info)
    assert NOT_RUN.fullmatch('python title="Not run: needs a GPU"')


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_code_runs(page, tmp_path, monkeypatch):
    """The blocks of a page run one after the other, as a reader would paste them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for number, block in enumerate(blocks(page, "python"), 1):
            exec(compile(block, f"{page}, block {number}", "exec"), names)


class Understood(Exception):
    pass


def understands(argv: list[str], run: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Returns whether the command line reads these arguments without complaint; runs nothing."""
    if "--resume" in argv and "model" not in argv:
        argv = [*argv[: argv.index("--resume") + 1], str(run), *argv[argv.index("--resume") + 2 :]]
    if "--config" in argv:
        argv = [*argv[: argv.index("--config") + 1], str(run / "config.json"), *argv[argv.index("--config") + 2 :]]
    real = common.tyro.cli

    def stop(*arguments, **rest):
        options = real(*arguments, **rest)
        if rest["description"].startswith("The arguments of my_world"):
            return options  # of the world alone; the others are read next
        raise Understood

    with monkeypatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(common.tyro, "cli", stop)
        try:
            return main(argv) == 0
        except Understood:
            return True
        except SystemExit as ended:
            return ended.code in (0, None)


WORLD = """
import numpy as np
from bathysphere.domains.base import Categories, Successors

class MyWorld:
    name, state_size, action_names, max_steps = "MyWorld", 1, ("stay", "on"), 30

    def __init__(self, size: int = 5):
        self.size, self.observation = size, Categories((1,), size)

    def initial(self, n, rng):
        return np.zeros((n, 1), np.uint8)

    def successors(self, states):
        after = np.minimum(states + [[0, 1]], self.size - 1).astype(np.uint8)
        over = after == self.size - 1
        return Successors(after[:, :, None], 1.0 * (over & (states < self.size - 1)), over, over)

    def observe(self, states):
        return states.astype(np.int32)

class Shuffled(MyWorld):
    def __init__(self, shuffles: int = 200):
        super().__init__()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in which a reader might try the commands."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "my_world.py").write_text(WORLD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(user_code, "_accepted", set())  # what pages name with --import is named for them alone
    yield tmp_path
    sys.modules.pop("my_world", None)


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("docs") / "run"
    bathysphere.train("deep-sea", run_dir=path, domain={"size": 5}, steps=100, pictures=False)
    return path


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")])
@pytest.mark.usefixtures("folder")
def test_commands_are_understood(page, small_run, monkeypatch, capsys):
    for line in "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines():
        words = shlex.split(line.partition(" > ")[0].rpartition(" | ")[2], comments=True)
        if not words:
            continue
        assert words[0] == "bathysphere", f"{page} shows {line!r}; only commands of ours are checked"
        assert understands(words[1:], small_run, monkeypatch), f"{page}: {line}\n{capsys.readouterr().err}"


@pytest.mark.parametrize(
    "line",
    [
        "train deep-sea --domain.sise 3",
        "evaluate",
        "trian",
        "levels make --count 3",
        "train my_world:MyWorld --setps 3",
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_wrong_command_is_not_understood(line, small_run, monkeypatch):
    assert not understands(line.split(), small_run, monkeypatch)


def anchors(page: Path) -> set[str]:
    from markdown.extensions.toc import slugify

    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {slugify(heading.replace("`", ""), "-") for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = FENCE.sub("", read(page))
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", text):
        if "://" in link:
            continue
        target = (ROOT / page).parent / link if link else ROOT / page
        assert target.exists(), f"{page} links to {link}"
        if anchor:
            assert anchor[1:] in anchors(target), f"{page} links to {link}{anchor}"


@pytest.mark.parametrize("page", pages.PAGES)
def test_generated_pages_are_fresh(page):
    fresh = pages.PAGES[page]()
    assert (pages.REFERENCE / page).read_text(encoding="utf-8") == fresh, "run: python -m tools.pages"


def test_a_public_name_without_explanation_fails(monkeypatch):
    monkeypatch.setattr(bathysphere, "__all__", [*bathysphere.__all__, "mystery"])
    with pytest.raises(fields.Unexplained, match="does not name mystery"):
        api_page.api_page()


def test_a_public_method_without_explanation_fails(monkeypatch):
    monkeypatch.setattr(bathysphere.MCTS, "mystery", lambda self: None, raising=False)
    with pytest.raises(fields.Unexplained, match=r"MCTS\.mystery has no docstring"):
        api_page.api_page()


def test_a_field_without_explanation_fails():
    with pytest.raises(fields.Unexplained, match=r"Field\.name has no docstring"):
        list(fields.explained_fields(fields.Field))


@pytest.mark.parametrize("preset", ["deep-sea", "toy-montezuma"])
def test_every_column_of_the_metrics_is_explained(preset, tmp_path):
    bathysphere.train(preset, run_dir=tmp_path / "run", steps=100, log_every=10, pictures=False)
    page = read("docs/reference/metrics.md")
    for column in read_rows(tmp_path / "run" / "metrics.jsonl")[-1]:
        stem = "share_…" if column.startswith("share_") else column
        ending = re.sub(r"^win_rate", "", column)
        assert f"`{stem}`" in page or f"`{ending}`" in page, f"docs/reference/metrics.md does not explain {column}"


def test_the_map_in_the_docs_is_a_map():
    [example] = re.findall(r"```\n(;.*?)```", read("docs/reference/worlds.md"), re.DOTALL)
    assert len(parse_map(example, "worlds.md").rooms()) == 2


class Fetched(HTMLParser):
    """Gathers what a browser fetches from elsewhere to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            is_fetched = name in ("src", "srcset", "poster", "data") or (name == "href" and tag != "a")
            if is_fetched and re.match(r"(https?:)?//", value or ""):
                self.found.append(f"<{tag} {name}={value}>")


def fetched(text: str) -> list[str]:
    parser = Fetched()
    parser.feed(text)
    return parser.found


def build(root: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(out)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("docs") / "site"
    done = build(ROOT, out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_the_site_needs_no_network(site):
    html = list(site.rglob("*.html"))
    assert len(html) > len(DOCS)
    for page in html:
        assert fetched(page.read_text(encoding="utf-8")) == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text(encoding="utf-8")), style
    assert "mermaid" not in "".join(page.read_text(encoding="utf-8") for page in html), "it would be fetched"


def test_the_site_has_every_page_in_its_menu(site):
    menu = (site / "index.html").read_text(encoding="utf-8")
    for page in DOCS:
        assert Path(page).relative_to("docs").with_suffix(".html").as_posix() in menu, page


def test_formulas_are_built(site):
    text = (site / "reference" / "planner.html").read_text(encoding="utf-8")
    assert text.count("<math") > 30
    assert "arithmatex" not in text


def test_what_is_fetched_is_found():
    assert fetched('<script src="https://host/x.js">')
    assert fetched('<link rel="stylesheet" href="//host/x.css">')
    assert not fetched('<a href="https://host"><img src="x.png"><link rel="icon" href="x.svg">')


def test_a_broken_link_fails_the_build(tmp_path):
    for name in ("docs", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("results", "examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    page = tmp_path / "docs" / "guide" / "faq.md"
    page.write_text(page.read_text(encoding="utf-8") + "\n[there](nowhere.md)\n", encoding="utf-8")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "nowhere.md" in done.stdout + done.stderr
