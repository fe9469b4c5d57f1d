"""Several models that vote: what enough of them agree on is believed, and all else is unknown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bathysphere.domains.base import Imagined, Model, States, Successors
from bathysphere.errors import BathysphereError
from bathysphere.models.unknown import UnknownValues


class VotingModel:
    """Models of one world, each with errors of its own.

    Args:
      models: K of them.
      unknown: what is worth how much where they disagree.
      quorum: models that have to say the same; more than half of them if not given.
    """

    def __init__(self, models: Sequence[Model], unknown: UnknownValues, quorum: int | None = None) -> None:
        most = len(models)
        self._quorum = most // 2 + 1 if quorum is None else quorum
        if not most // 2 < self._quorum <= most:
            raise BathysphereError(f"quorum is {quorum}; expected more than half of the {most} models, at most all.")
        self._models, self._unknown = tuple(models), unknown

    def successors(self, states: States) -> Successors:
        """Returns what is known of `states`, uint8 [n, S]; what is not known stays where it is."""
        return self.imagine(states).successors

    def imagine(self, states: States) -> Imagined:
        """Returns what enough models say of `states`, uint8 [n, S], and what the rest is worth to each member."""
        return vote([model.successors(states) for model in self._models], states, self._unknown, self._quorum)


def vote(answers: Sequence[Successors], states: States, unknown: UnknownValues, quorum: int) -> Imagined:
    """Returns what at least `quorum` of `answers` say of `states`, uint8 [n, S]: the same state, reward and end."""
    said = Successors(*(np.stack(parts) for parts in zip(*answers, strict=True)))  # [K, n, A, ...]
    same = (said.states[:, None] == said.states).all(axis=-1)  # [K, K, n, A]
    for part in said[1:]:
        same &= part[:, None] == part
    votes = same.sum(axis=1)
    chosen = votes.argmax(axis=0)
    is_known = votes.max(axis=0) >= quorum
    where = chosen, *np.indices(chosen.shape)
    known = Successors(
        np.where(is_known[..., None], said.states[where], states[:, None]),
        np.where(is_known, said.rewards[where], 0.0),
        said.terminal[where] & is_known,
        said.solved[where] & is_known,
    )
    return Imagined(known, is_known, unknown.where(~is_known, states))
