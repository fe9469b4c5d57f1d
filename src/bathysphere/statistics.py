"""What a count tells about a share: Wilson's interval; and what numbers tell about their mean."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

_Z = 1.959963984540054  # of 95 %: that many standard deviations to either side


def wilson_interval(successes: int, n: int) -> tuple[float, float]:
    """Returns the 95 % Wilson score interval of the share successes / n; n is at least 1.

    >>> [round(bound, 4) for bound in wilson_interval(8, 10)]
    [0.4902, 0.9433]
    """
    share = successes / n
    centre = share + _Z * _Z / (2 * n)
    spread = _Z * math.sqrt(share * (1 - share) / n + _Z * _Z / (4 * n * n))
    scale = 1 + _Z * _Z / n
    return max((centre - spread) / scale, 0.0), min((centre + spread) / scale, 1.0)


def mean_interval(numbers: Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % interval of the mean by the normal approximation; of a single number, that number.

    >>> [round(bound, 4) for bound in mean_interval([0.0, 1.0, 1.0, 1.0])]
    [0.26, 1.24]
    """
    mean = math.fsum(numbers) / len(numbers)
    spread = _Z * statistics.stdev(numbers) / math.sqrt(len(numbers)) if len(numbers) > 1 else 0.0
    return mean - spread, mean + spread
