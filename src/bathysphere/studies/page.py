"""The report of a study as one HTML page that needs nothing else."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from bathysphere.plots import BLUE, ORANGE
from bathysphere.runs.display import duration
from bathysphere.studies.study import Record, Study, SummaryRow, interval_text, number_text

_STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #eef2f6; color: #1b2a41; font: 16px/1.55 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1020px; margin: 2rem auto; padding: 2.2rem 2.8rem 2.6rem; background: #fff;
  border-radius: 12px; box-shadow: 0 1px 12px rgb(27 42 65 / 12%); }
h1 { font-size: 1.65rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
p { max-width: 46rem; }
.source { color: #5a6880; margin: 0 0 1.2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .38rem .9rem .38rem 0; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { font-size: .8rem; font-weight: 600; color: #5a6880; border-bottom: 1px solid #d5dce6; }
tbody th { padding-top: 1.2rem; font-size: .95rem; }
tbody td { border-bottom: 1px solid #edf0f5; }
td.ours { font-weight: 700; }
td svg { display: block; margin-left: auto; }
.key { font-size: .85rem; color: #5a6880; }
figure { margin: 0 0 1.2rem; }
figure svg, figure img { max-width: 100%; height: auto; }
figcaption { font-size: .9rem; color: #5a6880; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; margin: 0; font-size: .93rem; }
dt { color: #5a6880; }
dd { margin: 0; overflow-wrap: anywhere; }
code { font: .9em ui-monospace, Menlo, Consolas, monospace; background: #eef2f6; padding: .1em .35em;
  border-radius: 4px; }
.failed li { color: #a3200f; overflow-wrap: anywhere; }
"""
_PAPER_KEY = f' &nbsp; <span style="color:{ORANGE}">◇</span> the paper\'s number'
_WIDTH = 190  # of the bars in the table, in pixels


def make_page(
    study: Study,
    budget: str,
    summary: dict[str, Any],
    rows: Sequence[SummaryRow],
    records: Sequence[Record],
    drawing: str,
    pictures: Sequence[tuple[Path, str]],
) -> str:
    """Returns the page.

    Args:
      study: what was run.
      budget: to which budget.
      summary: the content of `summary.json`.
      rows: our numbers beside the paper's.
      records: the raw results.
      drawing: the study's figure, an SVG document.
      pictures: files and captions; a file that is absent (its run has not ended) is left out.
    """
    svg = drawing[drawing.index("<svg") :]
    shown = "".join(_picture(file, caption) for file, caption in pictures if file.is_file())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(study.title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(study.title)}</h1>
{_source(study)}<p>{escape(study.about)}</p>
{_table(study, rows)}
<p class="key"><span style="color:{BLUE}">●</span> here, with its 95% interval (Wilson for shares, bootstrap for
means and medians){_PAPER_KEY if study.source else ""}</p>
<h2>Figure</h2>
<figure>{svg}</figure>
{shown}
{_failures(records)}
<h2>How this was made</h2>
{_facts(study, budget, summary, records)}
</main>
</body>
</html>
"""


def _source(study: Study) -> str:
    if not study.source:
        return ""
    paper = "Uncertainty-sensitive Learning and Planning with Ensembles"
    return f'<p class="source">The paper: <em>{paper}</em>,\n{escape(study.source)}</p>\n'


def _table(study: Study, rows: Sequence[SummaryRow]) -> str:
    lines, num_columns = [], 6 if study.source else 5
    for metric in dict.fromkeys(row.metric for row in rows):
        mine = [row for row in rows if row.metric is metric]
        ours = [n for row in mine for n in (row.ours.value, row.ours.low, row.ours.high) if n is not None]
        numbers = [0.0, *ours, *(row.paper.value for row in mine if row.paper)]
        ends = (0.0, 1.0) if metric.kind in ("share", "rate") else (min(numbers), max(numbers))
        lines.append(f'<tr><th colspan="{num_columns}">{escape(metric.title)}</th></tr>')
        for row in mine:
            kind = metric.kind
            lines.append(
                f"<tr><td>{escape(row.setting.title)}</td>"
                f"{_paper_cell(row) if study.source else ''}"
                f'<td class="ours">{number_text(row.ours.value, kind)}</td>'
                f"<td>{interval_text(row.ours, kind)}</td><td>{row.ours.n}</td><td>{_bar(row, ends)}</td></tr>"
            )
    paper = "<th>paper</th>" if study.source else ""
    head = f"<th>setting</th>{paper}<th>here</th><th>95% interval</th><th>runs</th><th></th>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _paper_cell(row: SummaryRow) -> str:
    return f"<td>{escape(row.paper.text) if row.paper else '–'}</td>"


def _bar(row: SummaryRow, ends: tuple[float, float]) -> str:
    """Draws a number, its interval and the paper's number on a line between two numbers."""
    low, high = ends
    if low == high:
        return ""

    def at(number: float) -> float:
        return 8 + (_WIDTH - 16) * (number - low) / (high - low)

    parts = [f'<line x1="8" x2="{_WIDTH - 8}" y1="10" y2="10" stroke="#dfe5ed" stroke-width="2"/>']
    if row.ours.low is not None and row.ours.high is not None:
        parts.append(
            f'<line x1="{at(row.ours.low):.1f}" x2="{at(row.ours.high):.1f}" y1="10" y2="10" '
            f'stroke="{BLUE}" stroke-opacity=".35" stroke-width="7" stroke-linecap="round"/>'
        )
    if row.ours.value is not None:
        parts.append(f'<circle cx="{at(row.ours.value):.1f}" cy="10" r="5" fill="{BLUE}"/>')
    if row.paper is not None:
        x = at(row.paper.value)
        parts.append(
            f'<path d="M{x:.1f} 2.5 l7 7.5 l-7 7.5 l-7 -7.5 z" fill="none" stroke="{ORANGE}" stroke-width="2"/>'
        )
    return f'<svg width="{_WIDTH}" height="20" role="img">{"".join(parts)}</svg>'


def _picture(file: Path, caption: str) -> str:
    content = base64.b64encode(file.read_bytes()).decode()
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{content}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _failures(records: Sequence[Record]) -> str:
    failed = [record for record in records if record["state"] == "failed"]
    if not failed:
        return ""
    items = "".join(
        f"<li>{escape(' '.join(filter(None, (r['setting'], r['case']))))}, seed {escape(str(r['seed']))}: "
        f"{escape(r['error'] or '')}</li>"
        for r in failed
    )
    return f'<h2>Runs that failed, not counted above</h2><ul class="failed">{items}</ul>'


def _facts(study: Study, budget: str, summary: dict[str, Any], records: Sequence[Record]) -> str:
    seconds = sum(record.get("wall_seconds") or 0.0 for record in records)
    steps = sum(record.get("env_steps") or 0 for record in records)
    facts = {
        "command": f"<code>{escape(summary['command'])}</code>",
        "budget": f"{budget}: {escape(study.budgets[budget].about)}",
        "runs": f"{len(records)}, seeds from 0; {steps:,} environment steps in {duration(seconds)} of one core each",
        "commit": escape(summary["commit"] or "not known"),
        "machine": escape(summary["machine"] or "not known"),
        "processor": escape(summary.get("processor") or "not known"),
        "raw results": "<code>results.csv</code>" + (", <code>curves.csv</code>" if study.curve else ""),
    }
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{text}</dd>' for name, text in facts.items())}</dl>"
