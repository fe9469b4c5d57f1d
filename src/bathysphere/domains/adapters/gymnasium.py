"""A domain out of a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Categories, Features, ObservationSpec, States, Successors, as_rows
from bathysphere.errors import BathysphereError


class GymDomain:
    """A domain out of a deterministic Gymnasium environment whose state can be saved and restored as bytes.

    The environment is stepped one state at a time, so this is as fast as it is. A row is the environment's
    bytes and one byte more: 0 while the episode goes on, 1 ended, 2 ended in success. Truncation by the environment is
    ignored: it is not part of the state. In render mode rgb_array the domain has pictures, in mode ansi it has text.
    `bathysphere.testing.check_domain` tells whether all of this holds.
    """

    def __init__(
        self,
        env: Any,
        get_state: Callable[[Any], bytes],
        set_state: Callable[[Any, bytes], None],
        get_observation: Callable[[Any], Any],
        max_steps: int,
        is_solved: Callable[[float, dict[str, Any]], bool] | None = None,
    ) -> None:
        """Wraps `env`; the three functions get its innermost environment, `env.unwrapped`.

        Args:
          env: a gymnasium.Env with a Discrete action space and a Discrete, MultiDiscrete or Box observation space.
          get_state: returns everything the future depends on, always as many bytes.
          set_state: restores it.
          get_observation: returns what the environment would show in its current state.
          max_steps: the usual time limit, in steps.
          is_solved: whether an episode that ended with this reward and info is a success. None: if its last
            reward is above 0.
        """
        from gymnasium import spaces

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
        if self._inner.render_mode == "rgb_array":
            self.render = self._render
        elif self._inner.render_mode == "ansi":
            self.text = self._text

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

    def state_of(self, env: Any) -> States:
        """Returns the state that another environment of this kind is in, uint8 [S]; its episode has not ended."""
        row = np.zeros(self.state_size, np.uint8)
        self._save(row, env.unwrapped)
        return row

    def _render(self, state: States) -> NDArray[np.uint8]:
        self._restore(state)
        return np.asarray(self._inner.render(), np.uint8)

    def _text(self, state: States) -> str:
        self._restore(state)
        return str(self._inner.render())

    def _save(self, row: States, inner: Any = None) -> None:
        saved = self._get(self._inner if inner is None else inner)
        if len(saved) != self.state_size - 1:
            raise BathysphereError(
                f"get_state returned {len(saved)} bytes after {self.state_size - 1} at first. "
                "States must all have one length; pad the shorter ones."
            )
        row[:-1] = np.frombuffer(saved, np.uint8)

    def _restore(self, row: States) -> None:
        self._set(self._inner, row[:-1].tobytes())


def _spec(space: Any) -> ObservationSpec:
    """Returns how a domain describes what an observation space holds."""
    from gymnasium import spaces

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
