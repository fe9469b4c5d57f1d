"""The arrays a search lives in, and their invariants.

One `Arena` holds `B` episodes. Each episode has a *graph* of states (one entry per distinct state, with its
statistics) and a *tree* of nodes over it (several nodes may point at one state; each is expanded on its own, or, with
`merge_nodes`, takes the children of the one expanded first).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.errors import BathysphereError
from bathysphere.planning.graph.kernels import rebuild_lookup

Array = NDArray[Any]

NO_CHILD = -1
FIRST_STATES = 256  # capacity a fresh arena starts with, per episode


STATE = np.dtype(
    [
        ("score", np.float64),  # cached separable risk score ...
        ("score_count", np.int32),  # ... valid while this equals `count`
        ("count", np.int32),  # how many values are in the sums; 0 only between insert and backup of one pass
        ("root_visits", np.int32),  # steps that started here, waits aside
        ("path_visits", np.int32),  # how often the state is on the path being selected; 0 between passes
        ("node", np.int32),  # the first child of the node expanded last for it; NO_CHILD until one is
        ("terminal", np.bool_),
        ("solved", np.bool_),
        ("unknown", np.bool_),  # no state, but an outcome that the model does not know: an end with a value of its own
    ],
    align=True,
)
EDGE = np.dtype(
    [
        ("reward", np.float64),
        ("child", np.int32),  # the state the action leads to; NO_CHILD until the state is first expanded
    ],
    align=True,
)
LOOKUP = np.dtype([("state", np.int32), ("stamp", np.int32)])  # in use iff stamp equals the episode's
NODE = np.dtype(
    [
        ("state", np.int32),
        ("parent", np.int32),  # NO_CHILD for a node that began as a root; merged, right only on the path of a pass
        ("child", np.int32),  # the first of A children, which lie side by side; NO_CHILD until expanded
    ]
)
EPISODE = np.dtype(
    [
        ("rng", np.uint64),  # splitmix64 state
        ("stamp", np.int32),  # grows by one per episode, so the lookup is never cleared
        ("num_states", np.int32),
        ("num_nodes", np.int32),
        ("num_expansions", np.int32),  # how often a node got children of its own
        ("num_model_calls", np.int32),  # states whose children the model was asked for
        ("root", np.int32),  # node
        ("leaf", np.int32),  # node where the last pass stopped ...
        ("leaf_kind", np.int32),  # ... and why: see steps.py
        ("step", np.int32),  # steps taken ...
        ("num_waits", np.int32),  # ... and how many of them were spent on thinking
        ("passes", np.int32),  # passes made for the step under way
        ("is_waiting", np.bool_),  # a pass has reached a leaf and waits for the model; never between steps
    ],
    align=True,
)
MOMENT = np.dtype([("reward", np.float64), ("state", np.int32), ("action", np.int32)])


class Arena(NamedTuple):
    """Letters: B episodes, N state capacity, M node capacity, H lookup size, W words per state, L drawn members.

    What is read together lies together, hence the records. Entries at or beyond an episode's `num_states` or
    `num_nodes` are garbage. The lookup uses open addressing with linear probing and is at most half full.
    """

    stats: Array  # STATE [B, N]
    edges: Array  # EDGE [B, N, A]
    words: Array  # uint64 [B, N, W], the state's bytes, zero-padded to whole words
    sums: Array  # float64 [B, N, E], everything backed up to the state, the network's value included
    lookup: Array  # LOOKUP [B, H]
    nodes: Array  # NODE [B, M]
    episodes: Array  # EPISODE [B]
    members: Array  # uint32 [B, L], the members this episode ranks actions with, increasing
    history: Array  # MOMENT [B, T], the steps so far
    priors: Array  # float32 [B, N, A], the policy at each state; 0 at ends and in empty room. [B, N, 0] if not in use


STATE_FIELDS = ("stats", "edges", "words", "sums", "priors")
EPISODE_FIELDS = ("episodes", "members", "history")


class Sizes(NamedTuple):
    """What fixes the shapes of an arena, apart from how full it is."""

    batch: int  # B
    state_size: int  # S bytes
    num_actions: int  # A
    num_members: int  # E
    num_subsampled: int  # L
    max_steps: int  # T
    num_priors: int = 0  # A if states have priors, else 0

    @property
    def words(self) -> int:
        """Whole 64-bit words a state fills."""
        return -(-self.state_size // 8)


def _shapes(sizes: Sizes, states: int, nodes: int) -> dict[str, tuple[tuple[int, ...], Any]]:
    batch = sizes.batch
    return {
        "stats": ((batch, states), STATE),
        "edges": ((batch, states, sizes.num_actions), EDGE),
        "words": ((batch, states, sizes.words), np.uint64),
        "sums": ((batch, states, sizes.num_members), np.float64),
        "lookup": ((batch, 2 * states), LOOKUP),
        "nodes": ((batch, nodes), NODE),
        "episodes": ((batch,), EPISODE),
        "members": ((batch, sizes.num_subsampled), np.uint32),
        "history": ((batch, sizes.max_steps), MOMENT),
        "priors": ((batch, states, sizes.num_priors), np.float32),
    }


def arena_bytes(sizes: Sizes, states: int, nodes: int) -> int:
    """Returns the exact size in bytes of an arena with room for `states` and `nodes` per episode."""
    shapes = _shapes(sizes, states, nodes).values()
    return sum(math.prod(map(int, shape)) * np.dtype(dtype).itemsize for shape, dtype in shapes)


def allocate(sizes: Sizes, states: int = FIRST_STATES, nodes: int = 4 * FIRST_STATES, *, memory_limit: int) -> Arena:
    """Returns an empty arena; `states` must be a power of two. Refuses to take more than `memory_limit` bytes."""
    total = arena_bytes(sizes, states, nodes)
    if total > memory_limit:
        raise BathysphereError(
            f"The search graphs of {sizes.batch} episodes need {total / 2**20:,.0f} MB, more than "
            f"search.memory_limit_mb={memory_limit // 2**20}. Lower the number of episodes played at once (batch), "
            "search.passes or search.max_steps, or raise search.memory_limit_mb."
        )
    return Arena(**{name: np.zeros(shape, dtype) for name, (shape, dtype) in _shapes(sizes, states, nodes).items()})


def ensure_room(arena: Arena, sizes: Sizes, num_passes: int, memory_limit: int) -> Arena:
    """Returns an arena in which one more step fits, growing it if need be.

    A pass adds at most one state and one node per action to an episode, and the step itself one more.
    """
    need = num_passes * sizes.num_actions + 1
    states, nodes = arena.stats.shape[1], arena.nodes.shape[1]
    more_states = _room(states, int(arena.episodes["num_states"].max()) + need)
    more_nodes = _room(nodes, int(arena.episodes["num_nodes"].max()) + need)
    if (more_states, more_nodes) == (states, nodes):
        return arena
    grown = allocate(sizes, more_states, more_nodes, memory_limit=memory_limit)
    for name in STATE_FIELDS:
        getattr(grown, name)[:, :states] = getattr(arena, name)
    grown.nodes[:, :nodes] = arena.nodes
    for name in EPISODE_FIELDS:
        getattr(grown, name)[:] = getattr(arena, name)
    rebuild_lookup(grown)
    return grown


def _room(capacity: int, need: int) -> int:
    """Returns `capacity`, doubled until `need` fits."""
    while capacity < need:
        capacity *= 2
    return capacity


def pack(arena: Arena) -> dict[str, Array]:
    """Returns the arena's contents without its empty room, as plain arrays. Inverse of `unpack`."""
    used_states = np.arange(arena.stats.shape[1]) < arena.episodes["num_states"][:, None]
    used_nodes = np.arange(arena.nodes.shape[1]) < arena.episodes["num_nodes"][:, None]
    packed = {name: getattr(arena, name)[used_states] for name in STATE_FIELDS}
    packed["nodes"] = arena.nodes[used_nodes]
    packed |= {name: getattr(arena, name).copy() for name in EPISODE_FIELDS}
    if arena.priors.shape[2] == 0:
        del packed["priors"]  # as in searches saved before there were priors
    plain: dict[str, Array] = {}
    for name, array in packed.items():
        if array.dtype.names is None:
            plain[name] = array
        else:
            plain |= {f"{name}.{field}": np.ascontiguousarray(array[field]) for field in array.dtype.names}
    return plain


def unpack(plain: Mapping[str, Array], sizes: Sizes, *, memory_limit: int) -> Arena:
    """Returns the arena that `pack` described."""
    num_states, num_nodes = plain["episodes.num_states"], plain["episodes.num_nodes"]
    found = (
        len(num_states),
        plain["sums"].shape[1],
        plain["members"].shape[1],
        plain["history.state"].shape[1],
        plain["priors"].shape[1] if "priors" in plain else 0,
    )
    expected = (sizes.batch, sizes.num_members, sizes.num_subsampled, sizes.max_steps, sizes.num_priors)
    if found != expected or plain["words"].shape[1] != sizes.words:
        raise BathysphereError(
            f"The saved search has batch, members, members drawn, step limit and priors {found}; this one has "
            f"{expected}. Load it with the settings it was saved with."
        )
    _check_lengths(plain, sizes, num_states, num_nodes)
    states = _room(FIRST_STATES, int(num_states.max()))
    nodes = _room(4 * FIRST_STATES, int(num_nodes.max()))
    arena = allocate(sizes, states, nodes, memory_limit=memory_limit)
    used = dict.fromkeys(STATE_FIELDS, np.arange(states) < num_states[:, None])
    used["nodes"] = np.arange(nodes) < num_nodes[:, None]
    for name, array in plain.items():
        field_of, _, field = name.partition(".")
        target = getattr(arena, field_of)
        (target[field] if field else target)[used.get(field_of, ...)] = array
    rebuild_lookup(arena)
    return arena


def _check_lengths(plain: Mapping[str, Array], sizes: Sizes, num_states: Array, num_nodes: Array) -> None:
    """Refuses arrays that are not as long as they say: kernels fill the lookup before anything else is checked."""
    is_counted = num_states.shape == num_nodes.shape == (sizes.batch,) and min(num_states.min(), num_nodes.min()) >= 0
    lengths = dict.fromkeys(EPISODE_FIELDS, sizes.batch)
    if is_counted:
        lengths |= dict.fromkeys(STATE_FIELDS, int(num_states.sum(dtype=np.int64)))
        lengths["nodes"] = int(num_nodes.sum(dtype=np.int64))
    wrong = [name for name, array in plain.items() if len(array) != lengths.get(name.partition(".")[0])]
    # A stamp of 0 is that of empty entries of the lookup.
    is_stamped = (plain["episodes.stamp"][num_states > 0] > 0).all() if is_counted and not wrong else False
    if not is_stamped:
        raise BathysphereError(
            f"The saved search is impossible: {wrong[0] if wrong else 'episodes'} does not fit the number of its "
            "states and nodes."
        )
