"""The card of an agent: how it was trained, and what was measured of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bathysphere.config.convert import to_dict
from bathysphere.config.presets import PRESETS, find_preset
from bathysphere.config.run import RunConfig
from bathysphere.errors import BathysphereError
from bathysphere.storage.files import read_json
from bathysphere.storage.plain import flat

_RATES = {"win_rate": "games won", "solve_rate": "levels solved"}


@dataclass(frozen=True)
class Measurement:
    """A number that was measured, with its 95 % interval if it has one."""

    what: str
    value: float
    low: float | None
    high: float | None
    n: int
    """Games or levels behind the number."""
    command: str
    """What measures it again."""


@dataclass(frozen=True)
class Card:
    """How an agent was trained, and what was measured of it."""

    command: str
    """What trains it again."""
    seed: int
    commit: str | None
    """Of the source it was trained with."""
    env_steps: int
    seconds: float
    """Of training, wall clock."""
    machine: str
    results: tuple[Measurement, ...] = ()


def train_command(config: RunConfig) -> str:
    """Returns the command that trains `config`: its preset, and a flag for every field that differs from it."""
    preset = to_dict(find_preset(config.preset)) if config.preset in PRESETS else {}
    mine = to_dict(config)
    if preset.get("domain", {}).get("name") != mine["domain"]["name"]:
        return "bathysphere.train(config), in Python, with the config in this file"
    before, words = flat(preset), ["bathysphere", "train", config.preset]
    for name, value in flat(mine).items():
        if value == before.get(name):
            continue
        group, _, last = name.replace("_", "-").rpartition(".")
        prefix = f"--{group}." if group else "--"
        if isinstance(value, bool):
            words.append(prefix + ("" if value else "no-") + last)
        else:
            words += [prefix + last, *map(str, value if isinstance(value, list) else [value])]
    return shlex.join(words)


def read_measurements(path: Path, weights: str) -> list[Measurement]:
    """Reads what `bathysphere evaluate AGENT --json` printed.

    Args:
      path: the file it was saved in.
      weights: fingerprint of the agent's weights; numbers of any others are refused.
    """
    evaluation = read_json(path)
    parts = evaluation.get("evaluations", [evaluation]) if isinstance(evaluation, dict) else [evaluation]
    measurements = []
    for part in parts:
        rate = next((name for name in _RATES if isinstance(part, dict) and name in part), None)
        if rate is None or not {"weights", "command"} <= part.keys():
            raise BathysphereError(
                f"{path} is not an evaluation. Expected what 'bathysphere evaluate AGENT --json' prints."
            )
        if part["weights"] != weights:
            raise BathysphereError(
                f"{path} was measured with other weights. Evaluate the agent file itself (its weights have half "
                "precision), then export once more with what came out."
            )
        measurements.append(_measurement(part, rate))
    return measurements


def _measurement(part: dict[str, Any], rate: str) -> Measurement:
    n = part["episodes"] if rate == "win_rate" else part["levels"]
    said = [f"{part['passes']} passes a move", f"at most {part['max_steps']} moves"]
    said += [f"{name} {value}" for name, value in part["changed"].items() if name not in ("passes", "max_steps")]
    what = ", ".join([_RATES[rate], *said])
    return Measurement(what, part[rate], part[f"{rate}_low"], part[f"{rate}_high"], n, part["command"])
