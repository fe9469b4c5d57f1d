import io
import json
import os
import pty
import re
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from bathysphere import cli
from bathysphere.cli.play import press, status
from bathysphere.domains import (
    DeepSea,
    DeepSeaConfig,
    DomainConfig,
    ToyMontezuma,
    ToyMontezumaConfig,
    find_domain,
    make_domain,
    registry,
)
from bathysphere.domains.playing import PlayedEpisode
from bathysphere.domains.presentation import styled_text_of, text_of
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


def test_no_terminal_is_found_out_before_the_world_is_made(monkeypatch, capsys):
    def make(config):
        raise AssertionError("the world was made first")

    monkeypatch.setattr("bathysphere.cli.play.make_domain", make)
    pipe(monkeypatch, "")
    assert cli.main(["play", "deep-sea"]) == 2
    assert "echo wasd | bathysphere play deep-sea" in capsys.readouterr().err


@pytest.mark.parametrize(("world", "shines"), [("deep-sea", "o"), ("sokoban", "@"), ("toy-montezuma", "@")])
def test_play_has_colours(world, shines):
    domain = make_domain(find_domain(world).Config())
    state = domain.initial(1, np.random.default_rng(0))[0]
    text = styled_text_of(domain, state)
    assert text.plain == text_of(domain, state)
    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system="standard", highlight=False).print(text)
    assert re.search(rf"\x1b\[1;3\dm{re.escape(shines)}\x1b\[0m", out.getvalue())


def test_deep_sea_says_that_right_may_be_left(monkeypatch, capsys):
    ours, theirs = pty.openpty()
    os.write(ours, b"q")
    with os.fdopen(theirs, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert cli.main(["play", "deep-sea", "--json"]) == 0
    os.close(ours)
    assert "→ may steer left" in capsys.readouterr().err


def test_lines_end_between_words(monkeypatch, capsys):
    ours, theirs = pty.openpty()
    os.write(ours, b"q")
    monkeypatch.setenv("COLUMNS", "60")
    with os.fdopen(theirs, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert cli.main(["play", "deep-sea", "--json"]) == 0
    os.close(ours)
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 60
    assert any(line.rstrip().endswith("cell, so →") for line in lines)
