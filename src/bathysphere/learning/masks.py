"""Masks: which members learn from which entry, so that members stay different."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bathysphere.errors import BathysphereError


@dataclass(frozen=True)
class MaskConfig:
    """How training data are shared out among the members."""

    kind: Literal["none", "one_hot", "bernoulli", "split"] = "one_hot"
    """none: all members learn from everything; one_hot: one random member; bernoulli: each member with a
    probability; split: nothing is fixed in advance, each batch is cut into equal parts, one per member."""
    per: Literal["episode", "transition"] = "episode"
    """Whether a one_hot or bernoulli mask is drawn once for an episode or for each of its transitions."""
    probability: float = 0.5
    """bernoulli: probability that a member learns."""

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise BathysphereError(
                f"mask.probability must be above 0 and at most 1, got {self.probability}; the paper's is 0.5."
            )


def draw_mask(config: MaskConfig, length: int, num_members: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draws the mask that is stored with an episode, bool [length, E].

    All true for none and split. A bernoulli mask may leave an entry to no member at all.
    """
    if config.kind in ("none", "split"):
        return np.ones((length, num_members), np.bool_)
    num_draws = 1 if config.per == "episode" else length
    if config.kind == "one_hot":
        mask = rng.integers(num_members, size=(num_draws, 1)) == np.arange(num_members)
    else:
        mask = rng.random((num_draws, num_members)) < config.probability
    return mask if len(mask) == length else np.repeat(mask, length, axis=0)


def split_mask(num_solved: int, num_unsolved: int, num_members: int) -> NDArray[np.bool_]:
    """Cuts a batch, solved entries first, into a part for each member: bool [num_solved + num_unsolved, E].

    Every member gets its share of both halves, of sizes that differ by at most one within a half.

    >>> split_mask(2, 2, 2).astype(int).tolist()
    [[1, 0], [0, 1], [1, 0], [0, 1]]
    """
    parts: NDArray[np.int64] = np.concatenate(
        [np.arange(size) * num_members // max(size, 1) for size in (num_solved, num_unsolved)]
    )
    mask: NDArray[np.bool_] = parts[:, None] == np.arange(num_members)
    return mask
