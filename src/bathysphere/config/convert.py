"""Run configs as plain data that JSON can hold: written, read, changed, compared."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from bathysphere.config.old_names import as_first_named, renewed
from bathysphere.config.run import RunConfig
from bathysphere.planning import NoPlannerConfig
from bathysphere.planning.named import changed_planner
from bathysphere.storage.plain import chosen, flat, merge, read_as, to_plain

# What may change between the parts of one run; all else decides what happens in it.
# A checkpoint holds its weights and towers, so that the runs they came from are not needed again.
FREE = ("preset", "steps", "log_every", "towers", "start_from", "stop", "checkpoint")
_LATER = ("scale",)  # sections that older configs do not have: at their defaults, they do not count


def to_dict(config: RunConfig) -> dict[str, Any]:
    """Returns a config as plain data."""
    plain: dict[str, Any] = to_plain(config)
    return plain


def from_dict(data: Any) -> RunConfig:
    """Returns the config that `to_dict` described; what is left out takes its default.

    Raises:
      BathysphereError: for an unknown key (with the nearest known one) or a value of a wrong type.
    """
    return read_as(RunConfig, renewed(data))


def override(config: RunConfig, changes: dict[str, Any]) -> RunConfig:
    """Returns `config` with some fields changed; nested ones are given as nested dicts or dataclasses.

    `planner` among them is the name of another planner, whose settings `search` then has.
    """
    plain = dict(renewed(to_plain(changes)))
    planner = plain.pop("planner", None)
    if planner is not None:
        config = with_planner(config, str(planner))
    return from_dict(merge(to_dict(config), plain))


def with_planner(config: RunConfig, name: str) -> RunConfig:
    """Returns a config that plans with another planner: the one called `name`, at its defaults."""
    search = changed_planner(config.search, name, {})
    learning = config.learning
    if isinstance(search, NoPlannerConfig):  # a symmetry says which states are alike, not which actions
        learning = replace(learning, symmetries=False)
    return replace(config, search=search, learning=learning)


def config_hash(config: RunConfig) -> str:
    """Returns a fingerprint of everything that decides a run, hexadecimal.

    Fields at their defaults do not count, and fields count under their first names, so that a field that is added or
    renamed later leaves the checkpoints of now valid.
    """
    plain = as_first_named(chosen(config))
    return plain_hash({name: value for name, value in plain.items() if name not in _LATER or len(value) > 1})


def plain_hash(plain: dict[str, Any]) -> str:
    """Returns a fingerprint of a config as plain data, with exactly the deciding fields that are there."""
    deciding = {name: value for name, value in plain.items() if name not in FREE}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def differences(one: RunConfig, other: RunConfig) -> list[str]:
    """Returns the deciding fields in which two configs differ, as dotted names."""
    left, right = flat(to_dict(one)), flat(to_dict(other))
    names = sorted(set(left) | set(right))
    return [n for n in names if n.split(".")[0] not in FREE and left.get(n) != right.get(n)]
