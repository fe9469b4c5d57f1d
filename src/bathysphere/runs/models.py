"""What a run's planning believes: the world's own rules, or a learned model of which the run keeps a copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bathysphere.domains.base import Domain, Model
from bathysphere.learning.trainer import Trainer
from bathysphere.planning.search import MODEL_ERRORS
from bathysphere.runs.config import RunConfig
from bathysphere.runs.directory import RunDirectory


def make_model(config: RunConfig, domain: Domain, path: Path | None = None) -> Model | None:
    """Returns the learned model of a run; None if it plans with the rules.

    Args:
      config: the run's.
      domain: its world; a model that does not fit is refused.
      path: where the run (or an agent made of it) is. The copy in a run directory comes before what the config names.
    """
    if config.model is None:
        return None
    from bathysphere.models.learned import load_model  # imports PyTorch

    copy = None if path is None else RunDirectory(path).model_file
    return load_model(copy if copy is not None and copy.is_file() else config.model, domain)


def model_errors(config: RunConfig, trainer: Trainer) -> dict[str, Any]:
    """Returns how often the model was wrong about a real move so far, for metrics and result; nothing without one."""
    if config.model is None:
        return {}
    errors = trainer.crew.model_errors
    return {f"model_{name}": errors[name] for name in MODEL_ERRORS}
