"""The record of an evaluation: its numbers, its JSON, its sentence, its picture."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from PIL import Image

from bathysphere.agents.evaluation import Evaluation, Outcome, counts, evaluate, read_measurements
from bathysphere.agents.evaluation_picture import _apart, draw_passes, draw_planners
from bathysphere.errors import BathysphereError
from bathysphere.runs.runner import run
from bathysphere.statistics import mean_interval, wilson_interval
from tests.runs.small import small_config

OUTCOMES = [
    Outcome(True, 6, 4, 1, 10, 8, 7, 0.5),
    Outcome(False, 20, 0, 3, 40, 30, 20),
    Outcome(True, 4, 3, 0, 4, 3, 3),
]
EPISODES = Evaluation(
    unit="episode",
    agent="mine",
    weights="abc",
    preset="deep-sea",
    seed=3,
    planner="mcts",
    passes=10,
    max_steps=20,
    changed={"risk_coef": 0.0},
    seconds=1.5,
    **counts(OUTCOMES),
)
LEVELS = replace(EPISODES, unit="level", results=({"number": 1}, {"number": 2}, {"number": 3}))


@pytest.fixture(scope="module")
def deep_sea_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("evaluation") / "run"
    run(small_config(), path, pictures=False)
    return path


RETURN = 0.5 / 3, *mean_interval([0.5, 0.0, 0.0])  # mean and interval


def test_what_is_counted():
    assert (EPISODES.count, EPISODES.solved, EPISODES.rate) == (3, 2, 2 / 3)
    assert EPISODES.interval == wilson_interval(2, 3)
    assert (EPISODES.mean_length, EPISODES.mean_solution_length) == (10.0, 3.5)
    assert (EPISODES.waits, EPISODES.states, EPISODES.expansions, EPISODES.model_calls) == (4 / 3, 18, 41 / 3, 10)
    assert (EPISODES.solved_after, EPISODES.solved_expansions, EPISODES.solved_states) == ((3, 8), 5.5, 7.0)
    assert EPISODES.most_expansions == 30
    lost = replace(EPISODES, **counts(OUTCOMES[1:2]))
    assert (lost.mean_solution_length, lost.solved_expansions, lost.solved_states) == (None, None, None)
    assert (lost.solved_after, lost.most_expansions) == ((), 30)


def test_the_json_of_episodes_and_levels():
    low, high = wilson_interval(2, 3)
    head = {"agent": "mine", "weights": "abc", "preset": "deep-sea", "seed": 3, "planner": "mcts"}
    head |= {"passes": 10, "max_steps": 20}
    per = {"waits": 4 / 3, "states": 18.0, "expansions": 41 / 3, "model_calls": 10.0}
    episodes = {
        **head,
        **{"episodes": 3, "wins": 2, "win_rate": 2 / 3, "win_rate_low": low, "win_rate_high": high},
        **dict(zip(("mean_return", "mean_return_low", "mean_return_high"), RETURN, strict=True)),
        **{"worst_return": 0.0, "best_return": 0.5},
        **{"mean_length": 10.0, "mean_solution_length": 3.5},
        **{f"{name}_per_episode": mean for name, mean in per.items()},
        **{"expansions_per_solved_episode": 5.5, "states_per_solved_episode": 7.0},
        **{"seconds": 1.5, "changed": {"risk_coef": 0.0}},
    }
    levels = {
        **head,
        **{"levels": 3, "solved": 2, "solve_rate": 2 / 3, "solve_rate_low": low, "solve_rate_high": high},
        "mean_solution_length": 3.5,
        **{f"{name}_per_level": mean for name, mean in per.items()},
        **{"expansions_per_solved_level": 5.5, "states_per_solved_level": 7.0},
        **{"seconds": 1.5, "seconds_per_level": 0.5, "changed": {"risk_coef": 0.0}},
        "results": [{"number": 1}, {"number": 2}, {"number": 3}],
    }
    assert json.dumps(EPISODES.to_dict()) == json.dumps(episodes)  # in this order too
    assert json.dumps(LEVELS.to_dict()) == json.dumps(levels)


def test_the_sentences():
    assert str(EPISODES).startswith(
        "Won 2 of 3 episodes: 66.7% (95 % interval 20.8% to 93.9%). Mean return 0.1667 ± 0.33 (0 to 0.5).\n"
        "Per episode 10.0 steps, 18.0"
    )
    assert str(LEVELS).startswith("Solved 2 of 3 levels: 66.7%")
    assert "\nPer level 3.5 moves in a solution, 18.0 states, 13.7 expansions and 10.0 calls of the model; " in str(
        LEVELS
    )
    assert "\nPer level 18.0 states" in str(replace(LEVELS, mean_solution_length=None))


def test_measurements_are_read_from_either_kind_and_from_older_files(tmp_path):
    file = tmp_path / "measured.json"
    old = {  # of a version that counted less
        **{"weights": "abc", "passes": 40, "max_steps": 200, "changed": {}, "command": "bathysphere evaluate mine"},
        **{"levels": 100, "solve_rate": 0.7, "solve_rate_low": 0.6, "solve_rate_high": 0.8},
    }
    planned = replace(LEVELS, planner="best-first", passes=None, changed={"max_expansions": 9})
    parts = [evaluation.to_dict() | {"command": "again"} for evaluation in (EPISODES, LEVELS, planned)]
    file.write_text(json.dumps({"evaluations": [*parts, old]}))
    episodes, levels, plans, older = read_measurements(file, "abc")
    assert plans.what == "levels solved, best-first, at most 20 steps, max_expansions 9"
    assert episodes.what == "episodes won, 10 passes a step, at most 20 steps, risk_coef 0.0"
    assert levels.what == "levels solved, 10 passes a step, at most 20 steps, risk_coef 0.0"
    assert (episodes.n, levels.n, older.n) == (3, 3, 100)
    assert (episodes.value, episodes.low, episodes.high) == (2 / 3, *wilson_interval(2, 3))
    assert (older.value, older.low, older.high) == (0.7, 0.6, 0.8)
    with pytest.raises(BathysphereError, match="measured with other weights"):
        read_measurements(file, "xyz")


@pytest.mark.parametrize("evaluation", [EPISODES, LEVELS], ids=["episodes", "levels"])
def test_passes_are_drawn(evaluation, tmp_path):
    draw_passes([replace(evaluation, passes=100, solved=3), evaluation], tmp_path / "passes.png")
    with Image.open(tmp_path / "passes.png") as picture:
        assert picture.width > 400


@pytest.mark.parametrize("evaluation", [EPISODES, LEVELS], ids=["episodes", "levels"])
def test_planners_are_drawn(evaluation, tmp_path):
    lost = replace(evaluation, planner="levin", **counts(OUTCOMES[1:2] * 3))
    won = replace(evaluation, planner="best-first", **counts([Outcome(True, 4, 4, 0, 400, 300, 300)] * 3))
    draw_planners([evaluation, won, lost, replace(lost, planner="phs")], tmp_path / "planners.png")
    draw_planners([lost], tmp_path / "nothing.png")
    for name in ("planners.png", "nothing.png"):
        with Image.open(tmp_path / name) as picture:
            assert picture.width > 600


def test_names_beside_curves_do_not_overlap():
    for heights in ([1.0, 1.0, 1.0], [0.0, 0.0, 0.01], [0.5, 0.52, 0.1], [0.3]):
        places = _apart(heights)
        assert all(0 <= place <= 1 for place in places)
        ordered = sorted(places)
        assert all(above - below > 0.05 for below, above in pairwise(ordered))
    assert _apart([0.2, 0.8]) == [0.2, 0.8]


def test_progress_is_told_and_changes_nothing(deep_sea_run):
    told = []
    one = evaluate(deep_sea_run, 40, on_progress=told.append)
    other = evaluate(deep_sea_run, 40)
    assert told == sorted(told)
    assert told[-1] == 40
    same = {"seconds"}
    assert {k: v for k, v in one.to_dict().items() if k not in same} == {
        k: v for k, v in other.to_dict().items() if k not in same
    }


def test_the_return_is_told_beside_the_wins(deep_sea_run):
    told = evaluate(deep_sea_run, 20)
    assert told.worst_return <= told.mean_return <= told.best_return == pytest.approx(0.992)
    assert told.to_dict()["mean_return"] == told.mean_return
    assert re.search(r"^Won \d+ of 20 episodes: .* Mean return 0\.\d+ ± [\d.e-]+ \(", str(told))


def test_where_nothing_counts_as_won_the_return_is_what_is_told(deep_sea_run):
    earned = {"mean_return": -13.0, "mean_return_low": -13.5, "mean_return_high": -12.5}
    told = replace(evaluate(deep_sea_run, 5), solved=0, **earned, worst_return=-14.0, best_return=-12.5)
    assert str(told).startswith("Mean return -13 ± 0.5 (-14 to -12.5) in 5 episodes; none of them counts as won.\n")
    assert "Won" not in str(told)


def test_model_risk_is_for_runs_whose_model_does_not_know_everything(deep_sea_run, tmp_path):
    with pytest.raises(BathysphereError, match="model memory, relevance or ensemble"):
        evaluate(deep_sea_run, 10, model_risk=-1.0)
    run(replace(small_config(), model="memory", steps=20), tmp_path / "run", pictures=False)
    one, other = (evaluate(tmp_path / "run", 10, model_risk=model_risk) for model_risk in (20.0, -20.0))
    assert one.changed == {"model_risk": 20.0}
    assert one.states != other.states
