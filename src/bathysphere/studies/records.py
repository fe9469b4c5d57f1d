"""The raw results of a study as two CSV files, and back with every type as it was."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bathysphere.errors import BathysphereError
from bathysphere.studies.study import Record

_IDENTITY = ("setting", "case", "seed")
# Columns whose content is never a number, even where it looks like one (a commit of digits).
_TEXTS = ("setting", "case", "state", "error", "config_hash", "preset", "stopped_by", "commit", "machine", "processor")


def write_records(records: Sequence[Record], file: Path, curves_file: Path | None) -> None:
    """Writes a row per run into one file and, if there is another, a row per run and moment of its curve there."""
    _write(file, [{name: value for name, value in record.items() if name != "curve"} for record in records])
    if curves_file is not None:
        _write(curves_file, [row for record in records for row in _moments(record)])


def read_records(file: Path, curves_file: Path) -> list[Record]:
    """Reads what `write_records` wrote; the second file may be absent. What a run does not have is None."""
    records = _read(file, (*_IDENTITY, "state"))
    curves: dict[tuple[Any, ...], dict[str, list[Any]]] = {}
    for row in _read(curves_file, _IDENTITY) if curves_file.is_file() else ():
        curve = curves.setdefault(_identity(row), {})
        for name, value in row.items():
            if name not in _IDENTITY:
                curve.setdefault(name, []).append(value)
    return [record | ({"curve": curves[key]} if (key := _identity(record)) in curves else {}) for record in records]


def _identity(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in _IDENTITY)


def _moments(record: Record) -> list[Record]:
    """Returns a row for every moment of a run's curve."""
    curve = record.get("curve", {})
    identity = {name: record[name] for name in _IDENTITY}
    return [identity | dict(zip(curve, moment, strict=True)) for moment in zip(*curve.values(), strict=True)]


def _write(path: Path, rows: Sequence[Record]) -> None:
    """Writes rows with every column that any of them has."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def _read(path: Path, needed: Sequence[str]) -> list[Record]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BathysphereError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error
    if any(None in row or None in row.values() for row in rows):  # more or fewer cells than the header has names
        raise BathysphereError(f"{path} has rows of another length than its first; it is damaged.")
    if rows and not set(needed) <= rows[0].keys():
        raise BathysphereError(f"{path} lacks the columns {', '.join(needed)}; it is not a study's, or damaged.")
    return [{name: _parse(name, text) for name, text in row.items()} for row in rows]


def _parse(name: str, text: str) -> Any:
    """Returns what a cell was before it was written."""
    if name in _TEXTS:
        return text or (text if name == "case" else None)
    if text in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
