"""`bathysphere watch`: watch an agent play."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from bathysphere.agents.evaluation import given
from bathysphere.agents.loading import load_agent
from bathysphere.cli.common import parse, say
from bathysphere.domains.playing import PlayedEpisode
from bathysphere.errors import BathysphereError
from bathysphere.planning.named import changed_planner
from bathysphere.runs.watching import find_saver, play_episodes, save_film, show

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

    agent: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="AGENT")]
    """Name of a shipped agent, agent file, or run directory."""
    episodes: int = 1
    """Episodes to play."""
    gif: Path | None = None
    """Write a film instead of showing it: a .gif, or an .mp4 (needs the extra 'video')."""
    fps: float = 8.0
    """Steps per second."""
    planner: str | None = None
    """mcts, best-first, levin, phs or none. None: as in training, and so for the next ones."""
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
    if options.gif is not None:
        find_saver(options.gif)  # before anything is loaded
    agent = load_agent(options.agent, seed=options.seed)
    changes = given({"passes": options.passes, "risk_coef": options.risk_coef})
    agent.config = changed_planner(agent.config, options.planner, changes)
    played = play_episodes(agent, options.episodes, options.seed)
    if options.gif is not None:
        save_film(options.gif, agent.domain, played, options.fps)
    elif not options.json:
        show(agent.domain, played, options.fps)
    result = {
        "agent": options.agent,
        "episodes": [{name: episode.to_dict()[name] for name in _TOLD} for episode in played],
        "file": None if options.gif is None else str(options.gif),
    }
    say(result, _sentence(played, options.gif), options.json)
    return 0


def _sentence(played: list[PlayedEpisode], file: Path | None) -> str:
    wins = sum(episode.solved for episode in played)
    steps = ", ".join(str(len(episode.actions)) for episode in played)
    earned = ", ".join(f"{episode.total_reward:.4g}" for episode in played)
    steps += " step" if steps == "1" else " steps"
    if wins or not any(episode.total_reward for episode in played):
        text = f"Won {wins} of {len(played)}, in {steps}. Return {earned}."
    else:
        text = f"Return {earned}, in {steps}; nothing counts as won."
    return text if file is None else f"{text} See {file}."
