"""`bathysphere train`: train a preset, or continue a run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from bathysphere.cli.common import parse, say
from bathysphere.cli.world_flags import flags_of, is_from_outside, start_of
from bathysphere.config.auto import Choice
from bathysphere.config.convert import differences
from bathysphere.config.old_names import renewed_flags
from bathysphere.config.presets import PRESETS, describe_preset, find_preset
from bathysphere.config.run import RunConfig
from bathysphere.config.start import explained
from bathysphere.errors import BathysphereError
from bathysphere.planning.named import changed_planner
from bathysphere.runs.api import RUNS
from bathysphere.runs.directory import RunDirectory, next_directory
from bathysphere.runs.display import RunDisplay, duration
from bathysphere.runs.runner import resume
from bathysphere.runs.runner import run as begin

_DESCRIPTION = """Train a preset or a world of your own, or continue a run.

bathysphere train PRESET [OPTIONS]

bathysphere train WORLD [OPTIONS]

bathysphere train --resume RUN [OPTIONS]

Every field of the config is a flag. --help shows those most used, --help-expert all of them.

WORLD is the import path of a world of yours (my_world:MyWorld, in the current folder or installed), or
gymnasium:ID. Settings are then chosen for it, and shown with their reasons; --domain... are its own arguments.

A resumed run goes on exactly as if it had never stopped. Its steps, log-every, stop and checkpoint options
may be changed, nothing else. Ctrl-C saves and ends; so does SIGTERM.

Examples:

bathysphere train --list

bathysphere train sokoban --help-expert

bathysphere train deep-sea --stop.on-solved

bathysphere train paper/deep-sea --domain.size 40 --seed 3 --run-dir runs/mine --steps 1400000

bathysphere train sokoban --planner best-first --search.max-expansions 500 --learning.graph-states 100

bathysphere train my_world:MyWorld --domain.size 5 --stop.seconds 60

bathysphere train gymnasium:CliffWalking-v1

bathysphere train --resume runs/mine --steps 2000000
"""

# What --help shows. A star: all fields there, but not those of sections below.
_COMMON = (
    *("steps", "seed", "batch", "planner", "model", "start_from", "run_dir", "resume", "list", "json", "help_expert"),
    *("domain.*", "domain.generator.height", "domain.generator.width", "domain.generator.num_boxes"),
    *("search.passes", "search.risk_coef", "stop.*"),
)
_HELP = {"-h", "--help"}


@dataclass(frozen=True)
class Options(RunConfig):
    """Options of `bathysphere train`: the config, and what is not part of it."""

    preset: Annotated[str, tyro.conf.Suppress] = "deep-sea"
    run_dir: Path | None = None
    """Where the run is written: a new or empty folder. None: runs/PRESET-seedSEED-NUMBER."""
    resume: Path | None = None
    """Continue the run in this directory."""
    fallback: tyro.conf.FlagCreatePairsOff[bool] = False
    """With --resume: if the newest checkpoint is damaged, use the last good one."""
    planner: str | None = None
    """Plan with another planner than the preset's: mcts, best-first, levin or phs. Its options are then --search...."""
    pictures: tyro.conf.FlagCreatePairsOff[bool] = True
    """Leave out the pictures at the end."""
    list: tyro.conf.FlagCreatePairsOff[bool] = False
    """List the presets."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object (what result.json holds) on stdout, and nothing else."""
    help_expert: tyro.conf.FlagCreatePairsOff[bool] = False
    """Show this help with every option: networks, optimiser, replay, all of the search ..."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere train <argv>` and returns the exit code."""
    if "--list" in argv:
        return _list_presets("--json" in argv)
    is_expert = "--help-expert" in argv
    argv = renewed_flags(["--help" if word == "--help-expert" else word for word in argv])
    saved = _resumed(argv)
    choices: Sequence[Choice] = ()
    if saved is not None:
        if not argv[0].startswith("-"):
            raise BathysphereError(f"A resumed run has its preset already; leave out {argv[0]!r}.")
        start = saved
    elif argv and not argv[0].startswith("-"):
        begun, argv = start_of(argv[0], argv[1:])
        start, argv = _with_planner(begun.config, argv)
        choices = begun.choices
    elif _HELP & set(argv):
        start = find_preset("deep-sea")
    else:
        raise BathysphereError(
            "'bathysphere train' needs a preset or a world first. 'bathysphere train --list' shows the presets; a "
            "world of yours is named my_world:MyWorld; --resume RUN continues a run."
        )
    options = _parse(start, argv, is_expert)
    config = RunConfig(**_fields(options))
    display = None if options.json else RunDisplay(Console(highlight=False))
    if choices and not options.json:
        sys.stdout.write(explained(choices) + "\n")
    if options.resume is None:
        path = options.run_dir or next_directory(RUNS, config)
        result = begin(config, path, display, pictures=options.pictures)
    else:
        _check_same(start, config, options)
        result = resume(options.resume, display, config=config, fallback=options.fallback, pictures=options.pictures)
    say(result, summary(result), options.json)
    return 0


def summary(result: dict[str, Any]) -> str:
    """Says in two or three sentences how a run went."""
    solved, first = result["solved_step"], result["first_solved_step"]
    if solved is not None:
        outcome = f"Solved: first won at step {first:,}, more than half of 50 episodes at step {solved:,}."
    elif first is not None:
        outcome = f"Won {result['wins']:,} times, first at step {first:,}, but not yet more than half of 50 episodes."
    else:
        outcome = "Not one episode was won."
    lines = [
        outcome,
        f"{result['episodes']:,} episodes, {result['env_steps']:,} steps and {result['updates']:,} updates in "
        f"{duration(result['wall_seconds'])} ({result['env_steps_per_second']:,.0f} steps/s); stopped by "
        f"{result['stopped_by']}. {_wins(result)}",
        f"Everything is in {result['run_dir']}",
    ]
    if result["stopped_by"] == "interrupted":
        lines.append(f"Continue with: bathysphere train --resume {result['run_dir']}")
    return "\n".join(lines)


def _wins(result: dict[str, Any]) -> str:
    """Says how often a run won: in all, and lately if that is another matter."""
    text = f"Won {result['wins']:,} of {result['episodes']:,} episodes"
    return f"{text}, lately {result['win_rate_100']:.0%}." if result["episodes"] > 200 else f"{text}."


def _resumed(argv: list[str]) -> RunConfig | None:
    """Returns the config of the run that `--resume` names, the default of every flag; None without it."""
    for number, argument in enumerate(argv):
        name, _, value = argument.partition("=")
        if name == "--resume":
            value = value or (argv[number + 1] if number + 1 < len(argv) else "")
            return RunDirectory.open(Path(value)).load_config() if value else None
    return None


def _with_planner(start: RunConfig, argv: list[str]) -> tuple[RunConfig, list[str]]:
    """Takes `--planner NAME` out of the arguments: the preset is then planned by another planner, at its defaults."""
    flags = [number for number, argument in enumerate(argv) if argument.partition("=")[0] == "--planner"]
    if not flags:
        return start, argv
    name, first = argv[flags[0]].partition("=")[2], flags[0]
    rest = argv[first + 1 :]
    if not name:
        name, rest = (rest[0], rest[1:]) if rest else ("", rest)
    return replace(start, search=changed_planner(start.search, name, {})), [*argv[:first], *rest]


def _parse(start: RunConfig, argv: list[str], is_expert: bool = True) -> Options:
    # World and planner of the preset decide which flags there are; those of worlds from outside are read before.
    is_help = bool(_HELP & set(argv))
    domain: Any = start.domain
    kind_of_domain: Any = type(domain)
    if is_from_outside(domain):
        domain = flags_of(domain) if is_help else domain
        kind_of_domain = type(domain) if is_help else Annotated[kind_of_domain, tyro.conf.Suppress]
    sections = [("domain", kind_of_domain, domain), ("search", type(start.search), start.search)]
    kind: Any = make_dataclass("Options", sections, bases=(Options,), frozen=True)
    kind.__doc__ = Options.__doc__
    default = kind(**(_fields(start) | {"domain": domain}))
    if is_help and not is_expert:
        default = _shortened(default, _COMMON)
    verb = "train" if is_help else f"train {start.preset}"
    options: Options = parse(type(default), argv, verb, _DESCRIPTION, default, (tyro.conf.AvoidSubcommands,))
    return options


def _shortened(default: Any, shown: Sequence[str]) -> Any:
    """Returns the dataclass instance `default` as one of a class in whose help only the fields `shown` appear.

    tyro does not accept fields that it does not show, so this is for help only.
    """
    values, changed = {}, list[tuple[str, Any, Any]]()
    for each in fields(default):
        name, value = each.name, getattr(default, each.name)
        inner = [other.removeprefix(f"{name}.") for other in shown if other.startswith(f"{name}.")]
        if is_dataclass(value) and inner:
            value = _shortened(value, inner)
            changed.append((name, type(value), None))
        elif is_dataclass(value) or not {name, "*"} & set(shown):
            changed.append((name, Annotated[type(value), tyro.conf.Suppress], None))
        values[name] = value
    # By keyword only: a field without default may come after one that gets one here.
    short = make_dataclass(type(default).__name__, changed, bases=(type(default),), frozen=True, kw_only=True)
    short.__doc__ = type(default).__doc__
    return short(**values)


def _fields(config: RunConfig) -> dict[str, Any]:
    return {field.name: getattr(config, field.name) for field in fields(RunConfig)}


def _check_same(saved: RunConfig, config: RunConfig, options: Options) -> None:
    if options.run_dir is not None:
        raise BathysphereError("--resume goes on in the run's own directory; leave out --run-dir.")
    if changed := differences(saved, config):
        raise BathysphereError(
            f"A resumed run keeps its settings, and {', '.join(changed)} would change. Start a new run for that."
        )


def _list_presets(as_json: bool) -> int:
    about = {name: describe_preset(name) for name in PRESETS}
    say({"presets": about}, "\n".join(f"{name}\n    {text}" for name, text in about.items()), as_json)
    return 0
