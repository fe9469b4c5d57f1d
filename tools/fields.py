"""Fields of dataclasses with the text that explains each, as rows of Markdown tables."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Field:
    """A field of a dataclass."""

    name: str
    kind: str
    """Its type, as it is written."""
    default: Any
    """Its value, or `dataclasses.MISSING` if it has to be given."""
    text: str
    """What explains it."""


class Unexplained(Exception):
    """Something that people may set or call has no text that explains it."""


def explained_fields(cls: type) -> Iterator[Field]:
    """Yields the fields of a dataclass, inherited ones first.

    Raises:
      Unexplained: if one has no docstring.
    """
    written: dict[str, tuple[str, str]] = {}
    for base in reversed(cls.__mro__):
        if dataclasses.is_dataclass(base) and base.__module__.startswith("bathysphere"):
            for name, (kind, text) in _written(base).items():
                written[name] = (kind, text or written.get(name, ("", ""))[1])
    for field in dataclasses.fields(cls):
        kind, text = written.get(field.name, ("", ""))
        if not text:
            raise Unexplained(f"{cls.__module__}.{cls.__name__}.{field.name} has no docstring below it.")
        default: Any = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        yield Field(field.name, kind, default, text)


def _written(cls: type) -> dict[str, tuple[str, str]]:
    """Returns type and docstring of each field that is written in the class itself."""
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # made by a program
        return {}
    [node] = ast.parse(source).body
    found: dict[str, tuple[str, str]] = {}
    body = node.body if isinstance(node, ast.ClassDef) else []
    for line, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            text = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                text = " ".join(str(after.value.value).split())
            found[line.target.id] = (ast.unparse(line.annotation), text)
    return found


def cell(text: str) -> str:
    """Returns text for one cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").strip()


def code(text: str) -> str:
    """Returns text as code, for one cell of a table."""
    return f"`{text}`".replace("|", "\\|") if text else ""
