"""A picture of what more planning gains."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from bathysphere.storage.files import write_file

_INK, _BLUE = "#1b2a41", "#1f6fbf"


def draw_passes(evaluations: list[dict[str, Any]], path: Path) -> None:
    """Draws the win or solve rate with its interval against the passes of planning per move, as a PNG."""
    from matplotlib.figure import Figure

    rate = "win_rate" if "win_rate" in evaluations[0] else "solve_rate"
    rows = sorted(evaluations, key=lambda evaluation: evaluation["passes"])
    passes, rates = [row["passes"] for row in rows], [row[rate] for row in rows]
    figure = Figure(figsize=(5.2, 3.6), layout="constrained", facecolor="white")
    axis = figure.subplots()
    axis.fill_between(
        passes, [row[f"{rate}_low"] for row in rows], [row[f"{rate}_high"] for row in rows], color=_BLUE, alpha=0.2
    )
    axis.plot(passes, rates, "o-", color=_BLUE)
    axis.set_xscale("log")
    axis.set_xticks(passes, [f"{number:,}" for number in passes])
    axis.minorticks_off()
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axis.set_xlabel("passes of planning per move", color=_INK)
    axis.set_ylabel("games won" if rate == "win_rate" else "levels solved", color=_INK)
    axis.set_title(f"{rows[0]['agent']}, with 95 % intervals", loc="left", fontsize=10, color=_INK)
    axis.grid(color="#e6e9ef", linewidth=0.8)
    axis.tick_params(colors=_INK)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=160)
    write_file(path, picture.getvalue())
