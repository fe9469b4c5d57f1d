"""Gymnasium environments out of domains. `GymDomain`, offered here too, is the other direction.

    import gymnasium, bathysphere.gym
    env = gymnasium.make("bathysphere/DeepSea-v0", size=20)

Without the second import, `gymnasium.make("bathysphere.gym:bathysphere/DeepSea-v0")` does the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bathysphere.domains import domain_names, find_domain, make_domain
from bathysphere.domains.adapters.gymnasium import GymDomain
from bathysphere.domains.base import Domain, Features, States, as_rows
from bathysphere.domains.presentation import picture_of, text_of
from bathysphere.domains.real_steps import take_steps
from bathysphere.errors import BathysphereError

__all__ = ["DomainEnv", "EnvState", "GymDomain", "make_env"]


class EnvState(NamedTuple):
    """Everything `DomainEnv.set_state` needs to go on as if nothing had happened."""

    state: bytes
    steps: int
    generator: dict[str, Any]


class DomainEnv(gymnasium.Env[NDArray[np.generic], np.int64]):
    """Plays one episode at a time of any domain. The time limit is truncation, not termination.

    Observations are the domain's, without the batch axis: a Box of numbers for `Features`, and for
    `Categories` a MultiDiscrete. `info` holds `solved`, bool, and `steps`, the number of steps so far.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 8}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, domain: Domain, render_mode: str | None = None) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise BathysphereError(f"render_mode must be rgb_array, ansi or None; got {render_mode!r}.")
        self.domain = domain
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(len(domain.action_names))
        self.observation_space = _space(domain)
        self._state: States | None = None
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.generic], dict[str, Any]]:
        """Starts an episode."""
        super().reset(seed=seed)
        self._state = self.domain.initial(1, self.np_random)
        self._steps = 0
        return self._observe(), {"solved": False, "steps": 0}

    def step(self, action: np.int64) -> tuple[NDArray[np.generic], float, bool, bool, dict[str, Any]]:
        """Plays one action; what chance decides follows from the seed of `reset`."""
        state = self._need_state()
        if not self.action_space.contains(action):
            names = ", ".join(f"{number} {name}" for number, name in enumerate(self.domain.action_names))
            raise BathysphereError(f"There is no action {action!r}. Choose from: {names}.")
        taken = take_steps(self.domain, state, np.array([action], np.int32), self.np_random)
        self._state = taken.states
        self._steps += 1
        terminated = bool(taken.terminal[0])
        truncated = not terminated and self._steps >= self.domain.max_steps
        info = {"solved": bool(taken.solved[0]), "steps": self._steps}
        return self._observe(), float(taken.rewards[0]), terminated, truncated, info

    def render(self) -> Any:
        """Draws the current state in the chosen mode."""
        if self.render_mode is None:
            raise BathysphereError("This environment draws nothing. Make it with render_mode='rgb_array' or 'ansi'.")
        state = self._need_state()[0]
        return picture_of(self.domain, state) if self.render_mode == "rgb_array" else text_of(self.domain, state)

    def get_state(self) -> EnvState:
        """Returns the state of the world, the step counter and the random generator."""
        return EnvState(self._need_state().tobytes(), self._steps, dict(self.np_random.bit_generator.state))

    def set_state(self, saved: EnvState) -> None:
        """Goes back to what `get_state` returned, here or in another environment of the same domain."""
        row = np.frombuffer(saved.state, np.uint8).copy()
        self._state = as_rows(row[None], self.domain.state_size)
        self._steps = saved.steps
        self.np_random.bit_generator.state = saved.generator

    def _observe(self) -> NDArray[np.generic]:
        observations: NDArray[np.generic] = self.domain.observe(self._need_state())
        return np.asarray(observations[0])

    def _need_state(self) -> States:
        if self._state is None:
            raise BathysphereError("There is no episode yet. Call reset first.")
        return self._state


def _space(domain: Domain) -> spaces.Space[Any]:
    spec = domain.observation
    if isinstance(spec, Features):
        limit = np.finfo(np.float32).max
        return spaces.Box(-limit, limit, (spec.size,), np.float32)
    dtype: Any = domain.observe(np.zeros((0, domain.state_size), np.uint8)).dtype
    return spaces.MultiDiscrete(np.full(spec.shape, spec.num_categories), dtype=dtype)


def make_env(world: str, render_mode: str | None = None, **fields: Any) -> DomainEnv:
    """Makes the environment of a world by its name; `fields` are those of the world's config."""
    config: Any = find_domain(world).Config
    known = config.__dataclass_fields__
    if unknown := sorted(set(fields) - set(known)):
        raise BathysphereError(f"{world} has no argument {', '.join(unknown)}. It has: {', '.join(known)}.")
    return DomainEnv(make_domain(config(**fields)), render_mode)


for _world in domain_names():
    _id = f"bathysphere/{_world.title().replace('-', '')}-v0"
    if _id not in gymnasium.registry:
        gymnasium.register(_id, entry_point="bathysphere.gym:make_env", kwargs={"world": _world})
