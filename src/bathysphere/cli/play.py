"""`bathysphere play`: a person plays a world in the terminal."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

import numpy as np

from bathysphere.cli.common import parse, say, with_domain
from bathysphere.domains import make_domain
from bathysphere.domains.base import Domain, DomainConfig, States
from bathysphere.errors import BathysphereError

_DESCRIPTION = """Play a world yourself. Arrow keys or w a s d move, u undoes, r restarts, q quits.

Examples:

bathysphere play sokoban

bathysphere play toy-montezuma --map four-rooms

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
    """Print one JSON object on stdout at the end, and the game on stderr."""


@dataclass
class Game:
    """A game in progress: all states so far, so that moves can be undone."""

    domain: Domain
    start: States  # uint8 [S]
    states: list[States] = field(init=False)
    actions: list[int] = field(init=False)
    rewards: list[float] = field(init=False)
    ends: list[tuple[bool, bool]] = field(init=False)  # terminal, solved after each state

    def __post_init__(self) -> None:
        """Sets everything to the start."""
        self.restart()

    def restart(self) -> None:
        """Goes back to the start."""
        self.states, self.actions, self.rewards, self.ends = [self.start], [], [], [(False, False)]

    @property
    def terminal(self) -> bool:
        """Whether the episode has ended."""
        return self.ends[-1][0]

    @property
    def solved(self) -> bool:
        """Whether it ended in success."""
        return self.ends[-1][1]

    @property
    def over(self) -> bool:
        """Whether there is nothing more to play: the episode ended or its time is up."""
        return self.terminal or len(self.actions) >= self.domain.max_steps

    def press(self, key: str) -> None:
        """Does what `key` means; other keys do nothing."""
        keys = {_KEYS.get(name, ""): number for number, name in enumerate(self.domain.action_names)}
        keys |= {str(number): number for number in range(len(self.domain.action_names))}
        if key == "r":
            self.restart()
        elif key == "u" and self.actions:
            for past in (self.states, self.actions, self.rewards, self.ends):
                past.pop()
        elif key in keys and not self.over:
            out = self.domain.successors(self.states[-1][None])
            action = keys[key]
            self.states.append(out.states[0, action])
            self.actions.append(action)
            self.rewards.append(float(out.rewards[0, action]))
            self.ends.append((bool(out.terminal[0, action]), bool(out.solved[0, action])))

    def status(self) -> str:
        """Says in a line how it stands."""
        line = f"step {len(self.actions)} of {self.domain.max_steps}, reward {sum(self.rewards):.4g}"
        if self.solved:
            return f"{line}. Solved!"
        if self.terminal:
            return f"{line}. That was the end: u undoes, r restarts."
        return f"{line}. Time is up: u undoes, r restarts." if self.over else line


def run(argv: list[str]) -> int:
    """Runs `bathysphere play <argv>` and returns the exit code."""
    options = parse(with_domain(Options), argv, "play", _DESCRIPTION)
    if options.seed < 0:
        raise BathysphereError(f"--seed must be a whole number from 0; got {options.seed}.")
    domain = make_domain(options.domain)
    game = Game(domain, domain.initial(1, np.random.default_rng(options.seed))[0])
    if sys.stdin.isatty():
        _play_in_terminal(game, sys.stderr if options.json else sys.stdout)
    else:
        _play_from_pipe(game)
    result = {
        "world": domain.name,
        "steps": len(game.actions),
        "reward": sum(game.rewards),
        "terminal": game.terminal,
        "solved": game.solved,
        "actions": [domain.action_names[action] for action in game.actions],
    }
    say(result, f"{domain.text(game.states[-1])}\n{domain.name}: {game.status()}", options.json)
    return 0


def _play_from_pipe(game: Game) -> None:
    """Takes every character of stdin as a key, for scripts and for machines without a terminal."""
    keys = sys.stdin.read()
    if not keys.strip():
        raise BathysphereError(
            "There is no terminal to play in and no keys came through the pipe. Run this in a terminal, "
            f"or pipe keys into it: echo wasd | bathysphere play {game.domain.name}"
        )
    for key in keys:
        if key == _QUIT:
            return
        game.press(key)


def _play_in_terminal(game: Game, screen: TextIO) -> None:
    with _single_keys():
        while True:
            # Clear the screen and go to its upper left corner.
            screen.write("\x1b[2J\x1b[H" + game.domain.text(game.states[-1]) + "\n\n" + game.status() + "\n")
            screen.write("arrows or wasd move, u undo, r restart, q quit\n")
            screen.flush()
            key = _read_key()
            if key in (_QUIT, ""):
                break
            game.press(key)
    screen.write("\x1b[2J\x1b[H")


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
