"""What a run begins with: from the name of a preset, a world, or a whole config to a `RunConfig`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bathysphere.config.auto import Choice, choose
from bathysphere.config.presets import PRESETS, find_preset
from bathysphere.config.run import RunConfig
from bathysphere.domains import domain_names, make_domain
from bathysphere.domains.base import DomainConfig
from bathysphere.domains.worlds import PythonConfig, describe, find_world, installed_worlds
from bathysphere.errors import BathysphereError, did_you_mean
from bathysphere.storage.plain import merge, read_as, to_plain

_NARROWEST = 30  # columns for a reason; with fewer it stands below its setting


class Start(NamedTuple):
    """A config, and why it is as it is."""

    config: RunConfig
    choices: list[Choice]  # empty unless they were made for the world


def find_start(what: Any, domain: Mapping[str, Any] | DomainConfig | None = None) -> Start:
    """Returns the config that `what` stands for.

    Args:
      what: name of a preset, a whole config, the name of a world (as `find_world` takes it), or a world itself.
      domain: settings of the world to change, by name; or all of them.
    """
    if isinstance(what, str) and what in PRESETS:
        what = find_preset(what)
    if isinstance(what, RunConfig):
        return Start(what if domain is None else replace(what, domain=changed(what.domain, domain)), [])
    if isinstance(what, str):
        config = changed(find_world_or_preset(what), domain)
        return Start(*choose(make_domain(config), config))
    config, made = describe(what)
    if domain is not None:
        config = changed(config, domain)
        made = make_domain(config)
    return Start(*choose(made, config))


def explained(choices: Sequence[Choice], columns: int | None = None) -> str:
    """Returns choices as lines of text, each with its reason; in a terminal of so many columns no line is longer."""
    margin = max(len(choice.setting) for choice in choices) + 4
    lines = ["Settings chosen for this world; any can be set otherwise:"]
    for setting, reason in choices:
        beside = f"  {setting}".ljust(margin)
        if columns is None:
            lines.append(f"{beside}{reason}")
        elif columns - margin >= _NARROWEST:
            lines += textwrap.wrap(reason, columns, initial_indent=beside, subsequent_indent=" " * margin)
        else:
            lines += [beside.rstrip(), *textwrap.wrap(reason, columns, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)


def find_world_or_preset(name: str) -> DomainConfig:
    """Returns the config of the world called `name`; if there is none, the complaint speaks of presets too."""
    try:
        return find_world(name)
    except BathysphereError:
        if ":" in name or name.endswith(".py"):
            raise
        known = [*PRESETS, *domain_names(), *installed_worlds()]
        raise BathysphereError(
            f"There is no preset {name!r}, and no world of that name.{did_you_mean(name, known)} 'bathysphere train "
            "--list' shows the presets; a world of yours is named my_world:MyWorld, an environment gymnasium:ID; one "
            "that a module of yours registers by name needs --import MODULE."
        ) from None


def changed(config: DomainConfig, changes: Mapping[str, Any] | DomainConfig | None) -> DomainConfig:
    """Returns the config of a world with some settings changed, by name; or with all of them."""
    if changes is None or isinstance(changes, DomainConfig):
        return config if changes is None else changes
    changes = dict(changes)
    if isinstance(config, PythonConfig) and not changes.keys() <= {"name", "world", "settings", "source"}:
        changes = {"settings": changes}
    other: DomainConfig = read_as(DomainConfig, merge(to_plain(config), changes))
    return other
