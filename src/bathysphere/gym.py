"""Gymnasium environments out of domains, and domains out of Gymnasium environments.

    import gymnasium, bathysphere.gym
    env = gymnasium.make("bathysphere/DeepSea-v0", size=20)

Without the second import, `gymnasium.make("bathysphere.gym:bathysphere/DeepSea-v0")` does the same.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from bathysphere.domains import domain_names, find_domain, make_domain
from bathysphere.domains.base import Categories, Domain, Features, ObservationSpec, States, Successors, as_rows
from bathysphere.errors import BathysphereError


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
        """Plays one action."""
        state = self._need_state()
        if not self.action_space.contains(action):
            names = ", ".join(f"{number} {name}" for number, name in enumerate(self.domain.action_names))
            raise BathysphereError(f"There is no action {action!r}. Choose from: {names}.")
        out = self.domain.successors(state)
        self._state = out.states[:, action]
        self._steps += 1
        terminated = bool(out.terminal[0, action])
        truncated = not terminated and self._steps >= self.domain.max_steps
        info = {"solved": bool(out.solved[0, action]), "steps": self._steps}
        return self._observe(), float(out.rewards[0, action]), terminated, truncated, info

    def render(self) -> Any:
        """Draws the current state in the chosen mode."""
        if self.render_mode is None:
            raise BathysphereError("This environment draws nothing. Make it with render_mode='rgb_array' or 'ansi'.")
        state = self._need_state()[0]
        return self.domain.render(state) if self.render_mode == "rgb_array" else self.domain.text(state)

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


class GymDomain:
    """A domain out of a deterministic Gymnasium environment whose state can be saved and restored as bytes.

    The environment is stepped one state at a time, so this is as fast as it is. A row is the environment's
    bytes and one byte more: 0 while the episode goes on, 1 ended, 2 ended in success. Truncation by the
    environment is
    ignored: it is not part of the state. `bathysphere.testing.check_domain` tells whether all of this holds.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        get_state: Callable[[Any], bytes],
        set_state: Callable[[Any, bytes], None],
        get_observation: Callable[[Any], Any],
        max_steps: int,
        is_solved: Callable[[float, dict[str, Any]], bool] | None = None,
    ) -> None:
        """Wraps `env`; the three functions get its innermost environment, `env.unwrapped`.

        Args:
          env: has a Discrete action space and a Discrete, MultiDiscrete or Box observation space.
          get_state: returns everything the future depends on, always as many bytes.
          set_state: restores it.
          get_observation: returns what the environment would show in its current state.
          max_steps: the usual time limit, in steps.
          is_solved: whether an episode that ended with this reward and info is a success. None: if its last
            reward is above 0.
        """
        if not isinstance(env.action_space, spaces.Discrete):
            raise BathysphereError(f"GymDomain needs a Discrete action space; got {env.action_space}.")
        self._env, self._inner = env, env.unwrapped
        self._get, self._set, self._look = get_state, set_state, get_observation
        self._first_action = int(env.action_space.start)
        self._is_solved = is_solved or (lambda reward, info: reward > 0)
        self.name = env.spec.id if env.spec else type(self._inner).__name__
        self.action_names = tuple(f"action-{number}" for number in range(int(env.action_space.n)))
        self.max_steps = max_steps
        self.observation = _spec(env.observation_space)
        env.reset(seed=0)
        self.state_size = len(get_state(self._inner)) + 1

    def initial(self, n: int, rng: np.random.Generator) -> States:
        """Resets the environment `n` times with seeds from `rng`."""
        rows = np.zeros((n, self.state_size), np.uint8)
        for row in rows:
            self._env.reset(seed=int(rng.integers(2**31)))
            self._save(row)
        return rows

    def successors(self, states: States) -> Successors:
        """Restores each state and steps the environment, once for each action."""
        rows = as_rows(states, self.state_size)
        shape = (len(rows), len(self.action_names))
        out = Successors(
            np.repeat(rows[:, None], shape[1], axis=1),
            np.zeros(shape),
            np.repeat(rows[:, -1:] > 0, shape[1], axis=1),
            np.repeat(rows[:, -1:] == 2, shape[1], axis=1),
        )
        for i in np.flatnonzero(rows[:, -1] == 0):
            for action in range(shape[1]):
                self._restore(rows[i])
                _, reward, terminated, _, info = self._inner.step(action + self._first_action)
                solved = bool(terminated) and self._is_solved(float(reward), info)
                out.rewards[i, action], out.terminal[i, action] = float(reward), terminated
                out.solved[i, action] = solved
                self._save(out.states[i, action])
                out.states[i, action, -1] = bool(terminated) + solved
        return out

    def observe(self, states: States) -> NDArray[np.generic]:
        """Restores each state and asks for its observation."""
        rows = as_rows(states, self.state_size)
        spec = self.observation
        shape = (spec.size,) if isinstance(spec, Features) else spec.shape
        seen = np.zeros((len(rows), *shape), np.float32 if isinstance(spec, Features) else np.int32)
        for i, row in enumerate(rows):
            self._restore(row)
            seen[i] = np.reshape(self._look(self._inner), shape)
        return seen

    def render(self, state: States) -> NDArray[np.uint8]:
        """Returns the environment's own picture in mode rgb_array, otherwise the bytes in hexadecimal."""
        if self._inner.render_mode == "rgb_array":
            self._restore(state)
            return np.asarray(self._inner.render(), np.uint8)
        lines = textwrap.wrap(state.tobytes().hex(" "), 48)
        image = Image.new("RGB", (320, 16 * len(lines) + 16), "white")
        ImageDraw.Draw(image).multiline_text((8, 8), "\n".join(lines), fill="black")
        return np.asarray(image).copy()

    def text(self, state: States) -> str:
        """Returns the environment's own text in mode ansi, otherwise the bytes in hexadecimal."""
        if self._inner.render_mode == "ansi":
            self._restore(state)
            return str(self._inner.render())
        return state.tobytes().hex(" ")

    def _save(self, row: States) -> None:
        saved = self._get(self._inner)
        if len(saved) != self.state_size - 1:
            raise BathysphereError(
                f"get_state returned {len(saved)} bytes after {self.state_size - 1} at first. "
                "States must all have one length; pad the shorter ones."
            )
        row[:-1] = np.frombuffer(saved, np.uint8)

    def _restore(self, row: States) -> None:
        self._set(self._inner, row[:-1].tobytes())


def _spec(space: spaces.Space[Any]) -> ObservationSpec:
    match space:
        case spaces.Discrete(start=0):
            return Categories((1,), int(space.n))
        case spaces.MultiDiscrete() if not space.start.any():
            return Categories(space.nvec.shape, int(space.nvec.max()))
        case spaces.Box():
            return Features(int(np.prod(space.shape)))
    raise BathysphereError(
        f"GymDomain reads Discrete, MultiDiscrete (from 0) and Box observations; got {space}. "
        "Wrap the environment so that it has one of these."
    )


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
