"""Planning that never leaves compiled code: leaves are expanded and evaluated where they are found.

Possible when the domain offers compiled rules, the model is the domain itself, and the values are a table. An episode
then makes passes and moves in a row, while its graph is in the processor's cache, and Python is not asked once. Every
number is the same as by way of the model's and the values' own methods.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from bathysphere.domains.base import Categories, Compilable, Domain
from bathysphere.errors import BathysphereError
from bathysphere.planning.graph.arena import Sizes
from bathysphere.planning.graph.compiled import inlined, kernel
from bathysphere.planning.graph.function_pointers import address_of, caller
from bathysphere.planning.graph.risk import bonus_at, joint_at, separable_at
from bathysphere.planning.graph.scoring import choose_one
from bathysphere.planning.graph.steps import (
    RUNNING,
    back_up,
    begin_move,
    find_or_create,
    hang_children,
    make_move,
    select,
    set_end,
)

_NUMBERS = types.Array(types.float64, 1, "C")
_BYTES = types.Array(types.uint8, 1, "C")
_FLAGS = types.Array(types.boolean, 1, "C")
# Between states there may be padding up to whole words.
_SUCCESSORS = types.void(_NUMBERS, _BYTES, _BYTES, types.Array(types.uint8, 2, "A"), _NUMBERS, _FLAGS, _FLAGS)
_CATEGORY = types.int64(_NUMBERS, _BYTES, _BYTES)
successors_at, category_at = caller(_SUCCESSORS), caller(_CATEGORY)

# Why compiled code came back.
DONE = 0
NO_ROOM = 1  # an episode's next move may not fit into the arena
NO_SUCH_CATEGORY = 2
NOT_FINITE = 3


class World(NamedTuple):
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


def find_world(domain: Domain, sizes: Sizes) -> World | None:
    """Returns the domain's compiled rules, or None if it offers none for values that are a table."""
    if not isinstance(domain, Compilable) or not _has_rules(domain):
        return None
    rules = domain.compiled_rules()
    num_actions, num_words = sizes.num_actions, sizes.words
    state_words = np.zeros(num_words, np.uint64)
    child_words = np.zeros((num_actions, num_words), np.uint64)
    return World(
        successors=address_of(rules.successors, _SUCCESSORS),
        category=address_of(rules.category, _CATEGORY),
        numbers=np.ascontiguousarray(rules.numbers, np.float64),
        cells=np.ascontiguousarray(rules.cells, np.uint8),
        state_words=state_words,
        state=state_words.view(np.uint8)[: sizes.state_size],
        child_words=child_words,
        children=child_words.view(np.uint8)[:, : sizes.state_size],
        rewards=np.zeros(num_actions),
        terminal=np.zeros(num_actions, np.bool_),
        solved=np.zeros(num_actions, np.bool_),
        counts=np.zeros(3, np.int64),
    )


def is_possible(domain: Domain, values: Any) -> bool:
    """Tells whether a search with these values, in which the domain is its own model, never leaves compiled code."""
    return _has_rules(domain) and find_table(values, domain, values.num_members) is not None


def _has_rules(domain: Domain) -> bool:
    if not isinstance(domain, Compilable) or not _stands_for(domain, "compiled_rules", "successors", "observe"):
        return False
    return isinstance(domain.observation, Categories) and math.prod(domain.observation.shape) == 1


def find_table(values: Any, domain: Domain, num_members: int) -> NDArray[np.float32] | None:
    """Returns the table [R, E] in which `values` look up the domain's categories, read-only; None if they have none."""
    table = getattr(values, "table", None)
    if not isinstance(table, np.ndarray) or not _stands_for(values, "table", "evaluate"):
        return None
    assert isinstance(domain.observation, Categories)
    is_fitting = table.dtype == np.float32 and table.shape == (domain.observation.num_categories, num_members)
    if not is_fitting or not table.flags.c_contiguous:
        return None
    window = table.view()
    window.flags.writeable = False  # kernels are compiled for exactly this type
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
        return BathysphereError(
            "The table of values holds numbers that are not finite. If this came with training, lower the learning "
            "rate."
        )
    return BathysphereError(
        f"category in the domain's compiled_rules returned a number outside 0 to {num_categories - 1}; expected the "
        "category that observe returns. bathysphere.testing.check_domain compares the two."
    )


@inlined
def ask(arena, world, b, state, successors):
    """Has the rules tell the children of a state. Mutates: world."""
    for w in range(arena.words.shape[2]):
        world.state_words[w] = arena.words[b, state, w]
    answer = world.children, world.rewards, world.terminal, world.solved
    successors(world.numbers, world.cells, world.state, *answer)


@inlined
def look_up(arena, world, table, b, state, category):
    """Gives a new state its row of the table as its first visit. Mutates: sums, count.

    Returns:
      DONE, or what is wrong with the row.
    """
    words, sums = arena.words, arena.sums
    for w in range(words.shape[2]):
        world.state_words[w] = words[b, state, w]
    row = category(world.numbers, world.cells, world.state)
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
def expand(arena, transpositions, world, table, b, state, successors, category):
    """Enters the children of episode b's leaf into the graph, evaluates the new ones, and hangs them all.

    Mutates: graph and tree; world's room and counts.

    Returns:
      DONE, or what is wrong.
    """
    stats, edges, words, sums = arena.stats, arena.edges, arena.words, arena.sums
    episodes, rewards, terminal, solved = arena.episodes, world.rewards, world.terminal, world.solved
    ask(arena, world, b, state, successors)
    episodes[b]["num_model_calls"] += 1
    num_new = 0
    status = DONE
    for a in range(edges.shape[2]):
        row = world.child_words[a]
        child, created = find_or_create(stats, edges, words, arena.table, episodes, b, row, transpositions)
        edges[b, state, a]["child"] = child
        edges[b, state, a]["reward"] = rewards[a]
        if created:
            set_end(stats, sums, b, child, terminal[a], solved[a])
            if not terminal[a]:
                status = max(status, look_up(arena, world, table, b, child, category))
                num_new += 1
    hang_children(stats, edges, arena.nodes, episodes, b, np.int64(episodes[b]["leaf"]))
    world.counts[0] += 1
    world.counts[1] += num_new
    world.counts[2] += num_new > 0
    return status


@kernel
def play(arena, scratch, rules, addresses, world, table, active, num_passes, moves_left, actions, outcomes):
    """Lets every active episode play on by itself, one after the other.

    Where `moves_left` [B] is positive, an episode makes as many moves of `num_passes` passes, or fewer if it ends.
    Where it is negative, an episode is brought to `num_passes` passes of the move it has begun, and does not make it.
    Mutates: arena; moves_left, down to 0 unless the episode ends; actions and outcomes [B]; world.

    Returns:
      DONE, or why not; after NO_ROOM it can be called again with a larger arena.
    """
    separable, joint, bonus = separable_at(addresses.separable), joint_at(addresses.joint), bonus_at(addresses.bonus)
    successors, category = successors_at(world.successors), category_at(world.category)
    room_per_move = num_passes * arena.edges.shape[2] + 1
    for b in range(active.shape[0]):
        entry = arena.episodes[b]
        while active[b] and moves_left[b] != 0 and outcomes[b] == RUNNING:
            is_moving = moves_left[b] > 0
            if is_moving:
                if (
                    entry["num_states"] + room_per_move > arena.stats.shape[1]
                    or entry["num_nodes"] + room_per_move > arena.nodes.shape[1]
                ):
                    return NO_ROOM
                begin_move(arena, b)
            while entry["passes"] < num_passes:
                state = select(arena, scratch, rules, separable, joint, bonus, b)
                if state >= 0:
                    status = expand(arena, rules.transpositions, world, table, b, state, successors, category)
                    if status != DONE:
                        return status
                back_up(arena, scratch, rules, b)
                entry["passes"] += 1
            if not is_moving:
                break
            actions[b] = choose_one(arena, scratch, rules, addresses, b)
            outcomes[b] = make_move(arena, b, actions[b], -1)
            moves_left[b] -= 1
    return DONE
