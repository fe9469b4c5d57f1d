"""Episodes of many plans: each is followed in the world to its end, or until something else happens than planned.

So it suits models that are learnt while acting: a plan leads to what is not known yet, and the next one begins there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Imagined, States, Successors
from bathysphere.domains.real_steps import MadeSteps, take_steps
from bathysphere.errors import BathysphereError
from bathysphere.planning.best_first.config import BestFirstConfig
from bathysphere.planning.best_first.planner import BestFirst
from bathysphere.planning.best_first.store import EXHAUSTED, NONE, RUNNING, chain_of, goal_of, release, way_to
from bathysphere.planning.episode import Episode
from bathysphere.planning.planner import Values, register_planner
from bathysphere.planning.played import PlayedSteps
from bathysphere.planning.search_graph import SearchGraph
from bathysphere.planning.slots import PlayOptions
from bathysphere.storage.state import require

_SAVED = ("_plan_states", "_plan_actions", "_plan_rewards")
_BY_SLOT = ("_plan_length", "_plan_step", "_leads_to_end", "_leads_on", "_last_actions")


@dataclass(frozen=True)
class ReplanConfig(BestFirstConfig):
    """How each plan of an episode is searched for: by best-first search, with defaults for models that are learnt."""

    order: str = "value"
    """Which state is expanded next: value (the highest of what its way returns and it is worth, discounted), steps,
    levin, phs, or your own."""
    weight: float = 1.0
    """Of what is still to come against what is behind, in orders steps and value: 0 is breadth-first search, 1 is A*,
    more is greedier. At least 0."""
    width: int = 32
    """States expanded at once in each search: more keeps the model and the network busy, and wastes some."""
    max_expansions: int = 100_000
    """Expansions after which a search ends with the best plan so far."""


@register_planner("replan", ReplanConfig)
class Replan(BestFirst):
    """Plays `batch` episodes at once; best-first search makes their plans.

    Every call of `step` makes one step in each episode. Where there is no plan, one is searched for first, within the
    steps that the episode has left. The steps that it has made count for more than the model: what one of them has
    refuted is not believed again. A search that has seen everything within reach, and found neither success nor
    anything unknown, leads to any of the states that it has seen, ends among them: models err, and the next episode may
    do better.

    Args: as for `MCTS`.
    """

    makes_plans = False

    def __init__(
        self,
        domain: Domain,
        values: Values,
        config: ReplanConfig | None = None,
        **options: Unpack[PlayOptions],
    ) -> None:
        config = config or ReplanConfig()
        if options.get("graph_states") is not None:
            raise BathysphereError(
                "The planner replan keeps no graph of an episode; turn off learning.graph_states and "
                "learning.target graph."
            )
        batch, max_steps = options.get("batch", 1), config.max_steps or domain.max_steps
        self._played = PlayedSteps(domain, batch, max_steps)
        shape = batch, max_steps
        self._plan_states = np.zeros((*shape, domain.state_size), np.uint8)  # where its steps should lead
        self._plan_actions, self._plan_rewards = np.zeros(shape, np.int32), np.zeros(shape)
        self._plan_length, self._plan_step = np.zeros((2, batch), np.int64)  # steps of it, and those made already
        self._leads_to_end, self._leads_on = np.zeros((2, batch), np.bool_)  # its last step; on: to a known outcome
        self._last_actions = np.zeros(batch, np.int32)
        self._made_in: list[dict[bytes, dict[int, int]]] = [{} for _ in range(batch)]  # states: actions: steps
        super().__init__(domain, values, config, **options)

    @property
    def actions(self) -> NDArray[np.int32]:
        """The actions of the last step, or planned for the next one, int32 [B]."""
        return self._last_actions

    @property
    def root_states(self) -> States:
        """The state each episode is in, uint8 [B, S]."""
        return self._played.root_states

    def plan(self) -> None:
        """Searches until every running episode has a plan."""
        while (wanted := self._active & (self._plan_length == 0)).any():
            is_running = self.store.searches["status"] == RUNNING
            for slot in np.flatnonzero(wanted & ~is_running).tolist():
                self._take_plan(slot)
            if (wanted & is_running).any():
                super().plan()
        slots = np.flatnonzero(self._active)
        self._last_actions[slots] = self._plan_actions[slots, self._plan_step[slots]]

    def act(self) -> list[Episode]:
        """Makes the planned steps; returns the episodes that finished, in slot order."""
        slots = np.flatnonzero(self._active)
        now = slots, self._plan_step[slots]
        before, actions = self.root_states[slots].copy(), self._plan_actions[now]
        taken = take_steps(self.domain, before, actions, self._rng)
        self.made = MadeSteps(before, actions, Successors(*taken))
        self.work.steps += len(slots)
        self._plan_step[slots] += 1
        is_last = self._plan_step[slots] == self._plan_length[slots]
        is_known = self._leads_on[slots] | ~is_last
        should_end = self._leads_to_end[slots] & is_last
        is_elsewhere = (taken.states != self._plan_states[now]).any(axis=1)
        wrong = (
            taken.rewards != self._plan_rewards[now],
            should_end & ~taken.terminal,
            taken.terminal & ~should_end,
            is_elsewhere,
        )
        for name, is_wrong in zip(self.work.model_errors, wrong, strict=True):
            self.work.model_errors[name] += int((is_wrong & is_known).sum())
        self.work.unknown_steps += int((~is_known).sum())
        self._remember(zip(slots, before, actions.tolist(), self._played.length[slots].tolist(), strict=True))
        is_over = self._played.add(slots, actions, taken)
        replanned = slots[~is_over & (is_last | is_elsewhere)]
        if len(replanned):
            self._begin(replanned, self.root_states[replanned], self._played.length[replanned])
        ended = zip(slots[is_over], taken.solved[is_over].tolist(), taken.terminal[is_over].tolist(), strict=True)
        episodes = [self._read(slot, solved, not terminal) for slot, solved, terminal in ended]
        if is_over.any():
            self._start(slots[is_over])
        return episodes

    def search_graph(self, slot: int) -> SearchGraph:
        """Returns what is left of the plan of the episode in `slot`, as a chain of states."""
        steps = slice(int(self._plan_step[slot]), int(self._plan_length[slot]))
        states = np.concatenate([self.root_states[slot][None], self._plan_states[slot, steps]])
        number, last = np.arange(len(states)), len(states) - 1
        child = np.full((len(states), self.sizes.num_actions), NONE, np.int64)
        reward = np.zeros(child.shape)
        child[number[:-1], self._plan_actions[slot, steps]] = number[1:]
        reward[number[:-1], self._plan_actions[slot, steps]] = self._plan_rewards[slot, steps]
        values = self.values.evaluate(self.domain.observe(states)).astype(np.float64)
        terminal = (number == last) & bool(self._leads_to_end[slot])
        values[terminal] = 0.0
        return SearchGraph(
            states=states,
            count=np.ones(len(states), np.int64),
            member_values=values,
            mean=values.mean(axis=1),
            std=values.std(axis=1),
            child=child,
            reward=reward,
            terminal=terminal,
            solved=np.zeros(len(states), np.bool_),
            root_visits=(number == 0).astype(np.int64),
            root=0,
            depth=number.copy(),
            unknown=(number == last) & ~self._leads_on[slot],
        )

    def _begin(self, slots: NDArray[np.intp], states: States, depths: NDArray[np.int64]) -> None:
        is_new = depths == 0
        self._played.begin(slots[is_new], states[is_new])
        for slot in slots[is_new]:
            self._made_in[slot] = {}
        self._plan_length[slots] = 0
        self._plan_step[slots] = 0
        self._leads_to_end[slots] = False
        super()._begin(slots, states, depths)

    def _imagine(self, states: States, slots: NDArray[np.int32]) -> Imagined:
        imagined = super()._imagine(states, slots)
        if self.model is self.domain:
            return imagined
        asked = enumerate(zip(slots.tolist(), states, strict=True))
        made = [(k, *pair, slot) for k, (slot, s) in asked for pair in self._made_in[slot].get(s.tobytes(), {}).items()]
        if not made:
            return imagined
        rows, actions, steps, of = np.array(made).T
        copies: Any = (part.copy() for part in imagined.successors)
        told, is_known = Successors(*copies), imagined.is_known.copy()
        told.states[rows, actions] = self._played.states_after(of, steps)
        told.rewards[rows, actions] = self._played.past_rewards[of, steps]
        told.terminal[rows, actions] = told.solved[rows, actions] = False  # the episode goes on
        if is_known.size:
            is_known[rows, actions] = True
        return Imagined(told, is_known, imagined.values)

    def _remember(self, made: Iterable[tuple[int, States, int, int]]) -> None:
        """Notes steps of the episodes in some slots: the state, the action and the number of each."""
        for slot, state, action, step in made:
            self._made_in[slot].setdefault(state.tobytes(), {})[action] = step

    def _take_plan(self, slot: int) -> None:
        """Copies the plan of the search in `slot`, which has ended, out of the store, and frees its records."""
        store, goal = self.store, self._goal(slot)
        way, actions = way_to(store, goal)
        if not len(way):  # there is nowhere to go: any action, whose outcome is known if the model was asked at all
            way, actions = np.array([goal]), self._rng.integers(self.sizes.num_actions, size=1).astype(np.int32)
            goal = int(store.child[goal, actions[0]])
        self._plan_length[slot] = length = len(way)
        self._plan_actions[slot, :length] = actions
        self._plan_rewards[slot, :length] = store.reward[way, actions]
        self._plan_states[slot, :length] = self._words.states(store.words[np.append(way[1:], goal)])
        is_end, has_value = bool(store.records["terminal"][goal]), bool(store.records["is_evaluated"][goal])
        self._leads_to_end[slot] = goal != NONE and is_end and not has_value
        self._leads_on[slot] = goal != NONE and not (is_end and has_value)
        release(self.store, np.array([slot]))

    def _goal(self, slot: int) -> int:
        """Returns the record that the plan of the search in `slot` leads to."""
        search = self.store.searches[slot]
        if search["solution"] == NONE and search["status"] == EXHAUSTED:
            others = chain_of(self.store, slot)[1:]
            records = self.store.records[others]
            others = others[~(records["terminal"] & records["is_evaluated"])]
            if len(others):
                return int(others[self._rng.integers(len(others))])
        return goal_of(self.store, slot)

    def _read(self, slot: int, solved: bool, is_truncated: bool) -> Episode:
        """Returns the episode in `slot`, which has just finished."""
        index = int(self._numbers(np.array([slot]))[0])
        return self._played.read(slot, self.domain, self.values, index, solved, is_truncated)

    @property
    def _has_begun(self) -> NDArray[np.bool_]:
        has_begun: NDArray[np.bool_] = super()._has_begun | (self._plan_length > 0)
        return has_begun

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed planner needs to go on bit for bit, plans that are followed included."""
        longest = int(self._plan_length.max(initial=0))
        return {
            **super().state_dict(),
            **self._played.state_dict(),
            **{name[1:]: getattr(self, name).copy() for name in _BY_SLOT},
            **{name[1:]: getattr(self, name)[:, :longest].copy() for name in _SAVED},
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; sizes and config must be the same."""
        shapes = all(state[name[1:]].shape == getattr(self, name).shape for name in _BY_SLOT)
        require(shapes, "it has another number of slots")
        lengths, steps, made = state["plan_length"], state["plan_step"], state["plan_actions"]
        longest = int(lengths.max(initial=0))
        require(longest <= self._played.max_steps, "a plan is longer than an episode")
        is_followed = (steps >= 0) & (lengths >= 0) & ((steps < lengths) | (lengths == 0) | ~state["active"])
        require(is_followed.all(), "a plan is followed that is over")
        require(all(state[name[1:]].shape[1] == longest for name in _SAVED), "steps of a plan are missing")
        is_action = ((made >= 0) & (made < self.sizes.num_actions))[np.arange(longest) < lengths[:, None]]
        require(is_action.all(), "a step of a plan is no action")
        require(np.isfinite(state["plan_rewards"]).all(), "a reward of a plan is not finite")
        self._played.load_state_dict(state)
        for slot, length in enumerate(self._played.length.tolist()):
            past, actions = self._played.past_states[slot, :length], self._played.past_actions[slot, :length].tolist()
            self._made_in[slot] = {}
            self._remember(zip([slot] * length, past, actions, range(length), strict=True))
        for name in _BY_SLOT:
            getattr(self, name)[:] = state[name[1:]]
        for name in _SAVED:
            getattr(self, name)[:, :longest] = state[name[1:]]
        super().load_state_dict(state)
