"""The `bathysphere` command: a table of verbs, each a module that is imported only when asked for."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path

from bathysphere.errors import BathysphereError, did_you_mean, lacks_memory, printable
from bathysphere.signals import ENDING, listening

# verb -> (module with `run(argv) -> int`, one line of help)
VERBS: dict[str, tuple[str, str]] = {
    "train": ("bathysphere.cli.train", "train a preset, or continue a run"),
    "check": ("bathysphere.cli.check", "say what is wrong with a world, and how to mend it"),
    "evaluate": ("bathysphere.cli.evaluate", "let an agent play, and count its wins"),
    "watch": ("bathysphere.cli.watch", "watch an agent play, in the terminal or as a film"),
    "solve": ("bathysphere.cli.solve", "solve Sokoban levels of your own"),
    "agents": ("bathysphere.cli.agents", "list the agents that come trained, and make agents of runs"),
    "runs": ("bathysphere.cli.runs", "list and compare runs"),
    "sweep": ("bathysphere.cli.sweep", "vary settings of a preset or a world, and compare what comes out"),
    "studio": ("bathysphere.cli.studio", "look inside runs, searches and agents, in a browser"),
    "reproduce": ("bathysphere.cli.reproduce", "run one of the paper's tables or figures again"),
    "play": ("bathysphere.cli.play", "play a world yourself, in the terminal"),
    "draw": (
        "bathysphere.cli.draw",
        "play an episode at random or from given actions, save it as GIF and PNG",
    ),
    "levels": ("bathysphere.cli.levels", "generate, convert, check and show Sokoban levels"),
    "model": ("bathysphere.cli.model", "train and evaluate learned models of Sokoban"),
    "bench": ("bathysphere.cli.bench", "measure how fast the parts are on this machine"),
}

_EXAMPLES = """\
examples:
  bathysphere watch deep-sea
  bathysphere train deep-sea --stop.on-solved
  bathysphere play sokoban
  bathysphere draw toy-montezuma --out demo/montezuma
  bathysphere <verb> --help"""


def main(argv: list[str] | None = None) -> int:
    """Runs one verb and returns the exit code: 0 fine, 1 the verb says no, 2 bad input, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed (>&-)
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 (until the process ends)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # whose encoding may lack a letter, or a file's name be no text
            stream.reconfigure(errors="backslashreplace")
    try:
        with listening(signal.default_int_handler, ENDING):
            try:
                return _dispatch(arguments)
            finally:
                sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Give Python's own flush at exit nowhere to fail.
        sys.stdout = None
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    except Exception as error:
        if (told := _told(error)) is None:
            raise
        if debug:
            traceback.print_exc()
        sys.stderr.write(f"error: {printable(told)}\n")
        return 2


def _told(error: Exception) -> str | None:
    """Returns what a person is told of an error; None if it is a fault of ours."""
    if isinstance(error, BathysphereError):
        return str(error)
    if lacks_memory(error):
        return (
            "There is not enough memory. Most of it is taken by what is done at once (batch, workers, jobs), by "
            "searches (passes, max-expansions, width), by networks and by large worlds: lower one of them."
        )
    if isinstance(error, RuntimeError) and "cannot cache function" in str(error):
        return "No folder for compiled code can be written. Name one in the environment: NUMBA_CACHE_DIR=FOLDER."
    if isinstance(error, OSError):
        where = "" if error.filename is None else f" {error.filename}"
        return f"The system refuses to read or write{where}: {error.strerror or error}."
    return None


def _without_imports(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Takes every `--import MODULE` out of the arguments; returns what is left, and the modules."""
    rest, modules = list[str](), list[str]()
    words = iter(arguments)
    for word in words:
        name, equals, module = word.partition("=")
        if name != "--import":
            rest.append(word)
            continue
        module = module if equals else next(words, "")
        if not module:
            raise BathysphereError("--import needs the name of a module of yours after it: --import my_measures.")
        modules.append(module)
    return rest, modules


def _dispatch(arguments: list[str]) -> int:
    arguments, modules = _without_imports(arguments)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(usage())
        return 0
    if arguments[0] == "--version":
        sys.stdout.write(f"bathysphere {version('bathysphere')}\n")
        return 0
    verb, rest = arguments[0], arguments[1:]
    if verb not in VERBS:
        hint = did_you_mean(verb, VERBS) or f" Choose one of: {', '.join(VERBS)}."
        raise BathysphereError(f"There is no verb '{verb}'.{hint} 'bathysphere --help' explains them.")
    run = importlib.import_module(VERBS[verb][0]).run
    if modules:
        from bathysphere.domains.user_code import import_named

        for module in modules:
            import_named(module)
    from bathysphere.compiling import announcing  # imports Numba, as every verb does

    with announcing():
        return int(run(rest))


def usage() -> str:
    """Returns the text of `bathysphere --help`."""
    width = max(map(len, VERBS))
    lines = [f"  {verb:<{width}}  {summary}" for verb, (_, summary) in VERBS.items()]
    return "\n".join(
        [
            "usage: bathysphere <verb> [options]",
            "",
            "Planning with ensembles of value functions for hard, sparse-reward, discrete problems.",
            "",
            "verbs:",
            *lines,
            "",
            "Every verb takes --help, --json (one JSON object on stdout), --debug (tracebacks of errors) and",
            "--import MODULE (a module of yours, which registers worlds, risk measures, networks or presets).",
            "",
            _EXAMPLES,
            "",
        ]
    )
