"""Estimates with 95% intervals: Wilson's for shares, the bootstrap's for means and medians."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bathysphere.statistics import wilson_interval

CONFIDENCE = 0.95

# A share is of runs, a rate the mean of runs' own shares, a return the mean of numbers of any size.
Kind = Literal["share", "rate", "mean", "return", "median"]


@dataclass(frozen=True)
class Estimate:
    """A number that runs have measured; nothing but `n` without runs, no interval for a mean of one run."""

    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


def estimate(values: Sequence[float], kind: Kind) -> Estimate:
    """Estimates a share (of values that are 0 or 1), a median, or else a mean from one value per run."""
    if not values:
        return Estimate(0)
    if kind == "share":
        return share(round(sum(values)), len(values))
    return bootstrap(values, np.median if kind == "median" else np.mean)


def share(successes: int, n: int) -> Estimate:
    """Returns successes / n with Wilson's interval.

    >>> share(30, 37)
    Estimate(n=37, value=0.8108108108108109, low=0.6579530307016159, high=0.9052002126968799)
    """
    return Estimate(n, successes / n, *wilson_interval(successes, n))


def mean_band(
    curves: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Returns the mean of curves, float64 [runs, T], and its bootstrap interval at every moment, each float64 [T].

    The interval of a single curve is the curve.
    """
    from scipy.stats import bootstrap as resample

    if len(curves) == 1:
        return curves[0], curves[0], curves[0]
    interval = resample(
        (curves,),
        np.mean,
        confidence_level=CONFIDENCE,
        method="percentile",
        n_resamples=1000,
        batch=100,  # bounds memory
        random_state=np.random.default_rng(0),
    ).confidence_interval
    return curves.mean(axis=0), interval.low, interval.high


def bootstrap(values: Sequence[float], statistic: Callable[..., Any]) -> Estimate:
    """Returns a statistic with its percentile bootstrap interval; the same values give the same interval.

    Args:
      values: one per run, finite.
      statistic: with an `axis` argument, as np.mean.
    """
    from scipy.stats import bootstrap as resample

    sample = np.asarray(values, np.float64)
    value = float(statistic(sample))
    if not math.isfinite(value):
        raise ValueError(f"values are not all finite: {values}")
    if len(sample) == 1:
        return Estimate(1, value)
    interval = resample(
        (sample,),
        statistic,
        confidence_level=CONFIDENCE,
        method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    return Estimate(len(sample), value, float(interval.low), float(interval.high))
