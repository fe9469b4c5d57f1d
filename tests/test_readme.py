"""What the README and the docs show is what happens."""

import re
from pathlib import Path

import pytest

from bathysphere.domains.toy_montezuma.maps import parse_map

ROOT = Path(__file__).parents[1]
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_the_readmes_snippets_run(snippet):
    exec(compile(snippet, "README.md", "exec"), {})


def test_the_map_in_the_docs_is_a_map():
    text = (ROOT / "docs" / "worlds.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```\n(;.*?)```", text, re.DOTALL)
    assert len(parse_map(example, "worlds.md").rooms()) == 2
