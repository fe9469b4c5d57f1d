"""Level files: making them, checking them, saying what is in them, drawing them."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from bathysphere.domains.sokoban.formats import Format, format_of, read_levels, write_levels
from bathysphere.domains.sokoban.generator import GeneratorConfig, generate_level
from bathysphere.domains.sokoban.levels import Level, grid_text, pad, solves
from bathysphere.domains.sokoban.rules import BOX, BOX_ON_TARGET
from bathysphere.domains.sokoban.tiles import draw_board
from bathysphere.errors import BathysphereError
from bathysphere.storage.files import write_file

_GAP = 24  # pixels between two boards: one tile
_MOST_LEVELS = 1_000_000  # in a file that is made


def generate_file(
    path: Path,
    config: GeneratorConfig,
    *,
    count: int,
    seed: int = 0,
    style: Format | None = None,
    solutions: bool = False,
    run_length: bool = False,
    track: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> None:
    """Writes a file of generated levels. What can be refused is refused before the work starts.

    Args:
      path: in a folder that exists.
      config: how levels are made.
      count: how many.
      seed: the same seed and config give the same levels.
      style: format of the file; its suffix tells if not given.
      solutions: write a solution with every level; .sok only.
      run_length: write 3#2- for ###--; .sok only.
      track: passes on the numbers of the levels as they are made.
    """
    if not 1 <= count <= _MOST_LEVELS:
        raise BathysphereError(f"--count must be a whole number from 1 to {_MOST_LEVELS:,}; got {count}.")
    style = format_of(path, style)
    if (solutions or run_length) and style != "sok":
        raise BathysphereError(
            f"Only .sok files hold solutions and run lengths, not {style}. Write to a .sok file or use --format sok."
        )
    if not path.parent.is_dir():
        raise BathysphereError(f"There is no folder {path.parent}. Create it, or write elsewhere.")
    levels = [generate_level(config, seed, number).level for number in track(range(count))]
    if not solutions:
        levels = [replace(level, solution=None) for level in levels]
    write_levels(path, levels, style, run_length)


def check_file(path: Path) -> dict[str, Any]:
    """Reads a level file or a folder of them, and plays its solutions; the first fault is an error.

    Returns:
      How many levels there are, of which sizes, with how many boxes, how many of them with a solution.
    """
    levels = read_levels(path)
    for number, level in enumerate(levels, 1):
        if solves(level, ""):
            raise BathysphereError(
                f"{path}: level {number} ('{level.title}') is already solved, no box is off target. Remove it."
            )
        if level.solution is not None and not solves(level, level.solution):
            raise BathysphereError(
                f"{path}: the solution of level {number} ('{level.title}') does not solve it. Correct or remove it."
            )
    boxes = Counter(num_boxes(level) for level in levels)
    return {
        "path": str(path),
        "levels": len(levels),
        "sizes": dict(Counter("x".join(map(str, level.shape)) for level in levels)),
        "boxes": {str(number): boxes[number] for number in sorted(boxes)},
        "solutions": sum(level.solution is not None for level in levels),
    }


def describe_level(number: int, level: Level) -> dict[str, Any]:
    """Returns a level as plain data."""
    return {
        "number": number,
        "title": level.title,
        "height": level.shape[0],
        "width": level.shape[1],
        "boxes": num_boxes(level),
        "board": grid_text(level.grid).split("\n"),
        "solution": level.solution,
    }


def draw_levels(levels: Sequence[Level], path: Path) -> None:
    """Saves the boards side by side, smaller ones filled up with walls, white between them, as a PNG."""
    height = max(level.shape[0] for level in levels)
    pictures = [draw_board(pad(level.grid, (height, level.shape[1]))) for level in levels]
    gap = np.full((len(pictures[0]), _GAP, 3), 255, np.uint8)
    content = io.BytesIO()
    Image.fromarray(np.hstack([part for picture in pictures for part in (gap, picture)][1:])).save(content, "PNG")
    write_file(path, content.getvalue())


def num_boxes(level: Level) -> int:
    """Returns the number of boxes, on targets or not."""
    return int(np.isin(level.grid, (BOX, BOX_ON_TARGET)).sum())
