"""Saved states: arrays by flat names, where a part's names begin with the name of the part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def section(state: Mapping[str, T], prefix: str) -> dict[str, T]:
    """Returns the entries whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
