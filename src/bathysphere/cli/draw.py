"""`bathysphere draw`: an episode as a GIF (or MP4) and a PNG that shows all of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from bathysphere.cli.common import say
from bathysphere.cli.world_flags import parse_with_world
from bathysphere.domains import make_domain
from bathysphere.domains.base import Domain, DomainConfig, States
from bathysphere.domains.playing import PlayedEpisode, parse_actions, play_episode, shortest_solution
from bathysphere.domains.presentation import film_of, poster_of
from bathysphere.errors import BathysphereError
from bathysphere.storage import pictures as drawing

_DESCRIPTION = """Play one episode and draw it: OUT.gif, and OUT.png with the whole episode in one picture.

A world of your own is named by its import path (my_world:MyWorld), an environment as gymnasium:ID; --domain... are then
its own arguments, as for train.

Examples:

bathysphere draw toy-montezuma --by breadth-first --out demo/montezuma

bathysphere draw my_world:MyWorld --domain.size 5 --by breadth-first

bathysphere draw deep-sea --size 10 --actions 001001010 --out dive

bathysphere draw sokoban --height 8 --width 8 --num-boxes 2 --seed 3 --mp4 --out sokoban
"""

_MAX_STATES = 500_000  # breadth-first search gives up after about this many; some ten seconds
_MOST_STEPS = 100_000


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere draw`."""

    domain: DomainConfig
    """Which world, and its settings."""
    out: Path = Path("episode")
    """Where to write, without the suffix: OUT.gif and OUT.png."""
    by: Literal["random", "breadth-first"] = "random"
    """Who plays: random actions, or a shortest solution found by breadth-first search."""
    actions: str | None = None
    """Play these instead: digits, or names separated by commas."""
    seed: int = 0
    """Seed of the start and of random actions, from 0."""
    fps: float = 12.0
    """Frames per second."""
    mp4: bool = False
    """Write OUT.mp4 too. Needs the extra 'video'."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere draw <argv>` and returns the exit code."""
    options = parse_with_world(Options, argv, "draw", _DESCRIPTION)
    if options.seed < 0:
        raise BathysphereError(f"--seed must be a whole number from 0; got {options.seed}.")
    if options.mp4:
        drawing.check_mp4()
    domain = make_domain(options.domain)
    rng = np.random.default_rng(options.seed)
    start = domain.initial(1, rng)[0]
    actions = _choose(options, domain, start, rng)
    script = iter(actions)
    episode = play_episode(domain, start, lambda state: next(script), len(actions), rng)

    frames = film_of(domain, episode.states)
    files = [options.out.with_name(options.out.name + suffix) for suffix in (".gif", ".png")]
    drawing.save_gif(files[0], frames, options.fps)
    drawing.save_png(files[1], poster_of(domain, episode.states))
    if options.mp4:
        files.append(options.out.with_name(options.out.name + ".mp4"))
        drawing.save_mp4(files[2], frames, options.fps)

    result = {"world": domain.name, **episode.to_dict(), "files": [str(file) for file in files]}
    say(result, f"{_sentence(domain, episode)} See {' and '.join(map(str, files))}.", options.json)
    return 0


def _choose(options: Options, domain: Domain, start: States, rng: np.random.Generator) -> list[int]:
    if options.actions is not None:
        return parse_actions(domain, options.actions)
    if options.by == "breadth-first":
        return shortest_solution(domain, start, _MAX_STATES)
    if domain.max_steps > _MOST_STEPS:
        raise BathysphereError(
            f"An episode by chance is drawn for at most {_MOST_STEPS:,} steps, and max-steps is {domain.max_steps}."
        )
    return [int(action) for action in rng.integers(len(domain.action_names), size=domain.max_steps)]


def _sentence(domain: Domain, episode: PlayedEpisode) -> str:
    if episode.solved:
        outcome = "solved"
    elif episode.terminal:
        outcome = "ended without success"
    else:
        outcome = "not over"
    return f"{domain.name}: {outcome} after {len(episode.actions)} steps, reward {episode.total_reward:.4g}."
