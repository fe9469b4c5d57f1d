"""A trained agent: it plans from the state it is shown, and acts."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from bathysphere.domains.base import Domain, Model, States
from bathysphere.errors import BathysphereError
from bathysphere.planning import Planner, PlannerSettings, make_planner
from bathysphere.planning.inspect import RootReport, root_report
from bathysphere.planning.named import planner_name
from bathysphere.planning.planner import play_all
from bathysphere.values.ensemble import Ensemble


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

    def act(self, where: Any) -> int:
        """Returns the number of the chosen action.

        Args:
          where: an environment made by `bathysphere.gym`, looked at but not touched, or a state, uint8 [S].
        """
        state = self._state(where)
        if self._plan and self._plan[0][0] == state.tobytes():
            return self._plan.popleft()[1]
        if self._planner is None or state.tobytes() != self._expected:
            seed = int(self._rng.integers(2**63))
            self._planner = make_planner(
                self.domain, self.values, self.config, starts=state[None], seed=seed, model=self.model, num_episodes=1
            )
        if self._planner.makes_plans:
            (episode,) = play_all(self._planner)
            self._planner = None
            self._plan = deque((s.tobytes(), a) for s, a in zip(episode.states, episode.actions.tolist(), strict=True))
            return self._plan.popleft()[1]
        finished = self._planner.step()
        action = int(self._planner.actions[0])
        if finished:
            self._planner = None
        else:
            self._expected = self._planner.root_states[0].tobytes()
        return action

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
        planner = make_planner(
            self.domain, self.values, self.config, starts=state[None], seed=0, model=self.model, num_episodes=1
        )
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

    def _state(self, where: Any) -> States:
        if isinstance(where, np.ndarray):
            state = where
        else:
            inner: Any = getattr(where, "unwrapped", None)
            if not hasattr(inner, "get_state"):
                raise BathysphereError(
                    f"act takes an environment made by bathysphere.gym or a state; got {type(where).__name__}."
                )
            state = np.frombuffer(inner.get_state().state, np.uint8)
        if state.dtype != np.uint8 or state.shape != (self.domain.state_size,):
            raise BathysphereError(
                f"The state is {state.dtype} of shape {state.shape}; expected uint8 "
                f"[{self.domain.state_size}], as {self.domain.name} has it. "
                "Was the agent trained in another world?"
            )
        return state.copy()
