"""What the verbs share: parsing options from a dataclass, choosing a world, saying the result."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import make_dataclass
from typing import Annotated, Any, TypeVar, Union

import docstring_parser
import tyro

from bathysphere.cli.complaints import sentence_of
from bathysphere.domains import domain_names, find_domain
from bathysphere.errors import BathysphereError
from bathysphere.terminal import Terminal

Options = TypeVar("Options")

_REGISTRY = tyro.constructors.ConstructorRegistry()


@_REGISTRY.primitive_rule
def _numbers(info: tyro.constructors.PrimitiveTypeInfo) -> tyro.constructors.PrimitiveConstructorSpec[float] | None:
    """Reads numbers, whole ones as people write them: 100000, 100_000 or 1e5; says so if it is none."""
    if info.type not in (int, float):
        return None
    is_whole = info.type is int
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT" if is_whole else "FLOAT",
        instance_from_str=lambda words: whole_number(words[0]) if is_whole else _number(words[0]),
        is_instance=lambda value: type(value) is int or (type(value) is float and not is_whole),
        str_from_instance=lambda value: [str(value)],
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def whole_number(text: str) -> int:
    """Reads a whole number.

    >>> whole_number("1e5"), whole_number("20_000"), whole_number("-3")
    (100000, 20000, -3)
    """
    with suppress(ValueError):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number.is_integer():
        raise ValueError(f"{text!r} is not a whole number")
    return int(number)


def parse(
    options: type[Options],
    argv: list[str],
    verb: str,
    description: str,
    default: Options | None = None,
    config: tuple[Any, ...] = (
        tyro.conf.CascadeSubcommandArgs,
        tyro.conf.FlagCreatePairsOff,
        tyro.conf.OmitArgPrefixes,
        tyro.conf.OmitSubcommandPrefixes,
    ),
) -> Options:
    """Reads `argv` into the dataclass `options`; tyro answers --help.

    What it complains of is told in a sentence of ours.

    Args:
      options: a dataclass, or a union of them.
      argv: without the verb.
      verb: as it is typed, for the help and for complaints.
      description: of the verb, with examples.
      default: what an option has that is not given, instead of the dataclass's own defaults.
      config: how fields become flags.
    """
    if isinstance(options, type):
        options = type("options", (options,), {"__doc__": options.__doc__})  # complaints name the class
    rest: dict[str, Any] = {} if default is None else {"default": default}
    rest |= {"prog": f"bathysphere {verb}", "description": description, "registry": _REGISTRY}
    said = io.StringIO()
    try:
        with redirect_stderr(said), _flowing_help():
            parsed: Options = tyro.cli(options, args=argv, config=config, **rest)
    except SystemExit:
        sentence = sentence_of(said.getvalue())
        if sentence is None:
            sys.stderr.write(said.getvalue())
            raise
        raise BathysphereError(f"{sentence} 'bathysphere {verb} --help' explains it.") from None
    sys.stderr.write(said.getvalue())
    return parsed


@contextmanager
def _flowing_help() -> Iterator[None]:
    """Lets the texts of fields flow: tyro gets them as indented as their source is, and keeps such lines apart."""
    parse_as_written = docstring_parser.parse_from_object

    def parse_flowing(*arguments: Any) -> docstring_parser.Docstring:
        parsed = parse_as_written(*arguments)
        for field in parsed.params:
            field.description = " ".join((field.description or "").split()) or None
        return parsed

    docstring_parser.parse_from_object = parse_flowing  # type: ignore[assignment]
    try:
        yield
    finally:
        docstring_parser.parse_from_object = parse_as_written


def with_domain(options: type[Options]) -> type[Options]:
    """Returns the dataclass `options` with its field `domain` open to the settings of every known world.

    The world comes first on the command line, its settings and the verb's own options after it.
    """
    configs = [(name, find_domain(name).Config) for name in domain_names()]
    kinds = tuple(Annotated[config, tyro.conf.subcommand(name)] for name, config in configs)
    kind: Any = Union[kinds]  # noqa: UP007 (there is no other way to write one of many)
    opened: Any = make_dataclass(options.__name__, [("domain", kind)], bases=(options,), frozen=True)
    opened.__doc__ = options.__doc__
    return opened  # type: ignore[no-any-return]


def with_address(argv: list[str]) -> list[str]:
    """Returns arguments in which `--ray` has an address: that of a Ray of our own if none is given.

    >>> with_address(["deep-sea", "--ray", "--workers", "2"])
    ['deep-sea', '--ray', 'local', '--workers', '2']
    """
    words = list[str]()
    for number, word in enumerate(argv):
        words.append(word)
        if word == "--ray" and "".join(argv[number + 1 : number + 2])[:1] in ("", "-"):
            words.append("local")
    return words


def nothing_printed() -> AbstractContextManager[Any]:
    """Returns a context in which what libraries print (Ray does, when a worker dies) goes to stderr."""
    return redirect_stdout(sys.stderr)


def say(result: dict[str, Any], text: str, as_json: bool) -> None:
    """Prints `result` as one JSON object, or `text` for a person. Either is the last thing on stdout."""
    if as_json:
        sys.stdout.write(json.dumps(result) + "\n")
    else:
        Terminal(soft_wrap=True).print(text)
