"""From a config to living parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bathysphere.agents.loading import begin_model, make_model, make_values
from bathysphere.config.run import LEARNT, RunConfig
from bathysphere.domains import make_domain
from bathysphere.domains.estimated import EstimatedChance
from bathysphere.errors import room_for
from bathysphere.learning.block_trainer import BlockTrainer
from bathysphere.learning.blocks import PlayersHere
from bathysphere.learning.learner import Learner
from bathysphere.learning.trainer import Trainer
from bathysphere.runs.initial_weights import load_towers, start_from_agent
from bathysphere.runs.workers import Workers
from bathysphere.storage.plain import flat, to_plain

_NETWORK_SETTINGS = (
    "values.num_members, values.hidden, values.conv_layers, values.conv_channels, values.conv_kernel, values.dense"
)


def make_trainer(
    config: RunConfig, *, is_new: bool = True, run_dir: Path | None = None, workers: Workers | None = None
) -> Learner:
    """Builds the trainer a config describes, ready to begin (or to load a checkpoint).

    Args:
      config: the run.
      is_new: whether to read weights or towers of the values from the agents they come from; a checkpoint has its own.
      run_dir: the run directory, if there is one already; it has a copy of the learned model.
      workers: who plays the blocks, if the config says that there are any; this process if not given.
    """
    weights_seed, trainer_seed = np.random.SeedSequence(config.seed).spawn(2)
    with room_for("the world", _world_settings(config)):
        domain = make_domain(config.domain)
    if isinstance(domain, EstimatedChance):
        domain.seed_runs(config.seed)
    weights_rng = np.random.default_rng(weights_seed)
    with room_for("the networks", f"{_NETWORK_SETTINGS}, {_world_settings(config)}"):
        values = make_values(config, domain.observation, weights_rng, len(domain.action_names))
    if config.values.num_towers and is_new:
        load_towers(values, config, domain.observation)
    if config.start_from is not None and is_new:
        start_from_agent(values, config.start_from, domain.observation)
    model = begin_model(config, domain, values) if config.model in LEARNT else make_model(config, domain, run_dir)
    parts = domain, values, config.search, config.learning
    with room_for("searches and replay", memory_settings(config)):
        if config.scale.block is None:
            return Trainer(*parts, batch=config.batch, workers=config.workers, seed=trainer_seed, model=model)
        return BlockTrainer(
            *parts,
            batch=config.batch,
            block=config.scale.block,
            distance=config.scale.distance,
            seed=trainer_seed,
            model=model,
            players=PlayersHere if workers is None else workers.make_players,
        )


def memory_settings(config: RunConfig) -> str:
    """Names the settings that decide how much memory training takes besides the networks."""
    names = ["passes", "width", "max_expansions", "max_states", "max_steps", "memory_limit_mb"]
    of_search = ", ".join(f"search.{name}" for name in names if hasattr(config.search, name))
    blocks = "" if config.scale.block is None else "scale.block, scale.distance, "
    learning = "learning.max_steps, learning.batch_size, learning.graph_states, learning.replay.capacity"
    return f"batch, {blocks}{of_search}, {learning}, values.num_members or {_world_settings(config)}"


def _world_settings(config: RunConfig) -> str:
    """Names the whole numbers among a world's settings."""
    settings = flat({"domain": to_plain(config.domain)})
    names = [name for name, value in settings.items() if isinstance(value, int) and not isinstance(value, bool)]
    return f"the size of the world ({', '.join(names) or 'domain'})"
