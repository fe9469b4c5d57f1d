"""Agents at level files: which agent plays which level, what is counted, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from bathysphere.domains.sokoban import generate, parse_levels
from bathysphere.domains.sokoban.generator import GeneratorConfig
from bathysphere.domains.sokoban.levels import solves
from bathysphere.errors import BathysphereError
from bathysphere.puzzles import player as level_player
from bathysphere.puzzles.evaluation import evaluate_levels
from bathysphere.puzzles.player import LevelPlayer
from bathysphere.puzzles.solving import attempt, begin, schedule

(EASY,) = parse_levels("######\n#@ $.#\n######\nTitle: easy\n")
(HOPELESS,) = parse_levels("#######\n#$ @ .#\n#######\nTitle: hopeless\n")
(LARGE,) = parse_levels("########\n#@ $  .#\n########\nTitle: large\n")
(DONE,) = parse_levels("#####\n#@ *#\n#####\nTitle: done\n")


@pytest.fixture(scope="module")
def player(sokoban_run):
    return LevelPlayer(sokoban_run)


@pytest.fixture(scope="module")
def levels():
    return generate(12, GeneratorConfig(height=7, width=7, num_boxes=1), seed=3)


def test_solutions_are_replayed_and_everything_is_counted(player, levels):
    result = evaluate_levels(player, [*levels, EASY, HOPELESS], passes=10)
    rows = result.results
    assert [row["number"] for row in rows] == list(range(1, 15))
    assert [row["title"] for row in rows[-2:]] == ["easy", "hopeless"]
    for level, row in zip([*levels, EASY, HOPELESS], rows, strict=True):
        assert row["solved"] == (row["solution"] is not None)
        if row["solved"]:
            assert solves(level, row["solution"])  # on the level itself, not on the padded one
            assert len(row["solution"]) <= row["moves"]
        assert 1 <= row["model_calls"] <= row["expansions"] <= 10 * row["moves"]
        assert row["model_calls"] <= row["states"] <= 1 + 4 * row["model_calls"]
    assert (rows[-2]["solution"], rows[-1]["solved"]) == ("rR", False)
    assert rows[-1]["moves"] == result.max_steps == 40
    solved = [row for row in rows if row["solved"]]
    assert 2 <= len(solved) == result.solved < result.count == 14
    assert result.unit == "level"
    assert result.mean_solution_length == np.mean([len(row["solution"]) for row in solved])
    assert result.mean_length == pytest.approx(np.mean([row["moves"] for row in rows]))
    for name in ("waits", "states", "expansions", "model_calls"):
        assert getattr(result, name) == pytest.approx(np.mean([row[name] for row in rows]))
    assert (result.passes, result.changed) == (10, {"passes": 10})
    assert result.weights == player.trained.fingerprint


def test_the_same_seed_plays_the_same(player, levels):
    one, two = (evaluate_levels(player, levels, seed=5).results for _ in range(2))
    assert one == two


def test_more_passes_help(player, levels):
    few, many = (evaluate_levels(player, levels, passes=passes).solved for passes in (1, 100))
    assert few < many


def test_the_limits_of_an_agent_are_refused_with_the_levels_name(player, sokoban_run):
    with pytest.raises(
        BathysphereError, match=r"Level 2 \('large'\) has 3x8 cells, and the agent knows .* 7x7 at most"
    ):
        evaluate_levels(player, [EASY, LARGE])
    with pytest.raises(BathysphereError, match=r"Level 1 \('done'\) is solved from the start"):
        evaluate_levels(player, [DONE])
    with pytest.raises(BathysphereError, match="at least 1 level"):
        evaluate_levels(player, [])
    with pytest.raises(BathysphereError, match="seed from 0"):
        evaluate_levels(player, [EASY], seed=-1)
    with pytest.raises(BathysphereError, match="deep-sea was not trained in Sokoban"):
        LevelPlayer("deep-sea")


def test_an_agent_that_does_not_see_the_border_knows_its_boards_all_the_same(player, monkeypatch):
    from bathysphere.domains.base import Categories

    config = replace(player.trained.config, domain=replace(player.trained.config.domain, show_border=False))
    trained = player.trained._replace(config=config, observation=Categories((5, 5), 7))
    monkeypatch.setattr(level_player, "load_trained", lambda agent: trained)
    assert LevelPlayer("anything").shape == (7, 7)


def test_memory_bounds_how_many_levels_are_played_at_once(player, levels, monkeypatch):
    from bathysphere.domains import make_domain

    domain, search = make_domain(player.trained.config.domain), player.trained.config.search
    counts = [level_player._affordable(domain, 3, replace(search, passes=passes)) for passes in (10, 1000, 10**7)]
    assert counts[0] > counts[1] > counts[2] == 1
    monkeypatch.setattr(level_player, "_affordable", lambda *_: 1)
    assert len(list(player.play(list(enumerate(levels, 1)), search))) == 12


def test_passes_grow_from_attempt_to_attempt():
    assert schedule(10, 200) == [10, 50, 200]
    assert schedule(3, 3) == [3]
    assert schedule(1, 125) == [1, 5, 25, 125]
    for first, most in ((0, 5), (10, 9)):
        with pytest.raises(BathysphereError, match="Expected passes from 1"):
            schedule(first, most)


def _no_bar(label, total):
    return iter


def test_solving_tries_what_is_left_again_and_keeps_what_it_has(player, levels):
    solving = begin(player, [LARGE, *levels, EASY, HOPELESS, DONE])
    assert solving.refused.keys() == {1, 16}
    first = attempt(player, solving, 1, 0, _no_bar)
    found = solving.solutions
    second = attempt(player, solving, 100, 1, _no_bar)
    assert (first.levels, first.solved) == (14, len(found))
    assert second.levels == 14 - first.solved
    assert second.solved > 0
    assert solving.solutions.items() >= found.items()
    summary = solving.summary()
    assert summary["solved"] == len(solving.solutions) == first.solved + second.solved
    assert summary["levels"] == 16
    reasons = {level["number"]: level["reason"] for level in summary["unsolved"]}
    assert (reasons[1], reasons[15]) == (solving.refused[1], "no solution found")
    assert [made["passes"] for made in summary["attempts"]] == [1, 100]
    assert attempt(player, begin(player, [EASY]), 3, 0, _no_bar, max_steps=1).solved == 0


def test_solving_needs_a_level_that_fits(player):
    with pytest.raises(BathysphereError, match=r"none of the 2 levels: level 1 \('large'\) has 3x8 cells"):
        begin(player, [LARGE, DONE])
