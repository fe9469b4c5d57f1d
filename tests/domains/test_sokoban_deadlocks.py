from __future__ import annotations

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from bathysphere.domains.base import Hopeless
from bathysphere.domains.sokoban import GeneratorConfig, Sokoban, generate
from bathysphere.domains.sokoban.deadlocks import hopeless
from bathysphere.domains.sokoban.levels import TILES, Level, replay_moves
from bathysphere.domains.sokoban.rules import Rewards, is_solved, successors
from bathysphere.errors import BathysphereError
from tests.oracles import sokoban_deadlocks as oracle

NUM_BOARDS, NUM_STEPS, NUM_ROWS = (3, 60, 100) if numba.config.DISABLE_JIT else (25, 60, 2000)

# Left a lost position, right one that differs little and that no rule may call lost.
PAIRS = {
    "in a corner": """
        #####   #####
        #$ .#   # $.#
        # @ #   # @ #
        #####   #####
    """,
    "at a wall without a target": """
        ######   ######
        #  $ #   #. $ #
        # @  #   # @  #
        # .  #   #    #
        ######   ######
    """,
    "in the open, with the target beyond a bend": """
        #######   #######
        #     #   #     #
        # $ @ #   # $ @ #
        #   ###   #   ###
        ### ###   ### ###
        ###  .#   ##   .#
        #######   #######
    """,
    "four in a block": """
        ########   ########
        #      #   #      #
        #  $$  #   #  $$  #
        #  $$  #   #  $ $ #
        #      #   #      #
        # .... #   # .... #
        #@     #   #@     #
        ########   ########
    """,
    "three and a pillar in a block": """
        ########   ########
        #      #   #      #
        #  $$  #   #  $$  #
        #  $#  #   #  $ # #
        #      #   #      #
        # ...  #   # ...  #
        #@     #   #@     #
        ########   ########
    """,
    "two side by side at a wall": """
        #######   #######
        #.$$ .#   #.$ $.#
        #   @ #   #   @ #
        #######   #######
    """,
    "frozen only through another one, which is on its target": """
        #######   #######
        #*$ . #   #.$ . #
        #  @  #   #  @  #
        #######   #######
    """,
    "frozen through one that is frozen through another one": """
        #######   #######
        #** . #   #.* . #
        ##$   #   ##$   #
        #  @  #   #  @  #
        #     #   #     #
        #######   #######
    """,
    "two that hold each other, in no block": """
        #######   #######
        #     #   #     #
        # #$  #   # #$  #
        #  $# #   #  $  #
        #     #   #   # #
        # ..@ #   # ..@ #
        #######   #######
    """,
    "a way out to dead squares only": """
        #######   #######
        ###.###   ###.###
        ## $ ##   #  $  #
        ###*###   ###*###
        ###  ##   ###  ##
        ### @##   ### @##
        #######   #######
    """,
    "one off target in a block": """
        #######   #######
        #**  .#   #**   #
        #*$   #   #**$ .#
        #  @  #   #  @  #
        #######   #######
    """,
    "two for one target": """
        #######   #######
        # $ $.#   # $  .#
        #     #   #   $ #
        #  . @#   #  . @#
        #     #   #     #
        #######   #######
    """,
    "more than there are targets": """
        #######   #######
        #     #   #     #
        # $ $ #   # $ $ #
        #  . @#   # .. @#
        #     #   #     #
        #######   #######
    """,
    "more than there are targets, and the one at the wall needs the target that the first one would take": """
        #######   #######
        #     #   #     #
        #. $  #   #. $  #
        #     #   #     #
        #$  . #   #$  . #
        #   $ #   #     #
        # @   #   # @   #
        #######   #######
    """,
}


def codes(rows: list[str]) -> NDArray[np.uint8]:
    """Returns the cell codes, uint8 [height, width], of a board drawn with XSB characters."""
    return np.array([[TILES.index(tile) for tile in row] for row in rows], np.uint8)


def is_hopeless(grid: NDArray[np.uint8]) -> bool:
    return bool(hopeless(grid.reshape(1, -1), grid.shape)[0])


def told_by_the_oracle(states: NDArray[np.uint8], shape: tuple[int, int]) -> list[bool]:
    return [oracle.hopeless(state.reshape(shape).tolist()) for state in states]


@pytest.mark.kernels
@pytest.mark.parametrize("drawn", PAIRS.values(), ids=PAIRS)
def test_hand_drawn_positions(drawn: str) -> None:
    lines = drawn.split("\n")[1:-1]
    width = (len(lines[0]) - 8 - 3) // 2
    lost = codes([line[8 : 8 + width] for line in lines])
    fine = codes([line[-width:] for line in lines])
    for turned in (lambda grid: grid, lambda grid: grid[::-1], np.transpose, np.rot90):
        assert is_hopeless(np.ascontiguousarray(turned(lost)))
        assert not is_hopeless(np.ascontiguousarray(turned(fine)))


@pytest.mark.kernels
def test_a_solved_board_is_not_hopeless_even_if_nothing_can_move() -> None:
    assert not is_hopeless(codes(["######", "#**  #", "#**@ #", "######"]))


@pytest.mark.kernels
def test_more_targets_than_a_set_holds() -> None:
    rows = ["############", *["#          #"] * 3, *["# ******** #"] * 8, "#@         #", "############"]
    almost = codes(rows)
    assert (almost == TILES.index("*")).sum() == 64
    almost[4, 2:4] = TILES.index("."), TILES.index("*")
    almost[3, 2] = TILES.index("$")
    assert not is_hopeless(almost)
    almost[3, 2], almost[1, 2] = TILES.index(" "), TILES.index("$")  # at a wall without a target
    assert is_hopeless(almost)


@pytest.mark.kernels
@pytest.mark.parametrize(("height", "width", "num_boxes"), [(6, 5, 2), (6, 7, 3), (8, 8, 4)])
def test_random_play_matches_the_oracle(height: int, width: int, num_boxes: int) -> None:
    shape = (height, width)
    rng = np.random.default_rng(height)
    levels = generate(NUM_BOARDS, GeneratorConfig(height, width, num_boxes, max_states=1000), seed=height)
    states = np.stack([level.grid.ravel() for level in levels])
    history = []
    for _ in range(NUM_STEPS):
        history.append(states)
        moves = rng.integers(4, size=len(states))
        states = np.ascontiguousarray(successors(states, shape, Rewards()).states[np.arange(len(states)), moves])
    met = np.concatenate(history)  # neighbours are of different levels
    before = met.copy()
    found = hopeless(met, shape)
    assert np.array_equal(met, before)
    assert found.dtype == np.bool_
    assert found.tolist() == told_by_the_oracle(met, shape)
    assert found.any()
    assert not found.all()


@pytest.mark.kernels
@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (3, 4), (5, 1), (5, 5)])
def test_any_bytes_match_the_oracle(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[1])
    share = [0.1, 0.35, 0.15, 0.12, 0.12, 0.06, 0.04, 0.03, 0.03]  # of the codes 0 to 6 and of two that are none
    drawn = rng.choice(np.array([0, 1, 2, 3, 4, 5, 6, 7, 255], np.uint8), size=(NUM_ROWS, shape[0] * shape[1]), p=share)
    assert hopeless(drawn, shape).tolist() == told_by_the_oracle(drawn, shape)


def everything_reachable(level: Level) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Returns all states that can be reached, uint8 [n, S], and which of them can be solved, found by search alone."""
    start = level.grid.reshape(1, -1)
    numbers = {start.tobytes(): 0}
    found, moves = [start], []
    while len(found[-1]):
        following = successors(found[-1], level.shape, Rewards()).states.reshape(-1, start.size)
        num_known = len(numbers)
        moves += [numbers.setdefault(state.tobytes(), len(numbers)) for state in following]
        fresh = list(numbers)[num_known:]
        found.append(np.frombuffer(b"".join(fresh), np.uint8).reshape(-1, start.size))
    states, after = np.concatenate(found), np.array(moves).reshape(-1, 4)
    solvable = is_solved(states)
    while (more := solvable | solvable[after].any(axis=1)).sum() > solvable.sum():
        solvable = more
    return states, solvable


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("height", "width", "num_boxes"), [(5, 5, 1), (5, 6, 2), (6, 6, 2), (7, 6, 2), (6, 7, 3), (7, 7, 3)]
)
def test_no_state_that_search_solves_is_hopeless(height: int, width: int, num_boxes: int) -> None:
    num_lost, num_found = 0, 0
    for level in generate(NUM_BOARDS, GeneratorConfig(height, width, num_boxes, max_states=1000), seed=1):
        states, solvable = everything_reachable(level)
        found = hopeless(states, level.shape)
        assert solvable[0]
        assert not (found & solvable).any()
        num_lost += int((~solvable).sum())
        num_found += int(found.sum())
    assert num_lost > 0
    assert num_found > 0.85 * num_lost


def test_no_state_on_the_way_to_a_solution_is_hopeless() -> None:
    for level in generate(100, GeneratorConfig(max_states=20_000), seed=2):
        assert level.solution
        assert not hopeless(replay_moves(level, level.solution), level.shape).any()


@pytest.mark.kernels
def test_no_states() -> None:
    assert hopeless(np.empty((0, 9), np.uint8), (3, 3)).shape == (0,)


def test_the_domain_offers_it() -> None:
    rows = ["######", "#$ . #", "#  @ #", "######"]
    solvable = codes(["######", "# $. #", "#  @ #", "######"])
    domain = Sokoban(levels=[Level("small", solvable)])
    assert isinstance(domain, Hopeless)
    boards = np.stack([codes(rows).ravel(), solvable.ravel()])
    assert domain.hopeless(boards).tolist() == [True, False]
    assert domain.hopeless(boards[::-1]).tolist() == [False, True]
    with pytest.raises(BathysphereError, match=r"States must be uint8 \[n, 24\]"):
        domain.hopeless(boards[:, :-1])
