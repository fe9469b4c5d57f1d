"""What goes into an update and what it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.generic]]


class Batch(NamedTuple):
    """`u` batches of `b` training entries, to be learnt from in order."""

    observations: NDArray[np.generic]  # [u, b, ...], each [...] as the domain's observation declares
    targets: NDArray[np.float32]  # float32 [u, b, M]; M is 1 for a target common to all members, or E
    mask: NDArray[np.bool_]  # bool [u, b, E]: which members learn from the entry


@dataclass(frozen=True)
class UpdateStats:
    """What happened in one or more updates (means over them)."""

    loss: float  # the objective, L2 term included
    member_losses: NDArray[
        np.float64
    ]  # float64 [E], mean squared error over a member's entries; nan without entries
    gradient_norm: float  # Euclidean, over all parameters (delta rule: of the errors)


def member_means(errors: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divides summed squared errors by their number, float64 [E] each; nan where there were none."""
    means = np.full(errors.shape, np.nan)
    np.divide(errors, counts, out=means, where=counts > 0)
    return means
