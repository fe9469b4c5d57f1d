"""`bathysphere levels`: generate, convert, check and show Sokoban levels."""

from __future__ import annotations

import dataclasses
import json as json_text
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from PIL import Image
from rich.console import Console
from rich.progress import track

from bathysphere.domains.sokoban.board_cache import cache_folder, cache_size, clear_cache
from bathysphere.domains.sokoban.formats import Format, format_of, read_levels, write_levels
from bathysphere.domains.sokoban.generator import GeneratorConfig, generate_level
from bathysphere.domains.sokoban.levels import Level, grid_text, pad, solves
from bathysphere.domains.sokoban.rules import BOX, BOX_ON_TARGET
from bathysphere.domains.sokoban.tiles import draw_board
from bathysphere.errors import BathysphereError

_EXAMPLES = """Sokoban levels, in Boxoban text (.txt), XSB (.xsb) and .sok collections.

Examples:

bathysphere levels generate --count 100 --size 10 --boxes 4 --seed 5 --out levels.txt

bathysphere levels generate --count 20 --seed 5 --solutions --out levels.sok

bathysphere levels convert levels.txt levels.sok --run-length

bathysphere levels check levels.sok

bathysphere levels show levels.sok --first 3 --count 2 --image levels.png

bathysphere levels cache --clear
"""


@dataclass(frozen=True)
class Generate:
    """Make levels: bathysphere levels generate --count 100 --size 10 --boxes 4 --seed 5 --out FILE"""

    out: Path
    """File to write."""
    count: int = 100
    """Number of levels."""
    size: int = 10
    """Rows and columns of the board, border walls included. Cells."""
    height: int | None = None
    """Rows, if they differ from size. Cells."""
    width: int | None = None
    """Columns, if they differ from size. Cells."""
    boxes: int = 4
    """Boxes per level."""
    seed: int = 0
    """Seed, from 0. The same seed and settings give the same levels."""
    format: Format | None = None
    """Format of the file. By default its suffix tells: .txt is boxoban, .xsb, .sok."""
    solutions: bool = False
    """Write a solution with every level. For .sok only."""
    run_length: bool = False
    """Write 3#2- for ###--. For .sok only."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


@dataclass(frozen=True)
class Convert:
    """Rewrite levels in another format: bathysphere levels convert levels.txt levels.sok"""

    source: tyro.conf.Positional[Path]
    """Level file, or folder of level files, to read."""
    out: tyro.conf.Positional[Path]
    """File to write."""
    format: Format | None = None
    """Format of the file. By default its suffix tells: .txt is boxoban, .xsb, .sok."""
    run_length: bool = False
    """Write 3#2- for ###--. For .sok only."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


@dataclass(frozen=True)
class Check:
    """Read levels, play their solutions, tell what is wrong: bathysphere levels check levels.sok"""

    sources: tyro.conf.Positional[tuple[Path, ...]]
    """Level files, or folders of level files."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


@dataclass(frozen=True)
class Show:
    """Print levels, or draw them: bathysphere levels show levels.txt --first 12"""

    source: tyro.conf.Positional[Path]
    """Level file, or folder of level files."""
    first: int = 1
    """Number of the first level to show, from 1."""
    count: int = 1
    """How many to show."""
    image: Path | None = None
    """PNG file to draw them into, side by side."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


@dataclass(frozen=True)
class Cache:
    """Tell where generated levels are kept between runs, and how much there is: bathysphere levels cache"""

    clear: bool = False
    """Delete them; what is needed is made again."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere levels <argv>` and returns the exit code."""
    command = tyro.cli(
        Annotated[Generate, tyro.conf.subcommand("generate")]
        | Annotated[Convert, tyro.conf.subcommand("convert")]
        | Annotated[Check, tyro.conf.subcommand("check")]
        | Annotated[Show, tyro.conf.subcommand("show")]
        | Annotated[Cache, tyro.conf.subcommand("cache")],
        args=argv,
        prog="bathysphere levels",
        description=_EXAMPLES,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    actions: dict[type, Any] = {Generate: _generate, Convert: _convert, Check: _check, Show: _show, Cache: _cache}
    result, text = actions[type(command)](command)
    if command.json:
        sys.stdout.write(json_text.dumps(result) + "\n")
    else:
        Console(highlight=False, markup=False, soft_wrap=True).print(text)
    return 0


def _generate(command: Generate) -> tuple[dict[str, Any], str]:
    # Everything that can be refused is refused before the work starts.
    if command.count < 1:
        raise BathysphereError(f"--count must be a whole number from 1; got {command.count}.")
    style = format_of(command.out, command.format)
    if (command.solutions or command.run_length) and style != "sok":
        raise BathysphereError(
            f"Only .sok files hold solutions and run lengths, not {style}. Write to a .sok file or use --format sok."
        )
    if not command.out.parent.is_dir():
        raise BathysphereError(f"There is no folder {command.out.parent}. Create it, or write elsewhere.")
    config = GeneratorConfig(
        height=command.size if command.height is None else command.height,
        width=command.size if command.width is None else command.width,
        num_boxes=command.boxes,
    )
    start = time.perf_counter()
    console = Console(stderr=True)
    numbers = track(
        range(command.count), "generating", console=console, transient=True, disable=not console.is_terminal
    )
    levels = [generate_level(config, command.seed, number).level for number in numbers]
    seconds = time.perf_counter() - start
    if not command.solutions:
        levels = [dataclasses.replace(level, solution=None) for level in levels]
    write_levels(command.out, levels, style, command.run_length)
    result = {"levels": len(levels), "out": str(command.out), "format": style, "seconds": round(seconds, 3)}
    return result, f"{len(levels)} levels in {command.out} ({style}), {seconds:.1f} s"


def _convert(command: Convert) -> tuple[dict[str, Any], str]:
    style = format_of(command.out, command.format)
    levels = read_levels(command.source)
    write_levels(command.out, levels, style, command.run_length)
    dropped = sum(level.solution is not None for level in levels) if style != "sok" else 0
    text = f"{len(levels)} levels from {command.source} in {command.out} ({style})"
    if dropped:
        text += f"; {dropped} solutions left out, only .sok holds them"
    result = {"levels": len(levels), "out": str(command.out), "format": style, "dropped_solutions": dropped}
    return result, text


def _check(command: Check) -> tuple[dict[str, Any], str]:
    if not command.sources:
        raise BathysphereError("Name at least one level file to check.")
    files = []
    lines = []
    for source in command.sources:
        levels = read_levels(source)
        for number, level in enumerate(levels, start=1):
            if solves(level, ""):
                raise BathysphereError(
                    f"{source}: level {number} ('{level.title}') is already solved, no box is off target. Remove it."
                )
            if level.solution is not None and not solves(level, level.solution):
                raise BathysphereError(
                    f"{source}: the solution of level {number} ('{level.title}') does not solve it. "
                    "Correct or remove it."
                )
        sizes = Counter(f"{level.shape[0]}x{level.shape[1]}" for level in levels)
        boxes = Counter(_num_boxes(level) for level in levels)
        solved = sum(level.solution is not None for level in levels)
        files.append(
            {
                "path": str(source),
                "levels": len(levels),
                "sizes": dict(sizes),
                "boxes": {str(number): boxes[number] for number in sorted(boxes)},
                "solutions": solved,
            }
        )
        lines.append(
            f"{source}: {len(levels)} levels, all fine; sizes {', '.join(sizes)}; "
            f"boxes {', '.join(map(str, sorted(boxes)))}; {solved} with a solution that works"
        )
    return {"levels": sum(file["levels"] for file in files), "files": files}, "\n".join(lines)


def _show(command: Show) -> tuple[dict[str, Any], str]:
    levels = read_levels(command.source)
    if not 1 <= command.first <= len(levels) or command.count < 1:
        raise BathysphereError(
            f"{command.source} has levels 1 to {len(levels)}; asked for {command.count} from {command.first}."
        )
    shown = list(enumerate(levels, start=1))[command.first - 1 : command.first - 1 + command.count]
    if command.image is not None:
        _draw([level for _, level in shown], command.image)
    result: dict[str, Any] = {
        "levels": [
            {
                "number": number,
                "title": level.title,
                "height": level.shape[0],
                "width": level.shape[1],
                "boxes": _num_boxes(level),
                "board": grid_text(level.grid).split("\n"),
                "solution": level.solution,
            }
            for number, level in shown
        ]
    }
    blocks = []
    for number, level in shown:
        height, width = level.shape
        lines = [f"{number}: {level.title or 'untitled'} ({height}x{width}, {_num_boxes(level)} boxes)"]
        lines.append(grid_text(level.grid))
        if level.solution is not None:
            lines.append(f"solution, {len(level.solution)} moves: {level.solution}")
        blocks.append("\n".join(lines))
    if command.image is not None:
        result["image"] = str(command.image)
        blocks.append(f"drawn in {command.image}")
    return result, "\n\n".join(blocks)


def _cache(command: Cache) -> tuple[dict[str, Any], str]:
    folder = cache_folder()
    if folder is None:
        raise BathysphereError("There is no folder for generated levels: set BATHYSPHERE_CACHE to one.")
    num_files, num_bytes = cache_size(folder)
    if command.clear:
        clear_cache(folder)
    result = {"folder": str(folder), "files": num_files, "bytes": num_bytes, "cleared": command.clear}
    text = f"{folder}: {num_files} files, {num_bytes / 1e6:.1f} MB" + (", deleted" if command.clear else "")
    return result, text


def _draw(levels: list[Level], path: Path) -> None:
    """Saves the boards side by side, smaller ones filled up with walls, one tile of white between them."""
    height = max(level.shape[0] for level in levels)
    pictures: list[np.ndarray[Any, Any]] = []
    for level in levels:
        picture = draw_board(pad(level.grid, (height, level.shape[1])))
        gap = np.full((len(picture), 24, 3), 255, np.uint8)
        pictures += [gap, picture]
    try:
        Image.fromarray(np.hstack(pictures[1:])).save(path, format="PNG")
    except OSError as error:
        raise BathysphereError(f"Cannot write {path}: {error.strerror or error}. Choose another place.") from error


def _num_boxes(level: Level) -> int:
    return int(np.isin(level.grid, (BOX, BOX_ON_TARGET)).sum())
