"""The rules of Sokoban on rows of bytes: one byte per cell, all four moves at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bathysphere.domains.base import States, Successors

# Cell codes, in the order of the authors' observation channels.
WALL, FLOOR, TARGET, BOX_ON_TARGET, BOX, PLAYER, PLAYER_ON_TARGET = range(7)
NUM_CODES = 7

# Clockwise. The authors number them up, down, left, right, which matters only where ties go by number.
ACTION_NAMES = ("up", "right", "down", "left")
ROW_STEPS = (-1, 0, 1, 0)  # rows moved, per action
COLUMN_STEPS = (0, 1, 0, -1)  # columns moved, per action


@dataclass(frozen=True)
class Rewards:
    """What a move pays. The default is sparse: nothing but the final reward."""

    step: float = 0.0
    """Reward of every move, also of one that is blocked. Points, usually negative."""
    box_on_target: float = 0.0
    """Reward for pushing a box onto a target. Points."""
    box_off_target: float = 0.0
    """Reward for pushing a box off a target. Points, usually negative."""
    finished: float = 10.0
    """Reward for the move that solves the level. Points; the authors use 10."""


SHAPED_REWARDS = Rewards(step=-0.1, box_on_target=1.0, box_off_target=-1.0, finished=10.0)


def successors(states: States, shape: tuple[int, int], rewards: Rewards) -> Successors:
    """Returns where each of the four moves leads from each of `states`.

    Args:
      states: cell codes, C-contiguous uint8 [n, height * width]. Any bytes are safe: without a player nothing
        moves, of several players the first one does, codes above 6 block like walls.
      shape: (height, width).
      rewards: what moves pay.

    Returns:
      Successors with A = 4 in the order of `ACTION_NAMES`. Solved boards (no box off target) stay as they
      are, terminal and solved, with reward 0.
    """
    height, width = shape
    out = Successors.empty(len(states), len(ACTION_NAMES), states.shape[1])
    _move_all(
        states,
        height,
        width,
        float(rewards.step),
        float(rewards.box_on_target),
        float(rewards.box_off_target),
        float(rewards.finished),
        *out,
    )
    return out


def is_solved(states: States) -> NDArray[np.bool_]:
    """Tells for each row of `states`, uint8 [n, S], whether no box is off target. Bool [n]."""
    solved: NDArray[np.bool_] = (states != BOX).all(axis=1)
    return solved


@njit(cache=True, nogil=True)
def _move_all(  # type: ignore[no-untyped-def]
    states, height, width, step, box_on, box_off, finished, out_states, rewards, terminal, solved
) -> None:
    """Plays all four moves from every state.

    Invariant: a move changes at most three cells (player's old cell, its new one, the box's new one), so
    successors start as copies of their state, and the number of boxes off target is counted once per state
    and then adjusted by the one box that moved.

    Mutates: out_states [n, 4, S], rewards, terminal and solved [n, 4], every entry.
    """
    size = states.shape[1]
    for i in range(states.shape[0]):
        state = states[i]
        boxes_off = 0
        player = -1
        for cell in range(size):
            boxes_off += state[cell] == BOX
        for cell in range(size):
            if state[cell] == PLAYER or state[cell] == PLAYER_ON_TARGET:
                player = cell
                break
        for action in range(4):
            successor = out_states[i, action]
            for cell in range(size):  # an explicit loop compiles to wide copies; a slice assignment does not
                successor[cell] = state[cell]
        if boxes_off == 0:
            for action in range(4):
                rewards[i, action] = 0.0
                terminal[i, action] = True
                solved[i, action] = True
            continue
        row = player // width
        column = player - row * width
        for action in range(4):
            reward = step
            left = boxes_off
            row_step, column_step = ROW_STEPS[action], COLUMN_STEPS[action]
            ahead_row, ahead_column = row + row_step, column + column_step
            if player >= 0 and 0 <= ahead_row < height and 0 <= ahead_column < width:
                ahead = ahead_row * width + ahead_column
                code = state[ahead]
                free = code in (FLOOR, TARGET)
                if code in (BOX, BOX_ON_TARGET):
                    behind_row, behind_column = ahead_row + row_step, ahead_column + column_step
                    if 0 <= behind_row < height and 0 <= behind_column < width:
                        behind = behind_row * width + behind_column
                        goal = state[behind]
                        free = goal in (FLOOR, TARGET)
                        if free:
                            out_states[i, action, behind] = BOX_ON_TARGET if goal == TARGET else BOX
                            if goal == TARGET and code == BOX:
                                left -= 1
                                reward += box_on
                            elif goal == FLOOR and code == BOX_ON_TARGET:
                                left += 1
                                reward += box_off
                if free:
                    on_target = code in (TARGET, BOX_ON_TARGET)
                    out_states[i, action, ahead] = PLAYER_ON_TARGET if on_target else PLAYER
                    was_on_target = state[player] == PLAYER_ON_TARGET
                    out_states[i, action, player] = TARGET if was_on_target else FLOOR
            if left == 0:
                reward += finished
            rewards[i, action] = reward
            terminal[i, action] = left == 0
            solved[i, action] = left == 0
