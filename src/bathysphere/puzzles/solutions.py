"""Solutions in files that other programs can check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bathysphere.domains.sokoban import Level
from bathysphere.domains.sokoban.formats import format_levels
from bathysphere.errors import BathysphereError
from bathysphere.storage.files import write_file


def check_solutions_file(path: Path, source: Path) -> None:
    """Refuses, before any work is done, a file that solutions to the levels of `source` cannot be written to."""
    if path.suffix.lower() != ".sok":
        raise BathysphereError(f"Only .sok files have a place for solutions; got {path}. Let the name end in .sok.")
    if not path.parent.is_dir():
        raise BathysphereError(f"There is no folder {path.parent}. Create it, or write elsewhere.")
    if source.resolve() in (path.resolve(), path.resolve().parent):
        raise BathysphereError(f"{path} is, or would become, one of the level files themselves. Write elsewhere.")


def write_solutions(path: Path, levels: Sequence[Level], solutions: Mapping[int, str]) -> None:
    """Writes all levels, atomically, with the solutions there are, by number of the level from 1."""
    solved = [replace(level, solution=solutions.get(number)) for number, level in enumerate(levels, 1)]
    write_file(path, format_levels(solved, "sok").encode())
