"""What goes into an update and what it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.errors import BathysphereError
from bathysphere.storage.state import Arrays


class Batch(NamedTuple):
    """`u` batches of `b` training entries, to be learnt from in order."""

    observations: NDArray[np.generic]  # [u, b, ...], each [...] as the domain's observation declares
    targets: NDArray[np.float32]  # float32 [u, b, M]; M is 1 for a target common to all members, or E
    mask: NDArray[np.bool_]  # bool [u, b, E]: which members learn from the entry
    policy: NDArray[np.float32] | None = None  # float32 [u, b, A]: probabilities to learn; all 0 where there are none
    actions: NDArray[np.integer] | None = None  # [u, b]: whose values are learnt; None if those of states are


@dataclass(frozen=True)
class UpdateStats:
    """What happened in one or more updates (means over them)."""

    loss: float  # the objective, L2 term included
    member_losses: NDArray[np.float64]  # float64 [E], mean squared error over a member's entries; nan without entries
    gradient_norm: float  # Euclidean, over all parameters (delta rule: of the errors)


def member_means(errors: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divides summed squared errors by their number, float64 [E] each; nan where there were none."""
    means = np.full(errors.shape, np.nan)
    np.divide(errors, counts, out=means, where=counts > 0)
    return means


def check_shapes(expected: Arrays, arrived: Arrays) -> None:
    """Refuses a saved state that lacks an array, has one too many, or has one of another shape."""
    own, saved = ({name: array.shape for name, array in state.items()} for state in (expected, arrived))
    if own != saved:
        different = sorted(name for name, _ in set(own.items()) ^ set(saved.items()))[0]
        raise BathysphereError(
            f"the saved values hold {different} of shape {saved.get(different)}, expected {own.get(different)}; "
            "load them with the domain, values and optimiser settings they were saved with."
        )
