"""`bathysphere agents`: the agents that come with the package, and agent files of one's own."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from bathysphere.agents import agent_file
from bathysphere.agents.card import Measurement
from bathysphere.agents.loading import find_agent, shipped_agents
from bathysphere.cli.common import parse, say
from bathysphere.config.convert import to_dict
from bathysphere.errors import BathysphereError
from bathysphere.runs.display import duration
from bathysphere.runs.export import export

_DESCRIPTION = """List the trained agents that come with Bathysphere, or show the card of one: how it was trained
and what was measured of it. 'evaluate', 'watch' and 'solve' take their names.

bathysphere agents export RUN FILE makes an agent file of a run; see bathysphere agents export --help.

Examples:

bathysphere agents

bathysphere agents deep-sea

bathysphere agents mine.safetensors --json
"""

_EXPORT_DESCRIPTION = """Make an agent file of a run's newest checkpoint: weights in half precision, the whole
config, and a card. Everything that takes an agent takes the file.

Numbers for the card are measured with the file itself, so it is exported twice: once to measure, once with the results.

Examples:

bathysphere agents export runs/mine mine.safetensors

bathysphere evaluate mine.safetensors --episodes 1000 --json > measured.json

bathysphere agents export runs/mine mine.safetensors --results measured.json
"""


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere agents`."""

    name: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="AGENT")] = None
    """Show the card of this one: a shipped agent, or an agent file. None: list the shipped ones."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


@dataclass(frozen=True)
class Export:
    """Options of `bathysphere agents export`."""

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run directory."""
    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """The agent file to write, or to replace: something.safetensors."""
    results: tuple[Path, ...] = ()
    """Files with what 'bathysphere evaluate FILE --json' printed, for the card."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere agents <argv>` and returns the exit code."""
    if argv[:1] == ["export"]:
        return _export(parse(Export, argv[1:], "agents export", _EXPORT_DESCRIPTION))
    options = parse(Options, argv, "agents", _DESCRIPTION)
    if options.name is not None:
        about = _describe(options.name, find_agent(options.name))
        say(about, _card(about), options.json)
        return 0
    agents = [_describe(name, path) for name, path in shipped_agents().items()]
    say({"agents": agents}, "\n\n".join(map(_summary, agents)), options.json)
    return 0


def _export(options: Export) -> int:
    export(options.run, options.file, options.results)
    about = _describe(str(options.file), options.file)
    say(about, f"{_card(about)}\n\nThe agent is in {options.file}.", options.json)
    return 0


def _describe(name: str, path: Path) -> dict[str, Any]:
    if path.is_dir():
        raise BathysphereError(f"{name} is a run directory and has no card. Make an agent of it: agents export.")
    agent = agent_file.read(path)
    return {
        "name": name,
        "file": str(path),
        "bytes": path.stat().st_size,
        "weights": agent.fingerprint,
        "card": asdict(agent.card),
        "config": to_dict(agent.config),
    }


def _summary(about: dict[str, Any]) -> str:
    """Returns one agent in a few lines."""
    results = [f"  {_result(Measurement(**result))}" for result in about["card"]["results"]]
    return "\n".join([_heading(about), *results])


def _card(about: dict[str, Any]) -> str:
    """Returns all that a card says."""
    card = about["card"]
    lines = [
        _heading(about),
        f"  command  {card['command']}",
        f"  seed     {card['seed']}",
        f"  commit   {card['commit'] or 'unknown'}",
        f"  machine  {card['machine']}",
    ]
    for result in card["results"]:
        lines += [f"  {_result(Measurement(**result))}", f"    {result['command']}"]
    return "\n".join(lines)


def _heading(about: dict[str, Any]) -> str:
    card, world = about["card"], about["config"]["domain"]["name"]
    return (
        f"{about['name']}  ({world}, {about['bytes'] / 1024:,.0f} KB)\n"
        f"  trained for {card['env_steps']:,} steps in {duration(card['seconds'])}"
    )


def _result(result: Measurement) -> str:
    interval = "" if result.low is None or result.high is None else f" ({result.low:.1%} to {result.high:.1%})"
    return f"{result.what}: {result.value:.1%}{interval} of {result.n:,}"
