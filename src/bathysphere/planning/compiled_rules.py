"""Planning that never leaves compiled code: leaves are expanded and evaluated where they are found.

Possible when the domain offers compiled rules, the model is the domain itself, and the values are a table. An episode
then makes passes and steps in a row, while its graph is in the processor's cache, without a call of Python. Every
number is the same as by way of the model's and the values' own methods.
"""

from __future__ import annotations

import math
import time
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from bathysphere.domains.base import Categories, Compilable, Domain
from bathysphere.errors import BathysphereError
from bathysphere.planning.graph.compiled import direct, inlined, kernel
from bathysphere.planning.graph.function_pointers import address_of, caller
from bathysphere.planning.graph.graphs import Graphs
from bathysphere.planning.graph.risk import bonus_at, joint_at, separable_at
from bathysphere.planning.graph.scoring import choose_one
from bathysphere.planning.graph.steps import (
    RUNNING,
    back_up,
    begin_step,
    hang_children,
    insert_child,
    make_step,
    select,
)
from bathysphere.planning.planner import TableValues, Values, Work, not_finite

_NUMBERS = types.Array(types.float64, 1, "C")
_BYTES = types.Array(types.uint8, 1, "C")
_FLAGS = types.Array(types.boolean, 1, "C")
# Between states there may be padding up to whole words.
_SUCCESSORS = types.void(_NUMBERS, _BYTES, _BYTES, types.Array(types.uint8, 2, "A"), _NUMBERS, _FLAGS, _FLAGS)
_CATEGORY = types.int64(_NUMBERS, _BYTES, _BYTES)
successors_at, category_at = caller(_SUCCESSORS), caller(_CATEGORY)

# Why compiled code came back.
DONE = 0
NO_ROOM = 1  # an episode's next step may not fit into the arena
NO_SUCH_CATEGORY = 2
NOT_FINITE = 3


class CompiledDomain(NamedTuple):
    """A domain's compiled rules as kernels take them, with room for what goes in and out of them."""

    successors: int  # address
    category: int  # address
    numbers: NDArray[np.float64]
    cells: NDArray[np.uint8]
    state_words: NDArray[np.uint64]  # [W]
    state: NDArray[np.uint8]  # [S], the same memory
    child_words: NDArray[np.uint64]  # [A, W], zero beyond S bytes
    children: NDArray[np.uint8]  # [A, S], the same memory
    rewards: NDArray[np.float64]  # [A]
    terminal: NDArray[np.bool_]  # [A]
    solved: NDArray[np.bool_]  # [A]
    counts: NDArray[np.int64]  # [3]: states expanded, states evaluated, expansions that evaluated any


class CompiledExpansion:
    """Lets every episode play on by itself in compiled code.

    Args:
      domain: one for which `has_rules` is true.
      graphs: of the episodes.
      work: where costs are counted.
    """

    def __init__(self, domain: Domain, graphs: Graphs, work: Work) -> None:
        self._graphs, self._work = graphs, work
        self.compiled = compile_domain(domain)

    def run(
        self,
        table: NDArray[np.float32],
        active: NDArray[np.bool_],
        num_passes: int,
        steps_left: NDArray[np.int64],
        actions: NDArray[np.int32],
        outcomes: NDArray[np.int8],
    ) -> None:
        """Has every active episode play as far as `steps_left` [B] says: see `play_on`."""
        compiled, graphs, work = self.compiled, self._graphs, self._work
        compiled.counts[:] = 0
        before = time.perf_counter()
        while True:
            told = steps_left, actions, outcomes
            status = self._play_on(*graphs.kernel_arguments, compiled, table, active, num_passes, *told)
            if status != NO_ROOM:
                break
            graphs.make_room()
        work.seconds["sweep"] += time.perf_counter() - before
        model_calls, network_calls, network_batches = compiled.counts.tolist()
        work.model_calls += model_calls
        work.network_calls += network_calls
        work.network_batches += network_batches
        if status != DONE:
            raise explain(status, len(table))

    @cached_property
    def _play_on(self) -> Any:
        graphs, sizes = self._graphs, self._graphs.sizes
        table = np.zeros((1, sizes.num_members), np.float32)
        table.flags.writeable = False  # kernels are compiled for exactly this type
        active, steps_left = np.zeros(sizes.batch, np.bool_), np.zeros(sizes.batch, np.int64)
        told = active, graphs.config.passes, steps_left, steps_left.astype(np.int32), steps_left.astype(np.int8)
        return direct(play_on, *graphs.kernel_arguments, self.compiled, table, *told)


def compile_domain(domain: Domain) -> CompiledDomain:
    """Returns the compiled rules of a domain for which `has_rules` is true."""
    assert isinstance(domain, Compilable)
    rules = domain.compiled_rules()
    num_actions, num_words = len(domain.action_names), -(-domain.state_size // 8)
    state_words = np.zeros(num_words, np.uint64)
    child_words = np.zeros((num_actions, num_words), np.uint64)
    return CompiledDomain(
        successors=address_of(rules.successors, _SUCCESSORS),
        category=address_of(rules.category, _CATEGORY),
        numbers=np.ascontiguousarray(rules.numbers, np.float64),
        cells=np.ascontiguousarray(rules.cells, np.uint8),
        state_words=state_words,
        state=state_words.view(np.uint8)[: domain.state_size],
        child_words=child_words,
        children=child_words.view(np.uint8)[:, : domain.state_size],
        rewards=np.zeros(num_actions),
        terminal=np.zeros(num_actions, np.bool_),
        solved=np.zeros(num_actions, np.bool_),
        counts=np.zeros(3, np.int64),
    )


def has_rules(domain: Domain) -> bool:
    """Tells whether a domain offers compiled rules, and observations that a table can be looked up with."""
    if not isinstance(domain, Compilable) or not _stands_for(domain, "compiled_rules", "successors", "observe"):
        return False
    return isinstance(domain.observation, Categories) and math.prod(domain.observation.shape) == 1


def find_table(values: Values, domain: Domain) -> NDArray[np.float32] | None:
    """Returns the table [R, E] in which `values` look up the domain's categories, read-only; None if they have none."""
    table = values.table if isinstance(values, TableValues) else None
    if not isinstance(table, np.ndarray) or not _stands_for(values, "table", "evaluate"):
        return None
    assert isinstance(domain.observation, Categories)
    is_fitting = table.dtype == np.float32 and table.shape == (domain.observation.num_categories, values.num_members)
    if not is_fitting or not table.flags.c_contiguous:
        return None
    window = table.view()
    window.flags.writeable = False
    return window


def _stands_for(owner: object, fast: str, *slow: str) -> bool:
    """Tells whether `fast` still says what the methods `slow` do: a subclass may have replaced just those."""
    for names in (getattr(owner, "__dict__", {}), *map(vars, type(owner).__mro__)):
        if fast in names:
            return True
        if any(name in names for name in slow):
            return False
    return False


def explain(status: int, num_categories: int) -> BathysphereError:
    """Returns the error that compiled code came back with."""
    if status == NOT_FINITE:
        return not_finite("The table of values holds numbers that are")
    return BathysphereError(
        f"category in the domain's compiled_rules returned a number outside 0 to {num_categories - 1}; expected the "
        "category that observe returns. bathysphere.testing.check_domain compares the two."
    )


@inlined
def ask(arena, compiled, b, state, successors):
    """Computes the children of a state by the rules. Mutates: compiled."""
    for w in range(arena.words.shape[2]):
        compiled.state_words[w] = arena.words[b, state, w]
    answer = compiled.children, compiled.rewards, compiled.terminal, compiled.solved
    successors(compiled.numbers, compiled.cells, compiled.state, *answer)


@inlined
def look_up(arena, compiled, table, b, state, category):
    """Gives a new state its row of the table as its first visit. Mutates: sums, count.

    Returns:
      DONE, or what is wrong with the row.
    """
    words, sums = arena.words, arena.sums
    for w in range(words.shape[2]):
        compiled.state_words[w] = words[b, state, w]
    row = category(compiled.numbers, compiled.cells, compiled.state)
    if row < 0 or row >= table.shape[0]:
        status = NO_SUCH_CATEGORY
    else:
        arena.stats[b, state]["count"] = 1
        is_finite = True
        for i in range(table.shape[1]):
            value = table[row, i]
            sums[b, state, i] = value
            is_finite &= np.isfinite(value)
        status = DONE if is_finite else NOT_FINITE
    return status


@inlined
def expand(arena, transpositions, compiled, table, b, state, successors, category):
    """Enters the children of episode b's leaf into the graph, evaluates the new ones, and hangs them all.

    Mutates: graph and tree; compiled's room and counts.

    Returns:
      DONE, or what is wrong.
    """
    episodes = arena.episodes
    ask(arena, compiled, b, state, successors)
    episodes[b]["num_model_calls"] += 1
    num_new = 0
    status = DONE
    for a in range(arena.edges.shape[2]):
        row, reward = compiled.child_words[a], compiled.rewards[a]
        terminal, solved = compiled.terminal[a], compiled.solved[a]
        child, is_new = insert_child(arena, transpositions, b, state, a, row, reward, terminal, solved)
        if is_new:
            status = max(status, look_up(arena, compiled, table, b, child, category))
            num_new += 1
    hang_children(arena.stats, arena.edges, arena.nodes, episodes, b, np.int64(episodes[b]["leaf"]))
    compiled.counts[0] += 1
    compiled.counts[1] += num_new
    compiled.counts[2] += num_new > 0
    return status


@kernel
def play_on(arena, scratch, rules, addresses, compiled, table, active, num_passes, steps_left, actions, outcomes):
    """Lets every active episode play on by itself, one after the other.

    Where `steps_left` [B] is positive, an episode makes as many steps of `num_passes` passes, or fewer if it ends.
    Where it is negative, an episode is brought to `num_passes` passes of the step it has begun, and does not make it.
    Mutates: arena; steps_left, down to 0 unless the episode ends; actions and outcomes [B]; compiled.

    Returns:
      DONE, or why not; after NO_ROOM it can be called again with a larger arena.
    """
    separable, joint, bonus = separable_at(addresses.separable), joint_at(addresses.joint), bonus_at(addresses.bonus)
    successors, category = successors_at(compiled.successors), category_at(compiled.category)
    room_per_step = num_passes * arena.edges.shape[2] + 1
    for b in range(active.shape[0]):
        entry = arena.episodes[b]
        while active[b] and steps_left[b] != 0 and outcomes[b] == RUNNING:
            is_stepping = steps_left[b] > 0
            if is_stepping:
                if (
                    entry["num_states"] + room_per_step > arena.stats.shape[1]
                    or entry["num_nodes"] + room_per_step > arena.nodes.shape[1]
                ):
                    return NO_ROOM
                begin_step(arena, b)
            while entry["passes"] < num_passes:
                state = select(arena, scratch, rules, separable, joint, bonus, b)
                if state >= 0:
                    status = expand(arena, rules.transpositions, compiled, table, b, state, successors, category)
                    if status != DONE:
                        return status
                back_up(arena, scratch, rules, b)
                entry["passes"] += 1
            if not is_stepping:
                break
            actions[b] = choose_one(arena, scratch, rules, addresses, b)
            outcomes[b] = make_step(arena, b, actions[b])
            steps_left[b] -= 1
    return DONE
