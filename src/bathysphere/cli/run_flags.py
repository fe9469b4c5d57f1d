"""A run's config from the command line: what it begins with, a file (`--config`), and every field as a flag."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro

from bathysphere.cli.common import parse
from bathysphere.cli.world_flags import HELP, flags_of, is_from_outside, read_world_flags, split_world_flags
from bathysphere.config.auto import Choice
from bathysphere.config.convert import from_dict, override, with_planner
from bathysphere.config.file import read_config_file
from bathysphere.config.old_names import renewed, renewed_flags
from bathysphere.config.presets import PRESETS, find_preset
from bathysphere.config.run import RunConfig
from bathysphere.config.start import Start, find_start, find_world_or_preset
from bathysphere.errors import BathysphereError
from bathysphere.storage.plain import merge

# What --help shows of the config. A star: all fields there, but not those of sections below.
SHOWN = (
    *("steps", "seed", "batch", "planner", "model", "start_from", "config", "json", "help_expert"),
    *("domain.*", "domain.generator.height", "domain.generator.width", "domain.generator.num_boxes"),
    *("search.passes", "search.risk_coef", "stop.*"),
)
EXPERT = "--help-expert"


@dataclass(frozen=True)
class RunOptions(RunConfig):
    """The config of a run, and how it is given."""

    preset: Annotated[str, tyro.conf.Suppress] = "deep-sea"
    config: Path | None = None
    """A file with fields of the config, as a run's config.json has them: .json, .toml or .yaml. Flags go before it."""
    planner: str | None = None
    """Plan with another planner than the preset's: mcts, best-first, levin, phs, replan, expectimax or none. Its
    options are then --search...."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object on stdout, and nothing else."""
    help_expert: tyro.conf.FlagCreatePairsOff[bool] = False
    """Show this help with every option: networks, optimiser, replay, all of the search ..."""


class Verb(NamedTuple):
    """A verb whose options are the fields of a config and some of its own."""

    name: str
    options: type[RunOptions]
    description: str
    shown: Sequence[str]  # options that --help shows


class Reading(NamedTuple):
    """What a command line says."""

    options: Any  # an instance of the verb's options, with all of the config
    config: RunConfig
    choices: Sequence[Choice]  # settings that were chosen for the world


def read_run(
    verb: Verb,
    argv: Sequence[str],
    *,
    resumed: RunConfig | None = None,
    domain: Mapping[str, Any] | None = None,
    settle: Callable[[Start], Start] = lambda start: start,
) -> Reading:
    """Reads what follows a verb: PRESET or WORLD, and flags.

    Args:
      verb: which.
      argv: the words.
      resumed: the config of a run that goes on; then there is no first word.
      domain: settings of the world that come before those of the flags.
      settle: may replace what was chosen for a world.
    """
    words = renewed_flags(argv)
    file, words = _taken(words, "--config")
    what = words.pop(0) if words and not words[0].startswith("-") else None
    if resumed is not None:
        if file is not None:
            raise BathysphereError("A resumed run keeps its config; leave out --config.")
        start = Start(resumed, [])
    elif what is None and file is None:
        if not HELP & set(words):
            raise BathysphereError(
                f"'bathysphere {verb.name}' needs a preset or a world first. 'bathysphere train --list' shows the "
                "presets; a world of yours is named my_world:MyWorld; --config FILE reads a file."
            )
        start = Start(find_preset("deep-sea"), [])
    else:
        start, words = _start(verb, what, {} if file is None else read_config_file(Path(file)), words, domain, settle)
    planner, words = _taken(words, "--planner")
    config = start.config
    if planner is not None:
        config = with_planner(config, planner)
    options = _parse(verb, config, words)
    config = RunConfig(**config_fields(options))
    if domain and not is_from_outside(config.domain):
        config = override(config, {"domain": dict(domain)})
    return Reading(options, config, start.choices)


def config_fields(config: RunConfig) -> dict[str, Any]:
    """Returns the fields of a config that are a run's, by name."""
    return {field.name: getattr(config, field.name) for field in fields(RunConfig)}


def _start(
    verb: Verb,
    what: str | None,
    given: dict[str, Any],
    words: list[str],
    domain: Mapping[str, Any] | None,
    settle: Callable[[Start], Start],
) -> tuple[Start, list[str]]:
    """Returns what a run begins with, and the flags that are left: those of a world from outside are read here.

    Args:
      verb: which.
      what: the first word.
      given: content of the file.
      words: flags.
      domain: settings of a world from outside.
      settle: may replace what was chosen for a world.
    """
    given = renewed(given)
    if what is None and given.get("preset") in PRESETS:
        what = given["preset"]
    if what is None:
        if "domain" not in given:
            raise BathysphereError(
                f"The file says neither which preset nor which domain. Name one before it: bathysphere {verb.name} "
                "PRESET --config FILE."
            )
        begun = from_dict(given)
        world = begun.domain
    else:
        world = find_preset(what).domain if what in PRESETS else find_world_or_preset(what)
    if not is_from_outside(world):
        return Start(override(find_start(what).config, given), []) if what else Start(begun, []), words
    own, words = split_world_flags(words)
    changes = merge(read_world_flags(world, own, f"{verb.name} {what or begun.preset}"), dict(domain or {}))
    if what is None:
        return find_start(begun, changes or None), words
    asked = dict(given.pop("domain", {}))
    start = settle(find_start(what, merge(asked, changes) or None))
    return Start(override(start.config, given), start.choices), words


def flag_values(words: Sequence[str], flag: str) -> list[str]:
    """Returns all values that a flag is given."""
    values, rest = list[str](), list(words)
    while True:
        value, rest = _taken(rest, flag)
        if value is None:
            return values
        values.append(value)


def _taken(words: list[str], flag: str) -> tuple[str | None, list[str]]:
    """Takes `flag VALUE` out of the arguments; None without it."""
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == flag:
            rest = words[number + 1 :]
            if not equals:
                if not rest:
                    raise BathysphereError(f"{flag} needs a value after it.")
                value, rest = rest[0], rest[1:]
            return value, [*words[:number], *rest]
    return None, list(words)


def _parse(verb: Verb, start: RunConfig, words: Sequence[str]) -> Any:
    # World and planner of the preset decide which flags there are; those of worlds from outside are read before.
    is_help, is_expert = bool(HELP & set(words)), EXPERT in words
    argv = ["--help" if word == EXPERT else word for word in words]
    domain: Any = start.domain
    kind_of_domain: Any = type(domain)
    if is_from_outside(domain):
        domain = flags_of(domain) if is_help else domain
        kind_of_domain = type(domain) if is_help else Annotated[kind_of_domain, tyro.conf.Suppress]
    sections = [("domain", kind_of_domain, domain), ("search", type(start.search), start.search)]
    kind: Any = make_dataclass("Options", sections, bases=(verb.options,), frozen=True)
    kind.__doc__ = verb.options.__doc__
    default = kind(**(config_fields(start) | {"domain": domain}))
    if is_help and not is_expert:
        default = shortened(default, verb.shown)
    name = verb.name if is_help else f"{verb.name} {start.preset}"
    return parse(type(default), argv, name, verb.description, default, (tyro.conf.AvoidSubcommands,))


def shortened(default: Any, shown: Sequence[str]) -> Any:
    """Returns the dataclass instance `default` as one of a class in whose help only the fields `shown` appear.

    tyro does not accept fields that it does not show, so this is for help only.
    """
    values, changed = {}, list[tuple[str, Any, Any]]()
    for each in fields(default):
        name, value = each.name, getattr(default, each.name)
        inner = [other.removeprefix(f"{name}.") for other in shown if other.startswith(f"{name}.")]
        if is_dataclass(value) and inner:
            value = shortened(value, inner)
            changed.append((name, type(value), None))
        elif is_dataclass(value) or not {name, "*"} & set(shown):
            changed.append((name, Annotated[type(value), tyro.conf.Suppress], None))
        values[name] = value
    # By keyword only: a field without default may come after one that gets one here.
    short = make_dataclass(type(default).__name__, changed, bases=(type(default),), frozen=True, kw_only=True)
    short.__doc__ = type(default).__doc__
    return short(**values)
