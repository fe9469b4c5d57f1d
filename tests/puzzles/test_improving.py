"""Solutions are made shorter, as short as can be where the board is small, and never worse."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from bathysphere.domains.sokoban import generate, parse_levels
from bathysphere.domains.sokoban.generator import GeneratorConfig
from bathysphere.domains.sokoban.levels import Level, checked_solution, grid_text, replay_moves
from bathysphere.errors import BathysphereError
from bathysphere.puzzles import improving
from bathysphere.puzzles.improving import improve
from bathysphere.puzzles.improving_kernels import OTHER_BOX
from tests.oracles import improving as oracle
from tests.oracles.sokoban import Board, plays_out

AMPLE = 3600.0  # seconds; what is tested with it ends soon, as nothing is left to find
COUNTS = ("moves", "pushes")

(ROOM,) = parse_levels("########\n#      #\n#@ $  .#\n#      #\n#      #\n########\nTitle: room\n")


def rows_of(level):
    return grid_text(level.grid).split("\n")


def cost(solution, count):
    moves, pushes = len(solution), sum(letter.isupper() for letter in solution)
    return (moves, pushes) if count == "moves" else (pushes, moves)


def generated(num_levels, height, width, num_boxes, seed, max_states=300_000):
    """Levels with the generator's solutions, which are full of detours."""
    config = GeneratorConfig(height=height, width=width, num_boxes=num_boxes, max_states=max_states)
    return generate(num_levels, config, seed=seed)


def random_play(rng, height, width, num_boxes):
    """A level with a solution: the targets are where random moves happen to take the boxes."""
    grid = np.where(rng.random((height, width)) < 0.1, 0, 1).astype(np.uint8)
    grid[[0, -1]], grid[:, [0, -1]] = 0, 0
    cells = rng.permutation(np.flatnonzero(grid))[: num_boxes + 1]
    grid.flat[cells] = [5] + [4] * num_boxes
    actions = np.repeat(rng.integers(0, 4, 100), rng.integers(1, 5, 100))
    last = replay_moves(Level("", grid), "".join("urdl"[action] for action in actions))[-1]
    for cell in np.flatnonzero(last == 4):
        grid.flat[cell] = {1: 2, 4: 3, 5: 6}[int(grid.flat[cell])]
    level = Level("random", grid)
    return level, checked_solution(level, actions.tolist())


@pytest.mark.parametrize("count", COUNTS)
def test_small_boards_get_their_shortest_solutions(count, monkeypatch):
    monkeypatch.setattr(improving, "_FIRST_ROOM", 3)  # so that it takes several searches
    for level in generated(12, 7, 7, 2, seed=1) + generated(4, 7, 8, 3, seed=2):
        board = Board(rows_of(level))
        improved = improve(level, level.solution, AMPLE, count)
        assert plays_out(rows_of(level), improved)
        assert cost(improved, count) == oracle.shortest(board, board.targets, None, count)


@pytest.mark.parametrize("count", COUNTS)
def test_solutions_never_get_worse(count, monkeypatch):
    monkeypatch.setattr(improving, "_MEMORY", 1 << 20)  # full soon, so that windows are tried as well
    rng = np.random.default_rng(3)
    for _ in range(15):
        level, solution = random_play(rng, *rng.integers(6, 13, 2), rng.integers(1, 7))
        tidied, improved = (improve(level, solution, seconds, count) for seconds in (0, AMPLE))
        assert plays_out(rows_of(level), tidied)
        assert plays_out(rows_of(level), improved)
        assert cost(improved, count) <= cost(tidied, count) <= cost(solution, count)
        assert improve(level, improved, AMPLE, count) == improved


def test_counting_pushes_gives_no_more_of_them():
    fewer = 0
    for level in generated(20, 8, 8, 3, seed=4):
        by_moves, by_pushes = (improve(level, level.solution, AMPLE, count) for count in COUNTS)
        assert cost(by_pushes, "pushes") <= cost(by_moves, "pushes")
        assert cost(by_moves, "moves") <= cost(by_pushes, "moves")
        fewer += cost(by_pushes, "pushes")[0] < cost(by_moves, "pushes")[0]
    assert fewer > 0


@pytest.mark.parametrize(
    ("solution", "tidied"),
    [
        ("rRRR", "rRRR"),
        ("RrRr", "rRRR"),  # capitals are put right
        ("lrRRR", "rRRR"),  # a move into a wall
        ("rRRRlld", "rRRR"),  # moves after the end
        ("urdRRR", "rRRR"),  # a longer walk than needed
        ("rRdrruLdlluRRR", "rRRR"),  # a box that comes back
        ("urrDldRRRdrU", "urrDldRRRdrU"),  # a longer way of the box, which takes a search
    ],
)
def test_detours_are_left_out(solution, tidied):
    assert improve(ROOM, solution, 0) == tidied
    assert improve(ROOM, solution, AMPLE) == "rRRR"


def test_more_time_never_hurts(monkeypatch):
    (level,) = generated(1, 14, 14, 6, seed=5)
    monkeypatch.setattr(improving, "_SLICE", 100)
    monkeypatch.setattr(improving, "_MEMORY", 1 << 19)
    found = []
    for seconds in (0, 1, 2, 3, 5, 10, 30, 100, 300, 1000):
        # A second passes between any two looks at the clock.
        monkeypatch.setattr(improving, "time", SimpleNamespace(perf_counter=itertools.count().__next__))
        found.append(improve(level, level.solution, seconds))
        assert plays_out(rows_of(level), found[-1])
    costs = [cost(solution, "moves") for solution in found]
    assert costs == sorted(costs, reverse=True)
    assert len(set(costs)) > 2


def test_boxes_in_a_sealed_room_stay():
    (level,) = parse_levels("#########\n#@ $ .#*#\n#     ###\n#########\n")
    assert improve(level, "drurRR", AMPLE) == "rRR"


def test_large_boards(monkeypatch):
    monkeypatch.setattr(improving, "_MEMORY", 1 << 24)
    level, solution = random_play(np.random.default_rng(6), 50, 50, 30)
    improved = improve(level, solution, AMPLE)
    assert plays_out(rows_of(level), improved)
    assert cost(improved, "moves") < cost(solution, "moves")


def test_solved_levels_need_no_moves():
    (done,) = parse_levels("#####\n#@ *#\n#####\n")
    assert improve(done, "", AMPLE) == improve(done, "rl", AMPLE) == ""


def test_bad_input_is_refused():
    with pytest.raises(BathysphereError, match=r"The 3 moves do not solve level 'room'\. Give a solution"):
        improve(ROOM, "rRR", 1)
    with pytest.raises(BathysphereError, match="letters l, u, r and d; got 'x'"):
        improve(ROOM, "rRRxR", 1)
    with pytest.raises(BathysphereError, match="'moves' or 'pushes'; got 'lines'"):
        improve(ROOM, "rRRR", 1, "lines")
    for seconds in (-1, math.nan):
        with pytest.raises(BathysphereError, match="seconds must be a number from 0"):
            improve(ROOM, "rRRR", seconds)


@pytest.mark.kernels
@pytest.mark.parametrize("slice_", [3, 1 << 15])
def test_the_kernels_gather_and_search_as_their_twins_do(slice_, monkeypatch):
    monkeypatch.setattr(improving, "_SLICE", slice_)
    rng = np.random.default_rng(7)
    shorter = 0
    for number, level in enumerate(generated(24, 7, 8, 3, seed=8, max_states=1000)):
        count, room, solution = COUNTS[number % 2], (0, 1, 20, 100)[number // 2 % 4], level.solution
        first, last = sorted(rng.choice(len(solution) + 1, 2, replace=False).tolist())
        last = len(solution) if number % 3 == 0 else last
        walk_cost = improving._WALK_COSTS[count]
        cells = improving._board(level)
        names = [tuple(cell) for cell in np.argwhere(cells.inside.reshape(level.shape)).tolist()]
        way = improving._way(level, cells, solution, first, last, walk_cost)

        def named(cell_numbers, names=names):
            return frozenset(names[cell] for cell in cell_numbers)

        known, goal = [named(np.flatnonzero(boxes)) for boxes in way.boxes], named(np.flatnonzero(way.goal))
        board = Board(rows_of(Level("", replay_moves(level, solution[:first])[-1].reshape(level.shape))))
        sets, is_complete = improving._vicinity(cells, way, room, math.inf)
        gathered = [named(np.flatnonzero(words[cells.word] & cells.bit)) for words in sets.words]
        assert (gathered, is_complete) == oracle.gather(board, known, goal, room, OTHER_BOX)

        found, _ = improving._shorter_way(cells, way, room, walk_cost, math.inf)
        goal_player = None if way.goal_player < 0 else names[way.goal_player]
        shortest = oracle.shortest(board, goal, goal_player, count, within=gathered)
        before = cost(solution[first:last], count)
        assert shortest == (before if found is None else cost(found, count))
        assert (found is None) == (shortest == before)
        shorter += found is not None
    assert shorter > 5


@pytest.mark.kernels
def test_a_way_that_costs_the_same_is_not_found():
    (level,) = parse_levels("######\n#@$ .#\n######\n")
    cells, walk_cost = improving._board(level), improving._WALK_COSTS["moves"]
    way = improving._way(level, cells, "RR", 0, 2, walk_cost)
    assert improving._shorter_way(cells, way, 100, walk_cost, math.inf) == (None, True)
