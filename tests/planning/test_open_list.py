"""The open list against a sorted list, whatever is put in, taken out and moved up, in two searches at once."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bathysphere.planning.best_first.invariants import check_open_list
from bathysphere.planning.best_first.open_list import move_up, pop, push
from bathysphere.planning.best_first.store import StoreSizes, allocate

pytestmark = pytest.mark.kernels

ORDERS = st.one_of(
    st.tuples(st.just("push"), st.integers(0, 1), st.integers(-3, 6), st.integers(0, 3)),  # search, priority, depth
    st.tuples(st.just("pop"), st.integers(0, 1)),
    st.tuples(st.just("lower"), st.integers(0, 1), st.integers(0, 30), st.integers(1, 5), st.integers(0, 3)),
)


class Pair:
    """Two open lists in one store, and the sorted lists that they should be."""

    def __init__(self):
        self.store = allocate(StoreSizes(2, state_size=1, num_actions=1, num_members=1, has_policy=False), 128)
        self.sorted = [[], []]  # of (priority, -depth, birth, record)
        self.num_used = 0

    def push(self, b, priority, depth):
        if self.num_used < 128:
            record = self.num_used
            self.num_used += 1
            self.set(record, priority, depth)
            push(self.store.records, self.store.searches, b, record)
            self.sorted[b].append((priority, -depth, 127 - record, record))

    def pop(self, b):
        if self.sorted[b]:
            first = min(self.sorted[b])
            self.sorted[b].remove(first)
            assert pop(self.store.records, self.store.searches, b) == first[-1]

    def lower(self, b, which, by, depth):
        if self.sorted[b]:
            entry = self.sorted[b].pop(which % len(self.sorted[b]))
            self.set(entry[-1], entry[0] - by, depth)
            move_up(self.store.records, self.store.searches, b, entry[-1])
            self.sorted[b].append((entry[0] - by, -depth, *entry[2:]))

    def set(self, record, priority, depth):
        entry = self.store.records[record]
        entry["priority"], entry["depth"], entry["birth"] = priority, depth, 127 - record

    def check(self):
        for b, entries in enumerate(self.sorted):
            check_open_list(self.store, int(self.store.searches["top"][b]), {entry[-1] for entry in entries})
        is_open = {entry[-1] for entries in self.sorted for entry in entries}
        assert set(np.flatnonzero(self.store.records["is_open"]).tolist()) == is_open


@settings(max_examples=60 if numba.config.DISABLE_JIT else 300)
@given(st.lists(ORDERS, max_size=80))
def test_it_is_a_sorted_list(orders):
    pair = Pair()
    for name, *args in orders:
        getattr(pair, name)(*args)
        pair.check()
    for b in (0, 1):
        while pair.sorted[b]:
            pair.pop(b)
        assert pair.store.searches["top"][b] == -1
    pair.check()


def test_equal_priorities_come_out_deepest_then_oldest():
    pair = Pair()
    for depth in (1, 3, 2, 3, 1):
        pair.push(0, 5, depth)
    births = pair.store.records["birth"]
    popped = [int(pop(pair.store.records, pair.store.searches, 0)) for _ in range(5)]
    assert [int(pair.store.records["depth"][record]) for record in popped] == [3, 3, 2, 1, 1]
    assert births[popped[0]] < births[popped[1]]
    assert births[popped[3]] < births[popped[4]]
