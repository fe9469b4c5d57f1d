import pytest
from scipy.stats import binomtest

from bathysphere.statistics import wilson_interval


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (3, 7), (50, 50), (812, 1000), (1, 1)])
def test_wilsons_interval_is_scipys(successes, n):
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, n) == pytest.approx((expected.low, expected.high))
