"""Solving a level push by push, without a network: weighted A* over what can be pushed where.

A network that has seen many boards finds most solutions with few expansions, but levels made by people may be unlike
any that it has seen. This search knows only how many pushes are needed at least, if every box goes to a target of its
own, and makes up for it by expanding a hundred times as many positions a second. When nothing is left to expand, the
level has no solution.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.sokoban import rules
from bathysphere.domains.sokoban.levels import Level, checked_solution
from bathysphere.puzzles import pushing_kernels as kernels
from bathysphere.puzzles.cells import BITS, FAR, push_distances

_LETTERS = "".join(name[0] for name in rules.ACTION_NAMES)
_WEIGHT = 8  # of the pushes to go; see docs/lab/planners.md
_EXPANSIONS = 2000  # between two looks at the clock
_FIRST_ROOM = 1 << 16  # positions
_BYTES_PER_POSITION = 40  # besides its boxes: five numbers, and two to four entries of the table
_LONGEST = 8  # pushes made that priorities tell apart, in times of the farthest way of every box
_TARGETS = (rules.TARGET, rules.BOX_ON_TARGET, rules.PLAYER_ON_TARGET)


class PushResult(NamedTuple):
    """How a search over pushes went."""

    solution: str | None  # letters of `lurd`, capitals for pushes; replayed through the rules
    expansions: int
    positions: int
    ended_by: str  # as `Episode.ended_by`


def solve_by_pushes(
    level: Level, seconds: float, memory_mb: int, max_expansions: int | None = None, weight: int = _WEIGHT
) -> PushResult:
    """Searches for a solution.

    Args:
      level: any level that is not solved.
      seconds: after which it ends. What is found by then depends on the machine.
      memory_mb: megabytes that it may take, about.
      max_expansions: after which it ends; None for no limit.
      weight: of the pushes to go against those made, from 0. 1 finds a solution with the fewest pushes.
    """
    ground, boxes, player = _ground(level)
    if (level.grid == rules.BOX).sum() > (ground.ground[boxes] != rules.TARGET).sum():
        return PushResult(None, 0, 0, "no state left")  # a box that is out of reach stays off target
    num_cells, num_targets = len(ground.hashes), ground.distances.shape[1]
    num_words, fan = -(-num_cells // BITS), _EXPANSIONS * 4 * len(boxes)
    most = (memory_mb << 20) // (8 * num_words + _BYTES_PER_POSITION)
    farthest = int(ground.distances[ground.distances < FAR].max())
    is_box, is_fixed, is_reached, is_seen = (np.zeros(num_cells + 1, np.bool_) for _ in range(4))
    scratch = kernels.Scratch(
        is_box,
        is_fixed,
        is_reached,
        is_seen,
        queue=np.zeros(num_cells, np.int64),
        boxes=boxes.copy(),
        sought=np.zeros(num_words, np.int64),
        matching=np.zeros((5, num_targets + 1), np.int64),
    )
    positions = _allocate(_FIRST_ROOM + fan, num_words, (weight + _LONGEST) * (farthest + 1) * len(boxes))
    scratch.is_box[boxes] = True
    kernels.add(ground, positions, scratch, player, -1, -1, weight)
    answer = kernels.search(ground, positions, scratch, weight, 0)  # compiles it before the clock starts
    deadline, ended_by = time.perf_counter() + seconds, "no state left"
    while answer == kernels.MORE:
        left = _EXPANSIONS if max_expansions is None else max_expansions - int(positions.counts[1])
        if left <= 0 or time.perf_counter() >= deadline:
            ended_by = "max_expansions" if left <= 0 else "max_seconds"
            break
        if positions.counts[0] + fan > len(positions.player):
            if 2 * len(positions.player) > most:
                ended_by = "memory_limit_mb"
                break
            positions = _grown(ground, positions)
        answer = kernels.search(ground, positions, scratch, weight, min(left, _EXPANSIONS))
    found, expansions, _, solved = positions.counts.tolist()
    if answer != kernels.SOLVED:
        return PushResult(None, expansions, found, ended_by)
    moves = _moves(ground, positions, boxes, player, solved)
    solution = checked_solution(level, [_LETTERS.index(letter) for letter in moves.lower()])
    assert solution is not None, "what is found solves the level"
    return PushResult(solution, expansions, found, "solution")


def _ground(level: Level) -> tuple[kernels.Ground, NDArray[np.int64], int]:
    """Returns the cells that the player could walk to if there were no boxes, the boxes' cells and the player's."""
    grid = np.pad(level.grid, 1)
    steps = [dy * grid.shape[1] + dx for dy, dx in zip(rules.ROW_STEPS, rules.COLUMN_STEPS, strict=True)]
    is_open, player = (grid != rules.WALL).ravel(), int(np.isin(grid, (rules.PLAYER, rules.PLAYER_ON_TARGET)).argmax())
    reached, queue = {player}, deque([player])
    while queue:
        cell = queue.popleft()
        for step in steps:
            if is_open[cell + step] and cell + step not in reached:
                reached.add(cell + step)
                queue.append(cell + step)
    cells = np.array(sorted(reached))
    numbers = np.full(grid.size, len(cells))
    numbers[cells] = np.arange(len(cells))
    neighbours = np.full((len(cells) + 1, 4), len(cells))
    for direction, step in enumerate(steps):
        neighbours[:-1, direction] = numbers[cells + step]
    codes = grid.ravel()[cells]
    targets = np.flatnonzero(np.isin(codes, _TARGETS))
    ground = np.full(len(cells) + 1, rules.FLOOR, np.uint8)
    ground[targets], ground[-1] = rules.TARGET, rules.WALL
    distances = np.stack([push_distances(neighbours, np.array([target])) for target in targets], axis=1)
    reach = np.where(distances.min(axis=1) < FAR, 1, 0)
    hashes = np.random.default_rng(0).integers(0, 1 << 62, len(cells))
    boxes = np.flatnonzero(np.isin(codes, (rules.BOX, rules.BOX_ON_TARGET)))
    return kernels.Ground(neighbours, ground, reach, distances, hashes), boxes, int(numbers[player])


def _allocate(room: int, num_words: int, priorities: int) -> kernels.Positions:
    player, parent, push, pushes, following = (np.empty(room, np.int32) for _ in range(5))
    return kernels.Positions(
        words=np.empty((room, num_words), np.int64),
        player=player,
        parent=parent,
        push=push,
        pushes=pushes,
        following=following,
        table=np.full(1 << (2 * room).bit_length(), -1, np.int32),
        tops=np.full(priorities, -1, np.int32),
        counts=np.array([0, 0, priorities, -1]),
    )


def _grown(ground: kernels.Ground, positions: kernels.Positions) -> kernels.Positions:
    """Returns the same positions with twice the room."""
    found, room = int(positions.counts[0]), len(positions.player)
    larger = _allocate(2 * room, positions.words.shape[1], len(positions.tops))
    for name in ("words", "player", "parent", "push", "pushes", "following"):
        getattr(larger, name)[:found] = getattr(positions, name)[:found]
    larger.tops[:], larger.counts[:] = positions.tops, positions.counts
    kernels.enter_all(ground, larger)
    return larger


def _moves(
    ground: kernels.Ground, positions: kernels.Positions, boxes: NDArray[np.int64], player: int, number: int
) -> str:
    """Returns the way to a position, with the shortest walk before each push."""
    pushes = []
    while positions.parent[number] >= 0:
        pushes.append(divmod(int(positions.push[number]), 4))
        number = int(positions.parent[number])
    wall = len(ground.hashes)
    blocked, letters = {wall, *boxes.tolist()}, ""
    for box, direction in reversed(pushes):
        behind = int(ground.neighbours[box, direction ^ 2])
        letters += _walk(ground.neighbours, blocked, player, behind) + _LETTERS[direction].upper()
        blocked.remove(box)
        blocked.add(int(ground.neighbours[box, direction]))
        player = box
    return letters


def _walk(neighbours: NDArray[np.int64], blocked: set[int], start: int, end: int) -> str:
    """Returns the letters of a shortest walk; there must be one."""
    ways, queue = {start: ""}, deque([start])
    while end not in ways:
        cell = queue.popleft()
        for direction in range(4):
            there = int(neighbours[cell, direction])
            if there not in blocked and there not in ways:
                ways[there] = ways[cell] + _LETTERS[direction]
                queue.append(there)
    return ways[end]
