"""Configs in files that people write: JSON, TOML or YAML, told apart by the name's ending."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bathysphere.errors import BathysphereError
from bathysphere.storage.files import read_json

_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")


def read_config_file(path: Path) -> dict[str, Any]:
    """Returns the fields of a config that a file holds, as plain data; which there are is checked when it is used."""
    readers: dict[str, Callable[[Path], Any]] = {
        ".json": read_json,
        ".toml": _read_toml,
        ".yaml": _read_yaml,
        ".yml": _read_yaml,
    }
    if path.suffix.lower() not in readers:
        raise BathysphereError(f"--config is {path}; expected a name that ends in {', '.join(readers)}.")
    content = readers[path.suffix.lower()](path)
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise BathysphereError(f"{path} should hold fields of a config by name, as config.json of a run does.")
    return content


def _read_toml(path: Path) -> Any:
    try:
        return tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise BathysphereError(f"{path} is not TOML: {error}.") from error


def _read_yaml(path: Path) -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError as error:
        raise BathysphereError(
            f"{path} is YAML, which needs PyYAML: pip install pyyaml. JSON and TOML need nothing."
        ) from error

    class Loader(yaml.SafeLoader):
        """Reads 1e5 as a number, as JSON and TOML do; YAML asks for 1.0e+5."""

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("+-0123456789"))
    try:
        return yaml.load(_text(path), Loader) or {}
    except yaml.YAMLError as error:
        raise BathysphereError(f"{path} is not YAML: {' '.join(str(error).split())}.") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BathysphereError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error
