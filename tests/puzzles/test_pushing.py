"""The search over pushes finds solutions, the shortest ones if it is told to, and knows when there is none."""

import itertools

import numpy as np
import pytest

from bathysphere.domains.sokoban import parse_levels
from bathysphere.domains.sokoban.generator import GeneratorConfig, generate
from bathysphere.domains.sokoban.levels import grid_text
from bathysphere.puzzles import pushing
from bathysphere.puzzles.cells import FAR
from bathysphere.puzzles.pushing import solve_by_pushes
from bathysphere.puzzles.pushing_kernels import least_pushes
from tests.oracles import improving as oracle
from tests.oracles.sokoban import Board, plays_out
from tests.puzzles.small import EASY, ENDLESS, HOPELESS

AMPLE = 3600.0  # seconds; what is tested with it ends soon


def _pushes(solution):
    return sum(letter.isupper() for letter in solution)


@pytest.mark.parametrize("weight", [1, 8])
def test_generated_levels_are_solved_with_the_fewest_pushes_at_weight_one(weight):
    levels = generate(10, GeneratorConfig(height=7, width=7, num_boxes=2), seed=3)
    levels += generate(4, GeneratorConfig(height=7, width=8, num_boxes=3), seed=4)
    for level in levels:
        rows = grid_text(level.grid).split("\n")
        found = solve_by_pushes(level, AMPLE, 64, weight=weight)
        assert found.ended_by == "solution"
        assert plays_out(rows, found.solution)
        board = Board(rows)
        fewest, _ = oracle.shortest(board, board.targets, None, "pushes")
        assert _pushes(found.solution) == fewest if weight == 1 else _pushes(found.solution) >= fewest


def test_more_positions_than_there_is_room_for_at_first_change_nothing(monkeypatch):
    (level,) = generate(1, GeneratorConfig(), seed=5)
    plain = solve_by_pushes(level, AMPLE, 256, weight=1)
    monkeypatch.setattr(pushing, "_FIRST_ROOM", 1)
    monkeypatch.setattr(pushing, "_EXPANSIONS", 3)
    assert solve_by_pushes(level, AMPLE, 256, weight=1) == plain
    assert plain.positions > 2 * 3 * 16  # so there were several times as many as in the first room


def test_a_level_without_a_solution_is_searched_to_its_end():
    assert solve_by_pushes(HOPELESS, AMPLE, 64).ended_by == "no state left"
    (blocked,) = parse_levels("########\n#@ $ . #\n######.#\n#    #$#\n# $. # #\n########\n")
    assert solve_by_pushes(blocked, AMPLE, 64) == (None, 0, 0, "no state left")  # two boxes are out of reach
    (apart,) = parse_levels("########\n#@ $ . #\n########\n#    * #\n########\n")
    assert solve_by_pushes(apart, AMPLE, 64).solution == "rRR"


@pytest.mark.parametrize(
    ("limits", "ended_by"),
    [
        ({"seconds": 0.0}, "max_seconds"),
        ({"memory_mb": 1}, "memory_limit_mb"),
        ({"max_expansions": 70}, "max_expansions"),
    ],
)
def test_limits_end_a_search(limits, ended_by):
    found = solve_by_pushes(ENDLESS, **{"seconds": AMPLE, "memory_mb": 256, **limits})
    assert (found.solution, found.ended_by) == (None, ended_by)
    if "max_expansions" in limits:
        assert found.expansions == 70
    assert solve_by_pushes(EASY, AMPLE, 64).solution == "rR"


def test_least_pushes_is_the_cheapest_assignment():
    rng = np.random.default_rng(0)
    for num_boxes, num_targets in ((1, 1), (2, 3), (3, 3), (4, 5)):
        for _ in range(20):
            distances = rng.integers(0, 9, (7, num_targets))
            distances[rng.random(distances.shape) < 0.3] = FAR
            boxes = rng.permutation(7)[:num_boxes]
            ways = itertools.permutations(range(num_targets), num_boxes)
            least = min(int(distances[boxes, list(way)].sum()) for way in ways)
            found = least_pushes(boxes, distances, np.zeros((5, num_targets + 1), np.int64))
            assert found == least if least < FAR else found >= FAR
