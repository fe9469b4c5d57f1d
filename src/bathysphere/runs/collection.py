"""All runs of a folder: to go through, to compare, and as one frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bathysphere.errors import BathysphereError, did_you_mean
from bathysphere.runs.listing import run_directories
from bathysphere.runs.run import Run, frame

if TYPE_CHECKING:
    import pandas

_COLUMNS = ("run", "preset", "seed", "state", "steps", "episodes", "won lately", "return", "solved at")
_WORDS = ("run", "preset", "state")


def runs(folder: str | PathLike[str] = "runs") -> Runs:
    """Returns the runs in a folder, one or two levels deep, as they are now."""
    return Runs(Path(folder))


class Runs:
    """The runs of a folder, by name: `for run in runs`, `runs["deep-sea-seed0-1"]`, `runs[0]`. Prints as a table.

    Args:
      folder: where they are; a run itself is a folder of one.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise BathysphereError(f"There is no folder {folder}. Train something first: bathysphere train deep-sea")
        self.folder = folder
        self._runs = {_name(path, folder): Run(path) for path in run_directories(folder)}

    @property
    def names(self) -> list[str]:
        """What the runs are called: their folders, as seen from the folder of all."""
        return list(self._runs)

    def rows(self) -> list[dict[str, Any]]:
        """Returns the metrics of all runs as one list of rows, which say their `run`, `preset` and `seed`."""
        return [
            {"run": name, "preset": run["preset"], "seed": run["seed"], **row}
            for name, run in self._runs.items()
            for row in run.rows()
        ]

    def curves(self) -> pandas.DataFrame:
        """Returns the metrics of all runs as one pandas frame, with the columns `run`, `preset` and `seed` first."""
        return frame(self.rows())

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, which: str | int) -> Run:
        if isinstance(which, int):
            return list(self._runs.values())[which]
        if which not in self._runs:
            hint = did_you_mean(which, self._runs)
            raise BathysphereError(f"There is no run {which!r} in {self.folder}, which has {len(self)} runs.{hint}")
        return self._runs[which]

    def __repr__(self) -> str:
        if not self._runs:
            return f"<no runs in {self.folder}>"
        lines = [_COLUMNS, *(_cells(name, run) for name, run in self._runs.items())]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(_line(line, widths) for line in lines)


def _name(path: Path, folder: Path) -> str:
    return path.name if path == folder else path.relative_to(folder).as_posix()


def _cells(name: str, run: Run) -> tuple[str, ...]:
    seed, solved = run["seed"], run["solved_step"]
    earned = run.get("return_mean_50")
    told = "-" if earned is None else f"{earned:.4g}"
    numbers = (f"{run['env_steps']:,}", f"{run['episodes']:,}", f"{run['win_rate_100']:.0%}", told)
    return (
        *(name, run["preset"], "?" if seed is None else str(seed), run.state),
        *(*numbers, "-" if solved is None else f"{solved:,}"),
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Puts words to the left of their columns, and numbers to the right."""
    told = zip(_COLUMNS, cells, widths, strict=True)
    return "  ".join(cell.ljust(w) if column in _WORDS else cell.rjust(w) for column, cell, w in told)
