"""Colours and axes that all figures share. Matplotlib is imported where figures are drawn."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, BLUE, ORANGE, GREY = "#1b2a41", "#1f6fbf", "#e8820c", "#8a94a6"
DEEP, GOLD, ROCK, GRID = "#0b4f9e", "#e0a100", "#e4e0da", "#e6e9ef"


def tidy(axis: Any) -> None:
    """Draws axes quietly, behind the data: a light grid, and no frame above and to the right."""
    axis.tick_params(colors=INK, labelsize=8)
    axis.grid(color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axis.spines[side].set_color(GREY)


def plain(text: str) -> str:
    """Returns a text of somebody else's so that Matplotlib draws it as it is; it reads what is between dollars as TeX.

    >>> plain("a $b$")
    'a \\\\$b\\\\$'
    """
    return text.replace("$", r"\$")


def png(figure: Figure) -> bytes:
    """Returns a figure as a PNG file."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=160)
    return content.getvalue()
