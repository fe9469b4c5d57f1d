"""Run configs as JSON, exactly and without running code.

Plain data in, plain data out: dataclasses become objects, tuples become lists, and the world says its name.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from bathysphere.domains import CONFIGS, DomainConfig
from bathysphere.errors import BathysphereError
from bathysphere.runs.config import RunConfig

# What may change between the parts of one run; all else decides what happens in it.
# A checkpoint holds its weights and towers, so that nobody looks again for the runs they came from.
FREE = ("preset", "steps", "log_every", "towers", "start_from", "stop", "checkpoint")

Kind = TypeVar("Kind")

_NAMES: dict[Any, str] = {config: name for name, config in CONFIGS.items()}


def to_dict(config: RunConfig) -> dict[str, Any]:
    """Returns a config as plain data that JSON can hold."""
    plain: dict[str, Any] = _plain(config)
    return plain


def from_dict(data: Any) -> RunConfig:
    """Returns the config that `to_dict` described; what is left out takes its default.

    Raises:
      BathysphereError: for an unknown key (with the nearest known one) or a value of a wrong type.
    """
    return read_as(RunConfig, data)


def read_as(kind: type[Kind], data: Any, name: str = "") -> Kind:
    """Reads plain data as a dataclass, as strictly as `from_dict`; `name` is what errors call it."""
    read: Kind = _read(kind, data, name)
    return read


def override(config: RunConfig, changes: dict[str, Any]) -> RunConfig:
    """Returns `config` with some fields changed; nested ones are given as nested dicts or dataclasses."""
    return from_dict(_merge(to_dict(config), changes))


def config_hash(config: RunConfig) -> str:
    """Returns a fingerprint of everything that decides a run, hexadecimal.

    Fields at their defaults do not count, so that a field that is added later leaves the checkpoints of now valid.
    """
    return plain_hash(_chosen(config))


def plain_hash(plain: dict[str, Any]) -> str:
    """Returns a fingerprint of a config as plain data, with exactly the deciding fields that are there."""
    deciding = {name: value for name, value in plain.items() if name not in FREE}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def differences(one: RunConfig, other: RunConfig) -> list[str]:
    """Returns the deciding fields in which two configs differ, as dotted names."""
    left, right = flat(to_dict(one)), flat(to_dict(other))
    names = sorted(set(left) | set(right))
    return [n for n in names if n.split(".")[0] not in FREE and left.get(n) != right.get(n)]


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        content = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        name = _NAMES.get(type(value))
        return content if name is None else {"name": name, **content}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _chosen(value: Any) -> dict[str, Any]:
    """Returns the fields of a dataclass that are not at their defaults, and so on inside."""
    chosen: dict[str, Any] = {"name": _NAMES.get(type(value))}
    for field in fields(value):
        content = getattr(value, field.name)
        if is_dataclass(content):
            chosen[field.name] = _chosen(content)
        elif content != field.default:
            chosen[field.name] = _plain(content)
    return chosen


def _merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old, new = merged.get(key), _plain(value)
        if isinstance(old, dict) and isinstance(new, dict) and new.get("name", old.get("name")) == old.get("name"):
            new = _merge(old, new)  # another world keeps nothing of this one's fields
        merged[key] = new
    return merged


def flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns nested plain data by dotted names."""
    named: dict[str, Any] = {}
    for key, value in data.items():
        named |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return named


def _read(kind: Any, data: Any, path: str) -> Any:
    """Reads `data` as a `kind`; `path` is the dotted name for errors."""
    if kind == DomainConfig:
        return _read_world(data, path)
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
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if type(data) is not kind:
        names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
        raise _wrong(path, names[kind], data)
    return data


def _read_world(data: Any, path: str) -> Any:
    name = data.get("name") if isinstance(data, dict) else data
    if not isinstance(data, dict) or name not in CONFIGS:
        raise _wrong(f"{path}.name" if isinstance(data, dict) else path, f"a world ({', '.join(CONFIGS)})", name)
    return _read_dataclass(CONFIGS[name], {k: v for k, v in data.items() if k != "name"}, path)


def _read_dataclass(kind: Any, data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        raise _wrong(path, "an object with fields", data)
    hints = _hints(kind)
    known = [field.name for field in fields(kind)]
    prefix = f"{path}." if path else ""
    for key in data:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"Did you mean '{prefix}{near[0]}'?" if near else f"Known are: {', '.join(known)}."
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
