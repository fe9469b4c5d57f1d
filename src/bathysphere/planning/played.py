"""The steps that running episodes have made, for planners whose graphs do not remember them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, States
from bathysphere.domains.real_steps import RealSteps
from bathysphere.planning.episode import Episode
from bathysphere.planning.planner import Values
from bathysphere.storage.state import Arrays, require

_BY_STEP = ("past_states", "past_actions", "past_rewards")


class PlayedSteps:
    """What has happened in `batch` slots, B, since their episodes began.

    Args:
      domain: its states and actions are remembered.
      batch: B.
      max_steps: T, the most steps of an episode.
    """

    def __init__(self, domain: Domain, batch: int, max_steps: int) -> None:
        self._num_actions, self.max_steps = len(domain.action_names), max_steps
        self.root_states: States = np.zeros((batch, domain.state_size), np.uint8)  # where episodes are
        self.length = np.zeros(batch, np.int64)  # steps made
        self.past_states = np.zeros((batch, max_steps, domain.state_size), np.uint8)
        self.past_actions = np.zeros((batch, max_steps), np.int32)
        self.past_rewards = np.zeros((batch, max_steps))

    def begin(self, slots: NDArray[np.intp], states: States) -> None:
        """Begins episodes in `slots` [k] at `states`, uint8 [k, S]."""
        self.root_states[slots] = states
        self.length[slots] = 0

    def add(self, slots: NDArray[np.intp], actions: NDArray[np.int32], taken: RealSteps) -> NDArray[np.bool_]:
        """Remembers a step of each of the episodes in `slots` [k]; returns which of them, bool [k], are over."""
        now = slots, self.length[slots]
        self.past_states[now] = self.root_states[slots]
        self.past_actions[now] = actions
        self.past_rewards[now] = taken.rewards
        self.root_states[slots] = taken.states
        self.length[slots] += 1
        is_over: NDArray[np.bool_] = taken.terminal | (self.length[slots] == self.max_steps)
        return is_over

    def states_after(self, slots: NDArray[np.int64], steps: NDArray[np.int64]) -> States:
        """Returns where steps number `steps` [k] of the episodes in `slots` [k], which they have made, have led."""
        later = np.minimum(steps + 1, self.max_steps - 1)
        is_latest = (steps + 1 == self.length[slots])[:, None]
        return np.where(is_latest, self.root_states[slots], self.past_states[slots, later])

    def read(self, slot: int, domain: Domain, values: Values, index: int, solved: bool, truncated: bool) -> Episode:
        """Returns the episode in `slot`, which has just finished; the last three arguments are the episode's."""
        steps = int(self.length[slot])
        states = self.past_states[slot, :steps].copy()
        searched = values.evaluate(domain.observe(states)).astype(np.float64)
        return Episode(
            states=states,
            actions=self.past_actions[slot, :steps].copy(),
            rewards=self.past_rewards[slot, :steps].copy(),
            search_values=searched,
            solved=solved,
            truncated=truncated,
            index=index,
            num_states=steps,
            search_std=float(searched.std(axis=1).mean()),
            last_state=self.root_states[slot].copy(),
        )

    def state_dict(self) -> Arrays:
        """Returns everything remembered."""
        longest = int(self.length.max(initial=0))
        parts = {name: getattr(self, name)[:, :longest].copy() for name in _BY_STEP}
        return {"root_states": self.root_states.copy(), "length": self.length.copy(), **parts}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; there may be other arrays too."""
        steps, made = state["length"], state["past_actions"]
        has_slots = all(state[name].shape == getattr(self, name).shape for name in ("root_states", "length"))
        require(has_slots, "it has another number of slots")
        longest = int(steps.max(initial=0))
        require((steps >= 0).all() and longest < self.max_steps, "an episode goes on that is over")
        require(all(state[name].shape[1] == longest for name in _BY_STEP), "steps are missing")
        is_action = ((made >= 0) & (made < self._num_actions))[np.arange(longest) < steps[:, None]]
        require(is_action.all(), "a step was no action")
        require(np.isfinite(state["past_rewards"]).all(), "a reward is not finite")
        self.root_states[:], self.length[:] = state["root_states"], steps
        for name in _BY_STEP:
            getattr(self, name)[:, :longest] = state[name]
