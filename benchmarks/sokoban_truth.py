"""Why a Sokoban agent loses: its episodes held against the truth about every position in them.

    python benchmarks/sokoban_truth.py [AGENT] [--boards 200] [--passes 40] [--max-steps 100] [--seed 1]

The truth is the length of the shortest solution from a position, or that there is none. It is found by playing
backwards from the end, with pulls, until nothing new appears: up to 700,000 positions of 30 free cells and four boxes.
AGENT is a shipped agent, an agent file or a run directory. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import comb

import numba
import numpy as np

from bathysphere.agents.loading import load_values
from bathysphere.domains.base import States
from bathysphere.domains.sokoban import generate
from bathysphere.domains.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    COLUMN_STEPS,
    PLAYER,
    PLAYER_ON_TARGET,
    ROW_STEPS,
    TARGET,
    WALL,
)
from bathysphere.planning import MCTS

MAX_CELLS, MAX_BOXES = 65, 6
CHOOSE = np.array([[comb(n, k) for k in range(MAX_BOXES + 1)] for n in range(MAX_CELLS)])


class Truth:
    """The shortest solution from every position with the walls and targets of one board, uint8 [height * width]."""

    def __init__(self, board: States, width: int) -> None:
        free = np.flatnonzero(board != WALL)
        self._number = np.full(len(board), -1)
        self._number[free] = np.arange(len(free))
        steps = [rows * width + columns for rows, columns in zip(ROW_STEPS, COLUMN_STEPS, strict=True)]
        neighbours = np.array([[self._number[cell + step] for step in steps] for cell in free])
        targets = self._number[np.flatnonzero(np.isin(board, (TARGET, BOX_ON_TARGET, PLAYER_ON_TARGET)))]
        self._lengths = _play_backwards(neighbours, targets, CHOOSE)

    def lengths(self, states: States) -> np.ndarray:
        """Returns moves to the end from each position, int [n]; -1 where there is no way."""
        return np.array([self._length(state) for state in states])

    def _length(self, state: States) -> int:
        boxes = self._number[np.flatnonzero(np.isin(state, (BOX, BOX_ON_TARGET)))]
        player = self._number[np.flatnonzero(np.isin(state, (PLAYER, PLAYER_ON_TARGET)))[0]]
        rank = sum(int(CHOOSE[cell, k + 1]) for k, cell in enumerate(boxes))
        return int(self._lengths[rank, player])


@numba.njit(cache=True)
def _rank(boxes, choose):
    """Numbers sets of cells, given in increasing order, from 0 without gaps."""
    rank = 0
    for k in range(len(boxes)):
        rank += choose[boxes[k], k + 1]
    return rank


@numba.njit(cache=True)
def _index(boxes, cell):
    """Returns which box is on `cell`; -1 if none is."""
    for k in range(len(boxes)):
        if boxes[k] == cell:
            return k
    return -1


@numba.njit(cache=True)
def _replace(boxes, k, cell, moved):
    """Writes `boxes` with the k-th on `cell` into `moved`, in increasing order."""
    moved[:] = boxes
    while k > 0 and moved[k - 1] > cell:
        moved[k] = moved[k - 1]
        k -= 1
    while k + 1 < len(moved) and moved[k + 1] < cell:
        moved[k] = moved[k + 1]
        k += 1
    moved[k] = cell


@numba.njit(cache=True)
def _play_backwards(neighbours, targets, choose):
    """Breadth first from all solved positions: the player steps back, and may pull the box in front of it along."""
    num_cells, num_boxes = len(neighbours), len(targets)
    num_sets = choose[num_cells, num_boxes]
    lengths = np.full((num_sets, num_cells), -1, np.int16)
    queue_boxes = np.empty((num_sets * num_cells, num_boxes), np.int8)
    queue_player = np.empty(num_sets * num_cells, np.int8)
    moved = np.empty(num_boxes, np.int8)
    head = tail = 0
    for player in range(num_cells):
        if _index(targets, player) < 0:
            lengths[_rank(targets, choose), player] = 0
            queue_boxes[tail] = targets
            queue_player[tail] = player
            tail += 1
    while head < tail:
        boxes, player = queue_boxes[head], queue_player[head]
        length = lengths[_rank(boxes, choose), player] + 1
        head += 1
        for direction in range(4):
            before, in_front = neighbours[player, (direction + 2) % 4], neighbours[player, direction]
            if before < 0 or _index(boxes, before) >= 0:
                continue
            pulled = -1 if in_front < 0 else _index(boxes, in_front)
            for pulls in range(1 if pulled < 0 else 2):
                if pulls:
                    _replace(boxes, pulled, player, moved)
                else:
                    moved[:] = boxes
                rank = _rank(moved, choose)
                if lengths[rank, before] < 0:
                    lengths[rank, before] = length
                    queue_boxes[tail] = moved
                    queue_player[tail] = before
                    tail += 1
    return lengths


def area(positive: np.ndarray, negative: np.ndarray) -> float:
    """Returns the chance that one of `positive` is above one of `negative`."""
    ranks = np.concatenate([positive, negative]).argsort().argsort()[: len(positive)]
    return float((ranks.mean() - (len(positive) - 1) / 2) / len(negative))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent", nargs="?", default="sokoban")
    parser.add_argument("--boards", type=int, default=200)
    parser.add_argument("--passes", type=int, default=40)
    parser.add_argument("--max-steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    config, domain, values = load_values(options.agent)
    generator = config.domain.generator
    boards = np.array([level.grid.ravel() for level in generate(options.boards, generator, options.seed)])
    search = replace(config.search, passes=options.passes, max_steps=options.max_steps)
    episodes = MCTS(
        domain, values, search, batch=64, seed=options.seed, num_episodes=options.boards, starts=boards
    ).play()

    shortest, length, spoilt_at, believed, is_alive = [], [], [], [], []
    for board, episode in zip(boards, episodes, strict=True):
        truth = Truth(board, generator.width).lengths(episode.states)
        believed.append(values.evaluate(domain.observe(episode.states)).mean(axis=1))
        is_alive.append(truth >= 0)
        if episode.solved:
            shortest.append(truth[0])
            length.append(len(episode))
        else:
            spoilt_at.append(int(np.argmax(truth < 0)) if (truth < 0).any() else None)
    spoilt = [step for step in spoilt_at if step is not None]
    value, alive = np.concatenate(believed), np.concatenate(is_alive)
    print(f"| {options.agent}, {options.passes} passes, {options.boards} boards, seed {options.seed} | |")
    print("|---|---|")
    print(f"| won within {options.max_steps} steps | {len(length) / len(episodes):.1%} |")
    print(f"| steps to win (shortest possible) | {np.mean(length):.1f} ({np.mean(shortest):.1f}) |")
    print(f"| lost episodes that were spoilt for good | {len(spoilt)} of {len(spoilt_at)} |")
    print(f"| before step (quartiles) | {', '.join(f'{q:.0f}' for q in np.quantile(spoilt, (0.25, 0.5, 0.75)))} |")
    print(
        f"| mean value of positions with a solution, without | {value[alive].mean():.2f}, {value[~alive].mean():.2f} |"
    )
    print(f"| one with a solution is valued above one without | {area(value[alive], value[~alive]):.1%} |")


if __name__ == "__main__":
    main()
