"""`bathysphere play`: a person plays a world in the terminal."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from bathysphere.cli.common import say
from bathysphere.cli.world_flags import parse_with_world
from bathysphere.domains import make_domain
from bathysphere.domains.base import Domain, DomainConfig, Hinted
from bathysphere.domains.playing import PlayedEpisode
from bathysphere.domains.presentation import styled_text_of, text_of
from bathysphere.errors import BathysphereError
from bathysphere.terminal import Terminal

_DESCRIPTION = """Play a world yourself. Arrow keys or w a s d move, u undoes, r restarts, q quits.

A world of your own is named by its import path (my_world:MyWorld), an environment as gymnasium:ID; --domain... are then
its own arguments, as for train.

Examples:

bathysphere play sokoban

bathysphere play toy-montezuma --map four-rooms

bathysphere play my_world:MyWorld --domain.size 5

echo wwaas | bathysphere play sokoban --num-boxes 2 --json
"""

# Keys by what actions are called; digits always work.
_KEYS = {
    **dict.fromkeys(("up", "north"), "w"),
    **dict.fromkeys(("down", "south"), "s"),
    **dict.fromkeys(("left", "west", "action-0"), "a"),
    **dict.fromkeys(("right", "east", "action-1"), "d"),
}
_ARROWS = {"\x1b[A": "w", "\x1b[B": "s", "\x1b[D": "a", "\x1b[C": "d"}
_ARROWS |= {arrow.replace("[", "O"): key for arrow, key in _ARROWS.items()}
_QUIT = "q"


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere play`."""

    domain: DomainConfig
    """Which world, and its settings."""
    seed: int = 0
    """Seed of the start, from 0."""
    json: bool = False
    """Print one JSON object on stdout at the end, and the episode on stderr."""


def press(episode: PlayedEpisode, key: str) -> None:
    """Does what `key` means; other keys do nothing."""
    names = episode.domain.action_names
    keys = {_KEYS.get(name, ""): number for number, name in enumerate(names)}
    keys |= {str(number): number for number in range(len(names))}
    if key == "r":
        episode.restart()
    elif key == "u":
        episode.undo()
    elif key in keys and not episode.over:
        episode.step(keys[key])


def status(episode: PlayedEpisode) -> str:
    """Says in a line how an episode stands."""
    line = f"step {len(episode.actions)} of {episode.max_steps}, reward {episode.total_reward:.4g}"
    if episode.solved:
        return f"{line}. Solved!"
    if episode.terminal:
        return f"{line}. That was the end: u undoes, r restarts."
    return f"{line}. Time is up: u undoes, r restarts." if episode.over else line


def run(argv: list[str]) -> int:
    """Runs `bathysphere play <argv>` and returns the exit code."""
    options = parse_with_world(Options, argv, "play", _DESCRIPTION)
    if options.seed < 0:
        raise BathysphereError(f"--seed must be a whole number from 0; got {options.seed}.")
    keys = None if sys.stdin.isatty() else _piped_keys(argv[0])
    domain = make_domain(options.domain)
    rng = np.random.default_rng(options.seed)
    episode = PlayedEpisode(domain, domain.initial(1, rng)[0], rng=rng)
    if keys is None:
        _play_in_terminal(episode, sys.stderr if options.json else sys.stdout)
    else:
        for key in keys.partition(_QUIT)[0]:
            press(episode, key)
    result = {"world": domain.name, **episode.to_dict()}
    say(result, f"{text_of(domain, episode.state)}\n{domain.name}: {status(episode)}", options.json)
    return 0


def _piped_keys(world: str) -> str:
    """Returns stdin, every character of it a key, for scripts and where there is no terminal."""
    keys = sys.stdin.read()
    if not keys.strip():
        raise BathysphereError(
            "There is no terminal to play in and no keys came through the pipe. Run this in a terminal, "
            f"or pipe keys into it: echo wasd | bathysphere play {world}"
        )
    return keys


def _play_in_terminal(episode: PlayedEpisode, screen: TextIO) -> None:
    domain, console = episode.domain, Terminal(file=screen)
    with _single_keys():
        while True:
            screen.write("\x1b[2J\x1b[H")  # clears the screen and goes to its upper left corner
            console.print(styled_text_of(domain, episode.state), soft_wrap=True)
            console.print("", status(episode), sep="\n")
            console.print(_keys_line(domain), style="dim")
            if isinstance(domain, Hinted):
                console.print(domain.hint, style="dim")
            screen.flush()
            key = _read_key()
            if key in (_QUIT, ""):
                break
            press(episode, key)
    screen.write("\x1b[2J\x1b[H")


def _keys_line(domain: Domain) -> str:
    """Says which keys there are: those of actions with usual names, or all actions with their numbers."""
    if all(name in _KEYS for name in domain.action_names):
        return "arrows or wasd move, u undo, r restart, q quit"
    numbered = ", ".join(f"{number} {name}" for number, name in enumerate(domain.action_names))
    return f"{numbered}; u undo, r restart, q quit"


@contextmanager
def _single_keys() -> Iterator[None]:
    """Makes the terminal hand over keys as they are pressed; restores it whatever happens."""
    try:
        import termios
        import tty
    except ImportError as error:
        raise BathysphereError(
            "This system's terminal cannot hand over single keys. Pipe them instead: "
            "echo wasd | bathysphere play sokoban"
        ) from error
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)  # keeps keys typed ahead
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def _read_key() -> str:
    """Waits for a key; arrows arrive as their letters, the end of input as an empty string."""
    terminal = sys.stdin.fileno()
    key = os.read(terminal, 1).decode(errors="ignore")
    if key == "\x1b" and select.select([terminal], [], [], 0.05)[0]:
        key += os.read(terminal, 2).decode(errors="ignore")
    return _ARROWS.get(key, key)
