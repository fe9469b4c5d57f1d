"""Where a run's weights come from: its own training, and that of the agent it began with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bathysphere.domains.base import ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.runs import agent_file
from bathysphere.runs.agent import find_agent, load_trained
from bathysphere.runs.card import train_command
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.files import read_json
from bathysphere.runs.serialise import read_as
from bathysphere.values.ensemble import Ensemble


@dataclass(frozen=True)
class Lineage:
    """All training that led to an agent."""

    command: str
    """What trains it again, one command after the other. RUN is what came before."""
    env_steps: int
    seconds: float

    @classmethod
    def of(cls, agent: str | Path) -> Lineage:
        """Returns how an agent came about: a shipped one, an agent file, or a run as of its newest checkpoint."""
        path = find_agent(agent)
        if not path.is_dir():
            card = agent_file.read(path).card
            return cls(card.command, card.env_steps, card.seconds)
        directory = RunDirectory.open(path)
        config, store = directory.load_config(), directory.checkpoint_store()
        meta = store.read_meta(store.newest())
        steps, seconds = meta["env_steps"], meta["seconds"]
        if config.start_from is None:
            return cls(train_command(replace(config, steps=steps)), steps, seconds)
        before = read_as(cls, read_json(directory.origin_file), "origin")
        command = train_command(replace(config, steps=steps, start_from="RUN"))
        return cls(f"{before.command}, then {command}", before.env_steps + steps, before.seconds + seconds)


def begin_with(values: Ensemble, agent: str, observation: ObservationSpec) -> None:
    """Gives an ensemble the weights of an agent, which must have seen the same and have the same network.

    Mutates: values.
    """
    trained = load_trained(agent)
    if trained.observation != observation:
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
