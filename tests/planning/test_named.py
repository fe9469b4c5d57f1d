"""Planners by name, and an agent with another planner than in training."""

from dataclasses import replace

import pytest

from bathysphere.errors import BathysphereError
from bathysphere.planning import BestFirstConfig, SearchConfig
from bathysphere.planning.named import changed_planner, named_planner, planner_name, settings_of

TRAINED = SearchConfig(passes=40, discount=0.97, risk_coef=3.0)


@pytest.mark.parametrize("name", ["mcts", "best-first", "levin", "phs", "none", "expectimax"])
def test_a_name_and_its_planner_belong_together(name):
    assert planner_name(named_planner(name)) == name


def test_the_names_of_orders_that_have_none_of_their_own():
    assert planner_name(BestFirstConfig(order="value")) == "best-first"
    assert planner_name(BestFirstConfig(order="phs", width=3)) == "phs"


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(BathysphereError, match=r"no planner 'levi'; choose one of mcts, .* Did you mean 'levin'\?"):
        named_planner("levi")


def test_another_planner_keeps_what_belongs_to_the_values_and_nothing_else():
    assert changed_planner(TRAINED, "levin", {}) == BestFirstConfig(order="levin", discount=0.97)
    limited = replace(TRAINED, max_steps=50)
    assert changed_planner(limited, "best-first", {"weight": 5.0}) == BestFirstConfig(
        discount=0.97, max_steps=50, weight=5.0
    )
    assert changed_planner(BestFirstConfig(discount=0.9), "mcts", {}) == SearchConfig(discount=0.9)


def test_the_trained_planner_stays_as_it_was():
    assert changed_planner(TRAINED, None, {}) == changed_planner(TRAINED, "mcts", {}) == TRAINED
    greedy = BestFirstConfig(order="value", weight=7.0)
    assert changed_planner(greedy, "best-first", {"width": 2}) == replace(greedy, width=2)


def test_settings_that_a_planner_does_not_have_are_refused():
    with pytest.raises(BathysphereError, match=r"best-first has no setting 'passes'; it has .*max_expansions"):
        changed_planner(TRAINED, "best-first", {"passes": 3})
    with pytest.raises(BathysphereError, match=r"mcts has no setting 'pases'.* Did you mean 'passes'\?"):
        changed_planner(TRAINED, None, {"pases": 3})
    for name in ("order", "weight"):
        assert name in settings_of(named_planner("best-first"))
        with pytest.raises(BathysphereError, match=f"phs has no setting '{name}'"):
            changed_planner(TRAINED, "phs", {name: 1})
