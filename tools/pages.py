"""Writes the generated pages: `python -m tools.pages`. tests/test_docs.py fails if one is stale."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.api_page import api_page
from tools.cli_page import cli_page
from tools.config_page import config_page

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {"config.md": config_page, "api.md": api_page, "cli.md": cli_page}


def main() -> None:
    """Writes every page that has changed."""
    for name, make in PAGES.items():
        path, text = REFERENCE / name, make()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
