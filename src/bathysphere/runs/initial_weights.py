"""Weights that a run begins with: those of an agent it starts from, or towers, value functions frozen inside it."""

from __future__ import annotations

from dataclasses import fields, replace

from bathysphere.agents.loading import Trained, load_trained
from bathysphere.config.run import RunConfig
from bathysphere.domains.base import Categories, ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.storage.state import Arrays
from bathysphere.values.ensemble import Ensemble


def load_towers(values: Ensemble, config: RunConfig, observation: ObservationSpec) -> None:
    """Puts the trained value functions that `config.towers` names into an ensemble.

    Mutates: values.

    Raises:
      BathysphereError: if they are missing, or one of them sees other boards or is another kind of network.
    """
    count = config.values.num_towers
    if len(config.towers) != count:
        raise BathysphereError(
            f"values.num_towers is {count}, but no runs are named to take towers from. "
            f"Name {count} runs: --towers RUN ..."
        )
    from bathysphere.values.towers import with_towers  # imports PyTorch

    towers = [_load_tower(tower, config, observation) for tower in config.towers]
    values.load_weights(with_towers(values.weights(), towers))


def _load_tower(tower: str, config: RunConfig, observation: ObservationSpec) -> Arrays:
    trained = load_trained(tower)
    if trained.observation != observation:
        raise BathysphereError(
            f"{tower} cannot be a tower here: it sees {trained.observation}, this run sees {observation}. "
            "Train it in the same world, with boards of the same size."
        )
    # The aggregator and how weights begin are not the towers' business.
    expected = replace(config.values, num_towers=0, aggregator="linear", init_scale=1.0)
    arrived = replace(trained.config.values, aggregator="linear", init_scale=1.0)
    different = [
        f"values.{field.name} {getattr(arrived, field.name)} instead of {getattr(expected, field.name)}"
        for field in fields(expected)
        if getattr(arrived, field.name) != getattr(expected, field.name)
    ]
    if different:
        raise BathysphereError(f"{tower} cannot be a tower here: it has {', '.join(different)}.")
    return trained.values.weights()


def start_from_agent(values: Ensemble, agent: str, observation: ObservationSpec) -> None:
    """Gives an ensemble the weights of an agent, which must have seen the same and have the same network.

    Mutates: values.
    """
    trained = load_trained(agent)
    if not _sees_alike(trained, observation):
        raise BathysphereError(
            f"{agent} cannot be started from: it sees {trained.observation}, this run sees {observation}. "
            "Start from an agent of the same world, with boards of the same size."
        )
    try:
        values.load_weights(trained.values.weights())
    except BathysphereError as error:
        raise BathysphereError(
            f"{agent} cannot be started from, because its network is another one: {error}"
        ) from error


def _sees_alike(trained: Trained, observation: ObservationSpec) -> bool:
    """Tells whether an agent sees what a run sees; boards of any size if its network takes them."""
    seen = trained.observation
    if (
        trained.config.values.network == "board"
        and isinstance(observation, Categories)
        and isinstance(seen, Categories)
    ):
        return observation.num_categories == seen.num_categories
    return observation == seen
