"""How many moves are made in one go."""

from types import SimpleNamespace

import pytest

from bathysphere.planning.planner import TimedSteps


class Player:
    """Takes the same time for every move, by a clock of its own."""

    def __init__(self, seconds_per_move):
        self.seconds_per_move = seconds_per_move
        self.asked, self.now = [], 0.0

    def step(self, moves=1):
        self.asked.append(moves)
        self.now += moves * self.seconds_per_move
        return [f"episode {moves}"]


@pytest.fixture
def play(monkeypatch):
    """Makes a player whose clock is the planner's."""

    def make(seconds_per_move):
        player = Player(seconds_per_move)
        clock = SimpleNamespace(perf_counter=lambda: player.now)
        monkeypatch.setattr("bathysphere.planning.planner.time", clock)
        return player

    return make


def test_calls_grow_gradually_towards_their_length(play):
    player, pace = play(0.001), TimedSteps(0.0205)
    assert pace.step(player) == ["episode 1"]
    for _ in range(4):
        pace.step(player)
    assert player.asked == [1, 4, 16, 20, 20]  # never more than four times as many as before


def test_slow_players_make_one_move_at_a_time(play):
    player, pace = play(0.01), TimedSteps(0.001)
    for _ in range(3):
        pace.step(player)
    assert player.asked == [1, 1, 1]
