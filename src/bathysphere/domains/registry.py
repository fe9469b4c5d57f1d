"""Where domains come from: by name to the class, from a config to the domain it describes.

The built-in ones are imported when they are first asked for. Any other class becomes known by `register_domain`. Worlds
from outside (worlds.py) have configs that say where each comes from.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from bathysphere.domains.base import Domain, DomainConfig
from bathysphere.domains.estimated import with_outcomes
from bathysphere.errors import BathysphereError, unknown_name
from bathysphere.storage.plain import declare_family


class DomainClass(Protocol):
    """A class of domains that differ in their config."""

    name: str
    Config: type[DomainConfig]  # a frozen dataclass; its fields become flags and entries of config.json

    def __call__(self, config: Any) -> Domain:
        """Makes the domain that `config` describes."""
        ...


Registered = TypeVar("Registered", bound=type)

_BUILT_IN = {
    "deep-sea": "bathysphere.domains.deep_sea",
    "toy-montezuma": "bathysphere.domains.toy_montezuma",
    "sokoban": "bathysphere.domains.sokoban",
}
_CLASSES: dict[str, DomainClass] = {}


class Source(NamedTuple):
    """A way in which worlds come from outside."""

    config: type[DomainConfig]  # describes one of them, and can be read without it
    make: Callable[[Any], Domain]


_OUTSIDE = ("python", "gymnasium", "object")  # names of sources
_SOURCES: dict[str, Source] = {}


def register_domain(domain_class: Registered) -> Registered:
    """Makes a class known by its `name`, and as what its `Config` describes; a decorator.

    Raises:
      BathysphereError: if it lacks one of them, or has the name of a built-in domain.
    """
    known: Any = domain_class
    name, config = getattr(known, "name", None), getattr(known, "Config", None)
    is_config = isinstance(config, type) and issubclass(config, DomainConfig) and is_dataclass(config)
    if not isinstance(name, str) or not is_config:
        raise BathysphereError(
            f"{known.__name__} cannot be registered: it needs a name (a text) and a Config, a dataclass that extends "
            "DomainConfig."
        )
    if not known.__module__.startswith(_BUILT_IN.get(name, "")) or name in _OUTSIDE:
        raise BathysphereError(f"There is a {name} already. Choose another name for {known.__name__}.")
    _CLASSES[name] = known
    return domain_class


def domain_names() -> tuple[str, ...]:
    """Returns the names of all domains that are known, the built-in ones first."""
    return tuple(dict.fromkeys((*_BUILT_IN, *_CLASSES)))


def find_domain(name: str) -> DomainClass:
    """Returns the class of domains called `name`."""
    if name in _BUILT_IN:
        importlib.import_module(_BUILT_IN[name])  # registers it
    if name not in _CLASSES:
        raise unknown_name("domain", name, domain_names())
    return _CLASSES[name]


def is_built_in(config: DomainConfig) -> bool:
    """Tells whether a config describes a domain that any process can make: one that comes with the package, or one
    from outside that says where it is."""
    return type(config).__module__.startswith("bathysphere.domains.")


def make_domain(config: DomainConfig) -> Domain:
    """Builds the domain that a config describes."""
    for source in _sources().values():
        if isinstance(config, source.config):
            return source.make(config)
    return with_outcomes(_class_of(type(config))(config))


def declare_source(name: str, config: type[DomainConfig], make: Callable[[Any], Domain]) -> None:
    """Makes a config of worlds from outside known, under its name in config.json."""
    _SOURCES[name] = Source(config, make)


def _sources() -> dict[str, Source]:
    if not _SOURCES:
        importlib.import_module("bathysphere.domains.worlds")  # declares them
    return _SOURCES


def _class_of(config_type: type) -> DomainClass:
    for domain_class in _CLASSES.values():
        if domain_class.Config is config_type:
            return domain_class
    raise BathysphereError(
        f"{config_type.__name__} is not the Config of a registered domain. Put @register_domain before the domain's "
        "class."
    )


def _config_type(name: str) -> type[DomainConfig]:
    return _sources()[name].config if name in _OUTSIDE else find_domain(name).Config


def _config_name(config_type: type) -> str:
    names = (name for name, source in _sources().items() if source.config is config_type)
    return next(names, None) or _class_of(config_type).name


declare_family(DomainConfig, _config_type, _config_name)
