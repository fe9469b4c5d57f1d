"""MiniGrid's KeyCorridor with a new level in every episode: learnt, and then played in MiniGrid itself.

python examples/minigrid_corridors.py [LEVEL [SECONDS]]     (KeyCorridorS3R3 and 120; a few minutes)

A key lies in one room, a ball behind a locked door in another, and only fetching the ball is rewarded. MiniGrid's own
environment takes half a millisecond and more for a copy and a step; with a new level in every episode nothing that is
remembered helps, and learning has to wait for it (minigrid_worlds.py). So its rules are written once more here, with
MiniGrid making the levels, and the whole level is shown to the network. What is learnt plays in MiniGrid's environment.

Breadth-first search with as many expansions, which needs no learning, is the baseline.
"""

import sys

import gymnasium
import minigrid  # noqa: F401  (makes its ids known)
import numpy as np

import bathysphere

EMPTY, WALL, KEY, BALL, OPEN, CLOSED, LOCKED, AGENT = range(8)
AHEAD = ((0, 1), (1, 0), (0, -1), (-1, 0))  # rows and columns, by direction
EXPANSIONS = 300


class KeyCorridor:
    """A state is the board row by row, the agent's cell, its direction, and whether it carries the key."""

    actions = ("left", "right", "forward", "pickup", "drop", "toggle")

    def __init__(self, level: str = "KeyCorridorS3R3"):
        self.env = gymnasium.make(f"MiniGrid-{level}-v0")
        self.env.reset(seed=0)
        inner = self.env.unwrapped
        self.name, self.max_steps, self.shape = level, inner.max_steps, (inner.height, inner.width)

    def start(self, rng):
        """Returns a new level."""
        self.env.reset(seed=int(rng.integers(2**31)))
        return read(self.env)

    def step(self, state, action):
        """Makes a step; one that is impossible changes nothing."""
        *board, cell, direction, has_key = state
        down, right = AHEAD[direction]
        ahead = cell + down * self.shape[1] + right
        thing, is_won = board[ahead], False
        if action in ("left", "right"):
            direction = (direction + (1 if action == "right" else -1)) % 4
        elif action == "forward" and thing in (EMPTY, OPEN):
            cell = ahead
        elif action == "pickup" and thing == BALL:
            is_won = not has_key  # there is no hand free for it
        elif action == "pickup" and thing == KEY:
            board[ahead], has_key = EMPTY, 1
        elif action == "drop" and thing == EMPTY and has_key:
            board[ahead], has_key = KEY, 0
        elif action == "toggle" and (thing in (OPEN, CLOSED) or (thing == LOCKED and has_key)):
            board[ahead] = CLOSED if thing == OPEN else OPEN
        return (*board, cell, direction, has_key), float(is_won), is_won

    def observe(self, state):
        """Returns the whole level, a number for each cell."""
        *board, cell, direction, has_key = state
        board[cell] = AGENT + 4 * has_key + direction
        return np.array(board, np.uint8).reshape(self.shape)

    def text(self, state):
        """Returns the level for people; the agent is an arrow."""
        return "\n".join("".join(" #kO'+L>v<^>v<^"[cell] for cell in row) for row in self.observe(state))


def read(env):
    """Returns the state that MiniGrid's environment is in."""
    inner = env.unwrapped
    column, row = inner.agent_pos
    board = map(_code, inner.grid.grid)
    return (*board, int(row * inner.width + column), int(inner.agent_dir), int(inner.carrying is not None))


def _code(thing) -> int:
    if thing is None:
        return EMPTY
    if thing.type == "door":
        return OPEN if thing.is_open else LOCKED if thing.is_locked else CLOSED
    return {"wall": WALL, "key": KEY, "ball": BALL}[thing.type]


def play_in_minigrid(agent: bathysphere.Agent, level: str, episodes: int) -> int:
    """Lets the agent act in MiniGrid's own environment; returns how many episodes it wins."""
    env, wins = gymnasium.make(f"MiniGrid-{level}-v0"), 0
    for seed in range(episodes):
        env.reset(seed=10_000 + seed)
        reward, is_over = 0.0, False
        while not is_over:
            _, reward, terminated, truncated, _ = env.step(agent.act(read(env)))
            is_over = terminated or truncated
        wins += reward > 0
    return wins


def main() -> None:
    """Trains, and compares on new levels."""
    level, seconds = (*sys.argv[1:3], *("KeyCorridorS3R3", "120")[len(sys.argv) - 1 :])
    run = bathysphere.train(
        KeyCorridor(level),
        steps=10**9,
        seconds=float(seconds),
        planner="best-first",
        batch=8,
        search={"max_expansions": EXPANSIONS},
        values={"network": "mlp", "num_members": 4, "hidden": [128, 128]},
        learning={"graph_states": 50},
        pictures=False,
    )
    print(run, flush=True)
    print("trained:      ", run.evaluate(episodes=200, seed=1), flush=True)
    print("breadth-first:", run.evaluate(episodes=200, seed=1, weight=0.0), flush=True)
    print("in MiniGrid itself:", play_in_minigrid(run.agent, level, 50), "of 50 episodes won")


if __name__ == "__main__":
    main()
