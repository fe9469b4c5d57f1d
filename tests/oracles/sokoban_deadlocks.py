"""Lost positions of Sokoban, told slowly and plainly: sets of (row, column), one position at a time."""

from __future__ import annotations

Cell = tuple[int, int]
AXES = (((-1, 0), (1, 0)), ((0, -1), (0, 1)))


class Position:
    """Walls, targets and boxes of a board of cell codes. What is outside the board, or no known code, is wall."""

    def __init__(self, rows: list[list[int]]) -> None:
        codes = {(y, x): code for y, row in enumerate(rows) for x, code in enumerate(row)}
        self.floor = {cell for cell, code in codes.items() if 1 <= code <= 6}
        self.targets = {cell for cell, code in codes.items() if code in (2, 3, 6)}
        self.boxes = {cell for cell, code in codes.items() if code in (3, 4)}

    def reachable_targets(self, cell: Cell) -> set[Cell]:
        """Returns where one can push a box that is alone on the board, if one may stand wherever one likes."""
        seen, new = {cell}, [cell]
        while new:
            y, x = new.pop()
            for axis in AXES:
                (y1, x1), (y2, x2) = ((y + dy, x + dx) for dy, dx in axis)
                if {(y1, x1), (y2, x2)} <= self.floor:
                    new += [there for there in ((y1, x1), (y2, x2)) if there not in seen]
                    seen |= {(y1, x1), (y2, x2)}
        return seen & self.targets

    def is_dead(self, cell: Cell) -> bool:
        return not self.reachable_targets(cell)

    def is_frozen(self, box: Cell, frozen_before: frozenset[Cell] = frozenset()) -> bool:
        """Tells whether a box will never move, if those of `frozen_before`, whose fate hangs on it, do not."""
        assumed = frozen_before | {box}

        def is_blocked(axis: tuple[Cell, Cell]) -> bool:
            sides = [(box[0] + dy, box[1] + dx) for dy, dx in axis]
            if any(side not in self.floor or side in assumed for side in sides):
                return True
            if all(self.is_dead(side) for side in sides):
                return True
            return any(side in self.boxes and self.is_frozen(side, assumed) for side in sides)

        return all(is_blocked(axis) for axis in AXES)


def find_homes(choices: list[set[Cell]]) -> bool:
    """Tells whether each box can have a target for itself, one of its choices."""
    if not choices:
        return True
    return any(find_homes([others - {target} for others in choices[1:]]) for target in choices[0])


def hopeless(rows: list[list[int]]) -> bool:
    """Tells whether a position, as rows of cell codes, is lost by one of the rules."""
    position = Position(rows)
    if position.boxes <= position.targets:
        return False
    frozen = {box for box in position.boxes if position.is_frozen(box)}
    if not frozen <= position.targets:
        return True
    return not find_homes([position.reachable_targets(box) for box in position.boxes])
