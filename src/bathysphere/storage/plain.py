"""Dataclasses as plain data that JSON can hold, and back, exactly and without running code.

Dataclasses become objects, tuples become lists. Where a field may hold any of a family of dataclasses (a domain's
config), the object says its `name`. Fields that do not compare (`field(compare=False)`) are notes: they are written and
read, but decide nothing.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from bathysphere.errors import BathysphereError, nearest

Kind = TypeVar("Kind")
MOST = 2**63  # whole numbers are below it


class Family(NamedTuple):
    """Dataclasses with a common base class that are told apart by a name."""

    find: Callable[[str], type]  # raises BathysphereError for an unknown name
    name_of: Callable[[type], str]
    usual: str | None  # that plain data without a name are of, and that is not written; None if all have one


_FAMILIES: dict[type, Family] = {}  # by base class


def declare_family(
    base: type, find: Callable[[str], type], name_of: Callable[[type], str], usual: str | None = None
) -> None:
    """Makes fields of type `base` hold any dataclass of a family; their plain data then have a `name`.

    Args:
      base: class of all of them.
      find: returns the class that a name stands for, or raises BathysphereError.
      name_of: returns the name of a class.
      usual: the name that is left out: data of before there was a family are of this one.
    """
    _FAMILIES[base] = Family(find, name_of, usual)


def to_plain(value: Any) -> Any:
    """Returns a dataclass, or anything inside one, as plain data."""
    if is_dataclass(value):
        content = {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
        name = _family_name(value)
        return content if name is None else {"name": name, **content}
    if isinstance(value, dict):
        return {key: to_plain(content) for key, content in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value


def chosen(value: Any) -> dict[str, Any]:
    """Returns the fields of a dataclass that are not at their defaults as plain data, and so on inside."""
    different: dict[str, Any] = {"name": _family_name(value)}
    for field in fields(value):
        content = getattr(value, field.name)
        if not field.compare:
            continue
        if is_dataclass(content):
            different[field.name] = chosen(content)
        elif content != field.default:
            different[field.name] = to_plain(content)
    return different


def flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns nested plain data by dotted names."""
    named: dict[str, Any] = {}
    for key, value in data.items():
        named |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return named


def merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Returns plain data with some entries changed; nested ones are given as nested dicts or dataclasses."""
    merged = dict(base)
    for key, value in changes.items():
        old, new = merged.get(key), to_plain(value)
        if isinstance(old, dict) and isinstance(new, dict) and new.get("name", old.get("name")) == old.get("name"):
            new = merge(old, new)  # another member of a family keeps nothing of this one's fields
        merged[key] = new
    return merged


def check_values(value: Any, name: str = "") -> None:
    """Refuses what no setting can have.

    Numbers that are not finite (seconds may be infinite), whole numbers that machine code cannot hold, and texts that
    no file can be called: NUL, half a character.

    Args:
      value: a dataclass, or anything inside one.
      name: what errors call it.
    """
    if is_dataclass(value):
        for field in fields(value):
            check_values(getattr(value, field.name), f"{name}.{field.name}" if name else field.name)
    elif isinstance(value, list | tuple):
        for item in value:
            check_values(item, name)
    elif isinstance(value, float) and not math.isfinite(value):
        if value != math.inf or not name.endswith("seconds"):
            raise BathysphereError(f"{name} is {value}; expected a finite number.")
    elif isinstance(value, int) and not -MOST < value < MOST:
        raise BathysphereError(f"{name} is {value}; expected a whole number below 2^63.")
    elif isinstance(value, str) and not _can_be_written(value):
        raise BathysphereError(f"{name} is {value!r}; expected text without NUL and halves of characters.")


def _can_be_written(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def translated(plain: Any, fields: Mapping[str, str], values: Mapping[str, Mapping[str, str]], path: str = "") -> Any:
    """Returns plain data with other names for some fields, and for some of their values.

    Args:
      plain: the data, or the part of them at `path`.
      fields: new dotted names by old ones; both are in the same object.
      values: new values by old ones, by the field's new dotted name.
      path: dotted name of `plain`.
    """
    if not isinstance(plain, dict):
        return values.get(path, {}).get(plain, plain) if isinstance(plain, str) else plain
    renamed = {}
    for key, content in plain.items():
        name = f"{path}.{key}" if path else str(key)
        name = fields.get(name, name)
        renamed[name.rpartition(".")[2]] = translated(content, fields, values, name)
    return renamed


def read_as(kind: type[Kind], data: Any, name: str = "") -> Kind:
    """Reads plain data as a dataclass; what is left out takes its default.

    Args:
      kind: the dataclass.
      data: what `to_plain` returned, or part of it.
      name: what errors call it.

    Raises:
      BathysphereError: for an unknown key (with the nearest known one) or a value of a wrong type.
    """
    read: Kind = _read(kind, data, name)
    return read


def _family_name(value: Any) -> str | None:
    for base, family in _FAMILIES.items():
        if isinstance(value, base):
            name = family.name_of(type(value))
            return None if name == family.usual else name
    return None


_SIMPLE = (bool, int, float, str)


def _read(kind: Any, data: Any, path: str) -> Any:
    """Reads `data` as a `kind`; `path` is the dotted name for errors."""
    if kind in _SIMPLE and type(data) is kind:  # as most are: a folder of runs has thousands of numbers
        return data
    if kind in _FAMILIES:
        return _read_member(_FAMILIES[kind], data, path)
    if is_dataclass(kind):
        return _read_dataclass(kind, data, path)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        if data is None and NoneType in get_args(kind):
            return None
        (inner,) = (arg for arg in get_args(kind) if arg is not NoneType)
        return _read(inner, data, path)
    if origin is Literal:
        if data not in get_args(kind):
            raise _wrong(path, f"one of {', '.join(map(str, get_args(kind)))}", data)
        return data
    if origin is tuple:
        if not isinstance(data, list | tuple):
            raise _wrong(path, "a list", data)
        return tuple(_read(get_args(kind)[0], item, f"{path}[{i}]") for i, item in enumerate(data))
    if origin is dict:
        return _read_plain(data, path)
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        try:
            return float(data)
        except OverflowError as error:
            raise _wrong(path, "a number below 1e308", data) from error
    if kind is int and isinstance(data, float) and data.is_integer():
        return int(data)  # 1e5 is a whole number, although JSON, TOML and YAML read it as another
    if type(data) is not kind:
        names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
        raise _wrong(path, names[kind], data)
    return data


def _read_plain(data: Any, path: str) -> dict[str, Any]:
    """Reads a field of type dict[str, Any]: any plain data by name."""
    if not isinstance(data, dict) or not all(isinstance(name, str) for name in data):
        raise _wrong(path, "an object with fields", data)
    try:
        json.dumps(data, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _wrong(path, "numbers, texts, truth values, and lists and objects of them", data) from error
    plain: dict[str, Any] = to_plain(data)
    return plain


def _read_member(family: Family, data: Any, path: str) -> Any:
    name = data.get("name", family.usual) if isinstance(data, dict) else None
    if not isinstance(name, str):
        raise _wrong(path, "an object with a name", data)
    kind = family.find(name)
    return _read_dataclass(kind, {key: value for key, value in data.items() if key != "name"}, path)


def _read_dataclass(kind: Any, data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        raise _wrong(path, "an object with fields", data)
    hints = _hints(kind)
    known = [field.name for field in fields(kind)]
    prefix = f"{path}." if path else ""
    for key in data:
        if key not in known:
            near = nearest(str(key), known)
            hint = f"Did you mean '{prefix}{near}'?" if near else f"Known are: {', '.join(known)}."
            raise BathysphereError(f"There is no field '{prefix}{key}'. {hint}")
    for field in fields(kind):
        if field.name not in data and field.default is MISSING and field.default_factory is MISSING:
            raise BathysphereError(f"The field '{prefix}{field.name}' is missing.")
    return kind(**{key: _read(hints[key], value, prefix + key) for key, value in data.items()})


@cache  # slow, and a study reads thousands of configs
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _wrong(path: str, expected: str, data: Any) -> BathysphereError:
    return BathysphereError(f"{path or 'The config'} should be {expected}; got {data!r}.")
