"""How many moves are made in one go."""

import time

from bathysphere.planning.pace import Pace


class Player:
    """Takes the same time for every move."""

    def __init__(self, seconds_per_move):
        self.seconds_per_move = seconds_per_move
        self.asked = []

    def step(self, moves=1):
        self.asked.append(moves)
        time.sleep(moves * self.seconds_per_move)
        return [f"episode {moves}"]


def test_calls_grow_gradually_towards_their_length():
    player, pace = Player(0.001), Pace(0.02)
    assert pace.step(player) == ["episode 1"]
    for _ in range(4):
        pace.step(player)
    assert player.asked[:2] == [1, 4]  # never more than four times as many as before
    assert all(moves <= 20 for moves in player.asked)  # sleeping takes at least as long as asked for


def test_slow_players_make_one_move_at_a_time():
    player, pace = Player(0.01), Pace(0.001)
    for _ in range(3):
        pace.step(player)
    assert player.asked == [1, 1, 1]
