"""How weights start, whatever computes with them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def glorot(
    shape: tuple[int, ...], fan_in: int, fan_out: int, rng: np.random.Generator, scale: float = 1.0
) -> NDArray[np.float32]:
    """Draws float32 weights uniformly in ±scale * sqrt(6 / (fan_in + fan_out)), fans of one member."""
    limit = scale * math.sqrt(6.0 / (fan_in + fan_out))
    return rng.uniform(-limit, limit, shape).astype(np.float32)
