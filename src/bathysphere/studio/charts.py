"""Options of charts, from plain numbers: what Apache ECharts draws. Keys that begin with a colon are JavaScript."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bathysphere.domains.base import StateMap
from bathysphere.planning.inspect import RootReport
from bathysphere.plots import BLUE, GOLD, GREY, ORANGE
from bathysphere.studio.curves import Curve
from bathysphere.studio.graph_view import GraphView
from bathysphere.studio.watched import Moment

GREEN, PURPLE = "#2f9e77", "#b0478f"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, "#7568d8", "#c0392b", GOLD, GREY)
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
        if curve.low is not None and curve.high is not None:
            series += _band(curve.label, colour, _points(curve, curve.low), _points(curve, curve.high - curve.low))
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


def _band(name: str, colour: str, low: Any, more: Any) -> list[dict[str, Any]]:
    """Returns two series that draw a band: from `low`, [step, value] each, to as much more."""
    quiet = {"type": "line", "symbol": "none", "silent": True, "tooltip": {"show": False}, "lineStyle": {"opacity": 0}}
    quiet |= {"stack": name, "stackStrategy": "all"}  # a band may begin below zero and end above
    area = {"color": colour, "opacity": 0.16}
    return [
        {**quiet, "name": f"{name} low", "data": low},
        {**quiet, "name": f"{name} band", "data": more, "areaStyle": area},
    ]


def _points(curve: Curve, values: Any) -> list[list[float]]:
    return np.stack([curve.steps, values], axis=1).round(6).tolist() if len(curve.steps) else []


RAMPS = {
    "std": ("#e3edf7", "#a9cbe8", "#5b9bd1", "#1f6fbf", "#08306b"),
    "value": ("#f3ead8", "#ecc98f", "#e8a23c", "#b96a12", "#5e3206"),
}


def shade(values: Any, ramp: str) -> list[str]:
    """Returns a colour for each number, from the lowest to the highest of them."""
    numbers = np.asarray(values, np.float64)
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    stops = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in RAMPS[ramp]])
    share = np.clip((np.nan_to_num(numbers, nan=low) - low) / max(high - low, 1e-12), 0, 1) * (len(stops) - 1)
    first = np.minimum(share.astype(int), len(stops) - 2)
    mixed = stops[first] + (share - first)[:, None] * (stops[first + 1] - stops[first])
    return [f"#{int(r):02x}{int(g):02x}{int(b):02x}" for r, g, b in mixed]


def actions_chart(report: RootReport, most: int = 24) -> dict[str, Any]:
    """Returns a chart of every action: the members' estimates as dots, their mean and spread."""
    ranked = np.argsort(np.where(np.isnan(report.score), -np.inf, report.score))[::-1][:most]
    drawn = sorted(ranked.tolist())
    names = [report.action_names[a] for a in drawn]
    dots, means, spreads = list[Any](), list[Any](), list[Any]()
    for place, action in enumerate(drawn):
        q = report.q[action]
        colour = ORANGE if action == report.chosen else GREY if report.excluded[action] else BLUE
        jitter = (np.arange(len(q)) % 7 - 3) * 0.075
        style = {"color": colour, "opacity": 0.7}
        dots += [{"value": [_short(v), place + j], "itemStyle": style} for v, j in zip(q, jitter, strict=True)]
        means.append({"value": [_short(q.mean()), place], "itemStyle": {"color": colour, "opacity": 1}})
        low, high = _short(q.mean() - q.std()), _short(q.mean() + q.std())
        style = {"color": colour, "width": 14, "opacity": 0.16, "cap": "round"}
        line = {"type": "line", "data": [[low, place], [high, place]], "symbol": "none", "lineStyle": style}
        spreads.append({**line, "silent": True, "tooltip": {"show": False}})
    y = axis(min=-1, max=len(drawn), interval=1, inverse=True, splitLine={"show": False})
    y["axisLabel"] = {**TEXT, "color": "var(--ink)", ":formatter": f"v => {json.dumps(names)}[v] ?? ''"}
    return {
        "animation": False,
        "grid": {"left": 8, "right": 24, "top": 8, "bottom": 32, "containLabel": True},
        "tooltip": {**TOOLTIP, ":formatter": "p => p.seriesName + ' ' + p.value[0].toPrecision(4)"},
        "xAxis": axis("value of the action, by every member", nameLocation="middle", nameGap=26, scale=True),
        "yAxis": y,
        "series": [
            *spreads,
            {"type": "scatter", "name": "a member:", "symbolSize": 8, "data": dots},
            {"type": "scatter", "name": "mean:", "symbol": "rect", "symbolSize": [3, 24], "data": means, "z": 5},
        ],
    }


_ABOUT = "p => Object.assign(document.createElement('div'), {textContent: p.data.about})"  # names stay text


def story_chart(story: Mapping[int, Moment], made: Sequence[int], now: int, names: tuple[str, ...]) -> dict[str, Any]:
    """Returns a chart of an episode: what each step was worth, and a band of the members' standard deviation.

    Args:
      story: what was thought before each step.
      made: the actions of all steps, those that were taken back included; other ones than the agent's stand out.
      now: the step that is next, marked by a line.
      names: of the actions.
    """
    steps = sorted(story)
    told = [(step, story[step].mean, story[step].std) for step in steps]
    band = _band("spread", BLUE, [[s, _short(m - d)] for s, m, d in told], [[s, _short(2 * d)] for s, _, d in told])
    drawn = {"type": "line", "name": "value", "symbolSize": 7, "symbol": "circle", "showAllSymbol": len(told) <= 60}
    drawn |= {"lineStyle": {"width": 2, "color": BLUE}, "itemStyle": {"color": BLUE}}
    drawn["data"] = [
        {
            "value": [s, _short(m)],
            "about": f"step {s}{_told_step(story[s], made[s] if s < len(made) else None, names)}: {m:.4g} ± {d:.3g}",
            **(_OWN_STEP if s < len(made) and made[s] != story[s].choice else {}),
        }
        for s, m, d in told
    ]
    line = {"type": "dashed", "color": "var(--muted)", "width": 1.5}
    here = {"silent": True, "symbol": "none", "label": {"show": False}, "data": [{"xAxis": now}]}
    drawn["markLine"] = {**here, "lineStyle": line}
    return {
        "animation": False,
        "grid": {"left": 8, "right": 24, "top": 12, "bottom": 30, "containLabel": True},
        "tooltip": {**TOOLTIP, "trigger": "item", ":formatter": _ABOUT},
        "xAxis": axis("step", nameLocation="middle", nameGap=26, min=0, max=max([10, now, *steps]), minInterval=1),
        "yAxis": axis(scale=True, splitNumber=3),
        "series": [*band, drawn],
    }


_OWN_STEP = {"symbol": "diamond", "symbolSize": 12, "itemStyle": {"color": ORANGE}}


def _told_step(moment: Moment, made: int | None, names: tuple[str, ...]) -> str:
    """Returns what was done at a step, and what the agent would have done."""
    choice = "" if moment.choice is None else names[moment.choice]
    if made is None or made == moment.choice:
        return f", {choice}" if choice else ""
    return f", {names[made]}" + (f" (it would have chosen {choice})" if choice else "")


_GRAPH_WIDTH, _GRAPH_HEIGHT = 820, 420  # pixels, about
_MOST_APART = 120  # pixels between neighbours
_SYMBOLS = {"end": "rect", "dead end": "triangle", "success": "diamond"}  # others are circles
_QUESTION = {
    "formatter": "?",
    "fontSize": 10,
    "fontWeight": 700,
    "color": "#fff",
    "textBorderColor": "#1b2a41",
    "textBorderWidth": 2,
}
_LINES = {
    "path": {"color": ORANGE, "width": 3, "opacity": 0.95},
    "tree": {"color": GREY, "width": 1, "opacity": 0.55},
    "other": {"color": GREY, "width": 1, "opacity": 0.25, "type": "dotted"},
    "loop": {"color": PURPLE, "width": 1.2, "opacity": 0.85, "type": "dashed", "curveness": 0.25},
}


def graph_chart(view: GraphView, by: str, picture: str, opened: int | None = None) -> dict[str, Any]:
    """Returns a chart of a search graph: zoomable, its states coloured by value or by disagreement.

    Args:
      view: what to draw.
      by: value or std.
      picture: address of a state's picture, with {} for its number.
      opened: a state to draw with a ring.
    """
    colours = shade([node.std if by == "std" else node.mean for node in view.nodes], by)
    left = min((node.x for node in view.nodes), default=0.0)
    wide = max((node.x - left for node in view.nodes), default=1.0) or 1.0
    deep = max((node.y for node in view.nodes), default=1.0) or 1.0
    across = min(_GRAPH_WIDTH, _MOST_APART * wide)
    largest = min(max(0.85 * min(across / wide, _GRAPH_HEIGHT / deep), 8.0), 30.0)  # neighbours stay apart
    nodes = []
    for node, colour in zip(view.nodes, colours, strict=True):
        size = float(min(7 + 3.2 * np.sqrt(node.count), largest)) * (1.6 if node.kind == "success" else 1)
        is_root = node.kind == "root"
        edge = GREEN if node.kind == "success" else ORANGE if node.is_on_path or is_root else "var(--muted)"
        thick = 4 if node.state == opened else 2.5 if node.is_on_path or is_root or node.kind == "success" else 0.8
        nodes.append(
            {
                "id": str(node.state),
                "name": str(node.state),
                "x": (node.x - left) / wide * across,
                "y": node.y / deep * _GRAPH_HEIGHT,
                "symbol": _SYMBOLS.get(node.kind, "circle"),
                "size": round(size, 1),
                "itemStyle": {"color": colour, "borderColor": edge, "borderWidth": thick},
                "label": {**_QUESTION, "show": node.kind == "unknown"},
                "about": f"{node.kind} {node.state}: value {node.mean:.4g}, std {node.std:.3g}, visits {node.count}",
            }
        )
    links = [{"source": str(e.source), "target": str(e.target), "lineStyle": _LINES[e.kind]} for e in view.edges]
    show = (
        "p => p.dataType === 'node' ? "
        f"'<img alt=\"\" width=\"150\" src=\"' + {json.dumps(picture)}.replace('{{}}', p.data.id) + '\"><br>' "
        "+ p.data.about : ''"
    )
    return {
        "animation": False,
        "tooltip": {**TOOLTIP, ":formatter": show},
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "roam": True,
                "preserveAspect": "contain",
                ":symbolSize": "(value, node) => node.data.size * Math.max(0.45, Math.min(1, innerWidth / 900))",
                "left": 30,
                "right": 30,
                "top": 24,
                "bottom": 24,
                "scaleLimit": {"min": 0.4, "max": 20},
                "emphasis": {"focus": "none", "scale": 1.15, "label": {"show": False}},
                "edgeSymbol": ["none", "none"],
                "data": nodes,
                "links": links,
            }
        ],
    }


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def map_chart(shown: StateMap, values: Any, ramp: str) -> dict[str, Any]:
    """Returns a chart of a map: a cell, or an arrow, for each state, shaded by its number."""
    height, width = shown.shape
    told = zip(shown.cells, values, strict=True)
    points: list[dict[str, Any]] = [{"value": [_short(c), _short(r), _short(v)]} for (r, c), v in told]
    low, high = (float(np.min(values)), float(np.max(values))) if len(points) else (0.0, 1.0)
    plane = _plane(height, width, low, high, ramp)
    if shown.arrows is not None:
        for point, turn in zip(points, shown.arrows, strict=True):
            point["symbolRotate"] = -float(turn)
    size = f"() => Math.max(4, Math.min(46, 0.5 * {_SIDE} / {max(height, width)}))"
    if shown.arrows is not None:
        series = {"type": "scatter", "symbol": "triangle", ":symbolSize": size, "data": points}
        edge = {"borderColor": "#ffffff", "borderWidth": 1.5}
        return {**plane, "series": [{**series, "xAxisIndex": 1, "yAxisIndex": 1, "itemStyle": edge}]}
    shine = 1 if shown.picture is None else 0.8  # what is below shines through
    return {**plane, "series": [{"type": "heatmap", "data": points, "itemStyle": {"opacity": shine}}]}


def training_map_chart(values: Any, top: float) -> dict[str, Any]:
    """Returns a chart of a map at a moment of training, shaded from 0 to `top`."""
    height, width = values.shape
    rows, columns = np.nonzero(np.isfinite(values))
    told = zip(rows.tolist(), columns.tolist(), values[rows, columns], strict=True)
    points = [[column, row, _short(value)] for row, column, value in told]
    return {**_plane(height, width, 0.0, top, "std"), "series": [{"type": "heatmap", "data": points}]}


_SIDE = 430  # pixels of a map


def _plane(height: int, width: int, low: float, high: float, ramp: str) -> dict[str, Any]:
    """Returns axes of a map, which are not drawn: by cell, and by number for what lies between cells."""
    x = {"type": "category", "data": list(range(width)), "show": False}
    y = {"type": "category", "data": list(range(height)), "show": False, "inverse": True}
    return {
        "animation": False,
        "grid": {"left": 0, "right": 0, "top": 0, "bottom": 0},
        "tooltip": {
            "confine": True,
            ":formatter": "p => `row ${p.value[1]}, column ${p.value[0]}: ${p.value[2].toPrecision(4)}`",
        },
        "xAxis": [x, {"type": "value", "min": -0.5, "max": width - 0.5, "show": False}],
        "yAxis": [y, {"type": "value", "min": -0.5, "max": height - 0.5, "show": False, "inverse": True}],
        "visualMap": {
            "show": False,
            "type": "continuous",
            "min": low,
            "max": max(high, low + 1e-9),
            "dimension": 2,
            "inRange": {"color": list(RAMPS[ramp])},
        },
    }
