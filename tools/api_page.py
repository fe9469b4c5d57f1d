"""docs/reference/api.md: the public names, from their docstrings."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from typing import Any

import bathysphere
from tools.fields import Unexplained

_START = """# Python

*Made from the docstrings by `python -m tools.pages`; do not edit.*

The public names of the package, all importable from `bathysphere` itself. Everything else is for contributors, and may
change: [how the package is built](../architecture.md). Shapes are written `float32 [n, E]`.
"""
_SECTIONS = re.compile(r"^(Args|Returns|Raises|Yields|Attributes|Note|Example|Examples|Mutates):(.*)$")


def api_page() -> str:
    """Returns the page.

    Raises:
      Unexplained: if a public name, or a public method of one, has no docstring, or the package's docstring lacks it.
    """
    parts, left = [_START], dict.fromkeys(bathysphere.__all__)
    for title, names in _groups():
        parts.append(f"## {title}\n")
        for name in names:
            if name in left:
                del left[name]
                parts.append(_entry(name, getattr(bathysphere, name)))
    if left:
        raise Unexplained(f"The docstring of bathysphere does not name {', '.join(left)}.")
    return "\n".join(parts)


def _groups() -> list[tuple[str, list[str]]]:
    """Returns the headings of the package's docstring, and the names in the lines below each."""
    groups: list[tuple[str, list[str]]] = []
    for line in inspect.cleandoc(bathysphere.__doc__ or "").splitlines():
        if line.endswith(":") and line[0] not in " -":
            groups.append((line[:-1], []))
        elif line.startswith("And ") and groups:
            groups.append(("Errors", []))
        if groups:
            groups[-1][1].extend(re.findall(r"`(\w+)[^`]*`", line))
    return groups


def _entry(name: str, thing: Any) -> str:
    parts = [f"### {name}\n", _signature(name, thing), _explained(thing, f"bathysphere.{name}")]
    if inspect.isclass(thing):
        for member_name, member in _members(thing):
            about = f"bathysphere.{name}.{member_name}"
            if isinstance(member, property | cached_property):
                parts.append(f"**`{member_name}`** (property)\n")
                parts.append(_explained(member, about))
            else:
                parts.append(_signature(f"{name}.{member_name}", member))
                parts.append(_explained(member, about))
    return "\n".join(parts)


def _members(cls: type) -> list[tuple[str, Any]]:
    """Returns the public methods and properties of a class, its own and those of bases in this package, in order."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("bathysphere"):
            found |= {name: getattr(cls, name) for name in vars(base) if not name.startswith("_")}
    return [
        (name, thing)
        for name, thing in found.items()
        if isinstance(thing, property | cached_property) or inspect.isroutine(thing)
    ]


def _signature(name: str, thing: Any) -> str:
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return f"```text\n{name}\n```\n"
    if _is_empty(thing):
        return f"```text\n{name}\n```\n"
    shown: list[str] = []
    for one in _parameters(thing, signature):
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not any(text.startswith("*") for text in shown):
            shown.append("*")
        shown.append(_parameter(one))
    returned = signature.return_annotation
    arrow = "" if returned is signature.empty or inspect.isclass(thing) else f" -> {str(returned).strip(chr(39))}"
    line = f"{name}({', '.join(shown)}){arrow}"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + f"){arrow}"
    return f"```text\n{line}\n```\n"


def _parameters(thing: Any, signature: inspect.Signature) -> list[inspect.Parameter]:
    """Returns the parameters; `**options` of a class are the keyword arguments of the base that they are handed to."""
    own = list(signature.parameters.values())
    if not inspect.isclass(thing) or "Unpack" not in str(own[-1].annotation if own else ""):
        return own
    base = inspect.signature(thing.__mro__[1]).parameters.values()
    return own[:-1] + [one for one in base if one.kind is one.KEYWORD_ONLY]


def _parameter(one: inspect.Parameter) -> str:
    star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    text = f"{star}{one.name}"
    if one.annotation is not one.empty:
        text += f": {one.annotation}"
    if one.default is not one.empty:
        text += " = ..." if "factory" in repr(one.default) else f" = {one.default!r}"
    return text


def _is_empty(thing: Any) -> bool:
    return inspect.isclass(thing) and (issubclass(thing, Exception) or getattr(thing, "_is_protocol", False))


def _explained(thing: Any, about: str) -> str:
    text = inspect.getdoc(thing) or ""
    is_generated = inspect.isclass(thing) and text.startswith(f"{thing.__name__}(")
    if not text.strip() or is_generated:
        raise Unexplained(f"{about} has no docstring.")
    return _markdown(text)


def _markdown(text: str) -> str:
    """Returns a docstring in Google's style as Markdown: its sections become lists."""
    lines: list[str] = []
    section = ""
    for line in text.splitlines():
        if match := _SECTIONS.match(line):
            section = match.group(1)
            lines += [f"*{section}:*{match.group(2)}", ""]
        elif section and line.startswith("  ") and not line.startswith("    "):
            entry = re.match(r"  (\**\w[\w.]*):\s(.*)", line)
            is_list = section in ("Args", "Raises", "Attributes")
            lines.append(f"- `{entry.group(1)}`: {entry.group(2)}" if entry and is_list else line.strip())
        elif section and line.startswith("    "):
            lines.append(f"  {line.strip()}")
        else:
            section = section if not line.strip() else ""
            lines.append(line)
    return "\n".join(lines).strip() + "\n"
