"""What tyro says in a box about a command line, as one sentence."""

from __future__ import annotations

import re

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OPTION = re.compile(r"--?[a-zA-Z][\w.-]*")


def sentence_of(said: str) -> str | None:
    """Returns what a box says as a sentence; None if it says something that is not known here."""
    lines = [line.strip("│╭╮╰╯|+") for line in _COLOUR.sub("", said).splitlines()]
    title, parts = "".join(lines[:1]).strip("─- "), list[list[str]]([[]])
    for line in filter(str.strip, lines[1:]):
        if set(line) - set("─- "):
            parts[-1].append(line)
        elif parts[-1]:  # where output may be ASCII only, the title has a line below it too
            parts.append([])
    text = " ".join(" ".join(parts[0]).split())
    match title:
        case "Value error":
            return _wrong_value(text)
        case "Invalid choice":
            return _wrong_choice(text)
        case "Missing argument":
            found = re.fullmatch(r"Missing value for argument '(\S+)'.*", text)
            return found and f"{found[1]} needs a value after it."
        case "Missing subcommand":
            found = re.fullmatch(r"Expected one of \{(.+)\}\.", text)
            return found and f"One of these has to come next: {found[1]}."
        case "Required options":
            return _missing(parts[0])
        case "Unrecognized options":
            return _unknown(text, parts[1:])
    return None


def _wrong_value(text: str) -> str | None:
    found = re.search(r"Error parsing (\S+): (.*?)\.?$", text)
    if found is None:
        return None
    flag, wrong = found.groups()
    if tried := re.findall(r"<class '\w+'>: (.*?)(?= - <class|$)", wrong):
        wrong = tried[-1]  # of several kinds of values the last, after None
    elif given := re.fullmatch(r"Could not find valid parse for arguments: \[(.*)\]", wrong):
        wrong = f"{given[1].replace(chr(39), '')} cannot be read"
    return f"{flag}: {wrong}." if flag.startswith("-") else f"{wrong}."


def _wrong_choice(text: str) -> str | None:
    found = re.fullmatch(r"invalid choice ('.*') for argument '(\S+)'\. Expected one of \((.+?),?\)\.", text)
    if found is None:
        return None
    value, name, known = found.groups()
    return f"{name}: {value} is none of {known.replace(chr(39), '')}."


def _missing(lines: list[str]) -> str | None:
    """Reads the name of a command, and indented below it what it lacks, each with its help still further in."""
    command = re.fullmatch(r"\s*Missing from (.+):\s*", lines[0]) if lines else None
    if command is None:
        return None
    edge = len(lines[0]) - len(lines[0].lstrip())
    needed = list[tuple[str, list[str]]]()
    for line in lines[1:]:
        if len(line) - len(line.lstrip()) <= edge + 4:
            needed.append((line.strip(), []))
        elif needed:
            needed[-1][1].append(line.strip())
    told = [f"{name} ({' '.join(about).removesuffix('(required)').strip(' .')})" for name, about in needed]
    return f"'{command[1]}' needs {', and '.join(told)}."


def _unknown(text: str, parts: list[list[str]]) -> str | None:
    words = [word.strip() for word in text.partition(": ")[2].split(",")]
    word = next((word for word in words if word.startswith("-")), words[0])
    if not word.startswith("-"):
        return f"'{word}' is one word too many."
    near = [found[0] for part in parts for line in part if (found := _OPTION.match(line.strip()))]
    return f"There is no option {word} here.{f' Did you mean {near[0]}?' if near else ''}"
