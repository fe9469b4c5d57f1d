from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bathysphere.domains.sokoban.formats import (
    Format,
    format_levels,
    format_of,
    parse_levels,
    read_levels,
    write_levels,
)
from bathysphere.domains.sokoban.levels import Level, grid_text, replay_moves, solves
from bathysphere.errors import BathysphereError
from tests.domains.sokoban_boards import random_board

TINY = """\
#####
#@$.#
#####
"""


def rows(level: Level) -> list[str]:
    return grid_text(level.grid).split("\n")


@st.composite
def some_levels(draw: st.DrawFn) -> list[Level]:
    levels = []
    for _ in range(draw(st.integers(1, 4))):
        seed = draw(st.integers(0, 2**32 - 1))
        height, width = draw(st.integers(4, 9)), draw(st.integers(4, 30))
        grid = random_board(np.random.default_rng(seed), height, width, draw(st.integers(1, 3)), closed=True)
        words = draw(st.text(min_size=1, max_size=20))
        title = " ".join("".join(c for c in words if c.isprintable()).split()) or "x"
        levels.append(Level(title, grid, draw(st.none() | st.text("lurdLURD", min_size=1, max_size=90))))
    return levels


@settings(max_examples=150)
@given(some_levels(), st.booleans())
def test_sok_round_trip_keeps_everything(levels: list[Level], run_length: bool) -> None:
    assert parse_levels(format_levels(levels, "sok", run_length)) == levels


@settings(max_examples=100)
@given(some_levels(), st.sampled_from(["boxoban", "xsb"]))
def test_boxoban_and_xsb_round_trips_keep_boards_and_titles(levels: list[Level], style: Format) -> None:
    back = parse_levels(format_levels(levels, style))
    # In a `;` line, leading semicolons belong to the comment mark.
    titles = [level.title.lstrip("; ") if style == "boxoban" else level.title for level in levels]
    assert [level.title for level in back] == titles
    assert all(np.array_equal(a.grid, b.grid) for a, b in zip(back, levels, strict=True))


@settings(max_examples=300)
@given(st.text("# .*$@+-_|0379²;:\nTitleSolution", max_size=80))
def test_any_text_gives_levels_or_a_sentence(text: str) -> None:
    try:
        levels = parse_levels(text)
    except BathysphereError:
        return
    assert levels


def test_boxoban_text() -> None:
    text = "; 12\n######\n#@ $.#\n######\n\n; 13\n######\n#+$  #\n######\n"
    levels = parse_levels(text)
    assert [level.title for level in levels] == ["12", "13"]
    assert rows(levels[0]) == ["######", "#@ $.#", "######"]
    assert levels[1].grid.tolist()[1] == [0, 6, 4, 1, 1, 0]
    assert format_levels(levels, "boxoban") == text


def test_sok_collection() -> None:
    text = """\
:: a collection of two
Author: nobody

First one

  5#
 2#-_-#
#-@$.2#
8#
Solution/Moves
2r
R

Snapshot 1
llll

7#|#p-bo-#|7#
Comment: written with letters
Title: Second
Solution
lrrr
Solution 2
uuuu
"""
    first, second = parse_levels(text, "two.sok")
    assert first.title == "First one"
    assert rows(first) == ["########", "###   ##", "# @$.###", "########"]
    assert first.solution == "rrR"
    assert second.title == "Second"
    assert rows(second) == ["#######", "#@ $. #", "#######"]
    assert second.solution == "lrrr"


def test_title_lines_before_their_boards() -> None:
    text = f"Title: one\n\n{TINY}\nTitle: two\n\n{TINY}"
    assert [level.title for level in parse_levels(text)] == ["one", "two"]


@pytest.mark.parametrize(
    ("lines", "solution"),
    [
        ("Solution: lR", "lR"),
        ("Solution: R\nSolution: l", "R"),
        ("Solution: #####", None),
        ("Solution:" * 5000, None),
    ],
)
def test_solutions_in_the_line_of_their_header(lines: str, solution: str | None) -> None:
    (level,) = parse_levels(TINY + lines)
    assert level.solution == solution


def test_line_ends_and_encodings(tmp_path: Path) -> None:
    path = tmp_path / "old.xsb"
    path.write_bytes(b"\xef\xbb\xbf" + TINY.replace("\n", "\r\n").encode() + "Title: Été\r\n".encode() + b"\x1a")
    assert [level.title for level in read_levels(path)] == ["Été"]
    path.write_bytes(TINY.encode() + "Title: Été\n".encode("latin-1"))
    assert [level.title for level in read_levels(path)] == ["Été"]


def test_what_is_outside_becomes_wall() -> None:
    (level,) = parse_levels("   ####\n####  #\n# @$. #\n####  #\n   ####   \n")
    assert rows(level) == ["#######", "####  #", "# @$. #", "####  #", "#######"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "bad.txt holds no level"),
        ("hello\nworld\n", "bad.txt holds no level"),
        ("; 1\n#####\n#@@$.#\n#####\n", "line 3: a second player in the level that starts in line 2"),
        ("; 1\n#####\n#+$.#\n# @$#\n#####\n", "line 4: a second player"),
        ("#####\n# $.#\n#####\n", "line 1: the level that starts here has no player"),
        ("#####\n#@$$.#\n#####\n", "line 1: .* has 2 boxes and 1 targets"),
        ("#####\n#@$..#\n#####\n", "line 1: .* has 1 boxes and 2 targets"),
        ("#####\n#@  #\n#####\n", "line 1: .* has 0 boxes and 0 targets"),
        ("#####\n#@$. \n#####\n", "line 2: the wall is not closed"),
        ("#####\n @$.#\n#####\n", "line 2: the wall is not closed"),
        ("#####\n#@$.#\n", "line 2: the wall is not closed"),
        ("@$.\n", "line 1: the wall is not closed"),
        (TINY + "\n#####\n#@$.x#\n#####\n", "line 6: unknown tile 'x' in column 5"),
        ("#####\nx@$.#\n#####\n", "line 2: unknown tile 'x' in column 1"),
        ("#####\n#@$.3\n#####\n", "line 2: unknown tile '3'"),
        ("999999999#\n", "line 1: more than 1000 characters"),
        (TINY + "Solution\n" + "0" * 9 + "7777777r\n", "line 5: more than 1000000 characters"),
        ("#" * 1001 + "\n", "line 1: more than 1000 characters"),
        (TINY + "-" * 1_000_001, "line 4: more than 1000000 characters"),
        ("#####\n#@$.é#\n#####\n", "line 2: unknown tile 'é' in column 5"),
        ("#####\n#@$.→#\n#####\n", "line 2: unknown tile '→' in column 5"),
        ("#\n" * 1001, "line 1001: more than 1000 rows"),
        ("7" * 1_000_000, "bad.txt holds no level"),  # an hour, if every digit were a beginning
        ("7" * 999_999 + "#", "line 1: more than 1000 characters"),
        ("990#\n" * 5000, "line 1001: more than 1000 rows"),
        (TINY + "Solution\n" + "600000r\n" * 2, "line 6: a solution of more than 1000000 moves"),
        ((TINY + "Solution\n" + "900000r\n\n") * 9, "line 29: .*or 4000000 in all"),
    ],
)
def test_bad_levels_are_named(text: str, words: str) -> None:
    with pytest.raises(BathysphereError, match=words):
        parse_levels(text, "bad.txt")


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(BathysphereError, match=r"Cannot read .*missing.txt: No such file"):
        read_levels(tmp_path / "missing.txt")
    with pytest.raises(BathysphereError, match="neither a file nor a folder"):
        read_levels("/dev/zero")
    binary = tmp_path / "levels.zip"
    binary.write_bytes(b"PK\x03\x04\x00\x00####")
    with pytest.raises(BathysphereError, match="binary file"):
        read_levels(binary)
    huge = tmp_path / "huge.txt"
    with huge.open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(BathysphereError, match="has 65 MB; level files may have 64"):
        read_levels(huge)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(BathysphereError, match="holds no level files"):
        read_levels(tmp_path)
    for name in ("b.sok", "a.txt", "notes.md"):
        (tmp_path / name).write_text(f"; {name}\n{TINY}")
    assert [level.title for level in read_levels(tmp_path)] == ["a.txt", "b.sok"]
    (tmp_path / "c.xsb").write_text("#@#")
    with pytest.raises(BathysphereError, match=r"c\.xsb, line 1"):
        read_levels(tmp_path)


def test_writing(tmp_path: Path) -> None:
    levels = parse_levels(TINY)
    write_levels(tmp_path / "a.txt", levels)
    assert (tmp_path / "a.txt").read_text() == "; 0\n" + TINY
    write_levels(tmp_path / "b", levels, "xsb")
    assert (tmp_path / "b").read_text() == TINY
    with pytest.raises(BathysphereError, match="does not say which format"):
        write_levels(tmp_path / "b.dat", levels)
    with pytest.raises(BathysphereError, match="no level format 'png'"):
        format_of("a.txt", "png")
    with pytest.raises(BathysphereError, match="run lengths"):
        write_levels(tmp_path / "a.txt", levels, run_length=True)
    with pytest.raises(BathysphereError, match="Cannot write"):
        write_levels(tmp_path / "no" / "a.txt", levels)


def test_a_solution_of_very_many_lines_is_put_together_once() -> None:
    (level,) = parse_levels(TINY + "Solution\n" + "l\n" * 1_000_000)
    assert level.solution == "l" * 1_000_000
    with pytest.raises(BathysphereError, match="more than 1000000 moves"):
        parse_levels(TINY + "Solution\n" + "9999l\n" * 101)


def test_playing_moves() -> None:
    (level,) = parse_levels(TINY)
    assert replay_moves(level, "lR").tolist()[1] == level.grid.ravel().tolist()
    assert solves(level, "R")
    assert not solves(level, "")
    with pytest.raises(BathysphereError, match="letters l, u, r and d"):
        replay_moves(level, "x")


def test_levels_compare_by_content() -> None:
    (level,) = parse_levels(TINY)
    (same,) = parse_levels(TINY)
    assert level == same
    assert hash(level) == hash(same)
    assert level != Level("other", level.grid)
    assert level != "a level"
