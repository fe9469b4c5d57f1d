"""Agents that the studio shows: those that come with the package, and those of the runs in its folder."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bathysphere.agents.agent import Agent
from bathysphere.agents.loading import Trained, load_trained, make_model, shipped_agents
from bathysphere.domains import make_domain
from bathysphere.domains.base import Domain, States
from bathysphere.domains.sokoban import Level, Sokoban, SokobanConfig
from bathysphere.domains.sokoban.levels import pad
from bathysphere.errors import BathysphereError
from bathysphere.puzzles.player import LevelPlayer
from bathysphere.studio.folder import RunsFolder

SHIPPED = "shipped:"  # before the name of an agent that comes with the package
_MOST = 4  # agents kept in memory


class Known(NamedTuple):
    """An agent, and what it was read from."""

    name: str
    trained: Trained
    agent: Agent
    player: LevelPlayer | None  # for worlds of Sokoban, whose levels can be chosen


class Agents:
    """Loads agents by name, and keeps those that were used last.

    Args:
      folder: of the runs.
    """

    def __init__(self, folder: RunsFolder) -> None:
        self._folder = folder
        self._known: dict[tuple[str, Any], Known] = {}
        self._lock = threading.Lock()

    def names(self, shown: str | None = None) -> dict[str, str]:
        """Returns all that can be loaded, with what to call them; `shown` too, which may be gone, or too new."""
        runs = {run.name: run.name for run in self._folder.runs() if run.state != "damaged"}
        names = {f"{SHIPPED}{name}": f"{name} (comes trained)" for name in shipped_agents()} | runs
        if shown is not None:
            names.setdefault(shown, shown.removeprefix(SHIPPED))
        return names

    def path(self, name: str) -> Path:
        """Returns the file or run directory of an agent; nothing outside the folder and the package."""
        shipped = shipped_agents()
        if name.startswith(SHIPPED):
            if name.removeprefix(SHIPPED) not in shipped:
                raise BathysphereError(f"There is no agent {name!r} in the package; there are {', '.join(shipped)}.")
            return shipped[name.removeprefix(SHIPPED)]
        return self._folder.directory(name).path

    def load(self, name: str) -> Known:
        """Returns an agent as it is now: of a run, as of its newest checkpoint."""
        path = self.path(name)
        key = (name, _mark(path))
        with self._lock:
            known = self._known.pop(key, None) or _load(name, path)
            self._known[key] = known
            while len(self._known) > _MOST:
                self._known.pop(next(iter(self._known)))
        return known


def start_states(known: Known, seed: int) -> tuple[Domain, States]:
    """Returns an agent's world, and a start state of it, uint8 [S]."""
    if seed < 0:
        raise BathysphereError(f"The seed is {seed}; expected a whole number from 0.")
    domain = known.agent.domain
    return domain, domain.initial(1, np.random.default_rng(seed))[0]


def level_start(known: Known, level: Level) -> tuple[Domain, States]:
    """Returns a world with one level in it, as an agent knows it, and the level's state."""
    player = known.player
    if player is None:
        raise BathysphereError(f"{known.name} was not trained in Sokoban, so it cannot play Sokoban levels.")
    if (refusal := player.refusal(level)) is not None:
        raise BathysphereError(f"This level cannot be played: it {refusal}.")
    config = known.trained.config.domain
    assert isinstance(config, SokobanConfig)
    board = replace(level, grid=pad(level.grid, player.shape or level.shape))
    domain = Sokoban(replace(config, level_file=None, num_boards=None), levels=[board])
    return domain, board.grid.ravel().copy()


def agent_in(known: Known, domain: Domain) -> Agent:
    """Returns an agent that acts in `domain`, a world of the kind it was trained in."""
    model = None if domain is known.agent.domain else make_model(known.trained.config, domain, known.trained.path)
    model = known.agent.model if domain is known.agent.domain else model
    return Agent(domain, known.trained.values, known.trained.config.search, model=model)


def _load(name: str, path: Path) -> Known:
    trained = load_trained(path)
    config = trained.config
    domain = make_domain(config.domain)
    agent = Agent(domain, trained.values, config.search, model=make_model(config, domain, path))
    player = LevelPlayer(path) if isinstance(config.domain, SokobanConfig) else None
    return Known(name, trained, agent, player)


def _mark(path: Path) -> Any:
    """Returns what changes when an agent is trained further."""
    try:
        if path.is_file():
            return path.stat().st_mtime_ns
        newest = max((path / "checkpoints").glob("step-*"), default=path)
        return newest.name, newest.stat().st_mtime_ns
    except OSError:
        return None
