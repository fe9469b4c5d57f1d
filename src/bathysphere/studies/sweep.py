"""Sweeps: studies made on the spot, of one preset or world with some fields of its config varied."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bathysphere.config.convert import from_dict, override, to_dict
from bathysphere.config.run import RunConfig
from bathysphere.config.start import Start
from bathysphere.domains.worlds import ObjectConfig
from bathysphere.errors import BathysphereError
from bathysphere.storage.files import read_json, write_json, writing
from bathysphere.storage.plain import merge, to_plain
from bathysphere.studies.study import RETURN, Budget, Metric, Record, Setting, Study
from bathysphere.studies.sweep_figure import CURVE, sweep_figure

BUDGET = "sweep"  # the one that a sweep has
Vary = Mapping[str, Sequence[Any]]  # values to try, by dotted name of the field
MakeConfig = Callable[[dict[str, Any]], RunConfig]  # from settings of the world to a config

_EXAMPLE = "--vary search.risk_coef=0,1,3"
METRICS = (
    Metric("solved", "runs solved", "share", lambda record: float(record["solved_step"] is not None)),
    Metric("steps", "median steps until solved (solved runs)", "median", lambda record: record["solved_step"]),
    Metric("win-rate", "episodes won at the end, about the last 100", "rate", lambda record: record["win_rate_100"]),
    RETURN,
)


def parse_vary(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Reads what --vary says: the field, and its values with commas between them.

    >>> parse_vary(["search.risk_coef=0,1.5", "values.hidden=[50],[50,50]", "search.risk=vote,mean_std"])
    {'search.risk_coef': [0, 1.5], 'values.hidden': [[50], [50, 50]], 'search.risk': ['vote', 'mean_std']}
    """
    vary: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or not values.strip():
            raise BathysphereError(f"--vary is {text!r}; expected a field and its values: {_EXAMPLE}.")
        if name in vary:
            raise BathysphereError(f"--vary names {name} twice; give all its values at once.")
        vary[name] = [_value(part) for part in _parted(values)]
    return vary


def make_sweep(what: str, make: MakeConfig, vary: Vary, seeds: int) -> Study:
    """Returns the study that compares all combinations of values.

    Args:
      what: name of the preset or the world.
      make: returns the config of a run, given settings of the world that are varied.
      vary: values to try, by dotted name of the field.
      seeds: runs of every setting.
    """
    short = _short_names(vary)
    configs: dict[str, RunConfig] = {}
    settings = []
    for combination in itertools.product(*vary.values()):
        values = dict(zip(vary, combination, strict=True))
        title = ", ".join(f"{short[name]} = {_text(value)}" for name, value in values.items())
        name = ",".join(f"{short[name]}={_text(value)}" for name, value in values.items())
        config = _varied(make, values, configs)
        settings.append(Setting(re.sub(r"[^\w=.,+-]+", "_", name), title, config, values=_cells(values)))
    names = [setting.name for setting in settings]
    if len(set(names)) < len(names):
        raise BathysphereError("--vary has the same value twice; name every value once.")
    fields = ", ".join(vary)
    runs = f"{len(settings)} settings x {seeds} seeds"
    return Study(
        name=f"sweep of {what}",
        title=f"{what}: {fields}",
        source="",
        about=f"Every combination of the values of {fields}, each with {seeds} seeds.",
        settings=tuple(settings),
        metrics=METRICS,
        budgets={BUDGET: Budget(f"{runs}.", seeds, {})},
        figure=sweep_figure,
        curve=CURVE,
    )


def first_domain(vary: Vary) -> dict[str, Any]:
    """Returns the settings of the world in the first combination; without them it might not be one at all."""
    return _nested({name.removeprefix("domain."): values[0] for name, values in vary.items() if _is_of_world(name)})


def _is_of_world(name: str) -> bool:
    return name.startswith("domain.")


def default_folder(preset: str, vary: Vary) -> Path:
    """Returns where a sweep goes if no other place is given: the same for the same preset and fields."""
    return Path("sweeps") / "-".join([preset.replace("/", "-"), *_short_names(vary).values()])


class Chosen:
    """Remembers in a sweep's folder what was chosen for a world: some of it is measured, and would differ next time."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "chosen.json"
        self._known: dict[str, Any] = read_json(self._file) if self._file.is_file() else {}

    def settle(self, start: Start) -> Start:
        """Returns what was chosen the first time, if there was one."""
        if not start.choices:
            return start
        plain = to_plain(start.config.domain)
        key = json.dumps({name: part for name, part in plain.items() if name != "source"}, sort_keys=True)
        if key in self._known:
            return Start(replace(from_dict(self._known[key]), domain=start.config.domain), start.choices)
        self._known[key] = to_dict(start.config)
        return start

    def save(self) -> None:
        """Writes them."""
        if self._known:
            with writing(self._file.parent, "Choose another --out."):
                self._file.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._file, self._known)


def check_vary(vary: Vary, seeds: int) -> None:
    """Refuses what no sweep can be made of."""
    if not vary:
        raise BathysphereError(f"A sweep needs something to vary: {_EXAMPLE}.")
    if seeds < 1:
        raise BathysphereError(f"--seeds is {seeds}; expected at least 1.")
    for name, values in vary.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise BathysphereError(f"The values of {name} are {values!r}; expected a list of them.")
        if name == "seed":
            raise BathysphereError("Every setting has the seeds 0, 1, 2, ...; say how many with --seeds.")


def _varied(make: MakeConfig, values: dict[str, Any], made: dict[str, RunConfig]) -> RunConfig:
    """Returns the config of a setting.

    Mutates: made, the configs by what is varied of the world.
    """
    world = {name.removeprefix("domain."): value for name, value in values.items() if _is_of_world(name)}
    key = json.dumps(world, sort_keys=True, default=str)
    if key not in made:
        made[key] = make(_nested(world))
    config = made[key]
    if isinstance(config.domain, ObjectConfig):
        raise BathysphereError(
            f"The world {config.domain.world} is an object, and a sweep's runs have processes of their own. Name the "
            "world by its import path instead: my_world:MyWorld."
        )
    others = {name: value for name, value in values.items() if not _is_of_world(name)}
    config = override(config, _nested(others))
    return replace(config, checkpoint=replace(config.checkpoint, keep=1))


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values by dotted names as nested plain data."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        part: Any = value
        for key in reversed(name.split(".")):
            part = {key: part}
        nested = merge(nested, part)
    return nested


def _short_names(vary: Vary) -> dict[str, str]:
    """Returns the last part of each dotted name; the whole where that would be said of two."""
    last = [name.rpartition(".")[2] for name in vary]
    return {name: end if last.count(end) == 1 else name for name, end in zip(vary, last, strict=True)}


def _cells(values: Mapping[str, Any]) -> Record:
    """Returns columns for the raw results, by the names of the fields."""
    return {name: value if isinstance(value, int | float | bool) else _text(value) for name, value in values.items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(to_plain(value), separators=(",", ":"))


def _parted(text: str) -> list[str]:
    """Parts values at commas, but not inside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _value(text: str) -> Any:
    """Reads JSON, or True, False and None as Python has them; anything else is a text."""
    text = text.strip()
    if not text:
        raise BathysphereError(f"--vary has an empty value; expected values with commas between them: {_EXAMPLE}.")
    try:
        return json.loads({"True": "true", "False": "false", "None": "null", "none": "null"}.get(text, text))
    except ValueError:
        return text
