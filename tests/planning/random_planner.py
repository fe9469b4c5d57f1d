"""A second planner in one file: it acts at random. Pools, training and agents need no more than what it can do."""

from dataclasses import dataclass

import numpy as np

from bathysphere.planning import Episode, PlannerSettings
from bathysphere.planning.planner import register_planner
from bathysphere.planning.search_graph import SearchGraph
from bathysphere.planning.slots import SlotPlanner
from bathysphere.storage.state import generator_state, restore_generator


@dataclass(frozen=True)
class RandomConfig(PlannerSettings):
    """Nothing besides what all planners have."""


@register_planner("random", RandomConfig)
class RandomPlanner(SlotPlanner):
    def __init__(self, domain, values, config, **options):
        super().__init__(domain, values, config, **options)
        self.root_states = np.zeros((len(self.active), domain.state_size), np.uint8)
        self.past = [[] for _ in self.active]  # (state, action, reward) of each step
        self._start(np.arange(len(self.active)))

    def _start(self, slots):
        begun = self._begin_episodes(slots)
        if begun is not None:
            slots, beginning = begun
            self.root_states[slots] = beginning.states
            for slot in slots:
                self.past[slot] = []

    def plan(self):
        self.actions[:] = self._rng.integers(len(self.domain.action_names), size=len(self.actions))

    def act(self):
        episodes = []
        for slot in np.flatnonzero(self.active):
            state, action = self.root_states[slot].copy(), self.actions[slot]
            states, rewards, terminal, solved = (part[0, action] for part in self.domain.successors(state[None]))
            self.past[slot].append((state, action, rewards))
            self.root_states[slot] = states
            if terminal or len(self.past[slot]) == self.max_steps:
                episodes.append(self._episode_in(slot, bool(solved), not terminal))
                self._start(np.array([slot]))
        return episodes

    def _episode_in(self, slot, solved, truncated):
        states, actions, rewards = (np.array(part) for part in zip(*self.past[slot], strict=True))
        values = self.values.evaluate(self.domain.observe(states)).astype(np.float64)
        number = int(self._numbers(slot))
        return Episode(states, actions, rewards, values, solved, truncated, number, len(states), float(values.std()))

    @property
    def graph_bytes(self):
        return 0  # it searches nothing

    def search_graph(self, slot):
        """Shows the one state that is known: where the episode is."""
        state = self.root_states[slot : slot + 1].copy()
        values = self.values.evaluate(self.domain.observe(state)).astype(np.float64)
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

    def state_dict(self):
        return {"rng": generator_state(self._rng)}  # enough between episodes

    def load_state_dict(self, state):
        restore_generator(self._rng, state["rng"])
