"""Levels that are pasted and drawn."""

import numpy as np
import pytest

from bathysphere.domains.sokoban.levels import grid_text
from bathysphere.errors import BathysphereError
from bathysphere.studio.levels import MAX_CHARACTERS, checked, generated, paint, read_text, tile_pictures

BOARD = "#####\n#@$.#\n#####"


def strokes(*told, board=BOARD):
    grid = read_text(board)[0].grid
    for row, column, tool in told:
        grid = paint(grid, row, column, tool)
    return grid_text(grid)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([(1, 2, "floor")], "#@ .#"),
        ([(1, 2, "target")], "#@*.#"),
        ([(1, 3, "box")], "#@$*#"),
        ([(1, 3, "player")], "# $+#"),
        ([(1, 3, "player"), (1, 2, "player")], "# @.#"),
        ([(1, 1, "target"), (1, 1, "floor")], "#.$.#"),
        ([(1, 1, "wall")], "##$.#"),
        ([(0, 1, "floor"), (1, 0, "box")], "#@$.#"),
    ],
)
def test_strokes(told, expected):
    assert strokes(*told).splitlines()[1] == expected


def test_strokes_outside_are_refused():
    for told in ((9, 9, "box"), (-1, 0, "box"), (1, 1, "bomb")):
        with pytest.raises(BathysphereError):
            strokes(told)


def test_boards_that_cannot_be_played_say_why():
    assert checked(read_text(BOARD)[0].grid).shape == (3, 5)
    for told, said in (((1, 1, "wall"), "no player"), ((1, 3, "floor"), "1 boxes and 0 targets")):
        grid = paint(read_text(BOARD)[0].grid, *told)
        with pytest.raises(BathysphereError, match=said):
            checked(grid)
    with pytest.raises(BathysphereError, match="no level"):
        read_text("hello")
    with pytest.raises(BathysphereError, match="more than 1 MB"):
        read_text("#" * (MAX_CHARACTERS + 1))
    with pytest.raises(BathysphereError, match="up to 40 a side"):
        read_text("#" * 50 + "\n#@$." + " " * 45 + "#\n" + "#" * 50)


def test_generated_levels_follow_from_their_seed():
    assert generated(8, 8, 2, 3) == generated(8, 8, 2, 3)
    assert not np.array_equal(generated(8, 8, 2, 3).grid, generated(8, 8, 2, 4).grid)
    assert len(tile_pictures(8)) == 7
