"""Curves of several runs: smoothed, and runs that differ in their seed alone as one curve with an interval."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.runs.metrics import Row
from bathysphere.studio.folder import RunSummary, setting_differences

METRICS = {
    "win_rate_100": "Share of episodes won, of the latest 100 or so",
    "return_mean": "Mean return",
    "graph_size": "States in an episode's search graph",
    "ensemble_std": "Standard deviation among members",
    "loss": "Loss",
    "env_steps_per_second": "Steps per second",
    "imagined_steps": "Transitions imagined besides the steps",
    "episode_length": "Steps of an episode",
    "rooms_visited": "Rooms visited",
}
_NAMED = 3  # settings in a group's name
_DECIDES_NOTHING = ("seed", "steps", "preset", "log_every", "device", "workers", "checkpoint.")  # or is told anyway
_GRID = 200  # points of a mean over seeds


@dataclass(frozen=True)
class Curve:
    """A line to draw, perhaps with a band around it."""

    label: str
    steps: NDArray[np.float64]  # [n], increasing
    values: NDArray[np.float64]  # [n]
    low: NDArray[np.float64] | None = None  # [n], 95 % interval of the mean over runs
    high: NDArray[np.float64] | None = None
    num_runs: int = 1


def curve_of(label: str, rows: Sequence[Row], metric: str, smoothing: float = 0.0) -> Curve:
    """Returns one metric of a run; rows without it are left out."""
    told = [(row["env_steps"], row[metric]) for row in rows if isinstance(row.get(metric), int | float)]
    points = np.array(told, np.float64).reshape(-1, 2)
    return Curve(label, points[:, 0], smoothed(points[:, 1], smoothing))


def smoothed(values: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Returns exponential means, corrected for their start; `weight` of the past in [0, 1).

    >>> smoothed(np.array([1.0, 0.0, 0.0]), 0.5).round(3).tolist()
    [1.0, 0.333, 0.143]
    """
    mean, share, out = 0.0, 0.0, np.empty(len(values))
    for i, value in enumerate(values):
        mean = weight * mean + (1 - weight) * value
        share = weight * share + (1 - weight)
        out[i] = mean / share
    return out


def groups(runs: Sequence[RunSummary]) -> dict[str, list[RunSummary]]:
    """Returns runs that differ in nothing but seed and length together, by a name for each group."""
    found: dict[str, list[RunSummary]] = {}
    for run in runs:
        rest = {name: value for name, value in run.settings.items() if name not in ("seed", "steps")}
        found.setdefault(json.dumps(rest, sort_keys=True, default=str), []).append(run)
    differences = setting_differences([group[0] for group in found.values()])
    presets: list[tuple[str, ...]] = [(group[0].preset,) for group in found.values()]
    differing = _telling([told for told in differences if not told[0].startswith(_DECIDES_NOTHING)], presets)
    named: dict[str, list[RunSummary]] = {}
    for number, group in enumerate(found.values()):
        told = [
            group[0].preset,
            *(f"{name} {values[number]}" for name, values in differing if values[number] is not None),
        ]
        name = group[0].name if len(group) == 1 else f"{', '.join(told)}, {len(group)} seeds"
        while name in named:
            name = f"{name} ({group[0].name})"
        named[name] = group
    return named


def _telling(differing: list[tuple[str, list[Any]]], known: list[tuple[str, ...]]) -> list[tuple[str, list[Any]]]:
    """Returns the few of the settings in which groups differ that tell most apart of those with equal names so far."""
    chosen: list[tuple[str, list[Any]]] = []
    while differing and len(chosen) < _NAMED and len(set(known)) < len(known):
        told = [[(*one, str(value)) for one, value in zip(known, values, strict=True)] for _, values in differing]
        best = max(range(len(told)), key=lambda i: (len(set(told[i])), -differing[i][1].count(None), -i))
        if len(set(told[best])) == len(set(known)):
            break
        chosen.append(differing[best])
        known = told[best]
    return chosen


def mean_curve(label: str, curves: Sequence[Curve]) -> Curve:
    """Returns the mean of curves over the steps that all of them have, with Student's 95 % interval.

    A single curve is returned as it is.
    """
    drawn = [curve for curve in curves if len(curve.steps)]
    if len(drawn) < 2:
        return Curve(label, drawn[0].steps, drawn[0].values) if drawn else Curve(label, np.empty(0), np.empty(0))
    first, last = max(curve.steps[0] for curve in drawn), min(curve.steps[-1] for curve in drawn)
    steps = np.linspace(first, last, _GRID) if last > first else np.array([first])
    values = np.stack([np.interp(steps, curve.steps, curve.values) for curve in drawn])
    from scipy.special import stdtrit

    spread = stdtrit(len(drawn) - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    mean = values.mean(axis=0)
    return Curve(label, steps, mean, mean - spread, mean + spread, len(drawn))


def as_csv(curves: Sequence[Curve]) -> str:
    """Returns curves as comma-separated text: a row for each point."""
    lines = ["curve,steps,value,low,high"]
    for curve in curves:
        label = '"' + curve.label.replace('"', '""') + '"'
        for i, (step, value) in enumerate(zip(curve.steps, curve.values, strict=True)):
            low = "" if curve.low is None else f"{curve.low[i]:.6g}"
            high = "" if curve.high is None else f"{curve.high[i]:.6g}"
            lines.append(f"{label},{step:.0f},{value:.6g},{low},{high}")
    return "\n".join(lines) + "\n"
