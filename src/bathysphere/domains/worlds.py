"""Worlds from outside: whatever a user has becomes a `Domain`, and a config from which it can be made again.

Three configs describe them. All can be read without importing anything: `PythonConfig` names a class or function by its
import path, `GymnasiumConfig` an environment by its id, and `ObjectConfig` stands for an object that nothing can name.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from functools import partial
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import numpy as np

from bathysphere.domains.base import Domain, DomainConfig
from bathysphere.domains.estimated import with_outcomes
from bathysphere.domains.registry import declare_source, domain_names, find_domain, is_built_in, make_domain
from bathysphere.domains.user_code import find_named, find_saved, is_import_path, parameters, path_of, source_of, where
from bathysphere.errors import BathysphereError, did_you_mean
from bathysphere.storage.plain import read_as, to_plain

GYMNASIUM = "gymnasium:"  # before an environment's id
ENTRY_POINTS = "bathysphere.domains"  # group in which installed packages name their worlds


@dataclass(frozen=True)
class PythonConfig(DomainConfig):
    """A world of a user's own, by its import path."""

    world: str
    """Where it is: my_world:MyWorld, a class or a function that returns a world."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Arguments for it, by name."""
    source: str = field(default="", compare=False)
    """Fingerprint of the file that defines it."""


@dataclass(frozen=True)
class GymnasiumConfig(DomainConfig):
    """A Gymnasium environment, by its id."""

    id: str
    """As `gymnasium.make` takes it."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Further arguments of `gymnasium.make`, by name."""
    key: str | None = None
    """What identifies a state: observation, snapshot, or None: the snapshot without what repeats the latest action."""
    max_steps: int | None = None
    """Steps of an episode; None: the environment's own limit."""
    seeds: int | None = None
    """Start with one of so many fixed resets; None: every episode has its own."""


@dataclass(frozen=True)
class ObjectConfig(DomainConfig):
    """A world that was handed over as an object and has no name by which another process could find it."""

    world: str
    """What it is called."""
    fingerprint: str = ""
    """Of its shape and its first states, by which it is known again."""


class _Adapter(NamedTuple):
    """What makes domains of things of one kind."""

    fits: Callable[[Any], bool]
    module: str
    function: str


_handed: dict[ObjectConfig, Domain] = {}  # worlds of this process


def as_domain(world: Any, **settings: Any) -> Domain:
    """Returns a domain made of whatever a user has.

    Args:
      world: a `Domain`; a world with `start` and `step`, one state at a time; a Gymnasium or dm_env environment; or a
        class or function that returns one of them.
      **settings: arguments for that class or function.
    """
    is_maker = _is_maker(world)
    made = build(world, **settings)
    if isinstance(made, Domain):
        return with_outcomes(made)
    # A simulator may be needed more than once.
    make = partial(world, **settings) if is_maker and not _is_world(made) else made
    for adapter in _ADAPTERS:
        if adapter.fits(made):
            adapt = getattr(importlib.import_module(f"bathysphere.domains.adapters.{adapter.module}"), adapter.function)
            domain: Domain = adapt(make)
            return domain
    raise BathysphereError(
        f"{type(made).__name__} is no world. A world has start and step (one state at a time), or is a Domain, or a "
        f"Gymnasium or dm_env environment.{_missing(made)}"
    )


def build(world: Any, **settings: Any) -> Any:
    """Returns what a class or function of a user's makes; an object as it is."""
    return _called(world, settings) if _is_maker(world) else world


def describe(world: Any) -> tuple[DomainConfig, Domain]:
    """Returns a config from which a world that was handed over can be made again, and the world as a domain."""
    domain = as_domain(world)
    own = getattr(domain, "config", None)
    if isinstance(own, DomainConfig) and is_built_in(own):
        return own, domain
    maker, settings = (world, dict[str, Any]()) if _is_maker(world) else (type(world), _settings_of(world))
    path = None if settings is None else path_of(maker)
    if path is not None and settings is not None:
        return PythonConfig(path, settings, source_of(path)), domain
    config = ObjectConfig(domain.name, _fingerprint(domain))
    _handed[config] = domain
    return config, domain


def find_world(name: str) -> DomainConfig:
    """Returns the config of the world that a user names, at its defaults.

    Args:
      name: a known domain, the name that an installed package gives to one, an import path, or gymnasium:ID.
    """
    if name.startswith(GYMNASIUM):
        return GymnasiumConfig(name.removeprefix(GYMNASIUM))
    if name.partition(":")[0].endswith(".py"):
        raise BathysphereError(
            f"{name!r} is a file. Name a world by its import path, from the folder it is in: my_world:MyWorld."
        )
    installed = installed_worlds()
    path = installed.get(name, name)
    if is_import_path(path):
        find_named(path)
        return PythonConfig(path, {}, source_of(path))
    if name in domain_names():
        return find_domain(name).Config()
    known = [*domain_names(), *installed]
    raise BathysphereError(
        f"There is no world {name!r}. Name a world of yours by its import path (my_world:MyWorld), an environment as "
        f"gymnasium:ID, or one of {', '.join(known)}.{did_you_mean(name, known)}"
    )


def installed_worlds() -> dict[str, str]:
    """Returns the import paths of the worlds that installed packages name, by name."""
    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}


def load_world(name: str) -> Domain:
    """Returns the world that a user names, at its defaults; `name` as for `find_world`."""
    return make_domain(find_world(name))


def settings_class(maker: Callable[..., Any]) -> type:
    """Returns a frozen dataclass of what a world's class or function takes: its own Config, or its parameters."""
    own: type | None = _own_config(maker)
    if own is not None:
        return own
    known: list[Any] = []
    for name, each in parameters(maker).items():
        kind = type(each.default) if each.annotation is each.empty else each.annotation
        known.append((name, kind) if each.default is each.empty else (name, kind, field(default=each.default)))
    return make_dataclass("Settings", known, frozen=True, kw_only=True)


def hand_over(config: DomainConfig, world: Any) -> None:
    """Makes an object known as the world that a saved config describes, which was an object of another process."""
    if not isinstance(config, ObjectConfig):
        raise BathysphereError("This world can be made from what was saved; leave out world=.")
    domain = as_domain(world)
    given = ObjectConfig(domain.name, _fingerprint(domain))
    if given != config:
        raise BathysphereError(
            f"The world handed over, {given.world} ({given.fingerprint[:8]}), is not the one of before, {config.world} "
            f"({config.fingerprint[:8]}). Make it with the same settings."
        )
    _handed[config] = domain


def _make_python(config: PythonConfig) -> Domain:
    found = find_saved(config.world, config.source)
    return as_domain(found, **config.settings)


def _make_gymnasium(config: GymnasiumConfig) -> Domain:
    domain: Domain = importlib.import_module("bathysphere.domains.adapters.gymnasium").make_gymnasium(config)
    return domain


def _find_object(config: ObjectConfig) -> Domain:
    if config not in _handed:
        raise BathysphereError(
            f"The world {config.world} was handed to train as an object, and this process has not got it. Hand it over "
            "again: bathysphere.resume(run, world=...), bathysphere.load_agent(run, world=...). A world that can be "
            "imported (my_world:MyWorld) is found without."
        )
    return _handed[config]


def _called(maker: Callable[..., Any], settings: dict[str, Any]) -> Any:
    name = getattr(maker, "__qualname__", type(maker).__name__)
    own = _own_config(maker)
    known = {each.name for each in fields(own)} if own is not None else parameters(maker).keys()
    if unknown := sorted(set(settings) - set(known)):
        raise BathysphereError(
            f"{name} takes no {unknown[0]}.{did_you_mean(unknown[0], known)} It takes: {', '.join(known) or 'nothing'}."
        )
    empty = inspect.Parameter.empty
    needed = (
        [] if own else [p.name for p in parameters(maker).values() if p.default is empty and p.name not in settings]
    )
    if needed:
        raise BathysphereError(
            f"{name} needs {', '.join(needed)}. Give it a default, or a value (--domain.{needed[0]})."
        )
    try:
        return maker(**settings) if own is None else maker(read_as(own, settings))
    except BathysphereError:
        raise
    except Exception as error:
        raise BathysphereError(f"{name} cannot be made: {type(error).__name__}: {error}{where(error)}.") from error


def _own_config(maker: Any) -> Any:
    """Returns the Config of a class that is made like a registered domain; None if it is not."""
    config = getattr(maker, "Config", None)
    return config if isinstance(config, type) and is_dataclass(config) else None


def _settings_of(world: Any) -> dict[str, Any] | None:
    """Returns the arguments an object was made with, as far as its attributes tell; None if they do not."""
    if (own := _own_config(type(world))) is not None:
        config = getattr(world, "config", None)
        return (
            {each.name: to_plain(getattr(config, each.name)) for each in fields(own)}
            if isinstance(config, own)
            else None
        )
    settings = {}
    for name, each in parameters(type(world)).items():
        value = getattr(world, name, each.empty)
        try:
            settings[name] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            return None
    return settings


def _is_maker(thing: Any) -> bool:
    """Tells whether `thing` is a class or function that makes worlds, and not a world itself."""
    return isinstance(thing, type) or (callable(thing) and not _is_world(thing))


def _is_world(thing: Any) -> bool:
    """Tells whether `thing` is a domain, or has start and step."""
    return isinstance(thing, Domain) or all(callable(getattr(thing, name, None)) for name in ("start", "step"))


def _fingerprint(domain: Domain) -> str:
    rng = np.random.default_rng(0)
    rows = domain.initial(1, rng)
    digest = hashlib.sha256(repr((domain.name, domain.state_size, domain.action_names, domain.observation)).encode())
    digest.update(rows.tobytes())
    return digest.hexdigest()


def _is_environment(package: str, name: str, world: Any) -> bool:
    """Tells whether `world` is an environment of a package, which then is imported already."""
    module = sys.modules.get(package)
    return module is not None and isinstance(world, getattr(module, name))


_ADAPTERS = (
    _Adapter(partial(_is_environment, "gymnasium", "Env"), "gymnasium", "from_gymnasium"),
    _Adapter(partial(_is_environment, "dm_env", "Environment"), "dm_env", "from_dm_env"),
    _Adapter(_is_world, "per_state", "from_steps"),
)


def _missing(world: Any) -> str:
    """Says what is missing in something that looks like a domain."""
    wanted = ("name", "state_size", "action_names", "max_steps", "observation", "initial", "successors", "observe")
    missing = [name for name in wanted if not hasattr(world, name)]
    return f" To be a Domain it lacks {', '.join(missing)}." if len(missing) < len(wanted) - 2 else ""


declare_source("python", PythonConfig, _make_python)
declare_source("gymnasium", GymnasiumConfig, _make_gymnasium)
declare_source("object", ObjectConfig, _find_object)
