"""Where agents come from: shipped with the package, from a file, or from a run directory."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bathysphere.agents import agent_file
from bathysphere.agents.agent import Agent
from bathysphere.config.run import ENSEMBLE, LEARNT, MEMORY, RELEVANCE, RunConfig
from bathysphere.config.saved import CONFIG, MODEL, check_is_run, load_config, open_checkpoints
from bathysphere.domains import make_domain
from bathysphere.domains.base import Chance, Domain, LearningModel, Model, ObservationSpec
from bathysphere.domains.worlds import hand_over
from bathysphere.errors import BathysphereError, did_you_mean
from bathysphere.models.chance_memory import ChanceMemory
from bathysphere.models.memory import MemoryModel
from bathysphere.models.relevance import RelevanceModel
from bathysphere.planning import SearchConfig
from bathysphere.storage.state import section
from bathysphere.storage.tensors import files_in, fingerprint
from bathysphere.values.action_ensemble import ActionEnsemble
from bathysphere.values.ensemble import Ensemble, num_actions_of

_STARTS = 16  # states at which the spread of untrained values is measured


class Trained(NamedTuple):
    """What training has left behind."""

    path: Path  # the file or run directory it was read from
    config: RunConfig
    observation: ObservationSpec
    values: Ensemble
    fingerprint: str  # of the weights


def shipped_agents() -> dict[str, Path]:
    """Returns the files of the agents that come with the package, by name."""
    return files_in(Path(__file__).parent)


def load_agent(
    agent: str | PathLike[str], *, search: SearchConfig | None = None, seed: int = 0, world: Any = None
) -> Agent:
    """Returns an agent that can act.

    Args:
      agent: name of a shipped agent, agent file, or run directory (as of its newest checkpoint).
      search: how to plan; as in training if not given.
      seed: decides ties and the members drawn.
      world: the agent's world, if it was handed to `train` as an object in another process.
    """
    trained = load_trained(agent, world)
    config, domain = trained.config, make_domain(trained.config.domain)
    return Agent(domain, trained.values, search or config.search, seed, make_model(config, domain, trained.path))


def load_values(agent: str | PathLike[str]) -> tuple[RunConfig, Domain, Ensemble]:
    """Returns an agent's config, its world and its ensemble; `agent` as for `load_agent`."""
    trained = load_trained(agent)
    return trained.config, make_domain(trained.config.domain), trained.values


def load_trained(agent: str | PathLike[str], world: Any = None) -> Trained:
    """Returns what is left of training, without the world; `agent` and `world` as for `load_agent`."""
    path = find_agent(agent)
    if path.is_dir():
        return _load_run(path, world)
    config, observation, _, weights, weights_fingerprint = agent_file.read(path)
    if world is not None:
        hand_over(config.domain, world)
    # Of a policy, not the world's number of actions: its levels may be gone, and are needed only to play there.
    is_of_actions = config.search.values_of == "actions"
    num_actions = len(make_domain(config.domain).action_names) if is_of_actions else num_actions_of(weights)
    values = make_values(config, observation, config.seed, num_actions)
    try:
        values.load_weights(weights)
    except BathysphereError as error:
        raise BathysphereError(f"{path} cannot be used: {error}") from error
    return Trained(path, config, observation, values, weights_fingerprint)


def find_agent(agent: str | PathLike[str]) -> Path:
    """Returns the file or run directory that `agent` means.

    A file or run directory of that name comes before a shipped agent; a folder that is no run does not.
    """
    name, path, agents = fspath(agent), Path(agent), shipped_agents()
    if path.is_file() or (path / CONFIG).is_file():
        return path
    if name in agents:
        return agents[name]
    if path.is_dir():
        check_is_run(path)  # says what is missing
    raise BathysphereError(
        f"There is no agent {name!r}: no file, no run directory, and none of the agents that come with "
        f"Bathysphere ({', '.join(agents)}).{did_you_mean(name, agents)}"
    )


def make_values(
    config: RunConfig, observation: ObservationSpec, seed: int | np.random.Generator, num_actions: int
) -> Ensemble:
    """Returns the ensemble that a config describes, of states or of actions, with random weights."""
    kind = ActionEnsemble if config.search.values_of == "actions" else Ensemble
    return kind(config.values, config.optimiser, observation, seed, config.device, num_actions)


def make_model(config: RunConfig, domain: Domain, path: Path | None = None) -> Model | None:
    """Returns the learned model that a run or an agent plans with; None if it plans with the rules.

    Args:
      config: the run's.
      domain: its world; a model that does not fit is refused.
      path: where the run (or an agent made of it) is. The copy in a run directory comes before what the config names.
    """
    if config.model is None:
        return None
    if config.model in LEARNT:
        return _load_learnt(config, domain, path)
    from bathysphere.models.learned import load_model  # imports PyTorch

    copy = None if path is None else path / MODEL
    return load_model(copy if copy is not None and copy.is_file() else config.model, domain)


def begin_model(config: RunConfig, domain: Domain, values: Ensemble) -> LearningModel:
    """Returns a model that knows nothing yet. The unknown is as wide to it as `values`, untrained, are at the start."""
    starts = domain.initial(_STARTS, np.random.default_rng(config.seed))
    spread = float(values.evaluate(domain.observe(starts)).std(axis=1).mean())
    return _make_learnt(config, domain, spread)


def _make_learnt(config: RunConfig, domain: Domain, spread: float) -> LearningModel:
    num_members = config.values.num_members
    if config.model == MEMORY:
        kind = ChanceMemory if isinstance(domain, Chance) else MemoryModel
        return kind(domain.state_size, len(domain.action_names), num_members, spread, config.seed)
    if config.model == RELEVANCE:
        return RelevanceModel(domain, num_members, spread, config.seed)
    from bathysphere.models.chance_network import ChanceNetworks  # these import PyTorch
    from bathysphere.models.network_model import NUM_NETWORKS, EnsembleModel, NetworkModel

    if isinstance(domain, Chance):
        num_networks = NUM_NETWORKS if config.model == ENSEMBLE else 1
        return ChanceNetworks(domain, config.seed, num_members, spread, num_networks)
    if config.model == ENSEMBLE:
        return EnsembleModel(domain, config.seed, num_members, spread)
    return NetworkModel(domain, config.seed)


def _load_learnt(config: RunConfig, domain: Domain, path: Path | None) -> LearningModel | None:
    """Returns what a run has learnt of its world; None for an agent file, which has no such model: it has the rules."""
    if path is None or not path.is_dir():
        return None
    store = open_checkpoints(path)
    saved = section(store.read(store.newest()).arrays, "model.")
    model = _make_learnt(config, domain, 0.0)
    model.load_state_dict(saved)
    return model


def _load_run(run_dir: Path, world: Any) -> Trained:
    config, store = load_config(run_dir), open_checkpoints(run_dir)
    if world is not None:
        hand_over(config.domain, world)
    weights = store.read_weights(store.newest())
    domain = make_domain(config.domain)
    observation = domain.observation
    values = make_values(config, observation, config.seed, len(domain.action_names))
    values.load_state_dict(section(weights, "values."))
    return Trained(run_dir, config, observation, values, fingerprint(values.weights()))
