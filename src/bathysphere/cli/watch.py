"""`bathysphere watch`: watch an agent play."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from bathysphere.agents.agent import Agent
from bathysphere.agents.evaluation import given
from bathysphere.agents.loading import load_agent
from bathysphere.cli.common import parse, say
from bathysphere.domains.playing import PlayedEpisode, play_episode
from bathysphere.domains.presentation import film_of, text_of
from bathysphere.errors import BathysphereError
from bathysphere.planning.named import changed_planner
from bathysphere.storage import pictures as drawing

_DESCRIPTION = """Watch an agent play, in the terminal or as a film.

Examples:

bathysphere watch deep-sea

bathysphere watch toy-montezuma --fps 20

bathysphere watch runs/deep-sea-seed0-1

bathysphere watch runs/deep-sea-seed0-1 --gif dive.gif --risk-coef 0

bathysphere watch sokoban --planner best-first
"""

_TOLD = ("solved", "steps", "reward", "actions")  # of every episode


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere watch`."""

    agent: tyro.conf.Positional[str]
    """Name of a shipped agent, agent file, or run directory."""
    episodes: int = 1
    """Episodes to play."""
    gif: Path | None = None
    """Write a film instead of showing it: a .gif, or an .mp4 (needs the extra 'video')."""
    fps: float = 8.0
    """Steps per second."""
    planner: str | None = None
    """mcts, best-first, levin or phs. None: as in training, and so for the next ones."""
    passes: int | None = None
    """mcts: planning passes per step."""
    risk_coef: float | None = None
    """Weight of uncertainty in the risk measure."""
    seed: int = 0
    """Decides start states, ties and the members drawn."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere watch <argv>` and returns the exit code."""
    options = parse(Options, argv, "watch", _DESCRIPTION)
    if options.episodes < 1 or options.seed < 0 or not 0.1 <= options.fps <= 100:
        raise BathysphereError("Expected --episodes of at least 1, --seed from 0 and --fps from 0.1 to 100.")
    save = None if options.gif is None else _saver(options.gif)
    agent = load_agent(options.agent, seed=options.seed)
    changes = given({"passes": options.passes, "risk_coef": options.risk_coef})
    agent.config = changed_planner(agent.config, options.planner, changes)
    rng = np.random.default_rng(options.seed)
    domain, max_steps = agent.domain, agent.config.max_steps or agent.domain.max_steps
    played = [play_episode(domain, domain.initial(1, rng)[0], agent.act, max_steps) for _ in range(options.episodes)]
    if save is not None and options.gif is not None:
        save(options.gif, film_of(domain, np.concatenate([episode.states for episode in played])), options.fps)
    elif not options.json:
        _show(agent, played, options.fps)
    result = {
        "agent": options.agent,
        "episodes": [{name: episode.to_dict()[name] for name in _TOLD} for episode in played],
        "file": None if options.gif is None else str(options.gif),
    }
    say(result, _sentence(played, options.gif), options.json)
    return 0


def _saver(path: Path) -> Callable[[Path, list[drawing.Frame], float], None]:
    savers = {".gif": drawing.save_gif, ".mp4": drawing.save_mp4}
    if path.suffix.lower() not in savers:
        raise BathysphereError(f"--gif is {path}; expected a name that ends in .gif or .mp4.")
    return savers[path.suffix.lower()]


def _show(agent: Agent, played: list[PlayedEpisode], fps: float) -> None:
    """Shows the episodes as text: moving in a terminal, otherwise how each ended."""
    console = Console(highlight=False, markup=False)
    for number, episode in enumerate(played, 1):
        if not console.is_terminal:
            console.print(text_of(agent.domain, episode.state))
            continue
        with Live(console=console, auto_refresh=False) as live:
            for step, state in enumerate(episode.states):
                title = f"episode {number}, step {step}"
                live.update(Panel.fit(Text(text_of(agent.domain, state)), title=title), refresh=True)
                time.sleep(1 / fps)


def _sentence(played: list[PlayedEpisode], file: Path | None) -> str:
    wins = sum(episode.solved for episode in played)
    text = f"Won {wins} of {len(played)}, in {', '.join(str(len(episode.actions)) for episode in played)} steps."
    return text if file is None else f"{text} See {file}."
