"""Agents at level files: which agent plays which level, what is counted, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from bathysphere.domains import make_domain
from bathysphere.domains.base import Categories
from bathysphere.domains.sokoban import Level, Sokoban, generate
from bathysphere.domains.sokoban.generator import GeneratorConfig
from bathysphere.domains.sokoban.levels import solves
from bathysphere.errors import BathysphereError
from bathysphere.planning import BestFirstConfig
from bathysphere.puzzles import player as level_player
from bathysphere.puzzles.evaluation import evaluate_levels
from bathysphere.puzzles.player import LevelPlayer
from tests.puzzles.small import DONE, EASY, ENDLESS, HOPELESS, LARGE, TALL, TWO, write_agent


@pytest.fixture(scope="module")
def player(sokoban_run):
    return LevelPlayer(sokoban_run)


@pytest.fixture(scope="module")
def board_player(tmp_path_factory):
    return LevelPlayer(write_agent(tmp_path_factory.mktemp("board") / "board.safetensors", policy=True))


@pytest.fixture(scope="module")
def cnn_player(tmp_path_factory):
    return LevelPlayer(write_agent(tmp_path_factory.mktemp("cnn") / "cnn.safetensors", "cnn"))


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
    assert (rows[-2]["ended_by"], rows[-1]["ended_by"]) == ("solution", "max_steps")
    assert 0 < sum(row["seconds"] for row in rows) <= result.seconds
    solved = [row for row in rows if row["solved"]]
    assert 2 <= len(solved) == result.solved < result.count == 14
    assert result.unit == "level"
    assert result.mean_solution_length == np.mean([len(row["solution"]) for row in solved])
    assert result.mean_length == pytest.approx(np.mean([row["moves"] for row in rows]))
    for name in ("waits", "states", "expansions", "model_calls"):
        assert getattr(result, name) == pytest.approx(np.mean([row[name] for row in rows]))
    assert result.solved_after == tuple(sorted(row["expansions"] for row in solved))
    assert result.solved_states == np.mean([row["states"] for row in solved])
    assert result.most_expansions == max(row["expansions"] for row in rows)
    assert (result.planner, result.passes, result.changed) == ("mcts", 10, {"passes": 10})
    assert result.weights == player.trained.fingerprint


def test_the_same_seed_plays_the_same(player, levels):
    one, two = (evaluate_levels(player, levels, seed=5).results for _ in range(2))
    assert [{**row, "seconds": 0} for row in one] == [{**row, "seconds": 0} for row in two]


def test_more_passes_help(player, levels):
    few, many = (evaluate_levels(player, levels, passes=passes).solved for passes in (1, 100))
    assert few < many


def test_the_limits_of_an_agent_are_refused_with_the_levels_name(cnn_player):
    with pytest.raises(
        BathysphereError, match=r"Level 2 \('large'\) has 3x8 cells, and the agent knows .* 7x7 at most"
    ):
        evaluate_levels(cnn_player, [EASY, LARGE])
    with pytest.raises(BathysphereError, match=r"Level 1 \('done'\) is solved from the start"):
        evaluate_levels(cnn_player, [DONE])
    with pytest.raises(BathysphereError, match="at least 1 level"):
        evaluate_levels(cnn_player, [])
    with pytest.raises(BathysphereError, match="seed from 0"):
        evaluate_levels(cnn_player, [EASY], seed=-1)
    with pytest.raises(BathysphereError, match="deep-sea was not trained in Sokoban"):
        LevelPlayer("deep-sea")


def test_an_agent_that_does_not_see_the_border_knows_its_boards_all_the_same(cnn_player, monkeypatch):
    config = replace(cnn_player.trained.config, domain=replace(cnn_player.trained.config.domain, show_border=False))
    trained = cnn_player.trained._replace(config=config, observation=Categories((5, 5), 7))
    monkeypatch.setattr(level_player, "load_trained", lambda agent: trained)
    assert LevelPlayer("anything").shape == (7, 7)


def test_memory_bounds_how_many_levels_are_played_at_once(player, levels, monkeypatch):
    domain, search = make_domain(player.trained.config.domain), player.trained.config.search
    counts = [player._affordable(domain, replace(search, passes=passes)) for passes in (10, 100_000, 10**7)]
    assert counts[0] == player.trained.config.batch > counts[1] >= counts[2] == 1
    plans = [player._affordable(domain, BestFirstConfig(max_expansions=number)) for number in (1000, 10**6, 10**9)]
    assert plans[0] == level_player.IN_FLIGHT > plans[1] > plans[2] == 1
    huge = Sokoban(levels=[Level("huge", np.pad(EASY.grid, (0, 900)))])
    assert player._affordable(huge, BestFirstConfig()) < level_player.IN_FLIGHT
    monkeypatch.setattr(player, "_affordable", lambda *_: 1)
    assert len(list(player.play(list(enumerate(levels, 1)), search))) == 12


def test_an_agent_with_a_board_network_plays_levels_of_all_sizes_at_once(board_player):
    levels = [EASY, HOPELESS, LARGE, TWO, TALL]
    assert board_player.shape is None
    assert [board_player.refusal(level) for level in (*levels, DONE)] == [
        *[None] * 5,
        "is solved from the start: no box is off target",
    ]
    result = evaluate_levels(board_player, levels, planner="best-first", max_expansions=5000)
    for level, row in zip(levels, result.results, strict=True):
        assert row["solved"] == (level is not HOPELESS)
        assert row["solution"] is None or solves(level, row["solution"])
        assert row["ended_by"] == ("solution" if row["solved"] else "no state left")
    assert (result.planner, result.passes, result.max_steps) == ("best-first", None, 10_000)
    assert result.changed == {"max_expansions": 5000}
    stepwise = evaluate_levels(board_player, levels, passes=60)
    assert (stepwise.planner, stepwise.passes, stepwise.max_steps) == ("mcts", 60, 40)
    assert stepwise.solved >= 2


def test_an_old_agent_searches_for_whole_plans_too(cnn_player, levels):
    result = evaluate_levels(cnn_player, [*levels, EASY], planner="best-first", max_expansions=5000, width=4)
    assert result.solved == 13


def test_plans_may_be_longer_than_episodes_of_training_unless_a_limit_is_given(board_player):
    assert board_player.settings("best-first").max_steps == 10_000
    assert board_player.settings("best-first", max_steps=3).max_steps == 3
    short = evaluate_levels(board_player, [LARGE, TALL], planner="best-first", max_steps=3)
    assert [row["solved"] for row in short.results] == [False, True]
    assert short.max_steps == 3


def test_walls_around_a_level_change_nothing(board_player):
    search = board_player.settings("best-first", max_expansions=5000)
    (alone,) = board_player.play([(1, TWO)], search)
    together = list(board_player.play([(1, TWO), (2, Level("wide", np.pad(EASY.grid, ((0, 9), (0, 5)))))], search))
    assert replace(next(r for r in together if r.number == 1), seconds=0) == replace(alone, seconds=0)


def test_levels_share_a_size_where_that_costs_few_walls():
    shapes = [(30, 30), (5, 6), (40, 31), (16, 15), (15, 16), (90, 90), (6, 40), (3, 3)]
    levels = [(number, Level("", np.zeros(shape, np.uint8))) for number, shape in enumerate(shapes)]
    groups = [[shapes[number] for number, _ in group] for group in level_player._by_size(levels)]
    assert sorted(shape for group in groups for shape in group) == sorted(shapes)
    assert [len(group) for group in groups] == [4, 1, 2, 1]
    for group in groups:
        common = max(height for height, _ in group) * max(width for _, width in group)
        assert common <= max(256, 2 * group[0][0] * group[0][1])


def test_planners_that_need_a_policy_are_refused_without_one(board_player, tmp_path):
    assert evaluate_levels(board_player, [EASY, TALL], planner="phs").solved == 2
    without = LevelPlayer(write_agent(tmp_path / "plain.safetensors"))
    for name in ("levin", "phs"):
        with pytest.raises(BathysphereError, match=f"{name} is guided by a policy, and .* has none. Use best-first"):
            evaluate_levels(without, [EASY], planner=name)


def test_a_search_that_fills_the_memory_ends(board_player):
    search = board_player.settings("best-first", max_expansions=10**6, memory_limit_mb=1)
    (result,) = board_player.play([(1, ENDLESS)], search)
    assert (result.solved, result.ended_by) == (False, "memory_limit_mb")
