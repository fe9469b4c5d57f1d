"""Planning in worlds with chance: each member averages luck out by itself, and what is left between members is
not-knowing."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import (
    Chance,
    Domain,
    ImaginedOutcomes,
    Model,
    PartialChance,
    States,
    Successors,
)
from bathysphere.domains.real_steps import MadeSteps, take_steps
from bathysphere.errors import BathysphereError
from bathysphere.planning.config import PlannerSettings, SearchConfig
from bathysphere.planning.episode import Episode, read_episodes
from bathysphere.planning.episode_values import checked_values, weighed_unknown
from bathysphere.planning.graph import chance, kernels
from bathysphere.planning.graph.arena import Sizes
from bathysphere.planning.graph.graphs import Graphs
from bathysphere.planning.inspect import RootReport
from bathysphere.planning.planner import Values, not_finite, num_drawn_members, register_planner
from bathysphere.planning.search_graph import SearchGraph, graph_of_episode
from bathysphere.planning.slots import PlayOptions, SlotPlanner
from bathysphere.storage.state import prefixed, require, section


@dataclass(frozen=True)
class ExpectimaxConfig(PlannerSettings):
    """How an episode is planned step by step in a world with chance."""

    passes: int = 10
    """Walk-expand-back-up passes before every step."""
    max_depth: int = 20
    """Steps after which a walk turns back, if it has found no leaf and no end."""
    risk: str = "mean_std"
    """Risk measure that ranks actions by the members' expectations: mean_std, mean_variance, second_moment,
    exponential, vote, vote_once, or your own."""
    risk_coef: float = 0.0
    """Weight of not-knowing in the risk measure: > 0 seeks it, < 0 avoids it, 0 is risk-neutral."""
    aleatoric: float = 0.0
    """Weight of luck: this times the standard deviation over outcomes, inside members, is added to an action's score.
    > 0 gambles, < 0 plays safe, 0 looks at expectations only."""
    model_risk: float = 0.0
    """What a model does not know (memory, network, ensemble) counts for so many standard deviations of its spread more
    to every member: > 0 seeks it, < 0 avoids it, besides what the risk measure does."""
    num_subsampled: int | None = None
    """Members drawn at the start of each episode to rank actions; all of them if not given."""
    memory_limit_mb: int = 8192
    """Megabytes the graphs of all episodes together may take."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.as_search()  # says what is wrong
        if self.max_depth < 1:
            raise BathysphereError(f"search.max_depth is {self.max_depth}; expected at least 1.")
        for name in ("aleatoric", "model_risk"):
            if not math.isfinite(getattr(self, name)):
                raise BathysphereError(f"search.{name} is {getattr(self, name)}; expected a finite number.")

    def as_search(self) -> SearchConfig:
        """Returns the part that the graphs of `MCTS` know."""
        shared = ("discount", "max_steps", "passes", "risk", "risk_coef", "num_subsampled", "memory_limit_mb")
        return SearchConfig(**{name: getattr(self, name) for name in shared}, avoid_loops=False)


@register_planner("expectimax", ExpectimaxConfig)
class Expectimax(SlotPlanner):
    """Plays `batch` episodes at once in a world with chance.

    Every pass walks from the root to a leaf, by actions that the risk measure prefers and by outcomes that are drawn,
    and then sets each state on the way to what each member makes of it: the maximum over actions of its own expectation
    over outcomes. That is value iteration for every member by itself, in the order of the walks.

    Args:
      domain: one that offers `Chance`.
      model: what planning believes may happen, with `Chance` too; the domain itself if not given. What `PartialChance`
        leaves unknown is one outcome more of every action.
      The others: as for `MCTS`.
    """

    config: ExpectimaxConfig

    def __init__(
        self,
        domain: Domain,
        values: Values,
        config: ExpectimaxConfig | None = None,
        **options: Unpack[PlayOptions],
    ) -> None:
        super().__init__(domain, values, config or ExpectimaxConfig(), **options)
        _check(domain, self.model, self._steady or self._graph_states is not None)
        batch = len(self._active)
        num_actions = len(domain.action_names)
        told = self._imagine(domain.initial(1, np.random.default_rng(0)))
        self._num_outcomes = told.outcomes.rewards.shape[2] + (told.unknown.shape[1] > 0)  # the unknown is one, too
        num_edges = num_actions * self._num_outcomes
        sizes = Sizes(
            batch=batch,
            state_size=domain.state_size,
            num_actions=num_edges,
            num_members=values.num_members,
            num_subsampled=num_drawn_members(self.config.num_subsampled, values),
            max_steps=self.max_steps,
            num_priors=num_edges,
        )
        self.graphs = Graphs(sizes, self.config.as_search())
        scratch = self.graphs.scratch
        self._scratch = scratch._replace(
            eligible=np.ones(num_actions, np.bool_),
            scores=np.empty(num_actions),
            q=np.empty((num_actions, sizes.num_subsampled)),
        )
        self._q, self._luck = np.empty((num_actions, values.num_members)), np.empty(num_actions)
        self._paths, self._lengths = np.zeros((batch, self.config.max_depth), np.int64), np.zeros(batch, np.int64)
        room = batch * num_edges
        self._pending, self._num_pending = np.zeros(batch, np.int64), 0
        self._new = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros((room, sizes.words), np.uint64)
        self._start(np.arange(batch))

    @property
    def root_states(self) -> States:
        """The state each episode is in, uint8 [B, S]."""
        return self.graphs.root_states

    @property
    def graph_bytes(self) -> int:
        """Memory of all search graphs, in bytes."""
        return self.graphs.nbytes

    def plan(self, passes: int | None = None) -> None:
        """Runs all passes of one step, or until there are `passes`, without making it."""
        self.graphs.make_room()
        kernels.begin_steps(self.graphs.arena, self._active)
        while self._sweep(self.config.passes if passes is None else passes):
            self._expand()

    def act(self) -> list[Episode]:
        """Chooses and makes the planned steps; returns the episodes that finished, in slot order."""
        arena, slots = self.graphs.arena, np.flatnonzero(self._active)
        chance.choose_all(*self._ranking, self._active, self._q, self._luck, self._actions)
        before, chosen = self.root_states[slots], self._actions[slots]
        taken = take_steps(self.domain, before, chosen, self._rng)
        if self.model is not self.domain:
            self.made = MadeSteps(before, chosen, Successors(*taken))
        told = self.graphs.words(taken.states), taken.rewards, taken.terminal, taken.solved
        num_new, surprises = chance.arrive(arena, slots, self._actions, self._num_outcomes, *told, *self._new)
        self._evaluate(num_new)
        self.work.unknown_steps += surprises
        self.work.steps += len(slots)
        is_over = taken.terminal | (arena.episodes["step"][slots] == self.graphs.sizes.max_steps)
        return self._finish(slots[is_over], ~taken.terminal[is_over]) if is_over.any() else []

    def search_graph(self, slot: int) -> SearchGraph:
        """Returns what the search of the episode in `slot` knows, with a child for every outcome of every action."""
        graph = graph_of_episode(self.graphs, slot)
        chances = self.graphs.arena.priors[slot, : len(graph.states)].astype(np.float64)
        return replace(graph, chances=chances.reshape(len(chances), -1, self._num_outcomes))

    def root_report(self, slot: int) -> RootReport:
        """Explains the step that the episode in `slot` would make now."""
        arena, root = self.graphs.arena, self._root(slot)
        if arena.edges["child"][slot, root, 0] < 0:
            raise BathysphereError(f"Nothing has been planned in slot {slot} yet. Plan at least one pass first.")
        stream = arena.episodes["rng"][slot]
        chosen = chance.choose(*self._ranking, slot, root, self._q, self._luck)
        arena.episodes["rng"][slot] = stream
        scores, q, luck = self._scratch.scores.copy(), self._q.copy(), self._luck.copy()
        shape = (len(scores), -1)
        chances = arena.priors[slot, root].reshape(shape).astype(np.float64)
        best = q[:, arena.members[slot]].argmax(axis=0)
        return RootReport(
            state=self.root_states[slot].copy(),
            step=int(arena.episodes["step"][slot]),
            action_names=self.domain.action_names,
            reward=(chances * arena.edges["reward"][slot, root].reshape(shape)).sum(axis=1),
            q=q,
            score=scores,
            visits=np.zeros(len(scores), np.int64),
            votes=np.bincount(best, minlength=len(scores)).astype(np.float64),
            excluded=(None,) * len(scores),
            chosen=int(chosen),
            luck=luck,
        )

    @property
    def _ranking(self) -> tuple[Any, ...]:
        """What kernels that rank actions take first."""
        return self.graphs.arena, self.graphs.rules, self.graphs.addresses, float(self.config.aleatoric), self._scratch

    def _root(self, slot: int) -> int:
        arena = self.graphs.arena
        return int(arena.nodes["state"][slot, arena.episodes["root"][slot]])

    def _imagine(self, states: States) -> ImaginedOutcomes:
        """Asks the model; what knows everything leaves nothing unknown, of no action."""
        if isinstance(self.model, PartialChance):
            return self.model.imagine_outcomes(states)
        assert isinstance(self.model, Chance)
        nothing = np.zeros((len(states), 0, self.values.num_members), np.float32)
        return ImaginedOutcomes(self.model.outcomes(states), np.zeros((len(states), 0)), nothing)

    def _sweep(self, passes: int) -> bool:
        """Goes on with all passes as far as possible; returns whether episodes wait for the model."""
        before = time.perf_counter()
        told = passes, self._q, self._luck, self._paths, self._lengths, self._pending
        self._num_pending = chance.sweep(*self._ranking, self._active, *told)
        self.work.seconds["sweep"] += time.perf_counter() - before
        return self._num_pending > 0

    def _expand(self) -> None:
        """Enters what may happen at the leaves of waiting episodes, all together."""
        clock, seconds, arena = time.perf_counter, self.work.seconds, self.graphs.arena
        t0 = clock()
        slots = self._pending[: self._num_pending]
        leaves = self._paths[slots, self._lengths[slots] - 1]
        answer, unknown, worth = self._imagine(self.graphs.states(arena.words[slots, leaves]))
        self.work.model_calls += len(slots)
        t1 = clock()
        states = answer.states
        worth = weighed_unknown(worth, self.config.model_risk)
        if unknown.shape[1]:  # a place for it, which nobody reads
            states = np.concatenate([states, states[:, :, :1]], axis=2)
        rows = self.graphs.words(states.reshape(len(slots), self.graphs.sizes.num_actions, -1))
        rows = rows.reshape(*states.shape[:3], -1)
        numbers = [np.ascontiguousarray(part) for part in answer[1:]]
        num_new = chance.insert_outcomes(arena, slots, leaves, rows, *numbers, unknown, worth, *self._new)
        seconds["model"] += t1 - t0
        seconds["insert"] += clock() - t1
        self._evaluate(num_new)

    def _evaluate(self, num_new: int) -> None:
        """Gives the first `num_new` new states their values."""
        if num_new == 0:
            return
        before = time.perf_counter()
        slots, states, rows = (part[:num_new] for part in self._new)
        answer = self.values.evaluate(self.domain.observe(self.graphs.states(rows)))
        checked = checked_values(answer, num_new, self.graphs.sizes.num_members)
        if not kernels.store_values(self.graphs.arena, slots, states, checked):
            raise not_finite("values.evaluate returned numbers that are")
        self.work.network_calls += num_new
        self.work.network_batches += 1
        self.work.seconds["network"] += time.perf_counter() - before

    def _start(self, slots: NDArray[np.intp]) -> None:
        """Starts the next episodes in `slots`, as many as are still allowed; the other slots fall silent."""
        begun = self._begin_episodes(slots)
        if begun is None:
            return
        slots, beginning = begun
        self.graphs.start(slots, beginning.states, beginning.seeds)
        new_slots, new_states, new_rows = self._new
        new_slots[: len(slots)], new_states[: len(slots)] = slots, 0
        new_rows[: len(slots)] = self.graphs.words(beginning.states)
        self._evaluate(len(slots))

    def _finish(self, slots: NDArray[np.intp], is_truncated: NDArray[np.bool_]) -> list[Episode]:
        """Reads the episodes in `slots` out of the arena and starts new ones there."""
        self.graphs.check_scores(slots)
        numbers = self._numbers(slots)
        episodes = read_episodes(self.graphs.arena, slots, numbers, is_truncated, self.graphs.sizes.state_size)
        self._start(slots)
        return [replace(episode, policy=None) for episode in episodes]  # visits are not counted

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything that going on bit for bit needs, half-played episodes included."""
        return {
            **prefixed("arena.", self.graphs.state_dict()),
            **self._slots_state(),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; sizes and config must be the same."""
        self.graphs.load_state_dict(section(state, "arena."))
        self._load_slots_state(state)
        episodes = self.graphs.arena.episodes
        roots = np.array([self._root(slot) for slot in range(len(episodes))])
        has_ended = self.graphs.arena.stats["terminal"][np.arange(len(episodes)), roots]
        is_over = has_ended | (episodes["step"] >= self.graphs.sizes.max_steps) | (episodes["num_states"] == 0)
        require(not (self._active & is_over).any(), "an episode goes on that never began, or is over")


def _check(domain: Domain, model: Model, wants_more: bool) -> None:
    """Refuses what does not go with planning by outcomes."""
    if not isinstance(domain, Chance):
        raise BathysphereError(
            f"The planner expectimax is for worlds with chance, and {domain.name} offers no outcomes. Plan with mcts."
        )
    if not isinstance(model, Chance):
        raise BathysphereError(
            "The planner expectimax needs a model that says how probable what is, such as the memory; leave out model, "
            "or learn it with --model memory."
        )
    if wants_more:
        raise BathysphereError(
            "The planner expectimax plans with the newest values; leave out learning.steady_values, "
            "learning.graph_states and learning.target graph."
        )
