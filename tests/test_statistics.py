import pytest
from scipy.stats import binomtest, norm, sem

from bathysphere.statistics import mean_interval, wilson_interval


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (3, 7), (50, 50), (812, 1000), (1, 1)])
def test_wilsons_interval_is_scipys(successes, n):
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, n) == pytest.approx((expected.low, expected.high))


def test_the_interval_of_a_mean_is_scipys():
    numbers = [0.5, -2.0, 3.25, 0.0]
    assert mean_interval(numbers) == pytest.approx(norm.interval(0.95, sum(numbers) / 4, sem(numbers)))
    assert mean_interval([2.5]) == (2.5, 2.5)
