"""Solving: which tasks there are, in which order, and what is taken down."""

import numpy as np
import pytest

from bathysphere.domains.sokoban import Level
from bathysphere.domains.sokoban.levels import solves
from bathysphere.errors import BathysphereError
from bathysphere.puzzles.jobs import work_here
from bathysphere.puzzles.player import LevelPlayer
from bathysphere.puzzles.solving import Done, Effort, Solver, Solving
from tests.puzzles.small import DONE, EASY, ENDLESS, HOPELESS, LARGE, TALL, TWO, write_agent

AMPLE = 600.0  # seconds, more than any of these levels takes


@pytest.fixture(scope="module")
def player(tmp_path_factory):
    return LevelPlayer(write_agent(tmp_path_factory.mktemp("solving") / "board.safetensors"))


def _solve(player, levels, **effort):
    solving = Solving(player, levels, Effort(**{"seconds": AMPLE, **effort}))
    for _ in work_here(player, solving):
        assert solving.num_finished <= len(levels)
    assert solving.num_finished == len(levels)
    return solving


def test_levels_of_all_sizes_are_solved_and_what_is_not_has_a_reason(player):
    levels = [EASY, HOPELESS, LARGE, DONE, TWO, TALL]
    solving = _solve(player, levels)
    assert solving.solutions.keys() == {1, 3, 5, 6}
    assert all(solves(levels[number - 1], moves) for number, moves in solving.solutions.items())
    summary = solving.summary()
    assert (summary["levels"], summary["solved"], summary["failures"]) == (6, 4, [])
    assert summary["unsolved"] == [
        {"number": 2, "title": "hopeless", "reason": "has no solution: all that can be reached was searched"},
        {"number": 4, "title": "done", "reason": "is solved from the start: no box is off target"},
    ]
    easy, hopeless = summary["results"][:2]
    keys = ["number", "title", "solved", "moves", "pushes", "expansions", "states", "seconds", "ended_by", "solution"]
    assert list(easy) == keys
    assert {name: easy[name] for name in ("solved", "moves", "pushes", "ended_by", "solution")} == {
        **{"solved": True, "moves": 2, "pushes": 1, "ended_by": "solution", "solution": "rR"}
    }
    assert {name: hopeless[name] for name in ("solved", "moves", "pushes", "ended_by", "solution")} == {
        **{"solved": False, "moves": None, "pushes": None, "ended_by": "no state left", "solution": None}
    }
    assert all(result["expansions"] > 0 and result["states"] > 0 for result in summary["results"][2:])
    assert all(result["seconds"] > 0 for result in summary["results"])


def test_what_the_first_stage_leaves_is_searched_by_itself(player):
    solving = Solving(player, [ENDLESS, EASY], Effort(AMPLE, max_expansions=700, width=8))
    solver, together = Solver(player, solving.effort), solving.next_task()
    assert (together.stage, [number for number, _ in together.levels]) == ("together", [1, 2])
    for done in solver.run(together):
        solving.note(together, done)
    assert (solving.records[1].ended_by, solving.records[1].expansions) == ("max_expansions", 500)
    assert solving.num_finished == 1
    for stage, made, most in (("pushes", 1200, AMPLE / 2), ("alone", 1900, AMPLE)):
        task = solving.next_task()
        assert (task.stage, [number for number, _ in task.levels]) == (stage, [1])
        assert 0 < task.seconds < most
        assert solving.num_finished == 1
        for done in solver.run(task):
            solving.note(task, done)
        assert solving.records[1].expansions >= made
    assert solving.next_task() is None
    assert solving.num_finished == 2
    assert solving.summary()["unsolved"][0]["reason"] == "no solution found with so many expansions"


def test_few_expansions_are_made_once(player):
    solving = _solve(player, [ENDLESS], max_expansions=20)
    assert (solving.records[1].expansions, solving.records[1].ended_by) == (20, "max_expansions")


def test_time_ends_a_search(player):
    solving = _solve(player, [ENDLESS, EASY], seconds=0.5)
    assert solving.records[1].ended_by == "max_seconds"
    assert solving.summary()["unsolved"][0]["reason"] == "no solution found in its time"


def test_no_time_is_left_after_a_slow_first_stage(player):
    solving = Solving(player, [ENDLESS], Effort(2.0))
    solving.note(solving.next_task(), Done(1, 2.5, None, 500, 900, "max_expansions"))
    assert solving.next_task() is None
    assert (solving.num_finished, solving.records[1].ended_by) == (1, "max_seconds")


def test_memory_ends_a_search_and_a_board_that_never_fits_is_no_crash(player, monkeypatch):
    assert _solve(player, [ENDLESS], memory_mb=1).records[1].reason == "no solution found before memory was full"

    def play(levels, search):
        raise MemoryError
        yield

    with monkeypatch.context() as patch:  # what NumPy does where there is no room for the first array
        patch.setattr(player, "play", play)
        solving = _solve(player, [EASY, ENDLESS], memory_mb=1)
        assert solving.solutions == {1: "rR"}  # the search over pushes needs no network
        assert solving.records[2].ended_by == "memory_limit_mb"


def test_a_board_of_a_million_cells_is_searched(player):
    huge = Level("huge", np.pad(EASY.grid, ((0, 997), (0, 994))))
    assert _solve(player, [EASY, huge], memory_mb=256).solutions == {1: "rR", 2: "rR"}


@pytest.mark.parametrize("count", ["moves", "pushes"])
def test_the_rest_of_the_time_makes_solutions_better(player, count):
    plain, improved = _solve(player, [TWO, LARGE]), _solve(player, [TWO, LARGE], improve=count)

    def cost(moves):
        pushes = sum(map(str.isupper, moves))
        return (len(moves), pushes) if count == "moves" else (pushes, len(moves))

    for number, level in ((1, TWO), (2, LARGE)):
        assert solves(level, improved.solutions[number])
        assert cost(improved.solutions[number]) <= cost(plain.solutions[number])
        assert improved.records[number].expansions == plain.records[number].expansions
        assert improved.records[number].ended_by == "solution"


def test_solving_comes_before_improving(player):
    solving = Solving(player, [EASY, ENDLESS], Effort(AMPLE, improve="moves"))
    together = solving.next_task()
    solving.note(together, Done(1, 0.1, "rR", 3, 4))
    solving.note(together, Done(2, 0.1, None, 500, 900, "max_expansions"))
    tasks = [solving.next_task(), solving.next_task()]
    assert [(task.stage, task.levels[0][0], task.solution) for task in tasks] == [
        ("pushes", 2, None),
        ("improve", 1, "rR"),
    ]
    assert solving.num_finished == 0
    solving.give_up(tasks[0], set(), "its process ended")
    solving.give_up(tasks[1], set(), "its process ended")
    assert solving.num_finished == 2
    assert solving.solutions == {1: "rR"}
    assert [record.ended_by for record in solving.records.values()] == ["solution", "its process ended"]
    assert solving.records[2].reason == "its process ended"


def test_the_first_stage_can_be_shared(player):
    solving = Solving(player, [EASY, DONE, LARGE, TALL], Effort(), shares=2)
    first, second = solving.next_task(), solving.next_task()
    assert [[number for number, _ in task.levels] for task in (first, second)] == [[1, 4], [3]]
    many = Solving(player, [EASY, DONE], Effort(), shares=5)
    assert many.next_task() is not None
    assert many.next_task() is None


def test_what_cannot_be_is_refused_before_any_work(player):
    with pytest.raises(BathysphereError, match=r"none of the 1 levels: level 1 \('done'\) is solved from the start"):
        Solving(player, [DONE], Effort())
    with pytest.raises(BathysphereError, match="levin is guided by a policy"):
        Solving(player, [EASY], Effort(planner="levin"))
    for effort, sentence in (
        ({"planner": "mcts"}, "whole plans: best-first, levin and phs; got mcts"),
        ({"planner": "best"}, "There is no planner 'best'"),
        ({"seconds": 0.0}, "seconds is 0.0; expected a number above 0"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"max_expansions": 0}, "max_expansions is 0; expected at least 1"),
        ({"width": 0}, "width is 0; expected at least 1"),
    ):
        with pytest.raises(BathysphereError, match=sentence):
            Effort(**effort)
