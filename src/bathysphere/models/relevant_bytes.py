"""Which bytes of a state matter: those without which steps that were remembered would contradict each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States

ENOUGH = 32  # places in which a byte has been seen to vary, before it may be said not to matter
TOLERANCE = 10  # of so many such places, one may have had different outcomes


def relevant_bytes(states: States, actions: NDArray[np.int64], kinds: NDArray[np.int64]) -> list[int]:
    """Returns numbers of bytes that suffice, in most places, to know what a step does; in order.

    A *place* is an action and values of these bytes. A byte matters unless of the places in which it varies at most one
    of `TOLERANCE` has had steps of different kinds. Of those that matter, the one is chosen that leaves the least
    disagreement within places (of equal ones the first), until no other one matters. Then those are left out again
    without which that is still so, first the one that leaves the fewest places (of equal ones the last). A byte that
    varies in fewer than `ENOUGH` of these places is not known not to matter, and is returned as well.

    Args:
      states: in which steps were made, uint8 [n, S].
      actions: of these steps, [n], from 0.
      kinds: what each did, [n]: numbers from 0, the same for the same.
    """
    varies = np.flatnonzero((states != states[:1]).any(axis=0)).tolist()
    chosen: list[int] = []
    places = np.unique(actions, return_inverse=True)[1]
    while True:
        others = [b for b in varies if b not in chosen]
        _, matter = _evidence(places, states, kinds, others)
        finer = {b: _split(places, states[:, b]) for b, does_matter in zip(others, matter, strict=True) if does_matter}
        if not finer:
            break
        best = min(finer, key=lambda b: (_disagreement(finer[b], kinds), b))
        chosen.append(best)
        places = finer[best]
    while True:
        coarser = {b: _places(actions, states, [c for c in chosen if c != b]) for b in chosen}
        spare = [
            b
            for b, at in coarser.items()
            if not any(_evidence(at, states, kinds, [c for c in varies if c == b or c not in chosen])[1])
        ]
        if not spare:
            break
        chosen.remove(min(spare, key=lambda b: (int(coarser[b].max()), -b)))
    others = [b for b in varies if b not in chosen]
    is_known, _ = _evidence(_places(actions, states, chosen), states, kinds, others)
    return sorted(chosen + [b for b, known in zip(others, is_known, strict=True) if not known])


def _split(places: NDArray[np.int64], column: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Returns numbers of places, [n], told apart by one more byte."""
    finer: NDArray[np.int64] = np.unique(places * 256 + column, return_inverse=True)[1]
    return finer


def _places(actions: NDArray[np.int64], states: States, chosen: list[int]) -> NDArray[np.int64]:
    places = np.unique(actions, return_inverse=True)[1]
    for b in chosen:
        places = _split(places, states[:, b])
    return places


def _disagreement(places: NDArray[np.int64], kinds: NDArray[np.int64]) -> int:
    """Returns how many steps are not of the commonest kind of their place."""
    number, counts = np.unique(places * (int(kinds.max()) + 1) + kinds, return_counts=True)
    commonest = np.zeros(int(places.max()) + 1, np.int64)
    np.maximum.at(commonest, number // (int(kinds.max()) + 1), counts)
    return len(kinds) - int(commonest.sum())


def _evidence(
    places: NDArray[np.int64], states: States, kinds: NDArray[np.int64], others: list[int]
) -> tuple[list[bool], list[bool]]:
    """Returns of each of the bytes `others` whether it varies often enough to say, and whether it matters if so."""
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]
    starts = np.flatnonzero(np.r_[True, sorted_places[1:] != sorted_places[:-1]])

    def varied(columns: NDArray[np.integer]) -> NDArray[np.bool_]:
        there = columns[order]
        different: NDArray[np.bool_] = np.minimum.reduceat(there, starts) != np.maximum.reduceat(there, starts)
        return different

    within = varied(states[:, others])  # bool [places, others]
    seen, against = within.sum(axis=0), (within & varied(kinds)[:, None]).sum(axis=0)
    return (seen >= ENOUGH).tolist(), (against * TOLERANCE > seen).tolist()
