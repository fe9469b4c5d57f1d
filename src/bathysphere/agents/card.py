"""The card of an agent: how it was trained, and what was measured of it."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass

from bathysphere.config.convert import to_dict
from bathysphere.config.presets import PRESETS, find_preset
from bathysphere.config.run import RunConfig
from bathysphere.errors import BathysphereError
from bathysphere.storage.plain import flat


@dataclass(frozen=True)
class Measurement:
    """A number that was measured, with its 95 % interval if it has one."""

    what: str
    value: float
    low: float | None
    high: float | None
    n: int
    """Episodes or levels behind the number."""
    command: str
    """What measures it again."""

    def __post_init__(self) -> None:
        numbers = [number for number in (self.value, self.low, self.high) if number is not None]
        if not all(map(math.isfinite, numbers)) or self.n < 0:
            raise BathysphereError(f"The card says of {self.what!r} what cannot be measured: {self.value} of {self.n}.")


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

    def __post_init__(self) -> None:
        if not 0 <= self.seconds < math.inf or self.env_steps < 0:
            raise BathysphereError(f"The card speaks of {self.env_steps} steps in {self.seconds} seconds.")


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
