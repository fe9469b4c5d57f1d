"""Studies and sweeps in a folder: how far they are, their numbers, and their pictures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bathysphere.errors import BathysphereError
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.listing import run_directories
from bathysphere.storage.files import read_json
from bathysphere.studies import STUDIES
from bathysphere.studies.study import RETURN, number_text
from bathysphere.studies.sweep import METRICS
from bathysphere.studio.folder import STUDY_PLACES, RunsFolder

_SUMMARY = "summary.json"
_MOST = 100


@dataclass(frozen=True)
class StudyView:
    """A study as a page shows it."""

    name: str  # its folder, as seen from the folder of all
    title: str
    about: str
    command: str
    num_begun: int  # runs in its folder
    num_finished: int
    num_running: int
    num_runs: int  # that there will be, or that have begun if nobody knows
    rows: list[dict[str, Any]]  # numbers of ours, and the paper's, as texts
    pictures: list[str]  # files, as seen from the folder of all


def find_studies(folder: RunsFolder) -> list[StudyView]:
    """Returns the studies in a folder, by name; what cannot be read as one is left out."""
    files = [file for place in STUDY_PLACES for file in sorted(folder.path.glob(f"{place}{_SUMMARY}"))]
    found = []
    for file in files[:_MOST]:
        try:
            summary = read_json(file)
            if isinstance(summary, dict) and isinstance(summary.get("study"), str):
                found.append(_view(folder, file.parent, summary))
        except (BathysphereError, OSError, KeyError, TypeError, ValueError):
            continue  # is being written, or damaged
    return found


def _view(folder: RunsFolder, path: Path, summary: dict[str, Any]) -> StudyView:
    study = STUDIES.get(summary["study"])
    runs = [RunDirectory(run) for run in run_directories(path / "runs")]
    finished = [run for run in runs if run.result_file.is_file()]
    kinds = {metric.name: metric for metric in (METRICS if study is None else (*study.metrics, RETURN))}
    settings = {} if study is None else {setting.name: setting.title for setting in study.settings}
    rows = []
    for row in summary.get("rows", []):
        metric = kinds.get(row["metric"])
        kind = metric.kind if metric is not None else "mean"
        low = "–" if row["low"] is None else f"{number_text(row['low'], kind)} to {number_text(row['high'], kind)}"
        rows.append(
            {
                "key": f"{row['setting']} {row['metric']}",
                "metric": metric.title if metric is not None else str(row["metric"]),
                "setting": settings.get(row["setting"], str(row["setting"]).replace("=", " = ").replace(",", ", ")),
                "paper": number_text(row.get("paper"), kind),
                "here": number_text(row["value"], kind),
                "interval": low,
                "runs": str(row["n"]),
            }
        )
    name = path.name if path == folder.path else path.relative_to(folder.path).as_posix()
    pictures = [file for file in sorted(path.glob("*.png")) if file.is_file()]
    return StudyView(
        name=name,
        title=study.title if study is not None else summary["study"],
        about=study.about if study is not None else "",
        command=str(summary.get("command", "")),
        num_begun=len(runs),
        num_finished=len(finished),
        num_running=sum(run.is_running() for run in runs if run not in finished),
        num_runs=max(int(summary.get("num_runs", 0)), len(runs)),
        rows=rows,
        pictures=[file.relative_to(folder.path).as_posix() for file in pictures],
    )


def study_csv(view: StudyView) -> str:
    """Returns a study's numbers as comma-separated text."""
    names = ("metric", "setting", "paper", "here", "interval", "runs")
    quoted = [",".join('"' + row[name].replace('"', '""') + '"' for name in names) for row in view.rows]
    return "\n".join([",".join(names), *quoted]) + "\n"


def picture_file(folder: RunsFolder, name: str) -> Path:
    """Returns a picture in the folder.

    Raises:
      BathysphereError: if it is none, or not inside.
    """
    path = folder.inside(name)
    if path.suffix != ".png" or not path.is_file():
        raise BathysphereError(f"{name} is no picture.")
    return path
