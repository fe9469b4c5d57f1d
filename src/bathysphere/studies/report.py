"""What is made from the raw results of a study, as often as one likes: table, figures, summary and report."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bathysphere.errors import BathysphereError
from bathysphere.storage.files import write_json, writing
from bathysphere.studies.folder import ADVICE, StudyFolder
from bathysphere.studies.page import make_page
from bathysphere.studies.study import Record, Study, SummaryRow, interval_text, number_text


def render(study: Study, folder: StudyFolder) -> dict[str, Any]:
    """Writes the table, figures, summary and report from the raw results; returns the summary."""
    about, records = folder.load()
    if about["study"] != study.name:
        raise BathysphereError(f"{folder.path} holds the study {about['study']}, not {study.name}.")
    rows = study.summarise(records)
    processor = _joined(records, "processor")  # which runs of earlier versions have not noted
    summary = {
        "study": study.name,
        "command": about["command"],
        "commit": _joined(records, "commit"),
        "machine": _joined(records, "machine"),
        **({"processor": processor} if processor else {}),
        "budget": about["budget"],
        **({"num_runs": about["num_runs"]} if "num_runs" in about else {}),  # not noted by earlier versions
        "rows": [row.to_dict() for row in rows],
    }
    with writing(folder.path, ADVICE):
        drawing = _draw(study, records, folder.path)
        folder.table_file.write_text(markdown_table(rows, bool(study.source)), "utf-8")
        pictures = [(folder.path / f"{picture.setting}-{picture.file}", picture.caption) for picture in study.pictures]
        page = make_page(study, about["budget"], summary, rows, records, drawing, pictures)
        folder.report_file.write_text(page, "utf-8")
    write_json(folder.summary_file, summary)
    return summary


def markdown_table(rows: Sequence[SummaryRow], has_paper: bool = True) -> str:
    """Returns the table as Markdown, with a column of the paper's numbers or without."""
    paper = [" paper |", "---|"] if has_paper else ["", ""]
    lines = [f"| | setting |{paper[0]} here | 95% interval | runs |", f"|---|---|{paper[1]}---|---|---|"]
    for row in rows:
        kind = row.metric.kind
        cells = (
            row.metric.title,
            row.setting.title,
            *([row.paper.text if row.paper else "–"] if has_paper else []),
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
