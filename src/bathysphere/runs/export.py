"""From a run to an agent file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bathysphere.agents import agent_file
from bathysphere.agents.card import Card
from bathysphere.agents.evaluation import read_measurements
from bathysphere.agents.loading import load_trained
from bathysphere.errors import BathysphereError
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.lineage import Lineage
from bathysphere.storage.files import read_json
from bathysphere.storage.tensors import fingerprint, halved


def export(run_dir: Path, path: Path, results: Sequence[Path] = ()) -> agent_file.AgentFile:
    """Makes an agent file of a run's newest checkpoint; returns what is in it.

    Args:
      run_dir: the run directory.
      path: the file to write, or to replace; its name ends in `.safetensors`.
      results: files with what `bathysphere evaluate FILE --json` printed about this very agent, for its card.

    Raises:
      BathysphereError: also for results that were measured with other weights, those of the run itself included: the
        file's have half precision.
    """
    directory = RunDirectory.open(run_dir)
    if directory.is_running():  # its checkpoints come and go
        raise BathysphereError(f"{run_dir} is being trained right now. Wait until it ends, or stop it first.")
    trained = load_trained(directory.path)
    lineage, versions = Lineage.of(directory.path), read_json(directory.versions_file)
    weights = halved(trained.values.weights())
    card = Card(
        command=lineage.command,
        seed=trained.config.seed,
        commit=versions["commit"],
        env_steps=lineage.env_steps,
        seconds=lineage.seconds,
        machine=versions["machine"],
        results=tuple(m for file in results for m in read_measurements(file, fingerprint(weights))),
    )
    # The weights are here, so the runs they came from are not needed; the card says how to make those again.
    config = replace(trained.config, start_from=None, towers=())
    agent_file.write(path, config, trained.observation, card, weights)
    return agent_file.read(path)
