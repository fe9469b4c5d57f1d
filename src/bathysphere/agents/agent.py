"""A trained agent: it plans from the state it is shown, and acts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model, ReadsEnvironments, ReadsStates, States, as_rows
from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, BestFirstConfig, Episode, Planner, PlannerSettings, make_planner
from bathysphere.planning.inspect import RootReport, root_report
from bathysphere.planning.named import planner_name
from bathysphere.planning.planner import play_all
from bathysphere.values.ensemble import Ensemble

if TYPE_CHECKING:
    import torch

_AT_ONCE = 256  # states planned side by side; bounds memory


class Agent:
    """Chooses actions in a world by planning with trained values.

    It keeps its search graph, or the whole plan if its planner makes such, as long as the world goes on as it expects,
    and plans anew from any other state and at the end of a plan.

    Args:
      domain: the world.
      values: the trained ensemble.
      search: how to plan.
      seed: decides ties and the members drawn.
      model: what planning believes happens; the world's own rules if not given.
    """

    def __init__(
        self, domain: Domain, values: Ensemble, search: PlannerSettings, seed: int = 0, model: Model | None = None
    ) -> None:
        self.domain, self.values, self.config, self.model = domain, values, search, model
        self._rng = np.random.default_rng(seed)
        self._planner: Planner | None = None
        self._expected: bytes | None = None
        self._plan = deque[tuple[bytes, int]]()  # states to come and what to do there

    def act(self, where: Any, *, passes: int | None = None, milliseconds: float | None = None) -> int:
        """Returns the number of the chosen action, as `env.step` takes it.

        Args:
          where: an environment of the agent's world, wrapped or not, looked at but not touched; or a state, uint8 [S],
            in a world that is written one state at a time as `step` returns it.
          passes: of planning; as in training (or as `search` said) if not given.
          milliseconds: instead, plan for that long.
        """
        _check_budget(passes, milliseconds)
        state, first = self._state(where), _first_action(where)
        if self._plan and self._plan[0][0] == state.tobytes():
            return first + self._plan.popleft()[1]
        if self._planner is None or state.tobytes() != self._expected:
            self._planner = self._make_planner(state[None], milliseconds)
        if self._planner.makes_plans:
            self._check_passes(self._planner, passes)
            (episode,) = play_all(self._planner)
            self._planner = None
            self._plan = deque((s.tobytes(), a) for s, a in zip(episode.states, episode.actions.tolist(), strict=True))
            return first + self._plan.popleft()[1]
        finished = self._step(self._planner, passes, milliseconds)
        action = int(self._planner.actions[0])
        if finished:
            self._planner = None
        else:
            self._expected = self._planner.root_states[0].tobytes()
        return first + action

    def act_many(self, states: Any, *, passes: int | None = None) -> NDArray[np.int64]:
        """Returns an action for each of many states, int64 [n], planned side by side, each by itself.

        Args:
          states: uint8 [n, S], or a list of what `act` takes.
          passes: as for `act`.
        """
        _check_budget(passes, None)
        rows = self._rows(states)
        actions = np.zeros(len(rows), np.int64)
        for start in range(0, len(rows), _AT_ONCE):
            part = rows[start : start + _AT_ONCE]
            planner = self._make_planner(part)
            if planner.makes_plans:
                self._check_passes(planner, passes)
                chosen = [int(episode.actions[0]) for episode in play_all(planner)]
            else:
                self._step(planner, passes, None)
                chosen = planner.actions.tolist()
            actions[start : start + len(part)] = chosen
        return actions

    def policy(self, env: Any, **budget: Any) -> Callable[..., int]:
        """Returns a function that chooses the next action in `env`, whatever it is called with; `budget` as for `act`.

        So the agent drives an environment like any other policy:

            policy = agent.policy(env, milliseconds=20)
            observation, info = env.reset()
            observation, reward, terminated, truncated, info = env.step(policy(observation))
        """
        return lambda *observation: self.act(env, **budget)

    def value(self, states: Any) -> NDArray[np.float32]:
        """Returns every member's value of states (as for `act_many`), without planning: float32 [n, E]."""
        return self.values.evaluate(self.domain.observe(self._rows(states)))

    def module(self) -> torch.nn.Module:
        """Returns the ensemble as a plain PyTorch module: observations [n, ...], in any number type, to values [n, E].

        `domain.observe(states)` gives observations; the module gives what `value` does, but for rounding.
        """
        return self.values.module()

    def explain(self, where: Any | None = None) -> RootReport:
        """Plans one step from a state, and returns why it would be made: print it, or look at its arrays.

        Per action it has every member's estimate, the score that ranks them, visits, votes and the action chosen.

        Args:
          where: as for `act`; a start state if not given.

        Raises:
          BathysphereError: if the planner searches for whole plans, which rank no actions.
        """
        rng = np.random.default_rng(0)
        state = self.domain.initial(1, rng)[0] if where is None else self._state(where)
        planner = self._make_planner(state[None], seed=0)
        if not planner.makes_plans:
            planner.plan()
        return root_report(planner, 0)

    def __repr__(self) -> str:
        passes = getattr(self.config, "passes", None)
        effort = "" if passes is None else f", {passes} passes a step"
        return (
            f"<Agent in {self.domain.name}: {self.values.num_members} members, plans by "
            f"{planner_name(self.config)}{effort}>"
        )

    def _make_planner(self, starts: States, milliseconds: float | None = None, seed: int | None = None) -> Planner:
        """Returns a planner with one episode from each of `starts`, uint8 [n, S]."""
        config = self.config
        if milliseconds is not None and isinstance(config, BestFirstConfig):
            config = replace(config, max_seconds=milliseconds / 1000)
        return make_planner(
            self.domain,
            self.values,
            config,
            batch=len(starts),
            starts=starts,
            seed=int(self._rng.integers(2**63)) if seed is None else seed,
            model=self.model,
            num_episodes=len(starts),
        )

    def _step(self, planner: Planner, passes: int | None, milliseconds: float | None) -> list[Episode]:
        """Plans and makes one step; returns the episodes that finished."""
        if passes is None and milliseconds is None:
            return planner.step()
        self._check_passes(planner, passes)
        if not isinstance(planner, MCTS):
            raise BathysphereError(f"The planner {planner_name(self.config)} cannot be told how long to plan a step.")
        planner.plan(passes=passes, seconds=None if milliseconds is None else milliseconds / 1000)
        return planner.act()

    def _check_passes(self, planner: Planner, passes: int | None) -> None:
        if passes is not None and not isinstance(planner, MCTS):
            raise BathysphereError(
                f"The planner {planner_name(self.config)} knows no passes. Give it milliseconds, or set its budget in "
                "agent.config."
            )

    def _rows(self, states: Any) -> States:
        """Returns states, or a list of what `act` takes, as uint8 [n, S]."""
        if isinstance(states, np.ndarray):
            return as_rows(states, self.domain.state_size)
        rows = [self._state(where) for where in states]
        return np.array(rows, np.uint8).reshape(-1, self.domain.state_size)

    def _state(self, where: Any) -> States:
        state = self._state_of(where)
        if state.dtype != np.uint8 or state.shape != (self.domain.state_size,):
            raise BathysphereError(
                f"The state is {state.dtype} of shape {state.shape}; expected uint8 "
                f"[{self.domain.state_size}], as {self.domain.name} has it. "
                "Was the agent trained in another world?"
            )
        return state.copy()

    def _state_of(self, where: Any) -> States:
        """Returns a state as a row, or the one that an environment is in."""
        inner: Any = getattr(where, "unwrapped", None)
        if isinstance(getattr(inner, "domain", None), Domain):  # of bathysphere.gym
            return np.frombuffer(inner.get_state().state, np.uint8)
        is_array = isinstance(where, np.ndarray)
        is_row = is_array and (where.dtype, where.shape) == (np.uint8, (self.domain.state_size,))
        if isinstance(self.domain, ReadsStates) and not is_row:
            return self.domain.row_of(where)
        if is_array:
            row: States = where
            return row
        is_environment = callable(getattr(where, "step", None))
        if is_environment and isinstance(self.domain, ReadsEnvironments):
            return self.domain.state_of(where)
        known = "an environment made by bathysphere.gym or a state"
        if isinstance(self.domain, ReadsEnvironments):
            known = f"an environment like the one {self.domain.name} was made of, or a state"
        raise BathysphereError(f"act takes {known}; got {type(where).__name__}.")


def _first_action(where: Any) -> int:
    """Returns what an environment calls the first action."""
    return int(getattr(getattr(where, "action_space", None), "start", 0))


def _check_budget(passes: int | None, milliseconds: float | None) -> None:
    if passes is not None and milliseconds is not None:
        raise BathysphereError("passes and milliseconds both say how long to plan; give one of them.")
    if (passes is not None and passes < 1) or (milliseconds is not None and not milliseconds > 0):
        raise BathysphereError(f"passes is {passes} and milliseconds {milliseconds}; expected at least 1, or above 0.")
