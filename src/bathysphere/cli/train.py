"""`bathysphere train`: train a preset, or continue a run."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from bathysphere.cli.common import nothing_printed, say, with_address
from bathysphere.cli.run_flags import SHOWN, RunOptions, Verb, read_run
from bathysphere.config.convert import differences
from bathysphere.config.presets import PRESETS, describe_preset
from bathysphere.config.run import RunConfig
from bathysphere.config.start import explained
from bathysphere.errors import BathysphereError
from bathysphere.runs.api import RUNS
from bathysphere.runs.directory import RunDirectory, next_directory
from bathysphere.runs.display import RunDisplay, duration
from bathysphere.runs.report import told
from bathysphere.runs.runner import resume
from bathysphere.runs.runner import run as begin
from bathysphere.runs.workers import chosen_workers, in_blocks
from bathysphere.terminal import Terminal, columns_of

_DESCRIPTION = """Train a preset or a world of your own, or continue a run.

bathysphere train PRESET [OPTIONS]

bathysphere train WORLD [OPTIONS]

bathysphere train [PRESET] --config FILE [OPTIONS]

bathysphere train --resume RUN [OPTIONS]

Every field of the config is a flag. --help shows those most used, --help-expert all of them.

WORLD is the import path of a world of yours (my_world:MyWorld, in the current folder or installed), or
gymnasium:ID. Settings are then chosen for it, and shown with their reasons; --domain... are its own arguments.

A resumed run goes on exactly as if it had never stopped. Its steps, log-every, stop and checkpoint options
may be changed, nothing else. Ctrl-C saves and ends, with exit code 130; so does SIGTERM.

Examples:

bathysphere train --list

bathysphere train sokoban --help-expert

bathysphere train deep-sea --stop.on-solved

bathysphere train paper/deep-sea --domain.size 40 --seed 3 --run-dir runs/mine --steps 1400000

bathysphere train sokoban --planner best-first --search.max-expansions 500 --learning.graph-states 100

bathysphere train my_world:MyWorld --domain.size 5 --stop.seconds 60

bathysphere train gymnasium:CliffWalking-v1

bathysphere train --config runs/mine/config.json --seed 4

bathysphere train --resume runs/mine --steps 2000000

bathysphere train sokoban --workers 4

bathysphere train sokoban --ray 10.0.0.1:6379 --workers 16 --scale.distance 20
"""


@dataclass(frozen=True)
class Options(RunOptions):
    """Options of `bathysphere train`: the config, and what is not part of it."""

    workers: Annotated[int, tyro.conf.Suppress] = 1  # of the config, in runs of earlier versions
    num_workers: Annotated[int | None, tyro.conf.arg(name="workers")] = None
    """Processes that play, in blocks (--scale.block). The run does not depend on their number. None: this one alone;
    with --ray one for every core."""
    ray: str | None = None
    """Let them play on Ray: --ray for one on this machine, --ray HOST:PORT for a cluster, --ray auto for the one that
    this machine belongs to."""
    worker_gpus: float = 0.0
    """Share of a GPU for each worker, on Ray."""
    run_dir: Path | None = None
    """Where the run is written: a new or empty folder. None: runs/PRESET-seedSEED-NUMBER."""
    resume: Path | None = None
    """Continue the run in this directory."""
    fallback: tyro.conf.FlagCreatePairsOff[bool] = False
    """With --resume: if the newest checkpoint is damaged, use the last good one."""
    pictures: tyro.conf.FlagCreatePairsOff[bool] = True
    """Leave out the pictures at the end."""
    list: tyro.conf.FlagCreatePairsOff[bool] = False
    """List the presets."""


_VERB = Verb("train", Options, _DESCRIPTION, (*SHOWN, "num_workers", "ray", "run_dir", "resume", "list"))


def run(argv: list[str]) -> int:
    """Runs `bathysphere train <argv>` and returns the exit code."""
    if "--list" in argv:
        return _list_presets("--json" in argv)
    saved = _resumed(argv)
    if saved is not None and not argv[0].startswith("-"):
        raise BathysphereError(f"A resumed run has its preset already; leave out {argv[0]!r}.")
    options, config, choices = read_run(_VERB, with_address(argv), resumed=saved)
    workers = chosen_workers(options.num_workers, options.ray or False, options.worker_gpus)
    display = None if options.json else RunDisplay(Terminal())
    if choices and not options.json:
        sys.stdout.write(explained(choices, columns_of(sys.stdout)) + "\n")
    rest: dict[str, Any] = {"pictures": options.pictures, "workers": workers}
    with nothing_printed() if options.json else nullcontext():
        if saved is None:
            config = in_blocks(config, workers)
            result = begin(config, options.run_dir or next_directory(RUNS, config), display, **rest)
        else:
            _check_same(saved, config, options)
            result = resume(options.resume, display, config=config, fallback=options.fallback, **rest)
    say(result, summary(result), options.json)
    return 130 if result["stopped_by"] == "interrupted" else 0


def summary(result: dict[str, Any]) -> str:
    """Says in two or three sentences how a run went."""
    solved, first = result["solved_step"], result["first_solved_step"]
    if solved is not None:
        outcome = f"Solved: first won at step {first:,}, more than half of 50 episodes at step {solved:,}."
    elif first is not None:
        often = f"Won {result['wins']:,} times, first" if result["wins"] > 1 else "Won once,"
        outcome = f"{often} at step {first:,}, but not yet more than half of 50 episodes."
    elif (earned := _returns(result)) is not None:
        outcome = f"No episode counts as won. {earned}"
    else:
        outcome = "Not one episode was won."
    lines = [
        outcome,
        f"{result['episodes']:,} episodes, {result['env_steps']:,} steps ({result['imagined_steps']:,} more imagined) "
        f"and {result['updates']:,} updates in {duration(result['wall_seconds'])} "
        f"({result['env_steps_per_second']:,.0f} steps/s); stopped by {result['stopped_by']}. {_wins(result)}".rstrip(),
        *filter(None, [told(result.get("report", ()))]),
        f"Everything is in {result['run_dir']}",
    ]
    if result["stopped_by"] == "interrupted":
        lines.append(f"Continue with: bathysphere train --resume {result['run_dir']}")
    return "\n".join(lines)


def _wins(result: dict[str, Any]) -> str:
    """Says how often a run won, in all, and lately if that is another matter, and what it earned."""
    if not result["wins"]:
        return ""
    text = f"Won {result['wins']:,} of {result['episodes']:,} episodes"
    text = f"{text}, lately {result['win_rate_100']:.0%}." if result["episodes"] > 200 else f"{text}."
    earned = _returns(result)
    return text if earned is None else f"{text} {earned}"


def _returns(result: dict[str, Any]) -> str | None:
    """Says what episodes earned; None if that was nothing, or was not counted."""
    mean, best = result.get("return_mean_50"), result.get("return_best")
    if mean is None or best is None or (mean == 0.0 and best == 0.0):
        return None
    return f"Mean return of the latest episodes {mean:.4g}, best {best:.4g}."


def _resumed(argv: list[str]) -> RunConfig | None:
    """Returns the config of the run that `--resume` names, the default of every flag; None without it."""
    for number, argument in enumerate(argv):
        name, _, value = argument.partition("=")
        if name == "--resume":
            value = value or (argv[number + 1] if number + 1 < len(argv) else "")
            return RunDirectory.open(Path(value)).load_config() if value else None
    return None


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
