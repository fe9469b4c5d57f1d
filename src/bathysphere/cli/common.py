"""What the verbs share: parsing options from a dataclass, choosing a world, and saying the result."""

from __future__ import annotations

import json
import sys
from dataclasses import make_dataclass
from typing import Annotated, Any, TypeVar, Union

import tyro
from rich.console import Console

from bathysphere.domains import domain_names, find_domain

Options = TypeVar("Options")


def parse(options: type[Options], argv: list[str], verb: str, description: str) -> Options:
    """Reads `argv` into the dataclass `options`; tyro answers --help and complains about unknown options."""
    return tyro.cli(
        options,
        args=argv,
        prog=f"bathysphere {verb}",
        description=description,
        config=(
            tyro.conf.CascadeSubcommandArgs,
            tyro.conf.FlagCreatePairsOff,
            tyro.conf.OmitArgPrefixes,
            tyro.conf.OmitSubcommandPrefixes,
        ),
    )


def with_domain(options: type[Options]) -> type[Options]:
    """Returns the dataclass `options` with its field `domain` open to the settings of every known world.

    The world comes first on the command line, its settings and the verb's own options after it.
    """
    configs = [(name, find_domain(name).Config) for name in domain_names()]
    kinds = tuple(Annotated[config, tyro.conf.subcommand(name)] for name, config in configs)
    kind: Any = Union[kinds]  # noqa: UP007 (there is no other way to write one of many)
    opened: Any = make_dataclass(options.__name__, [("domain", kind)], bases=(options,), frozen=True)
    opened.__doc__ = options.__doc__
    return opened  # type: ignore[no-any-return]


def say(result: dict[str, Any], text: str, as_json: bool) -> None:
    """Prints `result` as one JSON object, or `text` for a person. Either is the last thing on stdout."""
    if as_json:
        sys.stdout.write(json.dumps(result) + "\n")
    else:
        Console(highlight=False, markup=False, soft_wrap=True).print(text)
