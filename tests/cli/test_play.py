import io
import json
import os
import pty
import sys
from dataclasses import dataclass

import numpy as np
from PIL import Image

from bathysphere import cli
from bathysphere.cli.play import press, status
from bathysphere.domains import DeepSea, DeepSeaConfig, DomainConfig, ToyMontezuma, ToyMontezumaConfig, registry
from bathysphere.domains.playing import PlayedEpisode
from tests.domains.corridor import Corridor


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


def _press(episode, keys):
    for key in keys:
        press(episode, key)


def test_keys_step_undo_and_restart():
    domain = DeepSea(DeepSeaConfig(4))
    episode = PlayedEpisode(domain, domain.initial(1, np.random.default_rng(0))[0])
    _press(episode, "dddd")
    assert (len(episode.actions), episode.terminal, episode.solved) == (3, True, False)
    assert "That was the end" in status(episode)
    _press(episode, "uuuuaaa")
    assert episode.solved
    _press(episode, "r")
    assert (episode.actions, episode.terminal, len(episode.states)) == ([], False, 1)


def test_the_time_limit_ends_an_episode():
    domain = ToyMontezuma(ToyMontezumaConfig("one-room", max_steps=2))
    episode = PlayedEpisode(domain, domain.initial(1, np.random.default_rng(0))[0])
    _press(episode, "www")
    assert len(episode.actions) == 2
    assert "Time is up" in status(episode)


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


@dataclass(frozen=True)
class BareConfig(DomainConfig):
    """No settings."""


class Bare(Corridor):
    """A domain that offers neither pictures nor text."""

    name = "bare"
    Config = BareConfig

    def __init__(self, config):
        self.config = config


def test_a_domain_of_ones_own_without_text_and_pictures(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(registry, "_CLASSES", {**registry._CLASSES, "bare": Bare})
    pipe(monkeypatch, "ddd")
    assert cli.main(["play", "bare"]) == 0
    assert capsys.readouterr().out.startswith("04\nbare: step ")
    out = tmp_path / "walk"
    assert cli.main(["draw", "bare", "--by", "breadth-first", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["solved"]
    with Image.open(f"{out}.gif") as film:
        assert film.n_frames > 1
