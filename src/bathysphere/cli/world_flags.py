"""The arguments of worlds from outside as flags: --domain...."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, make_dataclass
from typing import Annotated, Any

import tyro

from bathysphere.cli.common import Options, parse, with_domain
from bathysphere.config.start import changed
from bathysphere.domains import domain_names
from bathysphere.domains.base import DomainConfig
from bathysphere.domains.user_code import find_saved
from bathysphere.domains.worlds import GymnasiumConfig, ObjectConfig, PythonConfig, find_world, settings_class
from bathysphere.storage.plain import read_as, to_plain

HELP = {"-h", "--help", "--help-expert"}
_PREFIX = "--domain."


@dataclass(frozen=True)
class GymnasiumFlags:
    """What can be set about a Gymnasium environment."""

    arguments: tuple[str, ...] = ()
    """Arguments of gymnasium.make: map_name=8x8 is_slippery=false."""
    key: str | None = None
    """What identifies a state: observation or snapshot. None: found out by trying."""
    max_steps: int | None = None
    """Steps of an episode. None: the environment's own limit."""
    seeds: int | None = None
    """Start with one of so many fixed resets. None: every episode has its own."""


def world_of(what: str, argv: Sequence[str], verb: str) -> tuple[DomainConfig, list[str]]:
    """Returns the config of a world with the flags that follow its name, and the arguments that are left."""
    config = find_world(what)
    own, rest = split_world_flags(argv)
    return changed(config, read_world_flags(config, own, f"{verb} {what}")), rest


def parse_with_world(options: type[Options], argv: list[str], verb: str, description: str) -> Any:
    """Reads a world, which comes first, and what follows it into the dataclass `options`, which has a `domain`.

    Settings of the worlds that come with the package are flags of their own (--size), others --domain....
    """
    if not argv or argv[0].startswith("-") or argv[0] in domain_names():
        return parse(with_domain(options), argv, verb, description)
    config, rest = world_of(argv[0], argv[1:], verb)
    domain: Any = Annotated[type(config), tyro.conf.Suppress]
    kind: Any = make_dataclass(options.__name__, [("domain", domain)], bases=(options,), frozen=True)
    kind.__doc__ = options.__doc__
    return parse(kind, rest, f"{verb} {argv[0]}", description, kind(domain=config))


def is_from_outside(config: DomainConfig) -> bool:
    """Tells whether a config is of a world whose arguments are not its own fields."""
    return isinstance(config, PythonConfig | GymnasiumConfig | ObjectConfig)


def flags_of(config: DomainConfig) -> Any:
    """Returns an instance of a dataclass with a flag for everything that can be set about a world from outside."""
    if isinstance(config, GymnasiumConfig):
        arguments = tuple(f"{name}={json.dumps(value)}" for name, value in config.arguments.items())
        return GymnasiumFlags(arguments, config.key, config.max_steps, config.seeds)
    if isinstance(config, PythonConfig):
        return read_as(_kind_of(config), config.settings)
    return make_dataclass("Nothing", [], frozen=True)()


def _kind_of(config: DomainConfig) -> type:
    if isinstance(config, PythonConfig):
        return settings_class(find_saved(config.world, config.source))
    return GymnasiumFlags if isinstance(config, GymnasiumConfig) else type(config)


def read_world_flags(config: DomainConfig, argv: list[str], verb: str) -> dict[str, Any]:
    """Returns the settings of a world that its flags give, by name.

    Args:
      config: of the world.
      argv: its flags and their values.
      verb: as it is typed, with the world, for complaints.
    """
    kind = _kind_of(config)
    section: Any = make_dataclass("Options", [("domain", kind)], frozen=True)
    about = f"The arguments of {verb.partition(' ')[2]}."
    parsed = parse(section, argv, verb, about, config=(tyro.conf.AvoidSubcommands,)).domain
    plain = to_plain(parsed) if is_dataclass(parsed) else {}
    given = {word.removeprefix(_PREFIX).partition("=")[0].replace("-", "_").partition(".")[0] for word in argv}
    chosen = {each.name: plain[each.name] for each in fields(kind) if each.name in given}
    if "arguments" in chosen and kind is GymnasiumFlags:
        chosen["arguments"] = dict(map(_argument, chosen["arguments"]))
    return chosen


def _argument(text: str) -> tuple[str, Any]:
    """Reads name=value; a value that is no JSON is a text.

    >>> _argument("is_slippery=false"), _argument("map_name=8x8"), _argument("size=5")
    (('is_slippery', False), ('map_name', '8x8'), ('size', 5))
    """
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value.lower() if value in ("True", "False") else value)
    except ValueError:
        return name, value


def split_world_flags(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Parts the flags of the world, with their values, from the others; asked for help there are none."""
    if HELP & set(argv):
        return [], list(argv)
    own: list[str] = []
    rest: list[str] = []
    into = rest
    for word in argv:
        if word.startswith("--"):
            into = own if word.startswith(_PREFIX) else rest
        into.append(word)
    return own, rest
