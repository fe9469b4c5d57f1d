import io
import json
import os
import pty
import sys

import numpy as np

from bathysphere import cli
from bathysphere.cli.play import Game
from bathysphere.domains import DeepSea, DeepSeaConfig, ToyMontezuma, ToyMontezumaConfig


def pipe(monkeypatch, keys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(keys))


def test_keys_through_a_pipe(monkeypatch, capsys):
    pipe(monkeypatch, "wdx1u\nq s")
    assert cli.main(["play", "toy-montezuma", "--map", "one-room", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "world": "toy-montezuma",
        "steps": 2,
        "reward": 0,
        "terminal": False,
        "solved": False,
        "actions": ["north", "east"],
    }


def test_the_board_is_shown_at_the_end(monkeypatch, capsys):
    pipe(monkeypatch, "aaa")
    assert cli.main(["play", "deep-sea", "--size", "4"]) == 0
    assert capsys.readouterr().out.endswith("deep-sea: step 3 of 3, reward 0.9933. Solved!\n")


def test_no_terminal_and_no_keys_get_a_sentence(monkeypatch, capsys):
    pipe(monkeypatch, "")
    assert cli.main(["play", "sokoban"]) == 2
    assert "echo wasd | bathysphere play sokoban" in capsys.readouterr().err


def test_a_game():
    domain = DeepSea(DeepSeaConfig(4))
    game = Game(domain, domain.initial(1, np.random.default_rng(0))[0])
    for key in "dddd":
        game.press(key)
    assert (len(game.actions), game.terminal, game.solved) == (3, True, False)
    assert "That was the end" in game.status()
    for key in "uuuuaaa":
        game.press(key)
    assert game.solved
    game.press("r")
    assert (game.actions, game.terminal, len(game.states)) == ([], False, 1)


def test_the_time_limit_ends_a_game():
    domain = ToyMontezuma(ToyMontezumaConfig("one-room", max_steps=2))
    game = Game(domain, domain.initial(1, np.random.default_rng(0))[0])
    for key in "www":
        game.press(key)
    assert len(game.actions) == 2
    assert "Time is up" in game.status()


def test_a_terminal(monkeypatch, capsys):
    ours, theirs = pty.openpty()
    os.write(ours, b"\x1b[A\x1bOCuq")  # up, right, undo, quit
    with os.fdopen(theirs, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert cli.main(["play", "toy-montezuma", "--map", "one-room", "--json"]) == 0
    os.close(ours)
    captured = capsys.readouterr()
    assert json.loads(captured.out)["actions"] == ["north"]
    assert "arrows or wasd move" in captured.err
