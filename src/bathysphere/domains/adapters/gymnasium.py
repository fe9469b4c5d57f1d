"""Domains out of Gymnasium environments: any that can be copied, or one whose state the user saves and restores."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.adapters.calling import user_code
from bathysphere.domains.adapters.simulated import SimulatedDomain, is_factory, simulate
from bathysphere.domains.adapters.tables import TableDomain, has_chance
from bathysphere.domains.base import Categories, Features, ObservationSpec, States, Successors, as_rows
from bathysphere.domains.estimated import EstimatedChance
from bathysphere.domains.user_code import where
from bathysphere.domains.worlds import GymnasiumConfig
from bathysphere.errors import BathysphereError

_PACKAGES = {"ALE": "ale_py", "BabyAI": "minigrid", "MiniGrid": "minigrid"}  # that know the ids which begin so
_PLAIN = ("PassiveEnvChecker", "OrderEnforcing", "TimeLimit")  # wrappers that gymnasium.make puts around by itself


def from_gymnasium(
    env: Any,
    *,
    key: str | Callable[[Any], Any] | None = None,
    max_steps: int | None = None,
    seeds: int | None = None,
) -> SimulatedDomain | TableDomain | EstimatedChance:
    """Returns a Gymnasium environment with discrete actions as a domain: deterministic, or with chance.

    Chances are read from published transitions, `env.unwrapped.P` of the toy-text environments such as FrozenLake, or
    counted: the environment is put into a state and run with one seed after another. Of all but the first:

    How its state is copied is found out by trying: by its own get_state and set_state or clone_state and restore_state,
    by pickling, or by a deep copy. `findings` of the domain says what was found. Truncation is no end: time limits
    are not part of a state. An episode counts as solved if it terminates with `info["is_success"]` or
    `info["success"]`, or, where info has neither, with a last reward above 0. Actions that `info["action_mask"]` or the
    environment's `action_masks()` excludes leave the state as it is.

    Args:
      env: an environment, or a function without arguments that makes one. A function that can be imported also serves
        in other processes.
      key: what identifies a state. "observation": what it shows. "snapshot": everything in a copy of the environment
        (of ALE its RAM), except random generators and counters of a time limit. A function: what it returns for the
        environment, anything made of numbers, text and containers. None: the snapshot, without attributes that merely
        repeat the latest action or that the code only writes, and that changed no step when they had other values.
        Neither do the seeds count that Gymnasium notes beside generators, unless a step depends on them.
      max_steps: the usual time limit; None: the environment's own.
      seeds: every episode begins with one of so many fixed resets; None: each has its own.

    Raises:
      WorldError: if seeds do not decide its chance, it cannot be copied, or is of a kind that planners cannot use.
    """
    make = env if is_factory(env) else partial(_itself, env)
    if not callable(key):
        with user_code("The environment's factory"):
            config = _config_of(make(), key, max_steps, seeds)
        if config is not None:
            return make_gymnasium(config)
    return simulate(make, key=key, max_steps=max_steps, seeds=seeds)


def make_gymnasium(config: GymnasiumConfig) -> SimulatedDomain | TableDomain | EstimatedChance:
    """Returns the domain that a config describes; with chance, if the environment has any."""
    make = partial(_make_env, config)
    env = make()
    if has_chance(env):
        return TableDomain.of_gymnasium(env, config)
    return simulate(make, key=config.key, max_steps=config.max_steps, seeds=config.seeds, config=config)


def _itself(env: Any) -> Any:
    return env


def _make_env(config: GymnasiumConfig) -> Any:
    """Makes the environment that a config names."""
    import gymnasium

    _register(config.id)
    try:
        return gymnasium.make(config.id, disable_env_checker=True, **config.arguments)
    except Exception as error:
        known = f" Its arguments are {config.arguments}." if config.arguments else ""
        raise BathysphereError(
            f"gymnasium.make({config.id!r}) failed: {str(error).rstrip('.')}{where(error)}.{known}"
        ) from error


def _register(name: str) -> None:
    """Imports the package that knows an id, if it is one of those that must be imported first."""
    import gymnasium

    package = next((package for begin, package in _PACKAGES.items() if name.startswith(begin)), None)
    if package is None or name in gymnasium.registry:
        return
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        raise BathysphereError(
            f"{name} is an environment of {package}, which is not installed: pip install {package.replace('_', '-')}."
        ) from error


def _config_of(env: Any, key: Any, max_steps: int | None, seeds: int | None) -> GymnasiumConfig | None:
    """Returns the config that describes an environment completely; None if gymnasium.make alone does not give it."""
    spec = getattr(env, "spec", None)
    while env is not env.unwrapped:
        if type(env).__name__ not in _PLAIN or not type(env).__module__.startswith("gymnasium."):
            return None
        env = env.env
    if spec is None or spec.additional_wrappers or not isinstance(spec.entry_point, str):
        return None
    if spec.entry_point.partition(".")[0] not in {"gymnasium", *_PACKAGES.values()}:
        return None  # another process would not know the id
    arguments = {name: value for name, value in spec.kwargs.items() if value is not None}
    try:
        arguments = json.loads(json.dumps(arguments, allow_nan=False))
    except (TypeError, ValueError):
        return None
    return GymnasiumConfig(spec.id, arguments, key, max_steps or spec.max_episode_steps, seeds)


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
