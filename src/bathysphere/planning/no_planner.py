"""Acting without a planner: the members' own values of the actions, ranked by a risk measure. Nothing looks ahead.

The world is asked for the steps that are made, and for nothing else, so its rules need not be known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, States
from bathysphere.domains.real_steps import take_steps
from bathysphere.errors import BathysphereError
from bathysphere.planning.config import PlannerSettings
from bathysphere.planning.episode import Episode
from bathysphere.planning.graph.risk import check_measure, find_risk_measure, no_number
from bathysphere.planning.graph.scoring import choose_by_values
from bathysphere.planning.inspect import RootReport
from bathysphere.planning.planner import ActionValues, Values, not_finite, num_drawn_members, register_planner
from bathysphere.planning.played import PlayedSteps
from bathysphere.planning.search_graph import SearchGraph
from bathysphere.planning.slots import PlayOptions, SlotPlanner
from bathysphere.storage.state import MOST, generator_state, require, restore_generator

_STREAM = np.dtype([("rng", np.uint64)])
_SAVED = ("_active", "_actions", "_episode", "_members", "_tie_seeds")


@dataclass(frozen=True)
class NoPlannerConfig(PlannerSettings):
    """How actions are chosen by the members' values of them, without looking ahead."""

    values_of: ClassVar[Literal["states", "actions"]] = "actions"

    risk: str = "mean_std"
    """Risk measure that ranks actions: mean_std, mean_variance, second_moment, exponential, vote, vote_once,
    or your own."""
    risk_coef: float = 0.0
    """Weight of uncertainty in the risk measure: > 0 seeks it, < 0 avoids it, 0 is risk-neutral."""
    num_subsampled: int | None = None
    """Members drawn at the start of each episode to rank actions; all of them if not given. 1 is Thompson sampling:
    one member decides a whole episode."""

    def __post_init__(self) -> None:
        super().__post_init__()
        find_risk_measure(self.risk)
        if not math.isfinite(self.risk_coef):
            raise BathysphereError(f"search.risk_coef is {self.risk_coef}; expected a finite number.")
        if self.num_subsampled is not None and self.num_subsampled < 1:
            raise BathysphereError(f"search.num_subsampled is {self.num_subsampled}; expected at least 1 (or none).")


@register_planner("none", NoPlannerConfig)
class NoPlanner(SlotPlanner):
    """Plays `batch` episodes at once, by values of actions alone.

    Args:
      values: of actions (`ActionValues`).
      The others: as for `MCTS`. There is no model to plan with, and no graph.
    """

    config: NoPlannerConfig

    def __init__(
        self,
        domain: Domain,
        values: Values,
        config: NoPlannerConfig | None = None,
        **options: Unpack[PlayOptions],
    ) -> None:
        config = config or NoPlannerConfig()
        super().__init__(domain, values, config, **options)
        _check(values, self.model is not domain, self._steady or self._graph_states is not None)
        batch = len(self._active)
        num_members, num_drawn = values.num_members, num_drawn_members(config.num_subsampled, values)
        measure = find_risk_measure(config.risk)
        check_measure(measure, num_drawn, float(config.risk_coef))
        self._measure = measure.kind == "joint", measure.address, float(config.risk_coef)
        self._scratch = np.ones(len(domain.action_names), np.bool_), np.empty((len(domain.action_names), num_drawn))
        self._num_members = num_members
        self._members = np.zeros((batch, num_drawn), np.int64)  # that rank actions, increasing
        self._tie_seeds = np.zeros(batch, np.uint64)
        self._streams = self._tie_seeds.view(_STREAM)  # the same memory, as kernels take it
        self._played = PlayedSteps(domain, batch, self.max_steps)
        self._start(np.arange(batch))

    @property
    def root_states(self) -> States:
        """The state each episode is in, uint8 [B, S]."""
        return self._played.root_states

    @property
    def graph_bytes(self) -> int:
        """0: there is no graph."""
        return 0

    def plan(self) -> None:
        """Chooses the next action of every episode without making the step."""
        slots = np.flatnonzero(self._active)
        q = self._q(self.root_states[slots])
        self.work.network_calls += len(slots)
        self.work.network_batches += 1
        scores = np.empty(q.shape[:2])
        choose_by_values(*self._measure, *self._scratch, slots, q, self._members, self._streams, scores, self._actions)
        measure = find_risk_measure(self.config.risk)
        if not measure.is_built_in and np.isnan(scores).any():
            raise no_number(measure.name, "values that came up in an episode")

    def act(self) -> list[Episode]:
        """Makes the chosen steps; returns the episodes that finished, in slot order."""
        slots = np.flatnonzero(self._active)
        actions = self._actions[slots]
        taken = take_steps(self.domain, self.root_states[slots], actions, self._rng)
        is_over = self._played.add(slots, actions, taken)
        self.work.steps += len(slots)
        if not is_over.any():
            return []
        ended = zip(slots[is_over], taken.solved[is_over].tolist(), taken.terminal[is_over].tolist(), strict=True)
        episodes = [self._read(slot, solved, not terminal) for slot, solved, terminal in ended]
        self._start(slots[is_over])
        return episodes

    def search_graph(self, slot: int) -> SearchGraph:
        """Returns the one state that is known: where the episode is."""
        state = self.root_states[slot : slot + 1].copy()
        values = self._q(state).max(axis=1)
        edges, one = (1, len(self.domain.action_names)), np.ones(1, np.int64)
        return SearchGraph(
            states=state,
            count=one,
            member_values=values,
            mean=values.mean(axis=1),
            std=values.std(axis=1),
            child=np.full(edges, -1),
            reward=np.zeros(edges),
            terminal=np.zeros(1, np.bool_),
            solved=np.zeros(1, np.bool_),
            root_visits=one,
            root=0,
            depth=np.zeros(1, np.int64),
        )

    def root_report(self, slot: int) -> RootReport:
        """Explains the step that the episode in `slot` would make now."""
        q = self._q(self.root_states[slot : slot + 1])
        num_actions = q.shape[1]
        scores, votes, action = np.empty((1, num_actions)), np.empty((1, num_actions)), np.zeros(1, np.int32)
        by_vote = True, find_risk_measure("vote").address, 0.0
        for measure, told in ((by_vote, votes), (self._measure, scores)):
            streams = self._streams[slot : slot + 1].copy()
            here = np.zeros(1, np.intp), q, self._members[slot : slot + 1], streams
            choose_by_values(*measure, *self._scratch, *here, told, action)
        return RootReport(
            state=self.root_states[slot].copy(),
            step=int(self._played.length[slot]),
            action_names=self.domain.action_names,
            reward=np.full(num_actions, np.nan),  # not known before the step is made
            q=q[0],
            score=scores[0],
            visits=np.zeros(num_actions, np.int64),
            votes=votes[0],
            excluded=(None,) * num_actions,
            chosen=int(action[0]),
        )

    def _q(self, states: States) -> NDArray[np.float64]:
        """Returns the members' values of all actions in `states`, float64 [n, A, E]."""
        assert isinstance(self.values, ActionValues)
        answer = self.values.evaluate_actions(self.domain.observe(states))
        expected = (len(states), len(self.domain.action_names), self._num_members)
        if answer.shape != expected:
            raise BathysphereError(
                f"values.evaluate_actions returned shape {answer.shape}; expected [n, A, E] = {expected}."
            )
        if not np.isfinite(answer).all():
            raise not_finite("values.evaluate_actions returned numbers that are")
        return np.ascontiguousarray(answer, np.float64)

    def _start(self, slots: NDArray[np.intp]) -> None:
        """Starts the next episodes in `slots`, as many as are still allowed; the other slots fall silent."""
        begun = self._begin_episodes(slots)
        if begun is None:
            return
        slots, beginning = begun
        self._played.begin(slots, beginning.states)
        self._tie_seeds[slots] = beginning.seeds
        num_drawn = self._members.shape[1]
        for slot in slots.tolist():
            self._members[slot] = np.sort(self._rng.permutation(self._num_members)[:num_drawn])

    def _read(self, slot: int, solved: bool, is_truncated: bool) -> Episode:
        """Returns the episode in `slot`, which has just finished."""
        index = int(self._numbers(np.array([slot]))[0])
        return self._played.read(slot, self.domain, self.values, index, solved, is_truncated)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything that going on bit for bit needs, half-played episodes included."""
        return {
            **{name[1:]: getattr(self, name).copy() for name in _SAVED},
            **self._played.state_dict(),
            "num_started": np.array(self._starts.num_started),
            "network_calls": np.array(self.work.network_calls),
            "rng": generator_state(self._rng),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; sizes and config must be the same."""
        shapes = all(state[name[1:]].shape == getattr(self, name).shape for name in _SAVED)
        require(shapes, "it has another number of slots or members")
        members = state["members"]
        require((members >= 0).all() and (members < self._num_members).all(), "a member does not exist")
        self._played.load_state_dict(state)
        for name in _SAVED:
            getattr(self, name)[:] = state[name[1:]]
        self._starts.load_state_dict(state, self._active, self._episode)
        self.work.network_calls = int(state["network_calls"])
        require(0 <= self.work.network_calls < MOST, "a count is none")
        restore_generator(self._rng, state["rng"])


def _check(values: Values, has_model: bool, wants_more: bool) -> None:
    """Refuses what does not go with acting without a planner."""
    if not isinstance(values, ActionValues):
        raise BathysphereError(
            "The planner none needs values of actions, and these are values of states. Train with --planner none, or "
            "plan with another planner."
        )
    if has_model:
        raise BathysphereError("The planner none looks at no model; leave model out, or plan with another planner.")
    if wants_more:
        raise BathysphereError(
            "The planner none has no search graph and always acts on the newest values; turn off "
            "learning.steady_values, learning.graph_states and learning.target graph."
        )
