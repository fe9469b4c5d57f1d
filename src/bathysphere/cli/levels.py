"""`bathysphere levels`: generate, convert, check and show Sokoban levels."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.progress import track

from bathysphere.cli.common import parse, say
from bathysphere.domains.sokoban.board_cache import cache_folder, cache_size, clear_cache
from bathysphere.domains.sokoban.formats import Format, format_of, read_levels, write_levels
from bathysphere.domains.sokoban.generator import GeneratorConfig
from bathysphere.errors import BathysphereError
from bathysphere.puzzles.level_files import check_file, describe_level, draw_levels, generate_file
from bathysphere.terminal import Terminal

_DESCRIPTION = """Sokoban levels, in Boxoban text (.txt), XSB (.xsb) and .sok collections.

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

    source: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="LEVELS")]
    """Level file, or folder of level files, to read."""
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
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

    sources: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="LEVELS")]
    """Level files, or folders of level files."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


@dataclass(frozen=True)
class Show:
    """Print levels, or draw them: bathysphere levels show levels.txt --first 12"""

    source: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="LEVELS")]
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
    kinds: Any = (
        Annotated[Generate, tyro.conf.subcommand("generate")]
        | Annotated[Convert, tyro.conf.subcommand("convert")]
        | Annotated[Check, tyro.conf.subcommand("check")]
        | Annotated[Show, tyro.conf.subcommand("show")]
        | Annotated[Cache, tyro.conf.subcommand("cache")]
    )
    command = parse(kinds, argv, "levels", _DESCRIPTION, config=(tyro.conf.FlagCreatePairsOff,))
    actions: dict[type, Any] = {Generate: _generate, Convert: _convert, Check: _check, Show: _show, Cache: _cache}
    result, text = actions[type(command)](command)
    say(result, text, command.json)
    return 0


def _generate(command: Generate) -> tuple[dict[str, Any], str]:
    config = GeneratorConfig(
        height=command.size if command.height is None else command.height,
        width=command.size if command.width is None else command.width,
        num_boxes=command.boxes,
    )
    style, console = format_of(command.out, command.format), Terminal(stderr=True)
    start = time.perf_counter()
    generate_file(
        command.out,
        config,
        count=command.count,
        seed=command.seed,
        style=style,
        solutions=command.solutions,
        run_length=command.run_length,
        track=lambda numbers: track(
            list(numbers), "generating", console=console, transient=True, disable=not console.is_terminal
        ),
    )
    seconds = time.perf_counter() - start
    result = {"levels": command.count, "out": str(command.out), "format": style, "seconds": round(seconds, 3)}
    return result, f"{command.count} levels in {command.out} ({style}), {seconds:.1f} s"


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
    files = [check_file(source) for source in command.sources]
    lines = [
        f"{file['path']}: {file['levels']} levels, all fine; sizes {', '.join(file['sizes'])}; "
        f"boxes {', '.join(file['boxes'])}; {file['solutions']} with a solution that works"
        for file in files
    ]
    return {"levels": sum(file["levels"] for file in files), "files": files}, "\n".join(lines)


def _show(command: Show) -> tuple[dict[str, Any], str]:
    levels = read_levels(command.source)
    if not 1 <= command.first <= len(levels) or command.count < 1:
        raise BathysphereError(
            f"{command.source} has levels 1 to {len(levels)}; asked for {command.count} from {command.first}."
        )
    shown = levels[command.first - 1 : command.first - 1 + command.count]
    result: dict[str, Any] = {"levels": [describe_level(n, level) for n, level in enumerate(shown, command.first)]}
    blocks = [_block(level) for level in result["levels"]]
    if command.image is not None:
        draw_levels(shown, command.image)
        result["image"] = str(command.image)
        blocks.append(f"drawn in {command.image}")
    return result, "\n\n".join(blocks)


def _block(level: dict[str, Any]) -> str:
    """Returns a level as text: a heading, the board, its solution."""
    title, moves = level["title"] or "untitled", level["solution"]
    lines = [
        f"{level['number']}: {title} ({level['height']}x{level['width']}, {level['boxes']} boxes)",
        *level["board"],
    ]
    if moves is not None:
        lines.append(f"solution, {len(moves)} moves: {moves}")
    return "\n".join(lines)


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
