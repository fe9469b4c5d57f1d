"""Solutions as letters, replayed before they are handed out."""

import pytest

from bathysphere.domains.sokoban.formats import parse_levels
from bathysphere.domains.sokoban.generator import GeneratorConfig, generate
from bathysphere.domains.sokoban.levels import checked_solution, solves
from bathysphere.domains.sokoban.rules import ACTION_NAMES

UP, RIGHT, DOWN, LEFT = range(4)
(ROOM,) = parse_levels("######\n#@ $.#\n#    #\n######\n")


@pytest.mark.parametrize(
    ("actions", "letters"),
    [
        ([RIGHT, RIGHT], "rR"),
        ([UP, LEFT, RIGHT, UP, RIGHT], "rR"),  # moves into walls are none
        ([DOWN, UP, RIGHT, RIGHT], "rR"),  # nor are detours
        ([DOWN, RIGHT, RIGHT, LEFT, UP, DOWN, LEFT, UP, RIGHT, LEFT, RIGHT, RIGHT], "rR"),
        ([DOWN, RIGHT, UP, RIGHT], "druR"),
        ([RIGHT], None),
        ([DOWN, RIGHT, RIGHT], None),
        ([], None),
    ],
)
def test_moves_become_letters_if_they_solve_the_level(actions, letters):
    assert checked_solution(ROOM, actions) == letters


def test_it_writes_the_generators_solutions_as_the_generator_does():
    for level in generate(5, GeneratorConfig(height=8, width=7, num_boxes=2), seed=3):
        actions = [[name[0] for name in ACTION_NAMES].index(letter) for letter in level.solution.lower()]
        assert checked_solution(level, actions) == level.solution
        assert solves(level, level.solution)
