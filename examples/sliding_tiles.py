"""A puzzle of your own: sliding tiles, written one state at a time, and once more for speed with Numba.

python examples/sliding_tiles.py [steps]                           (about 20 seconds)
bathysphere train sliding_tiles:SlidingTiles --stop.on-solved      (in the folder of this file)

Eight tiles lie on a 3 x 3 board, and the gap is moved until they are in order. Each episode begins with another one of
181,440 boards, and only the last step is rewarded. The file prints how fast both worlds are, trains in the fast one,
and says how often the agent solves new boards and in how many steps. Beside it: the fewest steps possible, and how many
states breadth-first search looks at. It needs no learning here; the agent looks at a thousandth of the states.

The first win is a matter of luck: seed 1 has it early, seed 0 only after 30,000 steps.
"""

import sys
import time

import numpy as np
from numba import njit
from PIL import Image, ImageDraw, ImageFont

import bathysphere
from bathysphere.domains.base import Categories, Domain, Successors

MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}  # where the gap goes


class SlidingTiles:
    """One state at a time. A state is the board row by row, a tuple in which 0 is the gap."""

    actions = tuple(MOVES)
    max_steps = 60

    def start(self, rng):
        """Returns a board that 200 random steps away from the ordered one lead to."""
        board = tuple(range(9))
        for action in rng.choice(self.actions, size=200):
            board = self.step(board, action)[0]
        return board

    def step(self, board, action):
        """Returns the next board, the reward, and whether the episode is over."""
        gap, (down, right) = board.index(0), MOVES[action]
        if not (0 <= gap // 3 + down < 3 and 0 <= gap % 3 + right < 3):
            return board, 0.0, False  # impossible: nothing changes
        tiles, other = list(board), gap + 3 * down + right
        tiles[gap], tiles[other] = tiles[other], 0
        is_ordered = tiles == list(range(9))
        return tuple(tiles), float(is_ordered), is_ordered

    def text(self, board):
        """Draws the board."""
        return "\n".join(" ".join(str(tile or " ") for tile in board[row : row + 3]) for row in (0, 3, 6))


class FastTiles:
    """The same for many states at once. A state is nine bytes."""

    name, state_size, max_steps = "fast-tiles", 9, 60
    action_names = SlidingTiles.actions
    observation = Categories((9,), 9)  # nine numbers below nine

    def initial(self, n, rng):
        """Returns n boards, uint8 [n, 9]."""
        boards = np.tile(np.arange(9, dtype=np.uint8), (n, 1))
        shuffle(boards, rng.integers(4, size=(n, 200)))
        return boards

    def successors(self, states):
        """Returns where every action leads: boards, rewards, and what is over and solved."""
        after = Successors.empty(len(states), 4, 9)
        slide_all(states, after.states, after.rewards, after.terminal)
        after.solved[:] = after.terminal
        return after

    def observe(self, states):
        """Returns what the network sees, integers [n, 9]."""
        return states.astype(np.int32)

    def text(self, state):
        """Draws the board with characters."""
        return SlidingTiles().text(state.tolist())

    def render(self, state):
        """Draws the board, uint8 [156, 156, 3]."""
        picture = Image.new("RGB", (156, 156), "white")
        pen, font = ImageDraw.Draw(picture), ImageFont.load_default(28)
        for cell, tile in enumerate(state.tolist()):
            left, top = 4 + cell % 3 * 50, 4 + cell // 3 * 50
            if tile:
                pen.rounded_rectangle(
                    (left, top, left + 47, top + 47), 8, fill="#1f4e79" if tile == cell else "#8fb3d1"
                )
                pen.text((left + 24, top + 24), str(tile), "white", font, anchor="mm")
        return np.asarray(picture)


@njit(cache=True)
def slide(board, action):
    """Moves the gap of a board, uint8 [9]; writes into it. Actions 0 to 3 are up, down, left and right."""
    gap = 0
    while board[gap] != 0:
        gap += 1
    other = gap
    if action == 0 and gap >= 3:
        other = gap - 3
    elif action == 1 and gap < 6:
        other = gap + 3
    elif action == 2 and gap % 3 > 0:
        other = gap - 1
    elif action == 3 and gap % 3 < 2:
        other = gap + 1
    board[gap], board[other] = board[other], 0


@njit(cache=True)
def is_ordered(board):
    """Tells whether a board, uint8 [9], is solved."""
    cell = 0
    while cell < 9 and board[cell] == cell:
        cell += 1
    return cell == 9


@njit(cache=True)
def slide_all(boards, after, rewards, over):
    """Writes every action's board, reward and end: [n, 4, 9], [n, 4], [n, 4]. A solved board stays as it is."""
    for n in range(len(boards)):
        was_over = is_ordered(boards[n])
        for action in range(4):
            after[n, action] = boards[n]
            if not was_over:
                slide(after[n, action], action)
            over[n, action] = is_ordered(after[n, action])
            rewards[n, action] = 1.0 if over[n, action] and not was_over else 0.0


@njit(cache=True)
def shuffle(boards, actions):
    """Makes the steps `actions`, [n, T], on boards, uint8 [n, 9]."""
    for n in range(len(boards)):
        for action in actions[n]:
            slide(boards[n], action)


def speed(domain: Domain, num_states: int) -> float:
    """Returns how many states' successors a world finds in a second, 500 at a time."""
    states = domain.initial(500, np.random.default_rng(0))
    domain.successors(states)  # what has to be compiled is compiled now
    began = time.perf_counter()
    for _ in range(num_states // 500):
        domain.successors(states)
    return num_states / (time.perf_counter() - began)


def shortest_ways() -> dict[bytes, int]:
    """Returns the fewest steps from every board to the ordered one, by breadth-first search."""
    frontier = np.arange(9, dtype=np.uint8)[None]
    distance = {frontier[0].tobytes(): 0}
    for steps in range(1, 32):  # the farthest boards are 31 steps away
        found = np.repeat(frontier, 4, axis=0)
        shuffle(found, np.tile(np.arange(4), len(frontier))[:, None])
        boards = sorted({board.tobytes() for board in found} - distance.keys())
        distance |= dict.fromkeys(boards, steps)
        frontier = np.frombuffer(b"".join(boards), np.uint8).reshape(-1, 9)
    return distance


def main(steps: int = 30_000) -> None:
    """Measures both worlds, trains, evaluates."""
    one_at_a_time = speed(bathysphere.from_steps(SlidingTiles), 5_000)
    with_numba = speed(FastTiles(), 1_000_000)
    print(f"all steps out of a state: {one_at_a_time:,.0f} states/s one at a time, {with_numba:,.0f} with Numba")

    run = bathysphere.train(FastTiles, seed=1, steps=steps, show=sys.stdout.isatty())
    print(f"trained for {run['env_steps']:,} steps, {run['wall_seconds']:.0f} s; see {run['run_dir']}")
    score = run.evaluate(100, risk_coef=0.0)  # now it only wants to win

    distance = shortest_ways()
    fewest = [distance[board.tobytes()] for board in FastTiles().initial(2_000, np.random.default_rng(0))]
    nearer = np.cumsum(np.bincount(list(distance.values())))  # boards at most so far away
    print(f"solves {score.solved} of {score.count} new boards in {score.mean_solution_length or 0:.1f} steps each")
    print(f"after looking at the successors of {score.model_calls:.0f} states for each")
    print(f"the fewest possible are {np.mean(fewest):.1f} steps on average")
    print(f"breadth-first search looks at {np.mean(nearer[np.array(fewest) - 1]):,.0f} states or more for each")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
