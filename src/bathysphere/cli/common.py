"""What the verbs share: parsing options from a dataclass, choosing a world, saying the result."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager
from dataclasses import make_dataclass
from typing import Annotated, Any, TypeVar, Union

import tyro
from numba.core import event
from rich.console import Console

from bathysphere.domains import domain_names, find_domain

Options = TypeVar("Options")


def parse(
    options: type[Options],
    argv: list[str],
    verb: str,
    description: str,
    default: Options | None = None,
    config: tuple[Any, ...] = (
        tyro.conf.CascadeSubcommandArgs,
        tyro.conf.FlagCreatePairsOff,
        tyro.conf.OmitArgPrefixes,
        tyro.conf.OmitSubcommandPrefixes,
    ),
) -> Options:
    """Reads `argv` into the dataclass `options`; tyro answers --help and complains about unknown options.

    Args:
      options: a dataclass, or a union of them.
      argv: without the verb.
      verb: as it is typed, for the help and for complaints.
      description: of the verb, with examples.
      default: what an option has that is not given, instead of the dataclass's own defaults.
      config: how fields become flags.
    """
    if isinstance(options, type):
        options = type("options", (options,), {"__doc__": options.__doc__})  # complaints name the class
    rest: dict[str, Any] = {} if default is None else {"default": default}
    rest |= {"prog": f"bathysphere {verb}", "description": description}
    parsed: Options = tyro.cli(options, args=argv, config=config, **rest)
    return parsed


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


class _Announcement(event.Listener):
    """Is printed once. Numba calls listeners for real compilations only, not for what it finds in its cache."""

    def __init__(self) -> None:
        self._is_printed = False

    def on_start(self, event: Any) -> None:
        """Called before anything is compiled."""
        if not self._is_printed:
            self._is_printed = True
            sys.stderr.write("Compiling for this machine; that is kept, and takes less than a minute ...\n")

    def on_end(self, event: Any) -> None:
        """Called after that."""


def announcing() -> AbstractContextManager[None]:
    """Returns a context in which the first compilation is announced on stderr."""
    context: AbstractContextManager[None] = event.install_listener("numba:compile", _Announcement())
    return context
