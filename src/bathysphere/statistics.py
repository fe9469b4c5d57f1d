"""What a count tells about a share: Wilson's interval."""

from __future__ import annotations

import math

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
