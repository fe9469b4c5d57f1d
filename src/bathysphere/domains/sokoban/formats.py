"""Level files: one reader for Boxoban text, XSB and `.sok` collections, and a writer for each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Literal, get_args

from bathysphere.domains.sokoban.board_check import board_from_rows
from bathysphere.domains.sokoban.levels import TILES, Level, grid_text
from bathysphere.errors import BathysphereError

Format = Literal["boxoban", "xsb", "sok"]
SUFFIXES: dict[str, Format] = {".txt": "boxoban", ".xsb": "xsb", ".sok": "sok"}
MAX_FILE_BYTES = 64 * 2**20
MAX_SIDE = 1000  # cells
MAX_MOVES = 1_000_000  # in a solution, and so in a line
MAX_EXPANDED = 4_000_000  # characters that all run lengths of a file may stand for

# `.sok` allows other characters for some tiles.
_ALIASES = str.maketrans("-_bBpPoO", "  $*@+..")
_ROW_START = re.compile(r"(?:\d*[-_ ])*\d*#")
_ONLY_TILES = re.compile(r"[-_ #.*$@+|\d]+")
_PROPERTY = re.compile(r"([A-Za-z][A-Za-z ]*):(.*)")
_SOLUTION = re.compile(r"solution\b[^:]*:?", re.IGNORECASE)
_MOVES = re.compile(r"[lurdLURD\d]+")
# Each run of digits is looked at once, from its first digit; otherwise long ones would take time squared.
_RUN = re.compile(r"(?<![0-9])([0-9]++)([^0-9])")


def read_levels(path: str | Path) -> list[Level]:
    """Reads a level file, or every `.txt`, `.xsb` and `.sok` file of a folder in order of their names.

    Raises:
      BathysphereError: if anything is wrong anywhere; then nothing is returned.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
        if not files:
            raise BathysphereError(f"{path} holds no level files. Expected names ending in {', '.join(SUFFIXES)}.")
        return [level for file in files for level in read_levels(file)]
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise BathysphereError(f"{path} is neither a file nor a folder. Check the name of the level file.")
        if size > MAX_FILE_BYTES:
            raise BathysphereError(
                f"{path} has {size / 2**20:.0f} MB; level files may have {MAX_FILE_BYTES // 2**20}. "
                "Split it into several files and pass their folder."
            )
        data = path.read_bytes()
    except OSError as error:
        raise BathysphereError(f"Cannot read {path}: {error.strerror}. Check the name of the level file.") from error
    if any(byte < 32 and byte not in b"\t\n\r\f\x1a" for byte in set(data)):
        raise BathysphereError(
            f"{path} is a binary file. Expected text with levels in Boxoban, XSB or .sok format; "
            "unpack it if it is compressed."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # many old collections; boards themselves are ASCII
    return parse_levels(text, str(path))


def parse_levels(text: str, source: str = "text") -> list[Level]:
    """Reads levels in any of the formats.

    A title is, in this order: a `Title:` line after the board (or before it, in files that do so from the
    start), the line of text right before the board, the last `;` comment before it.

    Args:
      text: the contents of a file.
      source: its name, for messages.

    Raises:
      BathysphereError: names the line of what is wrong.
    """
    reader = _Reader(source)
    for number, line in enumerate(text.replace("\x1a", "").splitlines(), start=1):
        if len(line) > MAX_MOVES:
            raise BathysphereError(f"{source}, line {number}: more than {MAX_MOVES} characters. Is it a level file?")
        reader.read(number, line.rstrip())
    reader.end_board()
    if not reader.levels:
        raise BathysphereError(
            f"{source} holds no level. Expected boards drawn with {TILES!r} (wall, floor, target, box on "
            "target, box, player, player on target)."
        )
    return [
        Level(_one_line(titled.title), titled.grid, "".join(reader.solutions[i]) if i in reader.solutions else None)
        for i, titled in enumerate(reader.levels)
    ]


class _Reader:
    """Reads line by line: collects the rows of a board, and remembers what titles and solutions belong to."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.levels: list[Level] = []
        self.solutions: dict[int, list[str]] = {}  # the lines of each, by the level's number
        self._num_moves = 0  # of the solution being read
        self._rows: list[tuple[int, str]] = []  # (line number, tiles) of the board being read
        self._comment = ""  # last `;` comment since the last board
        self._text = ""  # the last line that was not blank, if it was text
        self._next_title = ""  # from a `Title:` line that belongs to the next board
        # Whether the last level has its `Title:` line, so that the next one is for the next level.
        self._has_title_line = True
        self._reading_solution = False
        self._num_expanded = 0  # characters written for run lengths so far

    def read(self, number: int, line: str) -> None:
        if _is_row(line, bool(self._rows)):
            if not self._rows:
                self._reading_solution = False
            for row in filter(None, line.split("|")):
                tiles = self._expand(row, MAX_SIDE, number).translate(_ALIASES)
                self._rows.append((number, tiles))
            if len(self._rows) > MAX_SIDE:
                raise BathysphereError(
                    f"{self.source}, line {number}: more than {MAX_SIDE} rows in a level. Is it a level file?"
                )
            return
        self.end_board()
        line = line.strip()
        if not line or line.startswith("::"):
            self._reading_solution &= bool(line)
        elif line.startswith(";"):
            self._comment, self._text = line.lstrip("; "), ""
        elif self._reading_solution and _MOVES.fullmatch(line):
            self._add_moves(number, line)
            self._text = ""
        else:
            self._read_words(number, line)

    def _read_words(self, number: int, line: str) -> None:
        self._reading_solution = False
        self._text = ""
        if self.levels and (header := _SOLUTION.match(line)):
            # Only the first solution of a level is kept.
            self._reading_solution = len(self.levels) - 1 not in self.solutions
            moves = line[header.end() :].strip()
            if self._reading_solution and _MOVES.fullmatch(moves):
                self._add_moves(number, moves)
        elif (words := _PROPERTY.fullmatch(line)) and words[1].lower() == "title":
            title = words[2].strip()
            if self._has_title_line:
                self._next_title = title
            else:
                last = self.levels[-1]
                self.levels[-1] = Level(title, last.grid)
                self._has_title_line = True
        elif words is None:
            self._text = line

    def _add_moves(self, number: int, line: str) -> None:
        moves = self._expand(line, MAX_MOVES, number)
        lines = self.solutions.setdefault(len(self.levels) - 1, [])
        self._num_moves = len(moves) + (self._num_moves if lines else 0)
        if self._num_moves > MAX_MOVES:
            raise BathysphereError(f"{self.source}, line {number}: a solution of more than {MAX_MOVES} moves.")
        lines.append(moves)

    def _expand(self, line: str, max_length: int, number: int) -> str:
        """Writes out run lengths: `3#2-` is `###--`."""
        length = len(line)
        runs = list(_RUN.finditer(line))
        if length <= max_length and not runs:
            return line  # as almost always
        for run in runs:
            length += int(run[1]) if len(run[1]) < 9 else max_length
        self._num_expanded += length
        if length > max_length or self._num_expanded > MAX_EXPANDED:
            raise BathysphereError(
                f"{self.source}, line {number}: more than {max_length} characters in a line of a level, or "
                f"{MAX_EXPANDED} in all. Is it a level file?"
            )
        return _RUN.sub(lambda run: run[2] * int(run[1]), line)

    def end_board(self) -> None:
        if not self._rows:
            return
        grid = board_from_rows(self._rows, self.source)
        self.levels.append(Level(self._next_title or self._text or self._comment, grid))
        self._has_title_line = bool(self._next_title)
        self._rows = []
        self._comment = self._text = self._next_title = ""


def _is_row(line: str, inside_board: bool) -> bool:
    """Tells whether a line belongs to a board. One that only looks like it does, so a bad tile is noticed."""
    if _ROW_START.match(line):
        return True
    if inside_board and line.endswith("#") and not _PROPERTY.match(line):
        return True
    only_tiles = bool(line.strip()) and bool(_ONLY_TILES.fullmatch(line))
    return only_tiles and (inside_board or any(tile in line for tile in "@+$"))


def format_levels(levels: Sequence[Level], style: Format, run_length: bool = False) -> str:
    """Writes levels as text.

    Args:
      levels: what to write. Solutions are written in `.sok` only, which alone has a place for them.
      style: `boxoban` puts the title in a `;` line before the board (its number if it has none), `xsb` and
        `sok` in a `Title:` line after it; `sok` draws floor as `-`.
      run_length: write `###--` as `3#2-`. For `sok` only.
    """
    if run_length and style != "sok":
        raise BathysphereError(f"Only .sok files have run lengths, not {style}. Choose the format sok.")
    blocks = []
    for number, level in enumerate(levels):
        title = _one_line(level.title)
        board = grid_text(level.grid)
        if style == "boxoban":
            blocks.append(f"; {title or number}\n{board}\n")
            continue
        if style == "sok":
            board = board.replace(" ", "-")
        if run_length:
            board = "\n".join(_run_lengths(row) for row in board.split("\n"))
        lines = [board]
        if title:
            lines.append(f"Title: {title}")
        if style == "sok" and level.solution is not None:
            lines += ["Solution", level.solution]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _one_line(title: str) -> str:
    """Returns a title as files have it: one line of printable characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in title).split())


def _run_lengths(row: str) -> str:
    runs = [(tile, len(list(group))) for tile, group in groupby(row)]
    return "".join(tile if count == 1 else f"{count}{tile}" for tile, count in runs)


def format_of(path: str | Path, style: str | None = None) -> Format:
    """Returns the format named `style`, or without one the format that the suffix of `path` stands for."""
    if style is None:
        style = SUFFIXES.get(Path(path).suffix.lower())
        if style is None:
            raise BathysphereError(
                f"The name {path} does not say which format to write. Let it end in {', '.join(SUFFIXES)}, "
                f"or choose a format: {', '.join(get_args(Format))}."
            )
    for known in SUFFIXES.values():
        if style == known:
            return known
    raise BathysphereError(f"There is no level format '{style}'. Choose one of {', '.join(get_args(Format))}.")


def write_levels(path: str | Path, levels: Sequence[Level], style: str | None = None, run_length: bool = False) -> None:
    """Writes a level file in the format `style`, or the one its suffix stands for."""
    text = format_levels(levels, format_of(path, style), run_length)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BathysphereError(f"Cannot write {path}: {error.strerror}. Choose another place.") from error
