"""docs/reference/cli.md: every verb of the command line with its options, from the dataclasses they are read into."""

from __future__ import annotations

import dataclasses
import importlib
import re
import typing
from contextlib import ExitStack
from typing import Any
from unittest import mock

from bathysphere.cli import VERBS, common, run_flags, world_flags
from bathysphere.config.run import RunConfig
from tools.fields import Field, cell, code, explained_fields

_START = """# Command line

*Made from the source by `python -m tools.pages`; do not edit.*

`bathysphere VERB --help` says the same in the terminal. Every verb takes `--json`, which prints one JSON object on
stdout and nothing else, `--debug`, which shows the traceback of an error, and `--import MODULE`, which first imports a
module of yours (worlds, risk measures, networks and presets that it registers are then known).

Exit codes: 0 fine, 1 the verb says no (a check found something, a run of a study failed), 2 bad input, 130 interrupted
by Ctrl-C or SIGTERM. What an interrupted verb has done so far is saved: `train` can be resumed, `sweep` and `reproduce`
go on when the command is repeated, `solve` has written the solutions it has found.

| verb | what it does |
|---|---|
"""
_NAMED = re.compile(r"conf\.arg\(name='([^']+)'\)")  # an option that is not called as its field
_BELOW = {"agents": ("export",), "model": ("train", "evaluate")}  # verbs below a verb that are read by themselves


class _Asked(Exception):
    """Carries what a verb would have parsed."""


def cli_page() -> str:
    """Returns the page."""
    table = "".join(f"| [`{verb}`](#{verb}) | {cell(about)} |\n" for verb, (_, about) in VERBS.items())
    parts = [_START + table]
    for verb in VERBS:
        parts.append(_verb(verb, [], 2))
        parts += [_verb(verb, [below], 3) for below in _BELOW.get(verb, ())]
    return "\n".join(parts)


def _verb(verb: str, below: list[str], depth: int) -> str:
    options, description = _asked(verb, below)
    about, _, examples = description.partition("Examples:\n")
    lines = [line for line in examples.splitlines() if line.strip()]
    parts = [f"{'#' * depth} {' '.join([verb, *below])}\n", _prose(about)]
    if lines:
        parts += ["```sh", *lines, "```\n"]
    kinds = typing.get_args(options) if not isinstance(options, type) else (options,)
    for kind in kinds:
        cls, *extra = typing.get_args(kind) or (kind,)
        if extra:  # one of several commands
            parts.append(
                f"{'#' * (depth + 1)} {verb} {extra[0].name}\n\n{cell((cls.__doc__ or '').partition(':')[0])}.\n"
            )
        parts.append(_table(cls))
    return "\n".join(parts)


def _asked(verb: str, below: list[str]) -> tuple[Any, str]:
    """Returns the dataclass (or union of them) that a verb reads its options into, and its description."""

    def stop(options: Any, argv: list[str], verb: str, description: str, *rest: Any, **more: Any) -> Any:
        raise _Asked(options, description)

    module = importlib.import_module(VERBS[verb][0])
    with ExitStack() as patched:
        for home in (common, run_flags, world_flags, module):
            if hasattr(home, "parse"):
                patched.enter_context(mock.patch.object(home, "parse", stop))
        try:
            module.run([*below, "--help"])
        except _Asked as asked:
            options, description = asked.args
            return options, description
    raise AssertionError(f"bathysphere {verb} --help parsed nothing")


def _table(cls: type) -> str:
    """Returns the options of a dataclass; those of the config are on the config's page."""
    config = {field.name for field in dataclasses.fields(RunConfig)} if issubclass(cls, RunConfig) else set()
    rows = ["| option | default | meaning |", "|---|---|---|"]
    if config:
        rows.append("| `--SECTION.FIELD`, `--FIELD` | the preset's | every field of the [config](config.md) |")
    for field in _options(cls):
        if field.name in config:
            continue
        if field.name == "domain":
            rows.append("| the world, first | | one of the [worlds](worlds.md), then its settings |")
            continue
        is_positional = "Positional" in field.kind
        flag = _NAMED.search(field.kind)
        called = field.name.replace("_", "-") if flag is None else flag[1]
        name = f"`{field.name.upper()}`" if is_positional else f"`--{called}`"
        is_given = field.default is dataclasses.MISSING or field.default in (False, None, ())
        default = "" if is_given else code(str(field.default))
        rows.append(f"| {name} | {default} | {cell(field.text)} |")
    return "\n".join([*rows, ""])


def _options(cls: type) -> list[Field]:
    """Returns the options that a verb's own dataclass has; the world is added by a program, and has no text."""
    if "domain" not in {field.name for field in dataclasses.fields(cls)} or issubclass(cls, RunConfig):
        return list(explained_fields(cls))
    own = [
        base
        for base in cls.__mro__
        if dataclasses.is_dataclass(base) and "domain" not in vars(base).get("__annotations__", {})
    ]
    return [Field("domain", "", None, ""), *explained_fields(own[0] if own else cls)]


def _prose(text: str) -> str:
    """Returns a description as paragraphs; lines that are commands become code."""
    paragraphs = [" ".join(part.split()) for part in text.strip().split("\n\n")]
    shown = [f"`{part}`" if part.startswith("bathysphere ") and part[-1] != "." else part for part in paragraphs]
    return "\n\n".join(part.replace("<", "&lt;") for part in shown) + "\n"
