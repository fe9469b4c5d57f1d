"""Where a run's weights come from: its own training, and that of the agent it began with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bathysphere.agents import agent_file
from bathysphere.agents.card import train_command
from bathysphere.agents.loading import find_agent
from bathysphere.config.saved import open_checkpoints
from bathysphere.runs.directory import RunDirectory
from bathysphere.storage.files import read_json
from bathysphere.storage.plain import read_as


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
        config, store = directory.load_config(), open_checkpoints(path)
        meta = store.read_meta(store.newest())
        steps, seconds = meta["env_steps"], meta["seconds"]
        if config.start_from is None:
            return cls(train_command(replace(config, steps=steps)), steps, seconds)
        before = read_as(cls, read_json(directory.origin_file), "origin")
        command = train_command(replace(config, steps=steps, start_from="RUN"))
        return cls(f"{before.command}, then {command}", before.env_steps + steps, before.seconds + seconds)
