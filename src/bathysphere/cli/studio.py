"""`bathysphere studio`: look inside runs, searches and what an agent does not know, in a browser."""

from __future__ import annotations

import json
import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from bathysphere.cli.common import parse
from bathysphere.errors import BathysphereError

_DESCRIPTION = """Open a local web page: runs and their curves, agents at work, the search behind every step, and
what the ensemble does not know.

It needs the extra 'studio': pip install 'bathysphere[studio]'. Only this machine can reach it; with --host others can,
if they have the address that is printed, which holds a secret.

Examples:

bathysphere studio

bathysphere studio studies/deep-sea-small --port 9000 --no-open
"""


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere studio`."""

    runs: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUNS")] = Path("runs")
    """Folder of runs or studies to show."""
    port: int = 8900
    """Port of the page. 0: any that is free."""
    host: str = "127.0.0.1"
    """Address to listen on. Other machines can reach no loopback address."""
    no_open: bool = False
    """Do not open the page in a browser."""
    json: bool = False
    """Print one JSON object with the address on stdout when visitors can come."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere studio <argv>` and returns the exit code."""
    options = parse(Options, argv, "studio", _DESCRIPTION)
    if not options.runs.is_dir() and options.runs != Options.runs:  # there may be no runs yet
        raise BathysphereError(
            f"There is no folder {options.runs}. Train something first (bathysphere train deep-sea), or name a folder."
        )
    try:
        from bathysphere.studio.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "bathysphere":
            raise
        raise BathysphereError(
            f"The studio needs {error.name}, which is not installed: pip install 'bathysphere[studio]'"
        ) from error

    def ready(url: str) -> None:
        sentence = f"The studio is at {url}\nCtrl-C ends it; runs that it has started go on."
        sys.stdout.write((json.dumps({"url": url}) if options.json else sentence) + "\n")
        sys.stdout.flush()
        if not options.no_open and not options.json:
            webbrowser.open(url)

    serve(options.runs, options.host, options.port, ready)
    return 0
