"""The open list of a search: a pairing heap through the records, lowest priority on top.

A record's `heap_child` is its first child, `heap_next` the sibling after it, `heap_previous` the sibling before it or,
for a first child, its parent. Of equal priorities the deeper state comes first, then the older one; so the order does
not depend on where in the store records lie.
"""

from __future__ import annotations

from bathysphere.planning.graph.compiled import inlined, kernel


@inlined
def _is_before(records, one, other):
    """Tells whether a record comes before another."""
    a, b = records[one], records[other]
    if a["priority"] != b["priority"]:
        return a["priority"] < b["priority"]
    if a["depth"] != b["depth"]:
        return a["depth"] > b["depth"]
    return a["birth"] < b["birth"]


@kernel
def _meld(records, one, other):
    """Joins two heaps, either of which may be empty (-1); returns the top. Mutates: links of the tops."""
    if one < 0:
        return other
    if other < 0:
        return one
    if _is_before(records, other, one):
        one, other = other, one
    first = records[one]["heap_child"]
    if first >= 0:
        records[first]["heap_previous"] = other
    records[other]["heap_next"] = first
    records[other]["heap_previous"] = one
    records[one]["heap_child"] = other
    return one


@kernel
def push(records, searches, b, record):
    """Puts a record, which is not there, into the open list of search b. Mutates: links, is_open, top."""
    entry = records[record]
    entry["heap_child"] = -1
    entry["heap_next"] = -1
    entry["heap_previous"] = -1
    entry["is_open"] = True
    searches[b]["top"] = _meld(records, searches[b]["top"], record)


@kernel
def pop(records, searches, b):
    """Takes the first record, which must exist, out of the open list of search b. Mutates: links, is_open, top."""
    top = searches[b]["top"]
    node = records[top]["heap_child"]
    pairs = -1  # joined pairs of children, the last one first, linked by heap_next
    while node >= 0:
        first, second = node, records[node]["heap_next"]
        node = -1
        if second >= 0:
            node = records[second]["heap_next"]
            records[second]["heap_next"] = -1
        records[first]["heap_next"] = -1
        pair = _meld(records, first, second)
        records[pair]["heap_next"] = pairs
        pairs = pair
    rest = -1
    while pairs >= 0:
        following = records[pairs]["heap_next"]
        records[pairs]["heap_next"] = -1
        rest = _meld(records, rest, pairs)
        pairs = following
    if rest >= 0:
        records[rest]["heap_previous"] = -1
    searches[b]["top"] = rest
    records[top]["is_open"] = False
    return top


@kernel
def move_up(records, searches, b, record):
    """Restores the order after the priority of an open record has fallen. Mutates: links, top."""
    if record == searches[b]["top"]:
        return
    before, after = records[record]["heap_previous"], records[record]["heap_next"]
    if records[before]["heap_child"] == record:
        records[before]["heap_child"] = after
    else:
        records[before]["heap_next"] = after
    if after >= 0:
        records[after]["heap_previous"] = before
    records[record]["heap_next"] = -1
    records[record]["heap_previous"] = -1
    searches[b]["top"] = _meld(records, searches[b]["top"], record)
