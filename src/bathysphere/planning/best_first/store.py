"""The arrays of best-first searches, and their invariants.

All B searches share one store of records, one for each distinct state of each search, so that a search that needs a
million of them does not take room from the others. A search owns the records of its chain; when it ends they are free
for others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.planning.best_first.kernels import free_records, rebuild_lookup

Array = NDArray[Any]

NONE = -1  # no record
FIRST_RECORDS = 4096

# How a search stands.
RUNNING, SOLVED, EXHAUSTED, EXPANSIONS, STATES, SECONDS, MEMORY, UNKNOWN = range(8)
ENDED_BY = (
    "",
    "solution",
    "no state left",
    "max_expansions",
    "max_states",
    "max_seconds",
    "memory_limit_mb",
    "the unknown",
)

RECORD = np.dtype(
    [
        ("priority", np.float64),  # by the order; of no use before the state is evaluated
        ("value", np.float64),  # by the risk measure
        ("returned", np.float64),  # discounted rewards on the best way here that is known ...
        ("power", np.float64),  # ... the discount to the number of its steps ...
        ("log_probability", np.float64),  # ... and their logarithmic probability by the policy
        ("depth", np.int32),  # steps of that way
        ("parent", np.int32),  # record before this one on it; NONE for the start
        ("action", np.int32),  # that leads here from there
        ("slot", np.int32),  # the search it belongs to; NONE if it is free
        ("birth", np.int32),  # how many states the search had before
        ("chain", np.int32),  # the record of the same search made before, or the next free one; NONE at the end
        ("heap_child", np.int32),  # links of the open list, see open_list.py
        ("heap_next", np.int32),
        ("heap_previous", np.int32),
        ("is_open", np.bool_),  # in the open list
        ("is_expanded", np.bool_),  # its edges are known
        ("is_evaluated", np.bool_),  # its members' values are known
        ("terminal", np.bool_),  # with a value: what the model does not know
        ("solved", np.bool_),
    ],
    align=True,
)
SEARCH = np.dtype(
    [
        ("status", np.int32),
        ("top", np.int32),  # of the open list; NONE if it is empty
        ("chain", np.int32),  # the record made last
        ("start", np.int32),  # record
        ("best", np.int32),  # evaluated record with the highest value, the start aside; the older one of equals
        ("solution", np.int32),  # record of the first success found, or of the unknown that came first; or NONE
        ("num_states", np.int32),
        ("num_expansions", np.int32),
        ("num_model_calls", np.int32),
    ]
)
POOL = np.dtype(
    [
        ("free", np.int32),  # first free record of the chain of those that were used before
        ("num_free", np.int32),
        ("num_used", np.int32),  # records that were ever used; those beyond are free too
        ("num_entries", np.int32),  # of the lookup that are taken, if only by records that are free again
    ]
)


class Store(NamedTuple):
    """Letters: N records, A actions, W words per state, E members, H lookup size, B searches."""

    records: Array  # RECORD [N]
    words: Array  # uint64 [N, W], the state's bytes, zero-padded to whole words
    members: Array  # float32 [N, E], the members' values; 0 at an end
    child: Array  # int32 [N, A], records that actions lead to; NONE until expanded
    reward: Array  # float64 [N, A]
    log_policy: Array  # float32 [N, A], or [N, 0] if no policy is used
    lookup: Array  # int32 [H], a power of two, records or NONE; at most half of it taken
    searches: Array  # SEARCH [B]
    pool: Array  # POOL [1]


class StoreSizes(NamedTuple):
    """What fixes the shapes of a store, apart from how full it is."""

    batch: int  # B
    state_size: int  # S bytes
    num_actions: int  # A
    num_members: int  # E
    has_policy: bool

    @property
    def words(self) -> int:
        """Whole 64-bit words a state fills."""
        return -(-self.state_size // 8)

    @property
    def record_bytes(self) -> int:
        """Memory of one record, with its share of the lookup."""
        per_action = 4 + 8 + 4 * self.has_policy
        return RECORD.itemsize + 8 * self.words + 4 * self.num_members + per_action * self.num_actions + 2 * 4


def allocate(sizes: StoreSizes, num_records: int = FIRST_RECORDS) -> Store:
    """Returns an empty store; `num_records` must be a power of two."""
    num_policy = sizes.num_actions if sizes.has_policy else 0
    pool = np.zeros(1, POOL)
    pool["free"] = NONE
    searches = np.zeros(sizes.batch, SEARCH)
    for name in ("top", "chain", "start", "best", "solution"):
        searches[name] = NONE
    return Store(
        records=np.zeros(num_records, RECORD),
        words=np.zeros((num_records, sizes.words), np.uint64),
        members=np.zeros((num_records, sizes.num_members), np.float32),
        child=np.full((num_records, sizes.num_actions), NONE, np.int32),
        reward=np.zeros((num_records, sizes.num_actions)),
        log_policy=np.zeros((num_records, num_policy), np.float32),
        lookup=np.full(2 * num_records, NONE, np.int32),
        searches=searches,
        pool=pool,
    )


BY_RECORD = ("records", "words", "members", "child", "reward", "log_policy")


def grown(store: Store, sizes: StoreSizes, num_records: int) -> Store:
    """Returns a store with the same contents and room for `num_records`, a power of two."""
    larger = allocate(sizes, num_records)
    for name in BY_RECORD:
        getattr(larger, name)[: len(store.records)] = getattr(store, name)
    larger.searches[:], larger.pool[:] = store.searches, store.pool
    rebuild_lookup(larger)
    return larger


def num_free(store: Store) -> int:
    """Returns how many records can still be made."""
    pool = store.pool[0]
    return int(len(store.records) - pool["num_used"] + pool["num_free"])


def release(store: Store, slots: NDArray[np.intp]) -> None:
    """Frees the records of the searches in `slots`. Mutates: records, searches, pool."""
    free_records(store, slots)


def chain_of(store: Store, slot: int) -> NDArray[np.int64]:
    """Returns the records of a search in order of their making, int64 [n]."""
    search, records = store.searches[slot], store.records
    chain = np.empty(search["num_states"], np.int64)
    record = int(search["chain"])
    for place in range(len(chain) - 1, -1, -1):
        chain[place] = record
        record = int(records["chain"][record])
    return chain


def goal_of(store: Store, slot: int) -> int:
    """Returns the record that a search's plan leads to: its solution, the best state so far, or the start."""
    search = store.searches[slot]
    return next(int(search[name]) for name in ("solution", "best", "start") if search[name] != NONE)


def way_to(store: Store, record: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Returns the records on the best known way to `record`, itself left out, int64 [T], and the actions, int32 [T]."""
    way, actions = [], []
    while (parent := int(store.records["parent"][record])) != NONE:
        way.append(parent)
        actions.append(int(store.records["action"][record]))
        record = parent
    return np.array(way[::-1], np.int64), np.array(actions[::-1], np.int32)
