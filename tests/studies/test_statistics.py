import numpy as np
import pytest
from scipy import stats

from bathysphere.studies.statistics import Estimate, bootstrap, estimate, share


def wilson(successes, n):
    """Wilson's interval as the textbook writes it."""
    z = stats.norm.ppf(0.975)
    centre = (successes + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * (successes * (n - successes) / n + z * z / 4) ** 0.5
    return centre - half, centre + half


@pytest.mark.parametrize(("successes", "n"), [(0, 43), (2, 40), (30, 37), (22, 50), (5, 5), (1, 1)])
def test_shares_have_wilsons_interval(successes, n):
    ours = share(successes, n)
    assert (ours.n, ours.value) == (n, successes / n)
    assert (ours.low, ours.high) == pytest.approx(wilson(successes, n), abs=1e-9)


def test_a_share_by_hand():
    # Newcombe 1998, table I: 81 of 263 gives 0.2553 to 0.3662.
    ours = share(81, 263)
    assert (round(ours.low, 4), round(ours.high, 4)) == (0.2553, 0.3662)


@pytest.mark.parametrize(("kind", "statistic"), [("mean", np.mean), ("median", np.median)])
def test_means_and_medians_have_the_bootstraps_interval(kind, statistic):
    values = np.random.default_rng(3).exponential(size=40).tolist()
    ours = estimate(values, kind)
    expected = stats.bootstrap(
        (values,), statistic, method="percentile", random_state=np.random.default_rng(0)
    ).confidence_interval
    assert ours.value == pytest.approx(statistic(values))
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high))
    assert ours.low < ours.value < ours.high
    assert estimate(values, kind) == ours  # the same values, the same interval


def test_the_interval_of_a_normal_mean_is_nearly_students():
    values = np.random.default_rng(0).normal(5, 2, size=200)
    low, high = stats.t.interval(0.95, 199, values.mean(), stats.sem(values))
    ours = bootstrap(values.tolist(), np.mean)
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.05)


def test_few_or_equal_values():
    assert estimate([], "share") == estimate([], "mean") == Estimate(0)
    assert estimate([7.0], "mean") == Estimate(1, 7.0)
    assert estimate([7.0] * 3, "median") == Estimate(3, 7.0, 7.0, 7.0)
    assert estimate([1.0, 0.0, 1.0, 1.0], "share").value == 0.75


def test_numbers_must_be_finite():
    with pytest.raises(ValueError, match="finite"):
        estimate([1.0, float("inf")], "mean")
