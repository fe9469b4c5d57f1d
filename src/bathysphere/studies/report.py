"""What a study leaves behind: raw results, the table, figures, a summary and a report, in one folder.

Everything but the raw results can be made again from them.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bathysphere.errors import BathysphereError
from bathysphere.storage.files import read_json, write_json, writing
from bathysphere.studies.page import make_page
from bathysphere.studies.scheduler import Job
from bathysphere.studies.study import BudgetName, Record, Study, SummaryRow, interval_text, number_text

_ADVICE = "Free some space or choose another --out, then repeat the command."


class StudyFolder:
    """Where the files of a study are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = path / "runs"
        self.about_file = path / "study.json"
        self.records_file = path / "results.jsonl"
        self.frame_file = path / "results.csv"
        self.curves_file = path / "curves.csv"
        self.table_file = path / "table.md"
        self.summary_file = path / "summary.json"
        self.report_file = path / "report.html"

    def begin(self, study: Study, budget: BudgetName, command: str) -> None:
        """Notes what is about to be run; refuses a folder of something else."""
        about = {"study": study.name, "budget": budget, "command": command}
        if self.about_file.is_file():
            old = read_json(self.about_file)
            if (old["study"], old["budget"]) != (study.name, budget):
                raise BathysphereError(
                    f"{self.path} holds the study {old['study']} with the {old['budget']} budget; choose another --out."
                )
        with writing(self.path, "Choose another --out."):
            self.runs.mkdir(parents=True, exist_ok=True)
        write_json(self.about_file, about)

    def save(self, study: Study, jobs: Sequence[Job]) -> None:
        """Writes the raw results of all runs that have ended, and keeps the pictures that the report shows."""
        records = [job.record() for job in jobs if job.state in ("finished", "failed")]
        flat = [{name: value for name, value in record.items() if name != "curve"} for record in records]
        with writing(self.path, _ADVICE):
            self.records_file.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
            self.frame_file.write_text(_csv(flat), "utf-8")
            if study.curve:
                self.curves_file.write_text(_csv(_curve_rows(records)), "utf-8")
            for picture in study.pictures:
                for job in jobs:
                    drawn = job.path / "pictures" / picture.file
                    if job.pictures and job.trial.setting == picture.setting and drawn.is_file():
                        shutil.copyfile(drawn, self.path / f"{picture.setting}-{picture.file}")

    def load(self) -> tuple[dict[str, Any], list[Record]]:
        """Returns what was run, and the raw results."""
        if not self.records_file.is_file() or not self.about_file.is_file():
            raise BathysphereError(
                f"{self.path} holds no results of a study ({self.records_file.name} and "
                f"{self.about_file.name}). Run it first, without --render."
            )
        lines = self.records_file.read_text(encoding="utf-8").splitlines()
        return read_json(self.about_file), [json.loads(line) for line in lines]


def _csv(rows: Sequence[Record]) -> str:
    """Returns rows as CSV, with every column that any of them has."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _curve_rows(records: Sequence[Record]) -> list[Record]:
    """Returns a row for every moment of every run's curve."""
    rows = []
    for record in records:
        curve = record.get("curve", {})
        identity = {name: record[name] for name in ("setting", "case", "seed")}
        rows += [identity | dict(zip(curve, moment, strict=True)) for moment in zip(*curve.values(), strict=True)]
    return rows


def render(study: Study, folder: StudyFolder) -> dict[str, Any]:
    """Writes the table, figures, summary and report from the raw results; returns the summary."""
    about, records = folder.load()
    if about["study"] != study.name:
        raise BathysphereError(f"{folder.path} holds the study {about['study']}, not {study.name}.")
    rows = study.summarise(records)
    summary = {
        "study": study.name,
        "command": about["command"],
        "commit": _joined(records, "commit"),
        "machine": _joined(records, "machine"),
        "budget": about["budget"],
        "rows": [row.to_dict() for row in rows],
    }
    with writing(folder.path, _ADVICE):
        drawing = _draw(study, records, folder.path)
        folder.table_file.write_text(markdown_table(rows), "utf-8")
        pictures = [(folder.path / f"{picture.setting}-{picture.file}", picture.caption) for picture in study.pictures]
        page = make_page(study, about["budget"], summary, rows, records, drawing, pictures)
        folder.report_file.write_text(page, "utf-8")
    write_json(folder.summary_file, summary)
    return summary


def markdown_table(rows: Sequence[SummaryRow]) -> str:
    """Returns the table as Markdown."""
    lines = ["| | setting | paper | here | 95% interval | runs |", "|---|---|---|---|---|---|"]
    for row in rows:
        kind = row.metric.kind
        cells = (
            row.metric.title,
            row.setting.title,
            row.paper.text if row.paper else "–",
            number_text(row.ours.value, kind),
            interval_text(row.ours, kind),
            str(row.ours.n),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _draw(study: Study, records: list[Record], path: Path) -> str:
    """Writes `figure.png` and `figure.svg`; returns the SVG."""
    import matplotlib

    figure = study.figure(study, records)
    figure.savefig(path / "figure.png", dpi=160)
    drawing = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": study.name}):  # the same results give the same file
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    (path / "figure.svg").write_text(drawing.getvalue(), "utf-8")
    return drawing.getvalue()


def _joined(records: list[Record], name: str) -> str | None:
    """Returns what all runs have in a column; several if they differ."""
    return "; ".join(sorted({record[name] for record in records if record.get(name)})) or None
