"""Watching an agent play: as text in a terminal, or as a film."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bathysphere.agents.agent import Agent
from bathysphere.domains.base import Domain
from bathysphere.domains.playing import PlayedEpisode, play_episode
from bathysphere.domains.presentation import film_of, styled_text_of, text_of
from bathysphere.errors import BathysphereError
from bathysphere.storage import pictures as drawing


def play_episodes(agent: Agent, episodes: int, seed: int) -> list[PlayedEpisode]:
    """Plays so many episodes with an agent, one after the other; `seed` decides the start states, and chance."""
    if episodes < 1 or seed < 0:
        raise BathysphereError(f"episodes is {episodes} and seed {seed}; expected at least 1 and at least 0.")
    rng = np.random.default_rng(seed)
    domain, max_steps = agent.domain, agent.config.max_steps or agent.domain.max_steps
    return [play_episode(domain, domain.initial(1, rng)[0], agent.act, max_steps, rng) for _ in range(episodes)]


def find_saver(path: Path) -> Callable[[Path, list[drawing.Frame], float], None]:
    """Returns what writes films of this name; refuses names of no film."""
    savers = {".gif": drawing.save_gif, ".mp4": drawing.save_mp4}
    if path.suffix.lower() not in savers:
        raise BathysphereError(f"The film is called {path}; expected a name that ends in .gif or .mp4.")
    if path.suffix.lower() == ".mp4":
        drawing.check_mp4()
    return savers[path.suffix.lower()]


def save_film(path: Path, domain: Domain, played: Sequence[PlayedEpisode], fps: float) -> None:
    """Writes the episodes as one film."""
    find_saver(path)(path, film_of(domain, np.concatenate([episode.states for episode in played])), fps)


def show(domain: Domain, played: Sequence[PlayedEpisode], fps: float) -> None:
    """Shows the episodes as text: moving in a terminal, otherwise how each ended."""
    from rich.live import Live
    from rich.panel import Panel

    from bathysphere.terminal import Terminal

    console = Terminal()
    for number, episode in enumerate(played, 1):
        if not console.is_terminal or console.is_jupyter:
            console.print(text_of(domain, episode.state))
            continue
        with Live(console=console, auto_refresh=False) as live:
            for step, state in enumerate(episode.states):
                title = f"episode {number}, step {step}"
                live.update(Panel.fit(styled_text_of(domain, state), title=title), refresh=True)
                time.sleep(1 / fps)
