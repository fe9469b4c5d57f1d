"""A second planner in one file: it acts at random. Pools, training and agents need no more than what it can do."""

from dataclasses import dataclass

import numpy as np

from bathysphere.planning import Episode, PlannerSettings
from bathysphere.planning.planner import Work, register_planner
from bathysphere.planning.search_graph import SearchGraph
from bathysphere.planning.start_states import EpisodeStarts, find_starts
from bathysphere.storage.state import generator_state, restore_generator


@dataclass(frozen=True)
class RandomConfig(PlannerSettings):
    """Nothing besides what all planners have."""


@register_planner("random", RandomConfig)
class RandomPlanner:
    makes_plans = False

    def __init__(
        self,
        domain,
        values,
        config,
        *,
        batch=1,
        seed=0,
        model=None,
        num_episodes=None,
        starts=None,
        worker=0,
        workers=1,
        steady=False,
        graph_states=None,
    ):
        self.domain, self.values, self.config, self.model, self.work = domain, values, config, model or domain, Work()
        self.limit = config.max_steps or domain.max_steps
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self.rng = np.random.default_rng(sequence)
        stream = find_starts(starts, domain, sequence)
        self.starts = EpisodeStarts(domain, stream, self.rng, num_episodes, worker, workers)
        self.active, self.actions = np.zeros(batch, np.bool_), np.zeros(batch, np.int32)
        self.root_states = np.zeros((batch, domain.state_size), np.uint8)
        self.index = np.zeros(batch, np.int64)
        self.past = [[] for _ in range(batch)]  # (state, action, reward) of each step
        for slot in range(batch):
            self._start(slot)

    def _start(self, slot):
        beginning = self.starts.begin(1, 0)
        self.active[slot] = beginning is not None
        self.past[slot] = []
        if beginning is not None:
            self.root_states[slot], self.index[slot] = beginning.states[0], beginning.indices[0]

    def step(self, steps=1):
        episodes = []
        for _ in range(steps):
            self.plan()
            episodes += self.act()
        return episodes

    def plan(self):
        self.actions[:] = self.rng.integers(len(self.domain.action_names), size=len(self.actions))

    def act(self):
        episodes = []
        for slot in np.flatnonzero(self.active):
            state, action = self.root_states[slot].copy(), self.actions[slot]
            states, rewards, terminal, solved = (part[0, action] for part in self.domain.successors(state[None]))
            self.past[slot].append((state, action, rewards))
            self.root_states[slot] = states
            if terminal or len(self.past[slot]) == self.limit:
                episodes.append(self._episode(slot, bool(solved), not terminal))
                self._start(slot)
        return episodes

    def _episode(self, slot, solved, truncated):
        states, actions, rewards = (np.array(part) for part in zip(*self.past[slot], strict=True))
        values = self.values.evaluate(self.domain.observe(states)).astype(np.float64)
        number = int(self.starts.number(self.index[slot]))
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
        return {"rng": generator_state(self.rng)}  # enough between episodes

    def load_state_dict(self, state):
        restore_generator(self.rng, state["rng"])
