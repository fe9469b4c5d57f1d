"""What must hold of best-first searches between rounds, for tests and for searches that come from a file.

Kernels have no bounds checks, so nothing that was loaded reaches them unchecked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bathysphere.errors import BathysphereError
from bathysphere.planning.best_first.store import ENDED_BY, NONE, Store, chain_of

Promise = tuple[Any, str]  # whether it is kept, and what is wrong if it is not
_LINKS = ("parent", "chain", "heap_child", "heap_next", "heap_previous")
_ENDS = ("top", "chain", "start", "best", "solution")


def check_store(store: Store) -> None:
    """Refuses a store that no searches can have led to.

    Raises:
      BathysphereError: names the first promise that is not kept.
    """
    check_links(store)
    _refuse(_lookup(store))
    for slot in range(len(store.searches)):
        _refuse(_search(store, slot))


def check_links(store: Store) -> None:
    """The part of `check_store` that needs no lookup, and that everything else relies on: all indices are in range."""
    _refuse(_ranges(store))


def check_open_list(store: Store, top: int, is_open: set[int]) -> None:
    """The part of `check_store` about one open list: it holds exactly the records `is_open`, none before its parent."""
    _refuse(_heap(store, top, is_open))


def _refuse(promises: Iterator[Promise]) -> None:
    for is_kept, complaint in promises:
        if not is_kept:
            raise BathysphereError(f"The saved searches are impossible: {complaint}.")


def _ranges(store: Store) -> Iterator[Promise]:
    pool, num_slots, num_actions = store.pool[0], len(store.searches), store.child.shape[1]
    used = int(pool["num_used"])
    yield 0 <= used <= len(store.records), "there is no room for their records"
    records, searches = store.records[:used], store.searches
    for name in _LINKS:
        yield _within(records[name], used), "a link leads nowhere"
    yield _within(store.child[:used], used), "an edge leads nowhere"
    yield _within(records["slot"], num_slots), "a record belongs to no search"
    yield ((records["action"] >= NONE) & (records["action"] < num_actions)).all(), "a way has no action"
    for name in _ENDS:
        yield _within(searches[name], used), "a search begins or ends nowhere"
    yield ((searches["status"] >= 0) & (searches["status"] < len(ENDED_BY))).all(), "a search is in no state"
    counts = (searches[name] for name in ("num_states", "num_expansions", "num_model_calls"))
    yield all((count >= 0).all() for count in counts), "a count is negative"
    yield (searches["num_states"].sum(dtype=np.int64) <= used), "there are more states than records"
    yield _within(pool["free"], used), "a free record does not exist"
    live = records["slot"] != NONE
    yield (~live).sum() == pool["num_free"], "a free record was not counted"
    numbers = np.stack([records[name][live] for name in ("value", "returned", "power", "log_probability")])
    evaluated = records["is_evaluated"][live]
    yield np.isfinite(numbers[:, evaluated]).all(), "a value is not finite"
    opened = records["is_open"] & live
    yield not np.isnan(records["priority"][opened]).any(), "a priority is no number"
    yield (records["depth"][live] >= 0).all(), "a way has less than no steps"
    yield np.isfinite(store.members[:used][live]).all(), "a member's value is not finite"
    expanded = live & records["is_expanded"]
    yield np.isfinite(store.reward[:used][expanded]).all(), "a reward is not finite"
    yield not np.isnan(store.log_policy[:used][live]).any(), "a probability is no number"
    yield _free_chain(store, used), "the chain of free records is broken"


def _within(numbers: Any, length: int) -> bool:
    """Tells whether all are indices below `length`, or NONE."""
    return bool(np.all((numbers >= NONE) & (numbers < max(length, 0))))


def _free_chain(store: Store, used: int) -> bool:
    """Tells whether the chain of free records holds all of them, once."""
    record, links = int(store.pool["free"][0]), store.records["chain"]
    found = set[int]()
    while record != NONE and record not in found and store.records["slot"][record] == NONE:
        found.add(record)
        record = int(links[record])
    return record == NONE and len(found) == int(store.pool["num_free"][0])


def _lookup(store: Store) -> Iterator[Promise]:
    used = store.records[: store.pool[0]["num_used"]]
    entries = store.lookup[store.lookup != NONE]
    is_counted = len(entries) == store.pool[0]["num_entries"] <= len(store.lookup) // 2
    yield is_counted, "the lookup is too full, or miscounted"
    is_looked_up = (used["slot"] != NONE) & ~(used["terminal"] & used["is_evaluated"])
    yield set(np.flatnonzero(is_looked_up)) <= set(entries.tolist()), "a state cannot be looked up"


def _search(store: Store, slot: int) -> Iterator[Promise]:
    records, search = store.records, store.searches[slot]
    used = records[: store.pool[0]["num_used"]]
    chain = chain_of(store, slot)
    is_own = (used["slot"] == slot).sum() == len(chain) == len(set(chain.tolist()))
    yield is_own, "a chain is not a search's own"
    if not len(chain):
        yield search["chain"] == search["top"] == NONE, "a search without states has some"
        return
    mine = records[chain]
    yield mine["chain"][0] == NONE, "a chain goes on beyond its end"
    yield (mine["slot"] == slot).all(), "a chain leads into another search"
    yield (mine["birth"] == np.arange(len(chain))).all(), "births are not in order"
    states = store.words[chain[~(mine["terminal"] & mine["is_evaluated"])]]
    yield len(np.unique(states, axis=0)) == len(states), "two records hold one state"
    yield all(search[name] == NONE or search[name] in chain for name in _ENDS), "a search ends in another one"
    yield search["start"] != NONE, "a search has no start"
    yield (mine["is_evaluated"][mine["is_open"]]).all(), "a state is open without a value"
    children = store.child[chain]
    yield ((children != NONE) == mine["is_expanded"][:, None]).all(), "edges and flags disagree"
    yield np.isin(children[mine["is_expanded"]], chain).all(), "an edge leaves the search"
    parents, depths = mine["parent"], mine["depth"]
    yield (parents[chain == search["start"]] == NONE).all(), "a way leads to the start"
    reached = chain != search["start"]
    yield (parents[reached] != NONE).all(), "a state was reached from nowhere"
    yield np.isin(parents[reached], chain).all(), "a way begins in another search"
    made = mine["action"][reached]
    yield (made >= 0).all(), "a way has no action"
    yield (store.child[parents[reached], made] == chain[reached]).all(), "a way does not lead here"
    yield (depths[reached] > records["depth"][parents[reached]]).all(), "a way is longer than it says"
    yield from _heap(store, int(search["top"]), {int(record) for record in chain if records["is_open"][record]})


def _heap(store: Store, top: int, is_open: set[int]) -> Iterator[Promise]:
    """What `check_open_list` says."""
    records, todo = store.records, [] if top == NONE else [top]
    found = set(todo)
    yield found <= is_open, "the open list has something that is not open"
    while todo:
        node = todo.pop()
        child, before = int(records["heap_child"][node]), node
        while child != NONE:
            yield child not in found, "the open list has a loop"
            yield records["priority"][child] >= records["priority"][node], "the open list is out of order"
            yield records["heap_previous"][child] == before, "a link of the open list is one-way"
            found.add(child)
            todo.append(child)
            before, child = child, int(records["heap_next"][child])
    yield found == is_open, "open list and flags disagree"
