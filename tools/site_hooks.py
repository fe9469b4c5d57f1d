"""What the documentation site needs besides MkDocs (its hooks; see mkdocs.yml).

Pages link to files of the repository as on any host of Git repositories: `../../examples/minimal.py`,
`../../results/deep-sea`. The site gets those files too, programs as pages, folders of results as their table. Formulas
become MathML when the site is built, so that pages need no script for them.
"""

from __future__ import annotations

import html
import os
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]+)(#[^)\s]*)?\)")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_PROGRAMS = {".py": "python", ".toml": "toml", ".xsb": "text", ".yml": "yaml", ".map": "text"}


def _in_repository(page: str, link: str) -> str:
    """Returns where a link of the page `page` (both inside the repository) leads, as a path in the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def _shown(path: str) -> str:
    """Returns which file of the repository stands for `path`: of a folder of results it is the table."""
    return f"{path}/table.md" if (ROOT / path).is_dir() else path


def _in_site(path: str) -> str:
    """Returns the source path in the site of a file of the repository."""
    path = _shown(path)
    if Path(path).suffix in _PROGRAMS:
        return f"{path}.md"
    return path.removeprefix("docs/")


def _outside_links(page: str, text: str) -> set[str]:
    """Returns the files of the repository outside docs that a page links to."""
    links = [_in_repository(page, link) for _, link, _ in _LINK.findall(text) if "://" not in link]
    return {_shown(path) for path in links if not path.startswith(("docs/", ".."))}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the files that pages link to outside docs, and those that these link to."""
    seen: set[str] = set()
    pages = [(f"docs/{file.src_uri}", file.content_string) for file in files.documentation_pages()]
    todo = {path for page, text in pages for path in _outside_links(page, text)}
    while todo:
        path = todo.pop()
        seen.add(path)
        source = ROOT / path
        if not source.is_file():
            continue  # MkDocs reports the link
        if source.suffix in _PROGRAMS:
            content = f"# {path}\n\n````{_PROGRAMS[source.suffix]}\n{source.read_text(encoding='utf-8')}````\n"
            files.append(File.generated(config, _in_site(path), content=content))
        elif source.suffix == ".md":
            text = source.read_text(encoding="utf-8")
            files.append(File.generated(config, path, content=text))
            todo |= _outside_links(path, text) - seen
        else:
            files.append(File.generated(config, path, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links as they are in the repository into links as they are in the site."""
    uri = page.file.src_uri
    if uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]  # the first page has the whole width
    here = f"docs/{uri}" if (ROOT / "docs" / uri).is_file() else uri

    def relinked(match: re.Match[str]) -> str:
        opening, link, anchor = match.group(1), match.group(2), match.group(3) or ""
        if "://" in link or link.startswith("mailto:"):
            return match.group(0)
        target = posixpath.relpath(_in_site(_in_repository(here, link)), posixpath.dirname(uri) or ".")
        return f"{opening}{target}{anchor})"

    return _outside_code(markdown, lambda text: _LINK.sub(relinked, text))


def _outside_code(text: str, change: Any) -> str:
    """Applies `change` to everything of a page but its blocks of code."""
    parts = re.split(r"(^````?.*?^````?$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns formulas into MathML."""
    return _FORMULA.sub(_mathml, html)


def _mathml(match: re.Match[str]) -> str:
    display = "block" if match.group(2) == "[" else "inline"
    return convert(html.unescape(match.group(3)).strip(), display=display)


def on_post_build(config: MkDocsConfig) -> None:
    """Removes what only a server at a known address needs."""
    for name in ("sitemap.xml", "sitemap.xml.gz"):
        file = Path(config.site_dir, name)
        if file.is_file():
            os.remove(file)
