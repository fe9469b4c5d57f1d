"""`solve`: what is written, what is said, what is refused."""

import json
import multiprocessing
from pathlib import Path

import pytest

from bathysphere import cli
from bathysphere.cli import solve as solve_module
from bathysphere.domains.sokoban import read_levels
from bathysphere.domains.sokoban.levels import solves
from tests.puzzles.small import ENDLESS_TEXT, LEVELS, write_agent


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    return write_agent(tmp_path_factory.mktemp("solve") / "board.safetensors")


@pytest.fixture
def levels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.xsb").write_text(LEVELS)
    return Path("mine.xsb")


def _json(capsys, *argv):
    assert cli.main([*map(str, argv), "--json"]) == 0
    captured = capsys.readouterr()
    assert all(line.startswith("Compiling for this machine") for line in captured.err.splitlines())
    return json.loads(captured.out)


def _solutions(path):
    return {level.title: level.solution for level in read_levels(path)}


def test_solve_writes_solutions_and_names_what_it_could_not_solve(levels, agent, capsys):
    arguments = ["solve", str(levels), "--agent", str(agent), "--seconds", "600"]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert "Solved 4 of 5 levels in " in out
    assert "The solutions are in mine-solved.sok." in out
    assert "2 (hopeless): has no solution: all that can be reached was searched" in out
    assert "More time may help" not in out
    for level in read_levels("mine-solved.sok"):
        assert (level.solution is None) == (level.title == "hopeless")
        assert level.solution is None or solves(level, level.solution)
    assert cli.main(arguments) == 2
    assert "mine-solved.sok exists already" in capsys.readouterr().err
    assert cli.main([*arguments, "--out", "mine-solved.sok"]) == 0


def test_what_time_was_too_short_for(levels, agent, capsys):
    levels.write_text(ENDLESS_TEXT.replace("Title: endless\n", ""))
    assert cli.main(["solve", str(levels), "--agent", str(agent), "--seconds", "0.2"]) == 0
    out = capsys.readouterr().out
    assert "1 (untitled): no solution found in its time" in out
    assert "More time may help: --seconds 1." in out


def test_statistics_of_every_level(levels, agent, capsys):
    result = _json(capsys, "solve", levels, "--agent", agent, "--out", "out.sok", "--seconds", "600", "--width", "4")
    assert (result["levels"], result["solved"], result["failures"]) == (5, 4, [])
    assert [level["title"] for level in result["unsolved"]] == ["hopeless"]
    easy = result["results"][0]
    assert {"solved", "moves", "pushes", "expansions", "states", "seconds", "ended_by"} <= easy.keys()
    assert (easy["solved"], easy["moves"], easy["pushes"], easy["ended_by"]) == (True, 2, 1, "solution")
    assert (result["out"], result["agent"], result["levels_file"]) == ("out.sok", str(agent), "mine.xsb")
    assert result["seconds"] > 0
    assert _solutions("out.sok") == {row["title"]: row["solution"] for row in result["results"]}


def test_an_agent_of_one_size_leaves_out_what_does_not_fit(levels, tmp_path, capsys):
    small = write_agent(tmp_path / "cnn.safetensors", "cnn")
    result = _json(capsys, "solve", levels, "--agent", small, "--out", "out.sok", "--seconds", "600")
    reasons = {level["title"]: level["reason"] for level in result["unsolved"]}
    assert reasons["large"] == "has 3x8 cells, and the agent knows boards of 7x7 at most"
    assert (result["solved"], reasons.keys()) == (3, {"large", "hopeless"})


def test_more_jobs_and_better_solutions(levels, agent, capsys):
    plain = _json(capsys, "solve", levels, "--agent", agent, "--out", "one.sok", "--seconds", "600")
    assert plain["solved"] == 4
    options = ["--seconds", "600", "--jobs", "2", "--improve", "moves"]
    better = _json(capsys, "solve", levels, "--agent", agent, "--out", "two.sok", *options)
    for before, after in zip(plain["results"], better["results"], strict=True):
        assert before["solved"] == after["solved"]
        assert not before["solved"] or after["moves"] <= before["moves"]
    assert {title for title, moves in _solutions("two.sok").items() if moves is None} == {"hopeless"}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_solve_keeps_what_it_has_when_interrupted(levels, agent, jobs, monkeypatch):
    def interrupted(solving, work):
        for step in work:
            yield step
            if solving.solutions:
                raise KeyboardInterrupt

    levels.write_text(LEVELS + ENDLESS_TEXT)
    monkeypatch.setattr(solve_module, "track_solving", interrupted)
    arguments = ["solve", str(levels), "--agent", str(agent), "--out", "out.sok", "--seconds", "600", "--jobs", jobs]
    assert cli.main(arguments) == 130
    assert any(_solutions("out.sok").values())
    assert not multiprocessing.active_children()


def test_the_file_is_written_while_the_work_goes_on(levels, agent, monkeypatch):
    written = []
    monkeypatch.setattr(solve_module, "_WRITE_SECONDS", -1.0)
    write = solve_module.write_solutions

    def watched(path, levels, solutions):
        write(path, levels, solutions)
        written.append(sum(moves is not None for moves in _solutions(path).values()))

    monkeypatch.setattr(solve_module, "write_solutions", watched)
    assert cli.main(["solve", str(levels), "--agent", str(agent), "--out", "out.sok", "--seconds", "600"]) == 0
    assert written == sorted(written)
    assert {1, 2, 3, 4} <= set(written)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.xsb"], "Cannot read nowhere.xsb"),
        (["mine.xsb", "--agent", "nobody"], "There is no agent 'nobody'"),
        (["mine.xsb", "--agent", "deep-sea"], "deep-sea was not trained in Sokoban"),
        (["mine.xsb", "--out", "out.txt"], "Only .sok files have a place for solutions"),
        (["mine.xsb", "--out", "nowhere/out.sok"], "There is no folder nowhere"),
        (["mine.sok", "--out", "./mine.sok"], "one of the level files themselves"),
        ([".", "--out", "out.sok"], "one of the level files themselves"),
        (["mine.xsb", "--seconds", "0"], "seconds is 0.0; expected a number above 0"),
        (["mine.xsb", "--jobs", "0"], "--jobs is 0; expected at least 1"),
        (["mine.xsb", "--width", "0"], "width is 0; expected at least 1"),
        (["mine.xsb", "--max-expansions", "0"], "max_expansions is 0; expected at least 1"),
        (["mine.xsb", "--planner", "mcts"], "whole plans: best-first, levin and phs; got mcts"),
        (["mine.xsb", "--planner", "bestfirst"], "Did you mean 'best-first'?"),
        (["mine.xsb", "--planner", "phs"], "phs is guided by a policy"),
        (["mine.xsb", "--passes", "40"], "solve has no --passes any more"),
        (["mine.xsb", "--max_passes=40"], "solve has no --max-passes any more"),
    ],
)
def test_mistakes_of_solve_are_sentences(levels, agent, arguments, sentence, capsys):
    Path("mine.sok").write_text(LEVELS)
    given = [] if "--agent" in arguments else ["--agent", str(agent)]
    assert cli.main(["solve", *arguments, *given]) == 2
    assert sentence in capsys.readouterr().err
    assert Path("mine.sok").read_text() == LEVELS
    assert not Path("mine-solved.sok").exists()
