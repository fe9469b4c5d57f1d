"""`bathysphere model`: train and evaluate learned models of Sokoban."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from bathysphere.cli.common import parse, say
from bathysphere.errors import BathysphereError
from bathysphere.models.config import OLD_NAMES, RECIPES, TrainingConfig
from bathysphere.runs.display import duration
from bathysphere.terminal import Terminal

_DESCRIPTION = """Learned models of Sokoban: train one from random episodes, or measure how often one is right.

bathysphere model train --help and bathysphere model evaluate --help explain the options.

Examples:

bathysphere model train --out mine.safetensors

bathysphere model evaluate mine.safetensors --agent runs/sokoban-seed0-1

bathysphere train sokoban --model mine.safetensors
"""

_TRAIN_DESCRIPTION = """Train a model of Sokoban from random episodes, and write it to a file.

bathysphere model train [local|paper] [OPTIONS]

local: our network; paper: the authors' network, loss and schedule. A million updates are theirs; a shorter training
wants a higher --learning-rate. A checkpoint is kept beside the file: --resume goes on from it, exactly as if the
training had never stopped.

Examples:

bathysphere model train --out mine.safetensors

bathysphere model train --out mine.safetensors --resume

bathysphere model train --out small.safetensors --height 8 --width 8 --max-boxes 2

bathysphere model train paper --out paper.safetensors --updates 6000 --learning-rate 1e-3
"""

_EVALUATE_DESCRIPTION = """Measure how often a model is right: on random episodes on boards it has not seen, and with
--agent on the agent's own steps and inside its search trees, where everything that planning asks for is checked.

Examples:

bathysphere model evaluate sokoban

bathysphere model evaluate mine.safetensors --agent runs/sokoban-seed0-1 --episodes 200 --json
"""


@dataclass(frozen=True)
class Nothing:
    """`bathysphere model` itself has no options."""


@dataclass(frozen=True)
class Train(TrainingConfig):
    """Options of `bathysphere model train`: the training, and what is not part of it."""

    out: Path = Path("model.safetensors")
    """File to write."""
    resume: bool = False
    """Go on with the training of that file."""
    json: bool = False
    """Print one JSON object (the model's card) on stdout, and nothing else."""


@dataclass(frozen=True)
class Evaluate:
    """Options of `bathysphere model evaluate`."""

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """Name of a shipped model, or a model file."""
    agent: str | None = None
    """Also measure the model in episodes of this agent: a shipped agent, an agent file or a run directory."""
    episodes: int = 100
    """Episodes of the agent."""
    boards: int = 200
    """Boards for random episodes, with as many boxes as the model was trained on."""
    seed: int = 1
    """Decides boards and actions. Trainings use 0 if not told otherwise."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere model <argv>` and returns the exit code."""
    if argv[:1] == ["train"]:
        return _train(argv[1:])
    if argv[:1] == ["evaluate"]:
        return _evaluate(parse(Evaluate, argv[1:], "model evaluate", _EVALUATE_DESCRIPTION))
    if {"-h", "--help"} & set(argv):
        parse(Nothing, argv, "model", _DESCRIPTION)
    raise BathysphereError("Say what to do: bathysphere model train or bathysphere model evaluate.")


def _train(argv: list[str]) -> int:
    # PyTorch is imported only when there is something to do.
    recipe = argv[0] if argv and not argv[0].startswith("-") else None
    if recipe is not None and recipe not in RECIPES:
        raise BathysphereError(f"There is no way to train called {recipe!r}; choose one of {', '.join(RECIPES)}.")
    rest = [_renewed(word) for word in (argv if recipe is None else argv[1:])]
    options = _parse(RECIPES[recipe or "local"], rest)
    from bathysphere.cli.progress import ModelDisplay
    from bathysphere.models.session import read_checkpoint, train_model

    if options.resume:
        if recipe is not None:
            raise BathysphereError(f"A resumed training has its settings already; leave out {recipe!r}.")
        options = _parse(read_checkpoint(options.out)[0], rest)
    with ModelDisplay(Terminal(stderr=True)) as display:
        card = train_model(TrainingConfig(**_fields(options)), options.out, display, resume=options.resume)
    seconds, updates = duration(card["seconds"]), card["updates"]
    text = f"{updates:,} updates in {seconds}; the model is {options.out}\n{_held_out(card['held_out'])}"
    say({"out": str(options.out), **card}, text, options.json)
    return 0


def _parse(start: TrainingConfig, argv: list[str]) -> Train:
    return parse(Train, argv, "model train", _TRAIN_DESCRIPTION, Train(**_fields(start)))


def _renewed(word: str) -> str:
    """Returns a flag of an earlier version as it is called now, anything else as it is."""
    flag, equals, value = word.partition("=")
    names = {old.rpartition(".")[2]: new.rpartition(".")[2] for old, new in OLD_NAMES.items()}
    new = names.get(flag.removeprefix("--"))
    return word if new is None or not flag.startswith("--") else f"--{new.replace('_', '-')}{equals}{value}"


def _fields(config: TrainingConfig) -> dict[str, Any]:
    return {field.name: getattr(config, field.name) for field in fields(TrainingConfig)}


def _held_out(report: dict[str, Any]) -> str:
    return (
        f"On boards it has not seen: {report['frames_right']:.3%} of {report['transitions']:,} boards predicted right, "
        f"{report['false_rewards']:,} false rewards, {report['missed_rewards']:,} of {report['solved']:,} missed."
    )


def _evaluate(options: Evaluate) -> int:
    from bathysphere.agents.model_evaluation import evaluate_model

    result = evaluate_model(
        options.model, boards=options.boards, seed=options.seed, agent=options.agent, episodes=options.episodes
    )
    if options.json:
        say(result, "", as_json=True)
        return 0
    # A pipe or a file has no width, so the table takes what it needs.
    console = Terminal(width=None if sys.stdout.isatty() else 200)
    console.print(_table(result))
    if result["agent"] is not None:
        console.print(f"The agent won {result['wins']} of {result['episodes']} episodes with it.", soft_wrap=True)
    return 0


def _table(result: dict[str, Any]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, title=f"model {result['model']}", title_justify="left")
    table.add_column("where")
    for name in ("steps", "boards right", "changed cells right", "impossible", "false rewards", "missed rewards"):
        table.add_column(name, justify="right")
    for key, title in (("random", "random episodes"), ("moves", "the agent's steps"), ("trees", "its search trees")):
        if (report := result[key]) is not None:
            table.add_row(
                title,
                f"{report['transitions']:,}",
                f"{report['frames_right']:.3%}",
                f"{report['changed_cells_right']:.3%}",
                f"{report['impossible_frames']:,}",
                f"{report['false_rewards']:,}",
                f"{report['missed_rewards']:,} of {report['solved']:,}",
            )
    return table
