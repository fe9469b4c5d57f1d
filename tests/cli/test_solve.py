"""`solve`, and `evaluate` with levels."""

import json
from pathlib import Path

import pytest
from PIL import Image

from bathysphere import cli
from bathysphere.cli import solve as solve_module
from bathysphere.domains.sokoban import read_levels
from bathysphere.domains.sokoban.levels import solves

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


@pytest.fixture
def levels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.xsb").write_text(LEVELS)
    Path("large.xsb").write_text(LEVELS + LARGE)
    return Path("mine.xsb")


def _json(capsys, *argv):
    assert cli.main([*map(str, argv), "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def _solutions(path):
    return {level.title: level.solution for level in read_levels(path)}


def test_solve_writes_solutions_and_names_what_it_could_not_solve(levels, sokoban_run, capsys):
    arguments = ["solve", str(levels), "--agent", str(sokoban_run), "--max-passes", "50"]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert "10 passes a step: " in out
    assert "50 passes a step: " in out
    assert "of 3 levels. The solutions are in mine-solved.sok." in out
    assert "2 (hopeless): no solution found" in out
    assert "--passes 50 --max-passes 250" in out
    for level in read_levels("mine-solved.sok"):
        assert (level.solution is None) == (level.title == "hopeless")
        assert level.solution is None or solves(level, level.solution)
    assert cli.main(arguments) == 2
    assert "mine-solved.sok exists already" in capsys.readouterr().err
    assert cli.main([*arguments, "--out", "mine-solved.sok"]) == 0


def test_levels_need_no_title(levels, sokoban_run, capsys):
    levels.write_text("#######\n#$ @ .#\n#######\n")
    assert cli.main(["solve", str(levels), "--agent", str(sokoban_run)]) == 0
    assert "1 (untitled): no solution found" in capsys.readouterr().out


def test_solve_stops_when_nothing_is_left_and_leaves_out_what_does_not_fit(levels, sokoban_run, capsys):
    Path("two.xsb").write_text(LEVELS.split("\n\n")[0] + "\n" + LARGE)
    result = _json(capsys, "solve", "two.xsb", "--agent", sokoban_run, "--out", "out.sok")
    assert (result["levels"], result["solved"], len(result["attempts"])) == (2, 1, 1)
    assert result["unsolved"] == [
        {
            "number": 2,
            "title": "large",
            "reason": "has 3x8 cells, and the agent knows boards of 7x7 at most",
        }
    ]
    assert result["results"][0]["solution"] == "rR"
    assert (result["out"], result["agent"]) == ("out.sok", str(sokoban_run))
    assert _solutions("out.sok") == {"easy": "rR", "large": None}


def test_solve_keeps_what_it_has_when_interrupted(levels, sokoban_run, capsys, monkeypatch):
    def interrupted(label, total):
        def track(results):
            for result in results:
                yield result
                if result.solved:
                    raise KeyboardInterrupt

        return track

    monkeypatch.setattr(solve_module, "track_levels", interrupted)
    assert cli.main(["solve", str(levels), "--agent", str(sokoban_run), "--out", "out.sok"]) == 130
    assert any(_solutions("out.sok").values())


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
        (["mine.xsb", "--passes", "0"], "Expected passes from 1"),
        (["mine.xsb", "--passes", "9", "--max-passes", "8"], "max-passes no less"),
        (["mine.xsb", "--seed", "-1"], "expected a number from 0"),
    ],
)
def test_mistakes_of_solve_are_sentences(levels, sokoban_run, arguments, sentence, capsys):
    Path("mine.sok").write_text(LEVELS)
    agent = [] if "--agent" in arguments else ["--agent", str(sokoban_run)]
    assert cli.main(["solve", *arguments, *agent]) == 2
    assert sentence in capsys.readouterr().err
    assert Path("mine.sok").read_text() == LEVELS
    assert not Path("mine-solved.sok").exists()


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
        (["--levels", "mine.xsb", "--solutions", "a.txt"], "Only .sok files"),
        (["--levels", "large.xsb"], "Level 4 ('large') has 3x8 cells"),
        (["--levels", "nowhere.txt"], "Cannot read nowhere.txt"),
    ],
)
def test_mistakes_of_evaluate_are_sentences(levels, sokoban_run, arguments, sentence, capsys):
    assert cli.main(["evaluate", str(sokoban_run), *arguments]) == 2
    assert sentence in capsys.readouterr().err
