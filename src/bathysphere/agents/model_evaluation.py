"""How often a learned model is right, by itself and in an agent's hands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bathysphere.agents.loading import load_trained
from bathysphere.domains import make_domain
from bathysphere.errors import BathysphereError
from bathysphere.models.config import DataConfig
from bathysphere.models.evaluation import in_search, on_random_episodes
from bathysphere.models.learned import LearnedModel
from bathysphere.models.model_file import read_model
from bathysphere.models.trainer import make_domain as make_training_domain


def evaluate_model(
    model: str | Path, *, boards: int = 200, seed: int = 1, agent: str | Path | None = None, episodes: int = 100
) -> dict[str, Any]:
    """Compares a model with the rules.

    Args:
      model: name of a shipped model, or a model file.
      boards: boards for random episodes, made as those it was trained on.
      seed: decides boards, actions, ties and members drawn.
      agent: name of a shipped agent, agent file or run directory; None measures random episodes only.
      episodes: how many the agent plays.

    Returns:
      A report, or None, for `random` episodes, the agent's steps (`moves`), and its search `trees`.
    """
    if episodes < 1:
        raise BathysphereError(f"episodes is {episodes}; expected at least 1.")
    file = read_model(model)
    try:
        most = int(file.card["training"]["data"]["max_boxes"])
    except (KeyError, TypeError, ValueError) as error:
        raise BathysphereError(
            f"The card of {model} does not say how many boxes it was trained with. "
            "Train it again: bathysphere model train"
        ) from error
    data = DataConfig(
        height=file.world.height, width=file.world.width, max_boxes=most, held_out=boards, episodes=1, seed=seed
    )
    domain = make_training_domain(data)
    result: dict[str, Any] = {
        "model": str(model),
        "agent": None if agent is None else str(agent),
        "seed": seed,
        "random": on_random_episodes(LearnedModel(file, domain, str(model)), domain, data).report(),
        "moves": None,
        "trees": None,
    }
    if agent is None:
        return result
    trained = load_trained(agent)
    world = make_domain(trained.config.domain)
    report = in_search(
        LearnedModel(file, world, str(model)),
        world,
        trained.values,
        trained.config.search,
        episodes=episodes,
        batch=trained.config.batch,
        seed=seed,
    )
    return {
        **result,
        "moves": report.steps.report(),
        "trees": report.trees.report(),
        "wins": report.wins,
        "episodes": report.episodes,
    }
