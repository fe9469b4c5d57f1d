"""Text from files reaches a terminal as text: no escape sequence, no markup of rich's, acts."""

import json

import pytest

from bathysphere.agents import agent_file
from bathysphere.agents.loading import shipped_agents
from bathysphere.cli import main
from bathysphere.errors import BathysphereError
from bathysphere.storage.tensors import halved

ACTS = ("\x1b", "\x9b", "\x07", "\u202e")
HOSTILE = "[bold red]x[-]\x9b2J\u202e"
BOARD = "####\n#@.#\n#$ #\n####\n"


def said(capsys) -> str:
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert not any(code in text for code in ACTS)
    return text


@pytest.fixture
def levels(tmp_path):
    file = tmp_path / "levels.xsb"
    file.write_text(f"{BOARD}Title: {HOSTILE}\n", encoding="utf-8")
    return str(file)


def test_titles_of_levels(levels, capsys):
    assert main(["levels", "show", levels]) == 0
    assert "[bold red]x[-]" in said(capsys)


def test_titles_of_levels_that_cannot_be_played(levels, capsys):
    assert main(["evaluate", "sokoban-10x10", "--levels", levels, "--episodes", "1"]) == 2
    assert "error: " in said(capsys)


def test_titles_of_levels_that_are_not_solved(levels, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # solutions are written where one is
    assert main(["solve", levels, "--seconds", "1"]) in (0, 1)
    assert "levels" in said(capsys)


def test_names_of_files(tmp_path, capsys):
    assert main(["levels", "show", str(tmp_path / "no\x1b[31m.txt")]) == 2
    assert "no\\x1b[31m.txt" in said(capsys)


def test_runs(tmp_path, capsys):
    run = tmp_path / f"run {HOSTILE}"
    run.mkdir()
    config = {"preset": f"[blink]{HOSTILE}", "domain": {"name": "deep-sea"}}
    (run / "config.json").write_text(json.dumps(config))
    (run / "result.json").write_text(json.dumps({"stopped_by": f"[red]{HOSTILE}", "env_steps": "many"}))
    assert main(["runs", str(tmp_path)]) == 0
    text = said(capsys)
    assert "[blink][bold red]x[-]" in text
    assert "[red][bold red]x[-]" in text


def test_cards(tmp_path, capsys):
    agent = agent_file.read(shipped_agents()["deep-sea"])
    card = agent.card.__class__(HOSTILE, 0, HOSTILE, 1, 1.0, HOSTILE, ())
    file = tmp_path / "mine.safetensors"
    agent_file.write(file, agent.config, agent.observation, card, halved(agent.weights))
    assert main(["agents", str(file)]) == 0
    assert "[bold red]x[-]" in said(capsys)


def test_errors_keep_their_lines(monkeypatch, capsys):
    def fail(argv):
        raise BathysphereError("one\n\ttwo\x07")

    monkeypatch.setattr("bathysphere.cli.runs.run", fail)
    assert main(["runs"]) == 2
    assert capsys.readouterr().err == "error: one\n\ttwo\\x07\n"
