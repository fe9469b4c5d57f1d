"""`evaluate`: levels and episodes, passes and planners compared."""

import json
from pathlib import Path

import pytest
from PIL import Image

from bathysphere import cli
from bathysphere.domains.sokoban import read_levels
from bathysphere.domains.sokoban.levels import solves
from tests.puzzles.small import write_agent

LEVELS = """\
######
#@ $.#
######
Title: easy

#######
#$ @ .#
#######
Title: hopeless

#######
#@ $ .#
#######
Title: fair
"""
LARGE = """
########
#@ $  .#
########
Title: large
"""


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    return write_agent(tmp_path_factory.mktemp("evaluate") / "board.safetensors", policy=True)


@pytest.fixture(scope="module")
def cnn(tmp_path_factory):
    return write_agent(tmp_path_factory.mktemp("evaluate") / "cnn.safetensors", "cnn")


@pytest.fixture
def levels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.xsb").write_text(LEVELS)
    Path("large.xsb").write_text(LEVELS + LARGE)
    return Path("mine.xsb")


def _json(capsys, *argv):
    assert cli.main([*map(str, argv), "--json"]) == 0
    captured = capsys.readouterr()
    assert all(line.startswith("Compiling for this machine") for line in captured.err.splitlines())
    return json.loads(captured.out)


def _solutions(path):
    return {level.title: level.solution for level in read_levels(path)}


def test_evaluate_levels(levels, sokoban_run, capsys):
    result = _json(capsys, "evaluate", sokoban_run, "--levels", levels, "--limit", "2", "--solutions", "out.sok")
    assert (result["levels"], result["solved"], result["solve_rate"]) == (2, 1, 0.5)
    assert [row["title"] for row in result["results"]] == ["easy", "hopeless"]
    assert (result["levels_file"], result["solutions_file"]) == ("mine.xsb", "out.sok")
    assert result["command"] == f"bathysphere evaluate {sokoban_run} --levels mine.xsb --limit 2 --solutions out.sok"
    assert _solutions("out.sok") == {"easy": "rR", "hopeless": None}
    assert cli.main(["evaluate", str(sokoban_run), "--levels", str(levels), "--limit", "2"]) == 0
    assert "Solved 1 of 2 levels: 50.0% (95 % interval" in capsys.readouterr().out


CHOICE = """
#######
#   . #
# $@ ##
#    ##
##$   #
#.    #
#######
"""


def test_patience_can_be_asked_for_and_is_counted(levels, sokoban_run, capsys):
    Path("choice.xsb").write_text(CHOICE)
    arguments = ["evaluate", "sokoban", "--levels", "choice.xsb", "--passes", "1", "--max-steps", "40"]
    hasty = _json(capsys, *arguments, "--patience", "0")
    assert (hasty["changed"]["patience"], hasty["waits_per_level"]) == (0.0, 0.0)
    patient = _json(capsys, *arguments, "--patience", "0.5")
    assert 0 < patient["waits_per_level"] == patient["results"][0]["waits"] <= 20
    assert cli.main(["evaluate", str(sokoban_run), "--patience", "2"]) == 2
    assert "patience is 2.0" in capsys.readouterr().err


def test_several_passes_are_compared_and_drawn(levels, sokoban_run, capsys):
    arguments = ["evaluate", str(sokoban_run), "--levels", str(levels), "--passes", "1,60"]
    arguments += ["--plot", "p.png", "--solutions", "out.sok"]
    result = _json(capsys, *arguments)
    one, many = result["evaluations"]
    assert (one["passes"], many["passes"]) == (1, 60)
    assert one["solved"] <= many["solved"] == 2
    found = [
        {row["title"]: row["solution"] for row in evaluation["results"] if row["solution"]}
        for evaluation in (one, many)
    ]
    for title, solution in _solutions("out.sok").items():
        lengths = [len(solutions[title]) for solutions in found if title in solutions]
        assert (solution is None and not lengths) or len(solution) == min(lengths)
    with Image.open("p.png") as picture:
        assert picture.width > 400
    assert cli.main(arguments) == 0
    assert "See out.sok and p.png." in capsys.readouterr().out


def test_several_passes_of_episodes(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["evaluate", "deep-sea", "--episodes", "5", "--passes", "2,10", "--plot", "p.png"]
    result = _json(capsys, *arguments)
    assert [e["passes"] for e in result["evaluations"]] == [2, 10]
    assert result["evaluations"][1]["wins"] == 5
    assert Path("p.png").read_bytes()[1:4] == b"PNG"


def test_another_planner_at_levels_of_several_sizes(levels, board, capsys):
    options = ["--planner", "best-first", "--max-expansions", "5000", "--width", "2", "--weight", "3"]
    result = _json(capsys, "evaluate", board, "--levels", "large.xsb", *options)
    assert (result["planner"], result["passes"], result["max_steps"]) == ("best-first", None, 10_000)
    assert result["changed"] == {"max_expansions": 5000, "weight": 3.0, "width": 2}
    assert (result["levels"], result["solved"]) == (4, 3)
    solved = [row for row in result["results"] if row["solved"]]
    for name in ("expansions", "states"):
        assert result[f"{name}_per_solved_level"] == pytest.approx(sum(row[name] for row in solved) / 3)
        assert result[f"{name}_per_level"] == pytest.approx(sum(row[name] for row in result["results"]) / 4)
    assert [row["ended_by"] for row in result["results"]] == ["solution", "no state left", "solution", "solution"]
    for level, row in zip(read_levels("large.xsb"), result["results"], strict=True):
        assert row["solution"] is None or solves(level, row["solution"])
    assert {"solve_rate", "solve_rate_low", "solve_rate_high", "seconds_per_level"} <= result.keys()


def test_planners_are_compared_and_drawn(levels, board, capsys):
    arguments = ["evaluate", str(board), "--levels", "large.xsb", "--planner", "mcts,best-first,levin, phs"]
    arguments += ["--max-expansions", "5000", "--passes", "20", "--plot", "p.png"]
    result = _json(capsys, *arguments)
    assert [e["planner"] for e in result["evaluations"]] == ["mcts", "best-first", "levin", "phs"]
    assert [e["passes"] for e in result["evaluations"]] == [20, None, None, None]
    assert [e["changed"] for e in result["evaluations"]] == [{"passes": 20}, *[{"max_expansions": 5000}] * 3]
    assert [e["solved"] for e in result["evaluations"][1:]] == [3, 3, 3]
    assert result["plot"] == "p.png"
    with Image.open("p.png") as picture:
        assert picture.format == "PNG"
        assert picture.width > 600
    assert cli.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["planner", "mcts", "best-first", "levin", "phs"]
    assert lines[-1] == "See p.png."


def test_planners_are_compared_in_any_world(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["evaluate", "deep-sea", "--episodes", "3", "--planner", "mcts,best-first", "--plot", "p.png"]
    result = _json(capsys, *arguments, "--max-expansions", "3000")
    assert [e["planner"] for e in result["evaluations"]] == ["mcts", "best-first"]
    assert [e["wins"] for e in result["evaluations"]] == [3, 3]
    assert {"expansions_per_solved_episode", "states_per_solved_episode"} <= result["evaluations"][0].keys()
    assert Path("p.png").read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--limit", "3"], "name it with --levels"),
        (["--solutions", "a.sok"], "name it with --levels"),
        (["--levels", "mine.xsb", "--episodes", "3"], "use --limit instead of --episodes"),
        (["--levels", "mine.xsb", "--limit", "0"], "--limit is 0"),
        (["--passes", "ten"], "--passes is 'ten'"),
        (["--passes", "10,,50"], "several with commas: 10,50,200"),
        (["--passes", "0"], "expected a number from 1"),
        (["--passes", "5", "--plot", "p.png"], "give several with commas"),
        (["--passes", "5,6", "--plot", "p.jpg"], "ends in .png"),
        (["--planner", "mtcs"], "Did you mean 'mcts'?"),
        (["--planner", "best-first", "--passes", "5"], "The planner best-first has no setting 'passes'"),
        (["--planner", "mcts", "--max-expansions", "5"], "The planner mcts has no setting 'max_expansions'"),
        (["--width", "5"], "The planner mcts has no setting 'width'"),
        (["--planner", "levin,phs", "--order", "steps"], "--order is no setting of any of the planners levin, phs"),
        (["--planner", "best-first,levin", "--passes", "5"], "--passes is no setting of any of the planners"),
        (["--planner", "mcts,best-first", "--passes", "5,6"], "several planners or several --passes, not both"),
        (["--planner", "mcts,mcts"], "name every planner once"),
        (["--planner", "best-first", "--plot", "p.png"], "give several with commas"),
        (["--planner", "best-first", "--order", "stepz"], "no order of the open list 'stepz'"),
        (["--planner", "levin", "--levels", "mine.xsb"], "levin is guided by a policy"),
        (["--planner", "levin"], "guided by a policy"),
        (["--levels", "mine.xsb", "--solutions", "a.txt"], "Only .sok files"),
        (["--levels", "large.xsb"], "Level 4 ('large') has 3x8 cells"),
        (["--levels", "nowhere.txt"], "Cannot read nowhere.txt"),
    ],
)
def test_mistakes_of_evaluate_are_sentences(levels, cnn, arguments, sentence, capsys):
    assert cli.main(["evaluate", str(cnn), *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_workers_are_for_episodes(levels, board, capsys):
    assert cli.main(["evaluate", str(board), "--levels", str(levels), "--workers", "2"]) == 2
    assert "--workers and --ray are for episodes of the agent's own world" in capsys.readouterr().err
