"""The paper's planner: passes that select a leaf by risk-adjusted value, expand it and back its value up.

B episodes are played in lock step with one network call per pass for all of them, or each by itself in compiled code.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, States
from bathysphere.errors import BathysphereError
from bathysphere.planning import compiled_rules
from bathysphere.planning.config import SearchConfig
from bathysphere.planning.episode import Episode, read_episodes
from bathysphere.planning.episode_values import EpisodeValues
from bathysphere.planning.expansion import BatchedExpansion
from bathysphere.planning.graph import kernels
from bathysphere.planning.graph.arena import Arena, Sizes
from bathysphere.planning.graph.graphs import Graphs
from bathysphere.planning.graph.steps import CUT_OFF, RUNNING
from bathysphere.planning.graph_values import with_graph_values
from bathysphere.planning.planner import (
    Values,
    num_drawn_members,
    play_all,
    refuse_chance,
    register_planner,
)
from bathysphere.planning.search_graph import SearchGraph, graph_of_episode
from bathysphere.planning.slots import PlayOptions, SlotPlanner
from bathysphere.storage.state import prefixed, require, section

_MOST_PASSES = 1024  # between two looks at the clock; bounds the room that is made for them


@register_planner("mcts", SearchConfig)
class MCTS(SlotPlanner):
    """Plays `batch` episodes at once.

    Every call of `step` makes one step in each episode after `config.passes` passes of planning, and returns the
    episodes that finished.

    Args:
      domain: the world; its rules decide what really happens.
      values: the value function; evaluated once per distinct state and episode.
      config: how to plan.
      batch: episodes played at once, B.
      seed: decides start states, drawn members and ties. Same seed, same episodes.
      model: what planning believes happens; the domain itself if not given. Where it errs on a step that is made, the
        search graph is corrected and `work.model_errors` counts it.
      num_episodes: stop starting episodes after that many; None plays for ever.
      starts: start states, uint8 [n, S], used in order (then again from the first), or a numbered stream of them. If
        not given, the domain's own stream, or without one what `domain.initial` draws.
      worker, workers: this is number `worker` of `workers` planners side by side: its k-th episode is number
        k * workers + worker of theirs together, and begins with the start state of that number.
      steady: plan each episode with the values as they are when it begins, not with the newest.
      graph_states: finished episodes also say what their states are worth by the best continuation known, and hand on
        up to so many further states of their graphs; None: neither.
    """

    config: SearchConfig

    def __init__(
        self,
        domain: Domain,
        values: Values,
        config: SearchConfig | None = None,
        **options: Unpack[PlayOptions],
    ) -> None:
        refuse_chance(domain)
        config = config or SearchConfig()
        super().__init__(domain, values, config, **options)
        batch = len(self._active)
        sizes = Sizes(
            batch=batch,
            state_size=domain.state_size,
            num_actions=len(domain.action_names),
            num_members=values.num_members,
            num_subsampled=num_drawn_members(config.num_subsampled, values),
            max_steps=self.max_steps,
            num_priors=len(domain.action_names) if config.prior_coef else 0,
        )
        self.graphs = Graphs(sizes, config)
        self._episode_values = EpisodeValues(batch, values.num_members) if self._steady else None
        self._batched = BatchedExpansion(domain, self.graphs, self.work, self._episode_values, self._rng)
        self._compiled: compiled_rules.CompiledExpansion | None = None
        if not self._steady and not config.prior_coef and compiled_rules.has_rules(domain):
            self._compiled = compiled_rules.CompiledExpansion(domain, self.graphs, self.work)
        self._outcomes = np.zeros(batch, np.int8)
        self._steps_left = np.zeros(batch, np.int64)
        self._start(np.arange(batch))

    @property
    def arena(self) -> Arena:
        """The arrays of all search graphs."""
        return self.graphs.arena

    @property
    def sizes(self) -> Sizes:
        """Batch, state size, actions, members and step limit."""
        return self.graphs.sizes

    @property
    def graph_bytes(self) -> int:
        """Memory of all search graphs, in bytes."""
        return self.graphs.nbytes

    @property
    def root_states(self) -> States:
        """The state each episode is in, uint8 [B, S]."""
        return self.graphs.root_states

    def plan(self, *, passes: int | None = None, seconds: float | None = None) -> None:
        """Runs all passes of one step, without making it: between `plan` and `act` the decision can be looked at.

        Args:
          passes: how many; as the config says if not given.
          seconds: instead, as many as can be made in that time, at least one. The step then depends on the machine.
        """
        kernels.begin_steps(self.arena, self._active)
        if seconds is None:
            passes = self.config.passes if passes is None else passes
            self.graphs.make_room(passes)
            self._run_passes(passes)
            return
        deadline, made, more = time.perf_counter() + seconds, 0, 1
        while more:
            began = time.perf_counter()
            self.graphs.make_room(more)
            made += more
            self._run_passes(made)
            now = time.perf_counter()
            fitting = (deadline - now) * more / max(now - began, 1e-6)
            # Half of what fits, so that the end is met in ever smaller portions.
            more = 0 if now >= deadline else max(1, min(int(fitting / 2), 4 * more, _MOST_PASSES))

    def act(self) -> list[Episode]:
        """Chooses and makes the planned steps; returns the episodes that finished, in slot order."""
        self.graphs.choose(self._active, self._actions)
        if self.model is not self.domain:
            self.made = self._batched.correct(self.values, self._active, self._actions)
        kernels.advance(self.arena, self._active, self._actions, self._outcomes)
        self.work.steps += int(np.count_nonzero(self._active))
        finished = np.flatnonzero(self._active & (self._outcomes != RUNNING))
        return self._finish(finished) if len(finished) else []

    def play(self) -> list[Episode]:
        """Plays until no episode is left (`num_episodes` must be set); returns them in order of starting."""
        if self.num_episodes is None:
            raise BathysphereError("MCTS.play needs num_episodes; without it the search never ends.")
        return play_all(self)

    def search_graph(self, slot: int) -> SearchGraph:
        """Returns what the search of the episode in `slot` knows."""
        return graph_of_episode(self.graphs, slot)

    def table(self) -> NDArray[np.float32] | None:
        """Returns the table of values with which planning stays in compiled code; None if it does not."""
        if self._compiled is None or self.model is not self.domain:
            return None
        return compiled_rules.find_table(self.values, self.domain)

    def _run_passes(self, num_passes: int) -> None:
        """Brings every running episode to `num_passes` passes of this step."""
        table = self.table()
        if table is None:
            self._batched.run(self.model, self.values, self._active, num_passes)
        else:
            self._steps_left[:] = -1
            self._run_compiled(table, num_passes)

    def _run_compiled(self, table: NDArray[np.float32], num_passes: int) -> None:
        assert self._compiled is not None
        told = self._steps_left, self._actions, self._outcomes
        self._compiled.run(table, self._active, num_passes, *told)

    def _make_steps(self, steps: int) -> list[Episode]:
        table = self.table()
        return super()._make_steps(steps) if table is None else self._play_in_compiled_code(table, steps)

    def _play_in_compiled_code(self, table: NDArray[np.float32], steps: int) -> list[Episode]:
        """Makes `steps` steps in every running episode, each by itself but with the same result as in lock step."""
        episodes: list[Episode] = []
        self._steps_left[:] = steps
        while True:
            before = self._steps_left.sum()
            self._run_compiled(table, self.config.passes)
            self.work.steps += int(before - self._steps_left.sum())
            ended = np.flatnonzero(self._active & (self._outcomes != RUNNING))
            if len(ended) == 0:
                return episodes
            # In lock step, the slot whose episode ends first begins the next one first, with the seed drawn first.
            left = self._steps_left[ended]
            episodes += self._finish(ended[left == left.max()])

    def _start(self, slots: NDArray[np.intp]) -> None:
        """Starts the next episodes in `slots`, as many as are still allowed; the other slots fall silent."""
        self._outcomes[slots] = RUNNING
        begun = self._begin_episodes(slots)
        if begun is None:
            return
        slots, beginning = begun
        self.graphs.start(slots, beginning.states, beginning.seeds)
        if self._episode_values is not None:
            self._episode_values.begin(slots, self.values)
        self._batched.evaluate_starts(self.values, slots, beginning.states)

    def _finish(self, slots: NDArray[np.intp]) -> list[Episode]:
        """Reads the episodes in `slots` out of the arena and starts new ones there."""
        self.graphs.check_scores(slots)
        numbers = self._numbers(slots)
        episodes = read_episodes(self.arena, slots, numbers, self._outcomes[slots] == CUT_OFF, self.sizes.state_size)
        if self._graph_states is not None:
            discount, most = self.config.discount, self._graph_states
            told = zip(slots.tolist(), episodes, strict=True)
            episodes = [with_graph_values(e, graph_of_episode(self.graphs, s), discount, most) for s, e in told]
        self._start(slots)
        return episodes

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed search needs to go on bit for bit, half-played episodes included."""
        return {
            **prefixed("arena.", self.graphs.state_dict()),
            **prefixed("steady.", self._episode_values.state_dict() if self._episode_values else {}),
            **self._slots_state(),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; sizes and config must be the same."""
        self.graphs.load_state_dict(section(state, "arena."))
        if self._episode_values is not None:
            self._episode_values.load_state_dict(section(state, "steady."), self.values)
        self._load_slots_state(state)
        episodes, slots = self.arena.episodes, np.arange(self.sizes.batch)
        has_ended = self.arena.stats["terminal"][slots, self.arena.nodes["state"][slots, episodes["root"]]]
        is_over = has_ended | (episodes["step"] >= self.sizes.max_steps) | (episodes["num_states"] == 0)
        require(not (self._active & is_over).any(), "an episode goes on that never began, or is over")
        has_values = self._episode_values is None or self._episode_values.has(self._active)
        require(has_values, "an episode is planned with values that were never taken")
