"""Domains out of dm_env environments: they get Gymnasium's interface, and go on as those do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bathysphere.domains.adapters.calling import shown
from bathysphere.domains.adapters.digests import generators_in, reseed
from bathysphere.domains.adapters.simulated import SimulatedDomain, is_factory, simulate
from bathysphere.domains.estimated import EstimatedChance
from bathysphere.errors import WorldError

_VIEWS = ("_observation", "_get_observation", "_get_obs", "_observe")  # what environments call their observation
_INSIDE = ("_env", "_environment", "environment")  # what wrappers of dm_env call the environment that they are around


class DmEnvironment:
    """A dm_env environment with the part of Gymnasium's interface that domains need.

    Its resets take a seed, which sets every random generator that the environment refers to.
    """

    render_mode = None
    spec = None

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.observation_space = _space(environment.observation_spec())
        self.action_space = _actions(environment.action_spec())

    @property
    def unwrapped(self) -> DmEnvironment:
        """Itself: what is inside has another interface."""
        return self

    @property
    def layers(self) -> list[Any]:
        """The environment and what it is around, outermost first."""
        found = [self.environment]
        while (inner := next((vars(found[-1])[name] for name in _INSIDE if name in vars(found[-1])), None)) is not None:
            found.append(inner)
        return found

    def get_obs(self) -> Any:
        """Returns what the environment shows now, if it has a method for that."""
        methods = [getattr(layer, name, None) for layer in self.layers for name in _VIEWS]
        return next(filter(callable, methods))()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode."""
        if seed is not None:
            reseed(generators_in(*self.layers), seed)
        return self.environment.reset().observation, {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Makes a step; a last one with discount 0 terminates the episode, any other truncates it."""
        timestep = self.environment.step(action)
        is_last = bool(timestep.last())
        is_over = is_last and not np.any(timestep.discount)
        return timestep.observation, float(timestep.reward or 0.0), is_over, is_last and not is_over, {}


def from_dm_env(
    env: Any,
    *,
    key: str | Callable[[Any], Any] | None = None,
    max_steps: int | None = None,
    seeds: int | None = None,
) -> SimulatedDomain | EstimatedChance:
    """Returns a dm_env environment with one discrete action as a domain; its chances, if it has any, are counted.

    An episode ends where discount is 0, and counts as solved if its last reward is above 0. A last step with another
    discount is a time limit, which is no end.

    Args:
      env: an environment, or a function without arguments that makes one. A function that can be imported also serves
        in other processes.
      key, max_steps, seeds: as for `from_gymnasium`; `max_steps` is 200 if not given, since dm_env states no limit.

    Raises:
      WorldError: if seeds do not decide its chance, it cannot be copied, or is of a kind that planners cannot use.
    """
    make = partial(_call, env) if is_factory(env) else partial(DmEnvironment, env)
    return simulate(make, key=key, max_steps=max_steps, seeds=seeds)


def _call(make: Callable[[], Any]) -> DmEnvironment:
    return DmEnvironment(make())


def _space(spec: Any) -> Any:
    """Returns the observation space of a spec."""
    from dm_env import specs
    from gymnasium import spaces

    match spec:
        case dict():
            return spaces.Dict({name: _space(inner) for name, inner in spec.items()})
        case list() | tuple():
            return spaces.Tuple([_space(inner) for inner in spec])
        case specs.DiscreteArray():
            return spaces.Discrete(int(spec.num_values))
        case specs.StringArray():
            return spaces.Text(1 << 16)
        case specs.BoundedArray() if spec.dtype != np.bool_:
            low, high = (
                np.broadcast_to(bound, spec.shape).astype(spec.dtype) for bound in (spec.minimum, spec.maximum)
            )
            return spaces.Box(low, high, spec.shape, spec.dtype)
        case specs.Array() if spec.dtype == np.bool_:
            return spaces.MultiBinary(spec.shape or (1,))
        case specs.Array() if spec.dtype.kind == "f":
            return spaces.Box(-np.inf, np.inf, spec.shape, spec.dtype)
        case specs.Array() if spec.dtype.kind in "iu":
            numbers = np.iinfo(spec.dtype)
            return spaces.Box(numbers.min, numbers.max, spec.shape, spec.dtype)
    raise WorldError(
        "observation-space",
        f"Observations are of the kind {shown(spec)}.",
        "Put a wrapper around the environment that returns arrays of numbers, or dicts or lists of them.",
    )


def _actions(spec: Any) -> Any:
    from dm_env import specs
    from gymnasium import spaces

    if isinstance(spec, specs.DiscreteArray):
        return spaces.Discrete(int(spec.num_values))
    is_whole = isinstance(spec, specs.BoundedArray) and spec.dtype.kind in "iu" and spec.shape in ((), (1,))
    if not is_whole:
        raise WorldError(
            "action-space",
            f"The action spec is {shown(spec)}.",
            "Actions must be a DiscreteArray; put a wrapper around the environment that offers a list of actions.",
        )
    low, high = int(np.min(spec.minimum)), int(np.max(spec.maximum))
    return spaces.Discrete(high - low + 1, start=low)
