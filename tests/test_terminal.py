import io
import os

import pytest
from rich.table import Table

from bathysphere.terminal import Terminal

HOSTILE = "[/x][bold]a[/bold] :bomb: \x1b[2J\x9b2J\u202e"
SHOWN = "[/x][bold]a[/bold] :bomb: \\x1b[2J\\x9b2J\\u202e"


def table():
    cells = Table(HOSTILE, title=HOSTILE)
    cells.add_row(HOSTILE)
    return cells


@pytest.mark.parametrize("shown", [HOSTILE, table()], ids=["text", "table"])
def test_no_text_acts(shown):
    out = io.StringIO()
    Terminal(file=out, width=100).print(shown)
    assert SHOWN in out.getvalue()
    assert not {"\x1b", "\x9b", "\u202e"} & set(out.getvalue())


def test_a_reader_that_goes_is_an_error_that_the_command_line_knows():
    read, write = os.pipe()
    os.close(read)
    with pytest.raises(BrokenPipeError), open(write, "w", buffering=1, encoding="utf-8") as pipe:
        Terminal(file=pipe).print("a line")
