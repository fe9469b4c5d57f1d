"""Options of charts, from plain numbers: what Apache ECharts draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bathysphere.plots import BLUE, GOLD, GREY, ORANGE
from bathysphere.studio.curves import Curve

COLOURS = (BLUE, ORANGE, "#2f9e77", "#b0478f", "#7568d8", "#c0392b", GOLD, GREY)
TEXT: dict[str, Any] = {"color": "var(--muted)", "fontSize": 12}
LINE: dict[str, Any] = {"lineStyle": {"color": "var(--line)"}}
TOOLTIP: dict[str, Any] = {
    "confine": True,
    "backgroundColor": "var(--card)",
    "borderColor": "var(--line)",
    "textStyle": {"color": "var(--ink)", "fontSize": 12},
}


def axis(name: str = "", **rest: Any) -> dict[str, Any]:
    """Returns a quiet axis of numbers."""
    return {
        "type": "value",
        "name": name,
        "nameTextStyle": TEXT,
        "axisLabel": {**TEXT, "hideOverlap": True},
        "axisLine": {"show": False},
        "axisTick": {"show": False},
        "splitLine": LINE,
        **rest,
    }


def colours_of(labels: Sequence[str]) -> dict[str, str]:
    """Returns a colour for each label."""
    return {label: COLOURS[i % len(COLOURS)] for i, label in enumerate(labels)}


def curves_chart(curves: Sequence[Curve], title: str, is_share: bool) -> dict[str, Any]:
    """Returns a chart of curves over steps, bands around those that are means."""
    series: list[dict[str, Any]] = []
    for curve, colour in zip(curves, colours_of([c.label for c in curves]).values(), strict=True):
        quiet = {"type": "line", "symbol": "none", "silent": True, "stack": curve.label, "tooltip": {"show": False}}
        if curve.low is not None and curve.high is not None:
            none = {"opacity": 0}
            band = {"color": colour, "opacity": 0.16}
            series.append({**quiet, "name": f"{curve.label} low", "data": _points(curve, curve.low), "lineStyle": none})
            rest = _points(curve, curve.high - curve.low)
            series.append({**quiet, "name": f"{curve.label} band", "data": rest, "lineStyle": none, "areaStyle": band})
        drawn = {"type": "line", "name": curve.label, "symbol": "none", "data": _points(curve, curve.values)}
        series.append({**drawn, "lineStyle": {"width": 2, "color": colour}, "itemStyle": {"color": colour}})
    percent = {":formatter": "v => Math.round(v * 100) + '%'"} if is_share else {}
    y = axis(min=0, max=1) if is_share else axis(scale=True)
    y["axisLabel"] = {**y["axisLabel"], **percent}
    return {
        "animation": False,
        "grid": {"left": 8, "right": 22, "top": 34, "bottom": 30, "containLabel": True},
        "title": {"text": title, "left": 0, "top": 0, "textStyle": {**TEXT, "fontWeight": "normal"}},
        "tooltip": {**TOOLTIP, "trigger": "axis"},
        "xAxis": axis("steps", nameLocation="middle", nameGap=26),
        "yAxis": y,
        "series": series,
    }


def _points(curve: Curve, values: Any) -> list[list[float]]:
    return np.stack([curve.steps, values], axis=1).round(6).tolist() if len(curve.steps) else []
