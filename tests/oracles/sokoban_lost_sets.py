"""Sets of boxes that are lost, told slowly and plainly: sets of (row, column), one step of the player at a time."""

from __future__ import annotations

from itertools import combinations

from tests.oracles.sokoban_deadlocks import Cell, Position

STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))
Found = set[tuple[frozenset[Cell], Cell]]


def solvable(position: Position, size: int) -> Found:
    """All (boxes, player) with `size` boxes alone on the board that can be solved: the player steps and pulls back."""
    found: Found = set()
    for boxes in map(frozenset, combinations(sorted(position.targets), size)):
        found |= {(boxes, player) for player in position.floor - boxes}
    new = list(found)
    while new:
        boxes, (y, x) = new.pop()
        for dy, dx in STEPS:
            before, box = (y - dy, x - dx), (y + dy, x + dx)
            if before not in position.floor or before in boxes:
                continue
            earlier = [(boxes, before)]
            if box in boxes:
                earlier.append((boxes - {box} | {(y, x)}, before))
            new += [state for state in earlier if state not in found]
            found.update(earlier)
    return found


def is_lost(position: Position, player: Cell | None, known: dict[int, Found]) -> bool:
    """Tells whether two or three of the boxes, but not all of them, are lost; `known` has what `solvable` says."""
    sizes = [size for size in known if size < len(position.boxes)]
    sets = ((size, frozenset(boxes)) for size in sizes for boxes in combinations(position.boxes, size))
    return player is not None and any((boxes, player) not in known[size] for size, boxes in sets)
