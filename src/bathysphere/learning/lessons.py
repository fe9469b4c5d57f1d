"""What a game that was cut off by the step limit still teaches.

It was lost, but not by every move: up to the mistake that spoilt it, its positions could have been won, and to learn
that they are worth nothing is wrong. And a game that was not spoilt at all only ran out of moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bathysphere.errors import BathysphereError
from bathysphere.planning import Episode


@dataclass(frozen=True)
class CutOffConfig:
    """Which moves of games that were cut off are remembered."""

    last_moves: int | None = None
    """Only the last of a game, this many; none: all."""
    max_value: float | None = None
    """Only of games whose last state the planner values at this or less, mean over members; none: of all games."""

    def __post_init__(self) -> None:
        if self.last_moves is not None and self.last_moves < 1:
            raise BathysphereError(f"learning.cut_off.last_moves is {self.last_moves}; expected at least 1 (or none).")


def lesson(game: Episode, config: CutOffConfig) -> Episode | None:
    """Returns what is to be remembered of a game: all of it unless it was cut off; None for nothing."""
    if not game.truncated:
        return game
    if config.max_value is not None and game.search_values[-1].mean() > config.max_value:
        return None
    if config.last_moves is None:
        return game
    last = slice(-config.last_moves, None)
    return replace(
        game,
        states=game.states[last],
        actions=game.actions[last],
        rewards=game.rewards[last],
        search_values=game.search_values[last],
    )
