"""Value networks by name: those that come with the package, and users' own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bathysphere.errors import BathysphereError, unknown_name

if TYPE_CHECKING:
    from torch import nn

    from bathysphere.domains.base import ObservationSpec
    from bathysphere.values.config import ValuesConfig

    Factory = Callable[[ObservationSpec, ValuesConfig], nn.Module]

BUILT_IN = ("linear", "mlp", "cnn", "board")
_FACTORIES: dict[str, Any] = {}


def register_network(name: str, factory: Factory) -> None:
    """Makes a value network of yours known, so that `values.network` can name it.

    Args:
      name: as configs and flags have it.
      factory: `factory(observation, config)` returns a `torch.nn.Module` that turns observations [n, ...] into values
        [n, E] with E = `config.num_members`. Observations are float32 for `Features`, whole numbers for `Categories`.
        Weights may be drawn with PyTorch's own generator: it is seeded from the run's seed meanwhile. The module stays
        in evaluation mode, so layers that behave differently while learning (dropout) do not.
    """
    if name in BUILT_IN:
        raise BathysphereError(f"There is a network {name!r} already. Choose another name for yours.")
    if not callable(factory):
        raise BathysphereError(f"The factory of the network {name!r} is {factory!r}; expected a function or a class.")
    _FACTORIES[name] = factory


def check_network(name: str) -> None:
    """Refuses a name of no network."""
    if name not in BUILT_IN and name not in _FACTORIES:
        raise unknown_name("network", name, [*BUILT_IN, *_FACTORIES])


def find_factory(name: str) -> Any:
    """Returns the factory of a user's network; None for those that come with the package."""
    return _FACTORIES.get(name)
