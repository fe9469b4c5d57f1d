"""The search: B episodes played in lock step with one network call per pass for all of them, or each in place."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model, Starts, States, Successors
from bathysphere.errors import BathysphereError
from bathysphere.planning import compiled_rules as in_place
from bathysphere.planning.checks import checked_answer, checked_starts, checked_values
from bathysphere.planning.config import SearchConfig
from bathysphere.planning.episode import Episode, read_episodes
from bathysphere.planning.episode_values import SteadyValues
from bathysphere.planning.graph import kernels
from bathysphere.planning.graph.arena import Arena, Sizes, allocate, ensure_room, pack, unpack
from bathysphere.planning.graph.compiled import Scratch, direct, translate
from bathysphere.planning.graph.scoring import choose
from bathysphere.planning.graph.steps import CUT_OFF, RUNNING
from bathysphere.planning.pace import Pace
from bathysphere.planning.start_states import find_starts
from bathysphere.storage.state import generator_state, restore_generator, section

MODEL_ERRORS = ("wrong_reward", "false_end", "missed_end", "wrong_state")
PHASES = ("starts", "sweep", "model", "insert", "network", "other")


class Values(Protocol):
    """What the search asks of a value function.

    It may also have a `version`, a number that changes whenever its answers may. Lanes in other processes are then told
    of new values without a look at all of them before every move. If it looks one category up, it may have a `table`,
    float32 [R, E], in which it does so: see in_place.py. Steady values need a `snapshot`: see steady.py.
    """

    num_members: int

    def evaluate(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Returns every member's estimate for every observation, float32 [n, E], finite."""
        ...


class Search:
    """Plays `batch` episodes at once.

    Every call of `step` makes one real move in each episode after `config.passes` passes of planning, and returns the
    episodes that finished. Finished episodes restart in their slot until `num_episodes` have been started.

    Args:
      domain: the world; its rules decide what really happens.
      values: the value function; evaluated once per distinct state and episode.
      config: how to plan.
      batch: episodes played at once, B.
      seed: decides start states, drawn members and ties. Same seed, same episodes.
      model: what planning believes happens; the domain itself if not given. Where it errs on a real move, the search
        graph is corrected and `model_errors` counts it.
      num_episodes: stop starting episodes after that many; None plays for ever.
      starts: start states, uint8 [n, S], used in order (then again from the first), or a numbered stream of them. If
        not given, the domain's own stream, or without one what `domain.initial` draws.
      lane, lanes: this is number `lane` of `lanes` searches side by side: its k-th episode is number k * lanes + lane
        of theirs together, and begins with the start state of that number.
      steady: plan each episode with the values as they are when it begins, not with the newest.
    """

    def __init__(
        self,
        domain: Domain,
        values: Values,
        config: SearchConfig | None = None,
        *,
        batch: int = 1,
        seed: int | np.random.SeedSequence = 0,
        model: Model | None = None,
        num_episodes: int | None = None,
        starts: States | Starts | None = None,
        lane: int = 0,
        lanes: int = 1,
        steady: bool = False,
    ) -> None:
        if batch < 1:
            raise BathysphereError(f"batch is {batch}; expected at least 1 episode at a time.")
        config = config or SearchConfig()
        num_subsampled = config.num_subsampled or values.num_members
        if num_subsampled > values.num_members:
            raise BathysphereError(
                f"search.num_subsampled is {num_subsampled}, but the ensemble has only {values.num_members} members. "
                "Lower it, or train more members."
            )
        self.domain, self.values, self.config = domain, values, config
        self.model: Model = domain if model is None else model
        self.sizes = Sizes(
            batch=batch,
            state_size=domain.state_size,
            num_actions=len(domain.action_names),
            num_members=values.num_members,
            num_subsampled=num_subsampled,
            max_steps=config.max_steps or domain.max_steps,
        )
        self.arena: Arena = allocate(self.sizes, memory_limit=config.memory_limit_mb << 20)
        self.num_episodes = num_episodes
        self.num_started = 0
        self.model_errors: Counter[str] = Counter(dict.fromkeys(MODEL_ERRORS, 0))
        self.model_calls = 0  # states expanded by the model
        self.network_calls = 0  # states evaluated by the network
        self.network_batches = 0  # calls in which that was done; in place, expansions
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._lane, self._lanes = lane, lanes
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self._starts = find_starts(starts, domain, sequence)
        self._rng = np.random.default_rng(sequence)
        self._rules, self._addresses = translate(config)
        self._active = np.zeros(batch, np.bool_)
        self._episode = np.zeros(batch, np.int64)
        self._allocate_scratch()
        self._steady = SteadyValues(batch, values.num_members) if steady else None
        self._world = None if steady else in_place.find_world(domain, self.sizes)
        self._start(np.arange(batch))

    def step(self, moves: int = 1) -> list[Episode]:
        """Plans and makes `moves` moves in every running episode.

        Returns:
          The episodes that finished: those of the first move first, and of each move in slot order.
        """
        began, phased = time.perf_counter(), self._phased()
        table = self._table()
        if table is not None:
            episodes = self._play_in_place(table, moves)
        else:
            episodes = self._play_in_lock_step(moves)
        self.seconds["other"] += time.perf_counter() - began - (self._phased() - phased)
        return episodes

    def _phased(self) -> float:
        return sum(self.seconds.values()) - self.seconds["other"]

    def plan(self) -> None:
        """Runs all passes of one move, without making it: between `plan` and `move` the decision can be looked at."""
        self._make_room()
        kernels.begin_step(self.arena, self._active)
        self._run_passes(self.config.passes)

    def _make_room(self) -> None:
        self.arena = ensure_room(self.arena, self.sizes, self.config.passes, self.config.memory_limit_mb << 20)

    def move(self) -> list[Episode]:
        """Chooses and makes the planned moves; returns the episodes that finished, in slot order."""
        choose(self.arena, self._scratch, self._rules, self._addresses, self._active, self._actions)
        self._fresh_nodes[:] = -1
        if self.model is not self.domain:
            self._correct()
        kernels.advance(self.arena, self._active, self._actions, self._fresh_nodes, self._outcomes)
        finished = np.flatnonzero(self._active & (self._outcomes != RUNNING))
        return self._finish(finished) if len(finished) else []

    def play(self) -> list[Episode]:
        """Plays until no episode is left (`num_episodes` must be set); returns them in order of starting."""
        if self.num_episodes is None:
            raise BathysphereError("Search.play needs num_episodes; without it the search never ends.")
        episodes, pace = [], Pace()
        while self._active.any():
            episodes += pace.step(self)
        return sorted(episodes, key=lambda episode: episode.index)

    @property
    def root_states(self) -> States:
        """The state each episode is in, uint8 [B, S]."""
        slots = np.arange(self.sizes.batch)
        states = self.arena.nodes["state"][slots, self.arena.episodes["root"]]
        return self._bytes(self.arena.words[slots, states])

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which slots hold a running episode, bool [B]."""
        return self._active

    @property
    def actions(self) -> NDArray[np.int32]:
        """The moves of the last step, int32 [B]."""
        return self._actions

    def _run_passes(self, num_passes: int) -> None:
        """Brings every running episode to `num_passes` passes of this move."""
        table = self._table()
        if table is not None:
            self._moves_left[:] = -1
            self._run_in_place(table, num_passes)
            return
        while True:
            before = time.perf_counter()
            num_pending = self._sweep(
                self.arena,
                self._scratch,
                self._rules,
                self._addresses,
                self._active,
                num_passes,
                self._pending_slots,
                self._pending_rows,
            )
            self.seconds["sweep"] += time.perf_counter() - before
            if num_pending == 0:
                return
            self._expand(num_pending)

    def _table(self) -> NDArray[np.float32] | None:
        """Returns the table of values with which this search can play in place (see in_place.py); None if it cannot."""
        if self._world is None or self.model is not self.domain:
            return None
        return in_place.find_table(self.values, self.domain, self.sizes.num_members)

    def _play_in_lock_step(self, moves: int) -> list[Episode]:
        """Makes `moves` moves in every running episode, one move in all of them at a time."""
        episodes: list[Episode] = []
        for _ in range(moves):
            if not self._active.any():
                break
            self.plan()
            episodes += self.move()
        return episodes

    def _play_in_place(self, table: NDArray[np.float32], moves: int) -> list[Episode]:
        """Makes `moves` moves in every running episode, each by itself but with the same result as in lock step."""
        episodes: list[Episode] = []
        self._moves_left[:] = moves
        while True:
            self._run_in_place(table, self.config.passes)
            ended = np.flatnonzero(self._active & (self._outcomes != RUNNING))
            if len(ended) == 0:
                return episodes
            # In lock step, whose episode ends first begins the next one first, with the seed that is drawn first.
            left = self._moves_left[ended]
            episodes += self._finish(ended[left == left.max()])

    def _run_in_place(self, table: NDArray[np.float32], num_passes: int) -> None:
        """Lets every running episode play on by itself; how far, `_moves_left` says."""
        world = self._world
        assert world is not None
        world.counts[:] = 0
        before = time.perf_counter()
        while True:
            status = self._play(
                self.arena,
                self._scratch,
                self._rules,
                self._addresses,
                world,
                table,
                self._active,
                num_passes,
                self._moves_left,
                self._actions,
                self._outcomes,
            )
            if status != in_place.NO_ROOM:
                break
            self._make_room()
        self.seconds["sweep"] += time.perf_counter() - before
        model_calls, network_calls, network_batches = world.counts.tolist()
        self.model_calls += model_calls
        self.network_calls += network_calls
        self.network_batches += network_batches
        if status != in_place.DONE:
            raise in_place.explain(status, len(table))

    def _expand(self, num_pending: int) -> None:
        """Asks the model for the children of the pending leaves, and the network for the values of the new ones."""
        clock, seconds = time.perf_counter, self.seconds
        t0 = clock()
        answer = self._ask(self.model, self._bytes(self._pending_rows[:num_pending]))
        self.model_calls += num_pending
        t1 = clock()
        num_new = self._insert(
            self.arena,
            self.config.transpositions,
            self._pending_slots[:num_pending],
            self._pad(answer.states),
            answer.rewards,
            answer.terminal,
            answer.solved,
            self._new_slots,
            self._new_states,
            self._new_rows,
        )
        seconds["model"] += t1 - t0
        seconds["insert"] += clock() - t1
        self._evaluate(num_new)

    def _ask(self, model: Model, states: States) -> Successors:
        return checked_answer(model.successors(states), len(states), self.sizes.num_actions, self.sizes.state_size)

    def _evaluate(self, num_new: int) -> None:
        """Asks the network for the values of the first `num_new` new states and stores them."""
        if num_new == 0:
            return
        clock, seconds = time.perf_counter, self.seconds
        t0 = clock()
        observations = self.domain.observe(self._bytes(self._new_rows[:num_new]))
        t1 = clock()
        slots = self._new_slots[:num_new]
        if self._steady is None:
            answer = self.values.evaluate(observations)
        else:
            answer = self._steady.evaluate(observations, slots)
        t2 = clock()
        values = checked_values(answer, num_new, self.sizes.num_members)
        self.network_calls += num_new
        self.network_batches += 1
        if not self._store(self.arena, slots, self._new_states[:num_new], values):
            raise BathysphereError(
                "values.evaluate returned numbers that are not finite. If this came with training, lower the learning "
                "rate."
            )
        seconds["network"] += t2 - t1
        seconds["insert"] += clock() - t2 + t1 - t0

    def _correct(self) -> None:
        slots = np.flatnonzero(self._active)
        truth = self._ask(self.domain, self.root_states[slots])
        rows, actions = np.arange(len(slots)), self._actions[slots]
        words = self._pad(truth.states[rows, actions])
        errors = np.zeros(len(MODEL_ERRORS), np.int64)
        num_new = kernels.correct(
            self.arena,
            self.config.transpositions,
            slots,
            self._actions,
            words,
            truth.rewards[rows, actions],
            truth.terminal[rows, actions],
            truth.solved[rows, actions],
            errors,
            self._fresh_nodes,
            self._new_slots,
            self._new_states,
        )
        self.model_errors.update(dict(zip(MODEL_ERRORS, errors.tolist(), strict=True)))
        new = self._new_slots[:num_new], self._new_states[:num_new]
        self._new_rows[:num_new] = self.arena.words[new]
        self._evaluate(num_new)

    def _start(self, slots: NDArray[np.intp]) -> None:
        """Starts the next episodes in `slots`, as many as are still allowed; the other slots fall silent."""
        self._active[slots] = False
        self._outcomes[slots] = RUNNING
        if self.num_episodes is not None:
            slots = slots[: self.num_episodes - self.num_started]
        if len(slots) == 0:
            return
        index = np.arange(self.num_started, self.num_started + len(slots))
        before = time.perf_counter()
        if self._starts is None:
            states = self.domain.initial(len(slots), self._rng)
        else:
            states = self._take_starts(index)
        self.seconds["starts"] += time.perf_counter() - before
        seeds = self._rng.integers(2**64, size=len(slots), dtype=np.uint64)
        kernels.start(self.arena, self.config.transpositions, slots, self._pad(states), seeds)
        if self._steady is not None:
            self._steady.begin(slots, self.values)
        self._active[slots] = True
        self._episode[slots] = index
        self.num_started += len(slots)
        self._new_slots[: len(slots)] = slots
        self._new_states[: len(slots)] = 0
        self._new_rows[: len(slots)] = self._pad(states)
        self._evaluate(len(slots))

    def _take_starts(self, index: NDArray[np.int64]) -> States:
        """Returns the start states of these episodes of this search; those of as many as fit in come next."""
        assert self._starts is not None
        after = index[-1] + 1 + np.arange(self.sizes.batch)
        if self.num_episodes is not None:
            after = after[after < self.num_episodes]
        numbers, ahead = (episodes * self._lanes + self._lane for episodes in (index, after))
        return checked_starts(self._starts.take(numbers, ahead), self.sizes.state_size)

    def _finish(self, slots: NDArray[np.intp]) -> list[Episode]:
        """Reads the episodes in `slots` out of the arena and starts new ones there."""
        numbers = self._episode[slots] * self._lanes + self._lane
        episodes = read_episodes(self.arena, slots, numbers, self._outcomes[slots] == CUT_OFF, self.sizes.state_size)
        self._start(slots)
        return episodes

    # The kernels of every pass, fixed to the types they are called with; which of them are needed, the route decides.

    @cached_property
    def _sweep(self) -> Any:
        rules, addresses, passes = self._rules, self._addresses, self.config.passes
        pending = self._pending_slots, self._pending_rows
        return direct(kernels.sweep, self.arena, self._scratch, rules, addresses, self._active, passes, *pending)

    @cached_property
    def _insert(self) -> Any:
        batch, num_actions, num_words = self.sizes.batch, self.sizes.num_actions, self.sizes.words
        rows, rewards = np.zeros((batch, num_actions, num_words), np.uint64), np.zeros((batch, num_actions))
        flags, new = np.zeros((batch, num_actions), np.bool_), (self._new_slots, self._new_states, self._new_rows)
        transpositions = self.config.transpositions
        answer = rows, rewards, flags, flags
        return direct(kernels.insert, self.arena, transpositions, self._pending_slots, *answer, *new)

    @cached_property
    def _store(self) -> Any:
        values = np.zeros((self.sizes.batch, self.sizes.num_members), np.float32)
        return direct(kernels.store_values, self.arena, self._new_slots, self._new_states, values)

    @cached_property
    def _play(self) -> Any:
        table = np.zeros((1, self.sizes.num_members), np.float32)
        table.flags.writeable = False
        rules, addresses, passes = self._rules, self._addresses, self.config.passes
        told = self._moves_left, self._actions, self._outcomes
        what = self.arena, self._scratch, rules, addresses, self._world, table, self._active, passes
        return direct(in_place.play, *what, *told)

    def _allocate_scratch(self) -> None:
        """Buffers that every pass reuses."""
        batch, num_actions, num_words = self.sizes.batch, self.sizes.num_actions, self.sizes.words
        room = batch * max(num_actions, 1)
        num_drawn = self.sizes.num_subsampled
        self._scratch = Scratch(
            eligible=np.empty(num_actions, np.bool_),
            scores=np.empty(num_actions),
            drawn=np.empty(num_drawn),
            q=np.empty((num_actions, num_drawn)),
            value=np.empty(self.sizes.num_members),
        )
        self._pending_slots = np.empty(batch, np.int64)
        self._pending_rows = np.empty((batch, num_words), np.uint64)
        self._new_slots = np.empty(room, np.int64)
        self._new_states = np.empty(room, np.int64)
        self._new_rows = np.empty((room, num_words), np.uint64)
        self._actions = np.zeros(batch, np.int32)
        self._fresh_nodes = np.full(batch, -1, np.int32)
        self._outcomes = np.zeros(batch, np.int8)
        self._moves_left = np.zeros(batch, np.int64)
        self._padded = np.zeros((batch, num_actions, num_words * 8), np.uint8)

    def _bytes(self, words: NDArray[np.uint64]) -> States:
        """Returns the states in rows of words, uint8 [..., S], contiguous."""
        return np.ascontiguousarray(words.view(np.uint8)[..., : self.sizes.state_size])

    def _pad(self, states: States) -> NDArray[np.uint64]:
        """Returns rows of words, uint64 [..., W], holding the states; valid until the next call."""
        if self.sizes.state_size % 8 == 0 and states.flags.c_contiguous:
            return states.view(np.uint64)
        if states.ndim == 2:
            padded = np.zeros((len(states), self.sizes.words * 8), np.uint8)
        else:
            padded = self._padded[: len(states)]
        padded[..., : self.sizes.state_size] = states
        return padded.view(np.uint64)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed search needs to go on bit for bit, half-played episodes included."""
        return {
            **{f"arena.{name}": array for name, array in pack(self.arena).items()},
            **{f"steady.{name}": array for name, array in (self._steady.state_dict() if self._steady else {}).items()},
            "active": self._active.copy(),
            "episode": self._episode.copy(),
            "num_started": np.array(self.num_started),
            "model_errors": np.array([self.model_errors[name] for name in MODEL_ERRORS]),
            "calls": np.array([self.model_calls, self.network_calls]),
            "rng": generator_state(self._rng),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; sizes and config must be the same."""
        self.arena = unpack(section(state, "arena."), self.sizes, memory_limit=self.config.memory_limit_mb << 20)
        if self._steady is not None:
            self._steady.load_state_dict(section(state, "steady."), self.values)
        self._active[:] = state["active"]
        self._episode[:] = state["episode"]
        self.num_started = int(state["num_started"])
        self.model_errors = Counter(dict(zip(MODEL_ERRORS, state["model_errors"].tolist(), strict=True)))
        self.model_calls, self.network_calls = state["calls"].tolist()
        restore_generator(self._rng, state["rng"])
