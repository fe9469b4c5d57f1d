"""What the verbs share: parsing options from a dataclass, choosing a world, and saying the result."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, TypeVar

import tyro
from rich.console import Console

from bathysphere.domains import DeepSeaConfig, SokobanConfig, ToyMontezumaConfig

Options = TypeVar("Options")

# The world comes first on the command line, its settings and the verb's own options after it.
World = (
    Annotated[DeepSeaConfig, tyro.conf.subcommand("deep-sea")]
    | Annotated[ToyMontezumaConfig, tyro.conf.subcommand("toy-montezuma")]
    | Annotated[SokobanConfig, tyro.conf.subcommand("sokoban")]
)


def parse(options: type[Options], argv: list[str], verb: str, description: str) -> Options:
    """Reads `argv` into the dataclass `options`; tyro answers --help and complains about unknown options."""
    return tyro.cli(
        options,
        args=argv,
        prog=f"bathysphere {verb}",
        description=description,
        config=(
            tyro.conf.CascadeSubcommandArgs,
            tyro.conf.FlagCreatePairsOff,
            tyro.conf.OmitArgPrefixes,
            tyro.conf.OmitSubcommandPrefixes,
        ),
    )


def say(result: dict[str, Any], text: str, as_json: bool) -> None:
    """Prints `result` as one JSON object, or `text` for a person. Either is the last thing on stdout."""
    if as_json:
        sys.stdout.write(json.dumps(result) + "\n")
    else:
        Console(highlight=False, markup=False, soft_wrap=True).print(text)
