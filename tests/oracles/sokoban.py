"""Sokoban done slowly and plainly: sets of cells, one state at a time."""

from __future__ import annotations

from itertools import pairwise

WALKS = {"u": (-1, 0), "r": (0, 1), "d": (1, 0), "l": (0, -1)}  # in the order of the actions


class Board:
    """A board drawn with XSB characters, as sets of (row, column)."""

    def __init__(self, rows: list[str]) -> None:
        cells = {(y, x): tile for y, row in enumerate(rows) for x, tile in enumerate(row)}
        self.height, self.width = len(rows), len(rows[0])
        self.walls = {cell for cell, tile in cells.items() if tile == "#"}
        self.targets = {cell for cell, tile in cells.items() if tile in ".*+"}
        self.boxes = {cell for cell, tile in cells.items() if tile in "$*"}
        (self.player,) = (cell for cell, tile in cells.items() if tile in "@+")

    def rows(self) -> list[str]:
        def tile(cell: tuple[int, int]) -> str:
            on_target = cell in self.targets
            if cell in self.walls:
                return "#"
            if cell in self.boxes:
                return "*" if on_target else "$"
            if cell == self.player:
                return "+" if on_target else "@"
            return "." if on_target else " "

        return ["".join(tile((y, x)) for x in range(self.width)) for y in range(self.height)]

    def solved(self) -> bool:
        return self.boxes <= self.targets

    def is_free(self, cell: tuple[int, int]) -> bool:
        inside = 0 <= cell[0] < self.height and 0 <= cell[1] < self.width
        return inside and cell not in self.walls and cell not in self.boxes

    def move(self, letter: str) -> str:
        """Moves the player; returns "walk", "push" or "blocked"."""
        dy, dx = WALKS[letter]
        ahead = (self.player[0] + dy, self.player[1] + dx)
        behind = (ahead[0] + dy, ahead[1] + dx)
        if ahead in self.boxes and self.is_free(behind):
            self.boxes = (self.boxes - {ahead}) | {behind}
            self.player = ahead
            return "push"
        if self.is_free(ahead):
            self.player = ahead
            return "walk"
        return "blocked"


def successor(
    rows: list[str], letter: str, step: float, box_on: float, box_off: float, finished: float
) -> tuple[list[str], float, bool]:
    """Returns (rows, reward, solved) after one move."""
    board = Board(rows)
    if board.solved():
        return rows, 0.0, True
    before = len(board.boxes & board.targets)
    board.move(letter)
    after = len(board.boxes & board.targets)
    reward = step
    if after > before:
        reward += box_on
    if after < before:
        reward += box_off
    if board.solved():
        reward += finished
    return board.rows(), reward, board.solved()


def successor_calls(domain, states):
    """Returns calls for `bathysphere bench`, each of which computes one successor of one of `states`."""
    pay = domain.config.rewards
    prices = (pay.step, pay.box_on_target, pay.box_off_target, pay.finished)
    boards = [domain.text(state).split("\n") for state in states]
    return [lambda b=b, letter=letter: successor(b, letter, *prices) for b in boards for letter in WALKS]


def plays_out(rows: list[str], moves: str) -> bool:
    """Tells whether LURD moves are possible, push exactly at capitals, and solve the board with the last."""
    board = Board(rows)
    for letter in moves:
        if board.solved():
            return False
        if board.move(letter.lower()) != ("push" if letter.isupper() else "walk"):
            return False
    return board.solved()


def carve_room(height, width, num_steps, turn_probability, brushes, rng):
    """The walk that carves a room, as a set of (row, column) inside the border; brushes are rows such as "010"."""
    floor = set()
    y, x = int(rng.integers(1, height - 1)), int(rng.integers(1, width - 1))
    steps = ((-1, 0), (1, 0), (0, -1), (0, 1))
    dy, dx = steps[rng.integers(4)]
    for _ in range(num_steps):
        if rng.random() < turn_probability:
            dy, dx = steps[rng.integers(4)]
        y = min(max(y + dy, 1), height - 2)
        x = min(max(x + dx, 1), width - 2)
        brush = brushes[rng.integers(len(brushes))]
        floor |= {(y + i - 1, x + j - 1) for i in range(3) for j in range(3) if brush[i][j] == "1"}
    return {(y, x) for y, x in floor if 1 <= y < height - 1 and 1 <= x < width - 1}


class ReversePlayer:
    """The recursive reverse play: remembers every position in a set, copies everything at every step."""

    def __init__(self, floor: set[tuple[int, int]], targets: list[tuple[int, int]], max_states: int) -> None:
        self.floor = floor
        self.targets = targets
        self.max_states = max_states
        self.explored: set[tuple[frozenset[tuple[int, int]], tuple[int, int]]] = set()
        self.best_score = 0
        self.best: tuple[list[tuple[int, int]], tuple[int, int]] | None = None

    def search(
        self,
        boxes: list[tuple[int, int]],
        player: tuple[int, int],
        changes: int,
        last_pulled: int | None,
        lives: int,
    ) -> None:
        lives -= 1
        if lives <= 0 or len(self.explored) >= self.max_states:
            return
        position = (frozenset(boxes), player)
        if position in self.explored:
            return
        self.explored.add(position)
        distance = sum(abs(y - ty) + abs(x - tx) for (y, x), (ty, tx) in zip(boxes, self.targets, strict=True))
        score = changes * distance
        if any(target in boxes for target in self.targets):
            score = 0
        if score > self.best_score:
            self.best_score, self.best = score, (boxes, player)
        for pulls in (True, False):
            for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                there = (player[0] + dy, player[1] + dx)
                if there not in self.floor or there in boxes:
                    continue
                behind = (player[0] - dy, player[1] - dx)
                moved, pulled = list(boxes), None
                if pulls and behind in boxes:
                    pulled = boxes.index(behind)
                    moved[pulled] = player
                self.search(moved, there, changes + (pulled != last_pulled), pulled, lives)


def relabel(
    boards: list[list[str]], cut: int, step: float, box_on: float, box_off: float, finished: float
) -> tuple[list[list[str]], list[float]] | None:
    """Hindsight with a given cut; None if no box has moved away from where it began."""
    history = [Board(rows) for rows in boards[:cut]]
    for board in history:
        board.targets = set(Board(boards[cut - 1]).boxes)
    if history[0].solved():
        return None
    kept, rewards = [], []
    for now, after in pairwise(history):
        kept.append(now.rows())
        gained = len(after.boxes & after.targets) - len(now.boxes & now.targets)
        reward = step + (box_on if gained > 0 else 0.0) + (box_off if gained < 0 else 0.0)
        rewards.append(reward + (finished if after.solved() else 0.0))
        if after.solved():
            break
    return kept, rewards
