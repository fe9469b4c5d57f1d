"""A second planner in one file: it acts at random. Pools, training and agents need no more than what it can do."""

from dataclasses import dataclass, replace

import numpy as np

from bathysphere.planning import Episode, SearchConfig
from bathysphere.planning.graph.arena import Sizes
from bathysphere.planning.graph.graphs import Graphs
from bathysphere.planning.planner import Work, register_planner
from bathysphere.planning.start_states import EpisodeStarts, find_starts
from bathysphere.storage.state import generator_state, restore_generator


@dataclass(frozen=True)
class RandomConfig:
    discount: float = 0.99
    max_steps: int | None = None

    def for_training(self, max_steps):
        return replace(self, max_steps=max_steps)


@register_planner(RandomConfig)
class RandomPlanner:
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
    ):
        self.domain, self.values, self.config, self.model, self.work = domain, values, config, model or domain, Work()
        self.limit = config.max_steps or domain.max_steps
        num_actions, members = len(domain.action_names), values.num_members
        sizes = Sizes(batch, domain.state_size, num_actions, members, members, self.limit)
        self.graphs = Graphs(sizes, SearchConfig())
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

    def state_dict(self):
        return {"rng": generator_state(self.rng)}  # enough between episodes

    def load_state_dict(self, state):
        restore_generator(self.rng, state["rng"])
