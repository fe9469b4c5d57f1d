"""The Python version of `bathysphere train`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from bathysphere.compiling import announcing
from bathysphere.config.convert import differences, override
from bathysphere.config.start import explained, find_start
from bathysphere.domains.observing import Observer
from bathysphere.domains.worlds import hand_over
from bathysphere.errors import BathysphereError
from bathysphere.runs import runner
from bathysphere.runs.callbacks import OnEpisode
from bathysphere.runs.directory import RunDirectory, next_directory
from bathysphere.runs.run import Run
from bathysphere.runs.workers import chosen_workers, in_blocks
from bathysphere.storage.plain import merge, to_plain
from bathysphere.terminal import columns_of

RUNS = Path("runs")  # where runs go if no other place is given


def train(
    what: Any,
    /,
    *,
    seconds: float | None = None,
    run_dir: str | PathLike[str] | None = None,
    show: bool = False,
    pictures: bool = True,
    observers: Sequence[Observer] = (),
    on_episode: OnEpisode | None = None,
    workers: int | None = None,
    ray: bool | str = False,
    worker_gpus: float = 0.0,
    **overrides: Any,
) -> Run:
    """Trains, and returns the run; it is a mapping of how it ended: `run["solved_step"]`.

    Args:
      what: name of a preset; a world (a class or object of yours, or its import path "my_world:MyWorld", or
        "gymnasium:ID"), for which settings are then chosen; or a whole config.
      seconds: end after so many seconds of training, if nothing ends it before.
      run_dir: where the run is written, a new or empty folder; the next free name under `runs/` if not given.
      show: whether to show progress in the terminal.
      pictures: whether to draw pictures when training ends.
      observers: follow the run besides those that the domain offers; extend `Callback` to make one.
      on_episode: called with each finished episode and the run's progress (`progress.env_steps`, `progress.wins`,
        `progress.win_rate(100)` ...). Where it returns True, the run ends.
      workers: processes that play, in blocks (`scale={"block": ...}` says how large). The run does not depend on how
        many there are.
      ray: let them play on Ray: True for one on this machine, or the address of a cluster.
      worker_gpus: share of a GPU for each of them, on Ray.
      **overrides: fields of the config to change; nested ones as dicts: `train("deep-sea", seed=3,
        domain={"size": 40})`. `planner="best-first"` plans with another planner than the preset's; `search` then has
        its settings.

    Raises:
      BathysphereError: for bad settings before anything runs, and if an observer or `on_episode` raises something: then
        the run is saved first, and can be resumed.
    """
    start = find_start(what, overrides.pop("domain", None))
    if seconds is not None:
        overrides["stop"] = merge({"seconds": seconds}, to_plain(overrides.get("stop", {})))
    players = chosen_workers(workers, ray, worker_gpus)
    config = in_blocks(override(start.config, overrides), players)
    path = next_directory(RUNS, config) if run_dir is None else Path(run_dir)
    if show and start.choices:
        sys.stdout.write(explained(start.choices, columns_of(sys.stdout)) + "\n")
    with announcing():
        runner.run(
            config,
            path,
            _display(show),
            pictures=pictures,
            observers=observers,
            on_episode=on_episode,
            workers=players,
        )
    return Run(path)


def resume(
    run_dir: str | PathLike[str],
    *,
    world: Any = None,
    show: bool = False,
    pictures: bool = True,
    fallback: bool = False,
    observers: Sequence[Observer] = (),
    on_episode: OnEpisode | None = None,
    workers: int | None = None,
    ray: bool | str = False,
    worker_gpus: float = 0.0,
    **overrides: Any,
) -> Run:
    """Continues a run from its newest checkpoint, as if it had never stopped; returns the same as `train`.

    Args:
      run_dir: a run, or its directory.
      world: the run's world, if it was handed to `train` as an object in another process.
      show: whether to show progress in the terminal.
      pictures: whether to draw pictures when training ends.
      fallback: use the last good checkpoint if the newest is damaged.
      observers: those that the run began with, besides those that the domain offers.
      on_episode, workers, ray, worker_gpus: as for `train`; workers need not be those that the run began with.
      **overrides: `steps`, `log_every`, `stop` or `checkpoint`, to make a run longer or end it otherwise:
        `resume(run, steps=20_000, stop={"on_solved": False})`.

    Raises:
      BathysphereError: for an override that would change what happens in the run.
    """
    path = Path(run_dir)
    saved = RunDirectory.open(path).load_config()
    if world is not None:
        hand_over(saved.domain, world)
    config = override(saved, overrides)
    if changed := differences(saved, config):
        raise BathysphereError(
            f"A resumed run keeps its settings, and {', '.join(changed)} would change. Start a new run for that."
        )
    with announcing():
        runner.resume(
            path,
            _display(show),
            config=config,
            fallback=fallback,
            pictures=pictures,
            observers=observers,
            on_episode=on_episode,
            workers=chosen_workers(workers, ray, worker_gpus),
        )
    return Run(path)


def _display(show: bool) -> runner.Display | None:
    if not show:
        return None
    from bathysphere.runs.display import RunDisplay
    from bathysphere.terminal import Terminal

    return RunDisplay(Terminal())
