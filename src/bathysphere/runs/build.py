"""From a config to living parts."""

from __future__ import annotations

import os

import numpy as np

from bathysphere.domains import make_domain
from bathysphere.learning.trainer import Trainer
from bathysphere.runs.config import RunConfig
from bathysphere.values.ensemble import Ensemble


def make_trainer(config: RunConfig) -> Trainer:
    """Builds the trainer a config describes, ready to begin (or to load a checkpoint)."""
    weights_seed, trainer_seed = np.random.SeedSequence(config.seed).spawn(2)
    domain = make_domain(config.domain)
    values = Ensemble(
        config.values,
        config.optimiser,
        domain.observation,
        np.random.default_rng(weights_seed),
        config.device,
    )
    return Trainer(
        domain,
        values,
        config.search,
        config.learning,
        batch=config.batch,
        lanes=config.lanes,
        threads=min(config.lanes, os.cpu_count() or 1),
        seed=trainer_seed,
    )
