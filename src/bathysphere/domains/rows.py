"""The check at the door of every world: are these rows of bytes states of mine?"""

from __future__ import annotations

import numpy as np

from bathysphere.domains.base import States
from bathysphere.errors import BathysphereError


def as_rows(states: States, state_size: int) -> States:
    """Returns `states` as a C-contiguous uint8 [n, S] array, without copying when it is one already.

    Raises:
      BathysphereError: for another dtype or shape.
    """
    rows = np.ascontiguousarray(states)
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != state_size:
        raise BathysphereError(
            f"States must be uint8 [n, {state_size}]; got {rows.dtype} {list(rows.shape)}. "
            "Pass rows that came from initial or successors of the same domain."
        )
    return rows
