"""The search for shorter solutions done slowly and plainly: sets of cells, a heap, one position at a time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from tests.oracles.sokoban import WALKS, Board

Cell = tuple[int, int]
Boxes = frozenset[Cell]


def beside(cell: Cell, letter: str, steps: int = 1) -> Cell:
    return cell[0] + steps * WALKS[letter][0], cell[1] + steps * WALKS[letter][1]


def live_cells(board: Board, goal: Iterable[Cell]) -> set[Cell]:
    """The cells from which a lone box can be pushed to a cell of the goal, by a player who can be anywhere."""
    live, new = set(goal), list(goal)
    while new:
        cell = new.pop()
        for letter in WALKS:
            origin, player = beside(cell, letter), beside(cell, letter, 2)
            if origin not in board.walls | live and player not in board.walls:
                live.add(origin)
                new.append(origin)
    return live


def gather(
    board: Board, known: list[Boxes], goal: Iterable[Cell], room: int, other_box: int
) -> tuple[list[Boxes], bool]:
    """The known sets of boxes and `room` more that are near to them, in the order in which they are found.

    Moving a box by one cell leads 1 further, or `other_box` if another box was moved before. Also tells whether there
    are no more sets.
    """
    live = live_cells(board, goal)
    sets = list(dict.fromkeys(known))
    limit = len(sets) + room
    moved: list[Cell | None] = [None] * len(sets)
    waiting = [(0, False, number) for number in range(len(sets))]
    while waiting and len(sets) < limit:
        distance, _, number = heapq.heappop(waiting)
        boxes = sets[number]
        taken = board.walls | boxes
        for origin in sorted(boxes):
            is_other = moved[number] not in (None, origin)
            for letter in WALKS:
                cell = beside(origin, letter)
                by_push, by_pull = beside(origin, letter, -1) not in taken, beside(cell, letter) not in taken
                after = boxes - {origin} | {cell}
                if cell not in taken and cell in live and (by_push or by_pull) and after not in sets:
                    heapq.heappush(waiting, (distance + (other_box if is_other else 1), is_other, len(sets)))
                    sets.append(after)
                    moved.append(cell)
    return sets, not waiting


def shortest(
    board: Board, goal: Iterable[Cell], goal_player: Cell | None, count: str, within: Iterable[Boxes] | None = None
) -> tuple[int, int] | None:
    """The cost of the shortest way from the board to the goal, in the order of `count`; None if there is none.

    Args:
      board: the start.
      goal: cells, on some of which all boxes are to be.
      goal_player: where the player is to be; anywhere if not given.
      count: "moves" for (moves, pushes), "pushes" for (pushes, moves).
      within: the sets of boxes that the way may have; any if not given.
    """
    allowed, goal_cells = None if within is None else set(within), set(goal)
    start = frozenset(board.boxes), board.player
    waiting, seen = [((0, 0), *start)], set()
    while waiting:
        cost, boxes, player = heapq.heappop(waiting)
        if (boxes, player) in seen:
            continue
        seen.add((boxes, player))
        if boxes <= goal_cells and goal_player in (None, player):
            return cost
        for letter in WALKS:
            board.boxes, board.player = set(boxes), player
            what = board.move(letter)
            if what != "blocked" and (allowed is None or board.boxes in allowed):
                move, push = 1, int(what == "push")
                step = (move, push) if count == "moves" else (push, move)
                heapq.heappush(waiting, ((cost[0] + step[0], cost[1] + step[1]), frozenset(board.boxes), board.player))
    return None
