"""docs/reference/config.md: every field of the config, from the dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from bathysphere.config.presets import PRESETS, describe_preset
from bathysphere.config.run import RunConfig
from bathysphere.domains.registry import domain_names, find_domain
from bathysphere.domains.worlds import GymnasiumConfig, ObjectConfig, PythonConfig
from bathysphere.planning.best_first import BestFirstConfig
from bathysphere.planning.config import SearchConfig
from tools.fields import Field, cell, code, explained_fields

_START = """# Config

*Made from the source by `python -m tools.pages`; do not edit.*

Everything that decides a run. A field is a flag of `bathysphere train` (`search.risk_coef` is `--search.risk-coef`), an
entry of a run's `config.json`, and an argument of `bathysphere.train`, sections as dicts:
`train("deep-sea", seed=3, search={"passes": 20})`. A preset sets some fields; those that it does not mention have the
default below. `bathysphere train PRESET --help-expert` shows a preset's own.
"""


_OUTSIDE = {"a world of yours": PythonConfig, "gymnasium": GymnasiumConfig, "an object": ObjectConfig}


def config_page() -> str:
    """Returns the page."""
    parts = [_START, _section("", RunConfig, "The run")]
    for name in domain_names():
        domain_class: Any = find_domain(name)
        if domain_class.__module__.startswith("bathysphere."):
            parts.append(_section("domain", domain_class.Config, f"domain: {name}"))
    for title, config in _OUTSIDE.items():
        parts.append(_section("domain", config, f"domain: {title}"))
    parts.append(_section("search", SearchConfig, "search: mcts"))
    parts.append(_section("search", BestFirstConfig, "search: best-first, levin, phs"))
    for field in dataclasses.fields(RunConfig):
        if field.name not in ("domain", "search") and _is_section(value := _default(field)):
            parts.append(_section(field.name, type(value), field.name))
    parts.append(_presets())
    return "\n".join(parts)


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _is_section(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _section(path: str, cls: type, title: str) -> str:
    """Returns a heading, the section's sentence and its table, and the same of the sections inside."""
    inside = []
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for field in _without_suppressed(cls):
        name = f"{path}.{field.name}" if path else field.name
        if _is_section(field.default):
            rows.append(f"| `{name}` | section | | {cell(field.text)} |")
            if path:
                inside.append(_section(name, type(field.default), f"{name}"))
            continue
        default = "" if field.default is dataclasses.MISSING else code(_shown(field.default))
        rows.append(f"| `{name}` | {code(field.kind)} | {default} | {cell(field.text)} |")
    about = " ".join((cls.__doc__ or "").split())
    if about.startswith(f"{cls.__name__}("):
        about = ""  # made by dataclass
    return "\n".join([f"## {title}\n", *([about, ""] if about else []), *rows, "", *inside])


def _without_suppressed(cls: type) -> Iterator[Field]:
    return (field for field in explained_fields(cls) if not field.name.startswith("_"))


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value}"


def _presets() -> str:
    rows = [f"| `{name}` | {cell(describe_preset(name))} |" for name in PRESETS]
    about = (
        "A preset is a config with a name. Those named `paper/...` have the settings of the authors' program, "
        "`paper-as-written/...` those of the paper's text."
    )
    return "\n".join(["## Presets\n", about, "", "| preset | what it is |", "|---|---|", *rows, ""])
