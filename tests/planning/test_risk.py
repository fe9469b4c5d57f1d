"""Risk measures and bonuses against formulas written another way."""

import math

import numba
import numpy as np
import pytest

from bathysphere.errors import BathysphereError
from bathysphere.planning import SearchConfig
from bathysphere.planning.graph.risk import (
    bonus_at,
    find_bonus,
    find_risk_measure,
    joint,
    joint_at,
    modules_of_measures,
    register_risk,
    risk_measures,
    separable,
    separable_at,
)
from tests.planning.small_worlds import make_domain, make_search

pytestmark = pytest.mark.kernels

VALUES = np.array([0.3, -1.2, 4.0, 0.3])


@numba.njit
def call_separable(address, values, coef):
    return separable_at(address)(values, coef)


@numba.njit
def call_joint(address, q, eligible, coef, scores):
    joint_at(address)(q, eligible, coef, scores)


@numba.njit
def call_bonus(address, parent, child, std, members):
    return bonus_at(address)(parent, child, std, members)


def score(name, values, coef):
    """Calls a measure the way kernels do: through its address."""
    return call_separable(find_risk_measure(name).address, np.asarray(values, float), float(coef))


def count_votes(name, q, eligible=None):
    q = np.array(q, float)
    eligible = np.ones(len(q), bool) if eligible is None else np.asarray(eligible)
    q[~eligible] = -np.inf
    scores = np.full(len(q), 99.0)
    call_joint(find_risk_measure(name).address, q, eligible, 0.0, scores)
    return scores.tolist()


@pytest.mark.parametrize("coef", [0.0, 2.0, -0.5])
def test_formulas(coef):
    assert score("mean_std", VALUES, coef) == pytest.approx(VALUES.mean() + coef * VALUES.std(ddof=0))
    assert score("mean_variance", VALUES, coef) == pytest.approx(VALUES.mean() + coef * VALUES.var(ddof=0))
    assert score("second_moment", VALUES, coef) == pytest.approx((VALUES + coef * VALUES**2).mean())
    certain = VALUES.mean() if coef == 0 else math.log(np.exp(coef * VALUES).mean()) / coef
    assert score("exponential", VALUES, coef) == pytest.approx(certain)


def test_the_exponential_neither_overflows_nor_underflows():
    """For large risk_coef * x it is the best (or worst) case, log(E) / risk_coef off."""
    values = [100.0, 0.0, -100.0]
    assert score("exponential", values, 100.0) == pytest.approx(100.0 - math.log(3) / 100.0)
    assert score("exponential", values, -100.0) == pytest.approx(-100.0 + math.log(3) / 100.0)
    assert score("exponential", [-1e4, -1e4], 1.0) == pytest.approx(-1e4)
    assert score("exponential", [1.0, 2.0], 1e-9) == pytest.approx(1.5)


@pytest.mark.parametrize("coef", [0.0, 7.0, -7.0])
def test_one_member_has_no_spread(coef):
    assert score("mean_std", [0.7], coef) == 0.7
    assert score("mean_variance", [0.7], coef) == 0.7
    assert score("exponential", [0.7], coef) == pytest.approx(0.7)
    assert score("second_moment", [0.7], coef) == pytest.approx(0.7 + coef * 0.49)


def test_a_member_votes_for_all_its_ties():
    q = [[1.0, 5.0], [1.0, 2.0], [0.0, 5.0 - 1e-6]]  # [A, E]; the last is within 1e-5 * 5 of member 1's best
    assert count_votes("vote", q) == [2.0, 1.0, 1.0]
    assert count_votes("vote_once", q) == [1.5, 0.5, 0.0]


def test_only_eligible_actions_get_votes():
    q = [[9.0], [1.0], [1.0]]
    assert count_votes("vote", q, [False, True, True])[1:] == [1.0, 1.0]
    assert count_votes("vote_once", q, [False, True, True])[1:] == [0.5, 0.5]


@pytest.mark.parametrize("num_actions", [3, 4, 5])
def test_votes_are_counted_alike_for_any_number_of_actions(num_actions):
    """Four actions are counted by code of their own."""
    rng = np.random.default_rng(num_actions)
    for _ in range(200):
        q = rng.integers(-2, 3, size=(num_actions, 3)) * (1.0 + 4e-6 * rng.integers(-2, 3, size=(num_actions, 3)))
        eligible = rng.random(num_actions) < 0.7
        eligible[rng.integers(num_actions)] = True
        peak = q[eligible].max(axis=0)
        is_close = np.abs(q - peak) <= 1e-8 + 1e-5 * np.abs(peak)
        votes = np.array(count_votes("vote", q, eligible))
        assert votes[eligible].tolist() == is_close[eligible].sum(axis=1).tolist()


def test_bonuses():
    def bonus(name, parent, child, std, members):
        return call_bonus(find_bonus(name).address, parent, child, std, members)

    assert bonus("none", 7, 3, 0.5, 4) == 0.0
    assert bonus("ucb1", 7, 3, 0.5, 4) == pytest.approx(math.sqrt(2 * math.log(7) / 12))
    assert bonus("ucb_v", 7, 3, 0.5, 4) == pytest.approx(0.5 * math.sqrt((math.log(2) + 4 * math.log(7)) / 12))
    assert bonus("moss", 7, 3, 0.5, 4) == 0.0  # 7 < 4 * 3
    assert bonus("moss", 70, 3, 0.5, 4) == pytest.approx(math.sqrt(math.log(70 / 12) / 6))


def choose(**options):
    """The action chosen between a safe child (members 1, 1) and a risky one (members 2, -1)."""
    domain = make_domain({0: [1, 2], 1: [1, 1], 2: [2, 2]})
    search = make_search(domain, [[0, 0], [1, 1], [2, -1]], passes=1, **options)
    search.step()
    return int(search.actions[0])


def test_a_separable_measure_of_your_own():
    @separable
    def best_case(values, risk_coef):
        return values.max() + 0.0 * risk_coef

    assert "best_case" in risk_measures()
    assert choose(risk="mean_std") == 0
    assert choose(risk="best_case") == 1
    assert choose(risk="mean_std", final_risk="best_case") == 1


def test_a_joint_measure_of_your_own():
    @joint
    def least_regret(q, eligible, risk_coef, scores):
        scores[:] = 0.0
        for i in range(q.shape[1]):
            peak = -np.inf
            for a in range(q.shape[0]):
                if eligible[a]:
                    peak = max(peak, q[a, i])
            for a in range(q.shape[0]):
                scores[a] = min(scores[a], q[a, i] - peak)

    assert choose(risk="least_regret") == 0  # regrets 1 and 2


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(BathysphereError, match=r"no risk measure 'mean_sdt'; choose one of .* 'mean_std'"):
        SearchConfig(risk="mean_sdt")
    with pytest.raises(BathysphereError, match=r"no visit-count bonus 'ucb2'.*'ucb"):
        SearchConfig(bonus="ucb2")
    with pytest.raises(BathysphereError, match=r"no risk measure"):
        SearchConfig(final_risk="nothing like it")


def test_a_measure_under_another_name():
    register_risk("worst_case", lambda values, risk_coef: values.min() - risk_coef)
    assert choose(risk="worst_case") == 0
    register_risk("by_index", _by_index)
    assert choose(risk="by_index") == 1
    assert modules_of_measures(["by_index", "vote"]) == [__name__]
    with pytest.raises(BathysphereError, match=r"takes 3 arguments; expected 2 .* or 4"):
        register_risk("odd", lambda values, risk_coef, more: 0.0)
    with pytest.raises(BathysphereError, match="a risk measure 'vote' already"):
        register_risk("vote", lambda values, risk_coef: 0.0)


def _by_index(q, eligible, risk_coef, scores):
    for a in range(q.shape[0]):
        scores[a] = a


@separable
def not_always_a_number(values, risk_coef):
    return math.sqrt(values[0] + 1e9) if values[0] > -1e6 else math.nan


@joint
def joint_not_always_a_number(q, eligible, risk_coef, scores):
    for a in range(q.shape[0]):
        scores[a] = q[a].mean() if q[a, 0] > -1e6 else math.nan


def test_a_measure_that_returns_nan_is_refused():
    register_risk("log_of_mean", lambda values, risk_coef: np.log(values.mean()))
    register_risk("joint_nan", _joint_nan)
    register_risk("divides", lambda values, risk_coef: 1.0 / float(0 * values[0]))
    for name, said in (
        ("log_of_mean", "returned NaN"),
        ("joint_nan", "returned NaN"),
        ("divides", "fails with ZeroDivisionError"),
    ):
        with np.errstate(all="ignore"), pytest.raises(BathysphereError, match=f"'{name}' {said}"):
            make_search(make_domain({0: [0, 0]}), [[0, 0]], risk=name)


def _joint_nan(q, eligible, risk_coef, scores):
    scores[:] = np.nan


@pytest.mark.parametrize(
    "measures",
    [
        {"risk": "not_always_a_number"},
        {"risk": "joint_not_always_a_number"},
        {"risk": "mean_std", "final_risk": "joint_not_always_a_number"},
    ],
    ids=lambda measures: "-".join(measures.values()),
)
def test_nan_that_comes_up_later_is_refused_when_the_episode_ends(measures):
    domain = make_domain({0: [1, 2], 1: [1, 1], 2: [2, 2]})
    search = make_search(domain, [[0, 0], [-1e7, 1], [2, -1]], passes=5, num_episodes=1, **measures)
    with pytest.raises(BathysphereError, match="not_always_a_number' returned NaN for values that came up"):
        search.play()
