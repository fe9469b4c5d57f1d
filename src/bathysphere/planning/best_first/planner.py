"""Best-first search: from each start one search for a whole plan, many searches at once.

B searches go on in lock step, with one call of the model and one of the network for all of them in each round, or each
by itself in compiled code. An episode is the plan that its search has found, or the way to the most promising state.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Hopeless, Imagined, PartialModel, States, WithGoal
from bathysphere.errors import BathysphereError
from bathysphere.planning import compiled_rules
from bathysphere.planning.best_first import kernels
from bathysphere.planning.best_first.config import BestFirstConfig
from bathysphere.planning.best_first.invariants import check_links, check_store
from bathysphere.planning.best_first.orders import find_order
from bathysphere.planning.best_first.reading import followed_steps, planned_steps, read_episode, read_graph
from bathysphere.planning.best_first.store import (
    BY_RECORD,
    ENDED_BY,
    FIRST_RECORDS,
    MEMORY,
    RUNNING,
    SECONDS,
    Store,
    StoreSizes,
    allocate,
    goal_of,
    grown,
    num_free,
    release,
    way_to,
)
from bathysphere.planning.episode import Episode
from bathysphere.planning.episode_values import checked_values, weighed_unknown
from bathysphere.planning.expansion import checked_answer
from bathysphere.planning.graph.compiled import direct
from bathysphere.planning.graph.risk import check_measure, find_risk_measure
from bathysphere.planning.planner import PolicyValues, Values, not_finite, refuse_chance, register_planner
from bathysphere.planning.search_graph import SearchGraph
from bathysphere.planning.slots import PlayOptions, SlotPlanner
from bathysphere.planning.words import WordRows
from bathysphere.storage.state import require

_ROUNDS = 4096  # expansions of each search in one call of compiled code, after which time is looked at
_LEAST_PROBABILITY = 1e-9  # of an action, so that a way that a policy rules out is the last but can be taken


@register_planner("best-first", BestFirstConfig)
class BestFirst(SlotPlanner):
    """Searches for `batch` plans at once.

    Every call of `step` makes one round: it expands the first states of each search's open list. A search that ends
    becomes an `Episode`, and the next one begins in its slot until `num_episodes` have been started.

    Args: as for `MCTS`. With a model that is not the domain, plans are made by the model and then followed in
    the domain, up to the first step that ends elsewhere than predicted. What the model does not know is an open end
    with a value, and a search that takes it off its open list plans to find out.
    """

    config: BestFirstConfig
    makes_plans = True

    def __init__(
        self,
        domain: Domain,
        values: Values,
        config: BestFirstConfig | None = None,
        **options: Unpack[PlayOptions],
    ) -> None:
        refuse_chance(domain)
        config = config or BestFirstConfig()
        super().__init__(domain, values, config, **options)
        batch = len(self._active)
        if self._steady:
            raise BathysphereError(
                "Best-first search plans with the newest values; learning.steady_values is for search mcts. Turn it "
                "off."
            )
        order = find_order(config.order)
        self._needs_policy = order.needs_policy
        if self._needs_policy and not (isinstance(values, PolicyValues) and values.has_policy):
            raise BathysphereError(
                f"search.order {config.order} is guided by a policy, and these values have none. Train with "
                "values.policy, or use search.order steps."
            )
        self.sizes = StoreSizes(
            batch, domain.state_size, len(domain.action_names), values.num_members, self._needs_policy
        )
        goal = config.goal_reward or (domain.goal_reward if isinstance(domain, WithGoal) else 1.0)
        no_outcomes = 0, self.sizes.num_actions
        self._all_known = np.zeros(no_outcomes, np.bool_), np.zeros((*no_outcomes, values.num_members), np.float32)
        self._limit = max((config.memory_limit_mb << 20) // self.sizes.record_bytes, FIRST_RECORDS)  # of records
        self._round = (
            batch * config.width * self.sizes.num_actions + batch
        )  # records that a round may make, with starts
        if self._round + batch > 1 << (self._limit.bit_length() - 1):  # stores are powers of two
            raise BathysphereError(
                f"{batch} searches of {self.sizes.num_actions} actions do not fit into search.memory_limit_mb="
                f"{config.memory_limit_mb}. Raise it, or lower the batch or search.width."
            )
        check_measure(find_risk_measure(config.risk), values.num_members, float(config.risk_coef))
        self._rules = kernels.SearchRules(
            numbers=np.array([config.weight, config.discount, goal]),
            scratch=np.zeros(values.num_members),
            order=order.address,
            measure=find_risk_measure(config.risk).address,
            risk_coef=float(config.risk_coef),
            discount=float(config.discount),
            max_steps=self.max_steps,
            max_expansions=config.max_expansions,
            max_states=config.max_states or np.iinfo(np.int32).max,
            width=config.width,
            reopen=config.reopen,
        )
        self._partial = self.model if isinstance(self.model, PartialModel) else None
        self._prunes = config.prune and isinstance(domain, Hopeless)
        self.store: Store = allocate(self.sizes)
        self._compiled: compiled_rules.CompiledDomain | None = None
        if compiled_rules.has_rules(domain) and not self._prunes and not self._needs_policy:
            self._compiled = compiled_rules.compile_domain(domain)
        room, num_words = batch * config.width, self.sizes.words
        self._words = WordRows(domain.state_size, (max(room, batch), self.sizes.num_actions))
        self._pending = np.empty(room, np.int64)
        self._pending_rows = np.empty((room, num_words), np.uint64)
        self._new = np.empty(room * self.sizes.num_actions, np.int64)
        self._new_rows = np.empty((len(self._new), num_words), np.uint64)
        self._began = np.zeros(batch)
        self._kernels = self._bind_kernels()
        self._start(np.arange(batch))

    @property
    def actions(self) -> NDArray[np.int32]:
        """The first action on the way to the best state so far of each search, int32 [B]; 0 if there is none."""
        firsts = np.zeros(self.sizes.batch, np.int32)
        for slot in np.flatnonzero(self._active).tolist():
            _, actions = way_to(self.store, goal_of(self.store, slot))
            firsts[slot] = actions[0] if len(actions) else 0
        return firsts

    @property
    def root_states(self) -> States:
        """The state each search began with, uint8 [B, S]."""
        return self._words.states(self.store.words[self.store.searches["start"]])

    @property
    def graph_bytes(self) -> int:
        """Memory of all searches, in bytes."""
        return sum(array.nbytes for array in self.store)

    def plan(self) -> None:
        """Makes one round in every running search."""
        table = self._table()
        if table is None:
            self._make_round()
        else:
            self._run_compiled(table)
        if self.config.max_seconds is not None:
            is_late = time.perf_counter() - self._began > self.config.max_seconds
            status = self.store.searches["status"]
            status[self._active & is_late & (status == RUNNING)] = SECONDS

    def act(self) -> list[Episode]:
        """Returns the searches that have ended as episodes, in slot order, and begins others in their place."""
        ended = np.flatnonzero(self._active & (self.store.searches["status"] != RUNNING))
        return self._finish(ended) if len(ended) else []

    def search_graph(self, slot: int) -> SearchGraph:
        """Returns what the search in `slot` has seen."""
        return read_graph(self.store, self.sizes, slot).to_search_graph(self._rules.discount)

    def _table(self) -> NDArray[np.float32] | None:
        if self._compiled is None or self.model is not self.domain:
            return None
        return compiled_rules.find_table(self.values, self.domain)

    def _make_round(self) -> None:
        clock, seconds = time.perf_counter, self.work.seconds
        if not self._make_room():
            return
        t0 = clock()
        running = self._active & (self.store.searches["status"] == RUNNING)
        num_pending = self._kernels["take"](self.store, self._rules, running, self._pending, self._pending_rows)
        t1 = clock()
        seconds["sweep"] += t1 - t0
        if num_pending:
            states = self._words.states(self._pending_rows[:num_pending])
            pending = self._pending[:num_pending]
            answer, *unknown = self._imagine(states, self.store.records["slot"][pending])
            self.work.model_calls += num_pending
            t2 = clock()
            rows = self._words.words(answer.states)
            parts = rows, answer.rewards, answer.terminal, answer.solved
            told_new = self._new, self._new_rows
            num_new = self._kernels["insert"](self.store, self._rules, pending, *parts, *unknown, *told_new)
            if num_new < 0:
                raise not_finite("The model's values of the unknown, or what the risk measure makes of them, are")
            seconds["model"] += t2 - t1
            seconds["insert"] += clock() - t2
            self._evaluate(num_new)
        self._kernels["judge_all"](self.store, self._rules, running)

    def _imagine(self, states: States, slots: NDArray[np.int32]) -> Imagined:
        """Asks the model about `states` [k], which searches in `slots` [k] expand; of rules nothing is unknown."""
        imagined = None if self._partial is None else self._partial.imagine(states)
        told = self.model.successors(states) if imagined is None else imagined.successors
        answer = checked_answer(told, len(states), self.sizes.num_actions, self.sizes.state_size)
        if imagined is None:
            return Imagined(answer, *self._all_known)
        return Imagined(answer, imagined.is_known, weighed_unknown(imagined.values, self.config.model_risk))

    def _evaluate(self, num_new: int) -> None:
        """Asks the network for the values of the first `num_new` new records that are not hopeless, and opens them."""
        clock, work = time.perf_counter, self.work
        t0 = clock()
        records, states = self._new[:num_new], self._words.states(self._new_rows[:num_new])
        if self._prunes and num_new:
            assert isinstance(self.domain, Hopeless)
            is_kept = ~self.domain.hopeless(states)
            records, states = records[is_kept], states[is_kept]
        if not len(records):
            work.seconds["insert"] += clock() - t0
            return
        observations = self.domain.observe(states)
        t1 = clock()
        log_policy = np.zeros((len(records), self.store.log_policy.shape[1]), np.float32)
        if self._needs_policy:
            assert isinstance(self.values, PolicyValues)
            values, policy = self.values.evaluate_with_policy(observations)
            if policy.shape != log_policy.shape:
                raise BathysphereError(
                    f"values.evaluate_with_policy returned probabilities of shape {policy.shape}; expected [n, A] = "
                    f"{log_policy.shape}."
                )
            np.log(np.maximum(policy, _LEAST_PROBABILITY), out=log_policy)
        else:
            values = self.values.evaluate(observations)
        t2 = clock()
        checked = checked_values(values, len(records), self.sizes.num_members)
        work.network_calls += len(records)
        work.network_batches += 1
        if not self._kernels["store_values"](self.store, self._rules, records, checked, log_policy):
            raise not_finite("values.evaluate, the risk measure or the order (search.weight) returned a number that is")
        work.seconds["network"] += t2 - t1
        work.seconds["insert"] += clock() - t2 + t1 - t0

    def _run_compiled(self, table: NDArray[np.float32]) -> None:
        assert self._compiled is not None
        compiled, began = self._compiled, time.perf_counter()
        compiled.counts[:] = 0
        while True:
            running = self._active & (self.store.searches["status"] == RUNNING)
            room = running, self._pending, self._new
            status = self._kernels["run_compiled"](self.store, self._rules, compiled, table, *room, _ROUNDS)
            if status != compiled_rules.NO_ROOM or not self._make_room():
                break
        self.work.seconds["sweep"] += time.perf_counter() - began
        model_calls, network_calls, _ = compiled.counts.tolist()
        self.work.model_calls += model_calls
        self.work.network_calls += network_calls
        self.work.network_batches += model_calls
        if status == compiled_rules.NOT_FINITE:
            raise not_finite("values.evaluate, the risk measure or the order (search.weight) returned a number that is")
        if status == compiled_rules.NO_SUCH_CATEGORY:
            raise compiled_rules.explain(status, len(table))

    def _make_room(self) -> bool:
        """Makes sure that one more round fits; returns whether it does.

        If memory does not allow it, the largest searches end, and there is room when they have become episodes.
        """
        while num_free(self.store) < self._round and 2 * len(self.store.records) <= self._limit:
            self.store = grown(self.store, self.sizes, 2 * len(self.store.records))
        if self.store.pool["num_entries"][0] + self._round > len(self.store.lookup) // 2:
            kernels.rebuild_lookup(self.store)
        if num_free(self.store) >= self._round:
            return True
        searches = self.store.searches
        is_ending = self._active & (searches["status"] != RUNNING)
        soon_free = num_free(self.store) + int(searches["num_states"][is_ending].sum())
        while soon_free < self._round:
            is_running = self._active & (searches["status"] == RUNNING)
            largest = int(np.argmax(np.where(is_running, searches["num_states"], -1)))
            searches["status"][largest] = MEMORY
            soon_free += int(searches["num_states"][largest])
        return False

    def _start(self, slots: NDArray[np.intp]) -> None:
        """Starts the next searches in `slots`, as many as are still allowed; the other slots fall silent."""
        begun = self._begin_episodes(slots)
        if begun is None:
            return
        slots, beginning = begun
        self._begin(slots, beginning.states, np.zeros(len(slots), np.int64))

    def _begin(self, slots: NDArray[np.intp], states: States, depths: NDArray[np.int64]) -> None:
        """Begins searches in `slots` [k], which are free, at `states` [k], which `depths` [k] steps have led to."""
        self._make_room()
        rows = self._words.words(states)
        kernels.begin(self.store, self._rules, slots, rows, depths)
        self._began[slots] = time.perf_counter()
        self._new[: len(slots)] = self.store.searches["start"][slots]
        self._new_rows[: len(slots)] = rows
        self._evaluate(len(slots))
        kernels.judge_all(self.store, self._rules, self._active)

    def _finish(self, slots: NDArray[np.intp]) -> list[Episode]:
        """Reads the searches in `slots` out of the store and starts new ones there."""
        numbers = self._numbers(slots).tolist()
        episodes = []
        for slot, number in zip(slots.tolist(), numbers, strict=True):
            graph = read_graph(self.store, self.sizes, slot)
            ended_by = ENDED_BY[int(self.store.searches["status"][slot])]
            steps = planned_steps(graph)
            if self.model is not self.domain or len(steps.actions) == 0:
                steps = followed_steps(graph, self.domain)
                self.work.model_errors |= {name: n + steps.errors[name] for name, n in self.work.model_errors.items()}
                self.work.unknown_steps += steps.num_unknown
            episode = read_episode(graph, steps, number, self._rules.discount, ended_by, self._graph_states)
            self.work.steps += len(episode)
            episodes.append(episode)
        release(self.store, slots)
        self._start(slots)
        return episodes

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed planner needs to go on bit for bit, searches under way included."""
        state: dict[str, NDArray[Any]] = {}
        used = int(self.store.pool["num_used"][0])
        for name in (*BY_RECORD, "searches", "pool"):
            array = getattr(self.store, name)[: used if name in BY_RECORD else None]
            fields = array.dtype.names
            if fields is None:
                state[f"store.{name}"] = array.copy()
            else:
                state |= {f"store.{name}.{field}": np.ascontiguousarray(array[field]) for field in fields}
        del state["store.pool.num_entries"]  # the lookup is built anew
        return state | self._slots_state()

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; sizes and config must be the same."""
        used = int(state["store.pool.num_used"][0])
        shapes = "words", "members", "child", "log_policy"
        found = len(state["active"]), *(state[f"store.{name}"].shape[1] for name in shapes)
        expected = self.sizes.batch, *(getattr(self.store, name).shape[1] for name in shapes)
        if found != expected:
            raise BathysphereError(
                f"The saved search has batch, words, members, actions and policy {found}; this one has {expected}. "
                "Load it with the settings it was saved with."
            )
        require(0 <= used <= self._limit, "it has more records than memory allows")
        num_records = len(self.store.records)
        while num_records < used:
            num_records *= 2
        store = allocate(self.sizes, num_records)
        for name, array in state.items():
            if name.startswith("store."):
                _, part, *field = name.split(".")
                target = getattr(store, part)
                length = used if part in BY_RECORD else len(target)
                require(len(array) == length, f"{name} has {len(array)} rows, and {length} were expected")
                (target[field[0]] if field else target)[:length] = array
        check_links(store)
        kernels.rebuild_lookup(store)
        check_store(store)
        self.store = store
        self._load_slots_state(state)
        self._began[:] = time.perf_counter()
        require(not (self._active & ~self._has_begun).any(), "a search goes on that never began")

    @property
    def _has_begun(self) -> NDArray[np.bool_]:
        """Which slots hold something to go on with, bool [B]."""
        has_begun: NDArray[np.bool_] = self.store.searches["num_states"] > 0
        return has_begun

    def _bind_kernels(self) -> dict[str, Any]:
        """Returns the kernels of every round, fixed to the types they are called with."""
        sizes, store, rules = self.sizes, self.store, self._rules
        shape = (1, sizes.num_actions)
        answer = np.zeros((*shape, sizes.words), np.uint64), np.zeros(shape), *np.zeros((2, *shape), np.bool_)
        members = np.zeros((1, sizes.num_members), np.float32)
        log_policy = np.zeros((1, store.log_policy.shape[1]), np.float32)
        bound = {
            "take": direct(kernels.take, store, rules, self._active, self._pending, self._pending_rows),
            "insert": direct(
                kernels.insert, store, rules, self._pending, *answer, *self._all_known, self._new, self._new_rows
            ),
            "store_values": direct(kernels.store_values, store, rules, self._new, members, log_policy),
            "judge_all": direct(kernels.judge_all, store, rules, self._active),
        }
        if self._compiled is not None:
            table = np.zeros((1, sizes.num_members), np.float32)
            table.flags.writeable = False  # kernels are compiled for exactly this type
            arguments = store, rules, self._compiled, table, self._active, self._pending, self._new, _ROUNDS
            bound["run_compiled"] = direct(kernels.run_compiled, *arguments)
        return bound
