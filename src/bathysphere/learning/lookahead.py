"""Targets that are computed when a batch is drawn: one step ahead by the model, each member by its own values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Chance, Domain, Model, Outcomes, PartialChance, PartialModel, States, Successors
from bathysphere.values.ensemble import Ensemble


def look_ahead(states: States, domain: Domain, model: Model, values: Ensemble, discount: float) -> NDArray[np.float32]:
    """Returns what each member thinks the best action in `states`, uint8 [n, S], is worth: float32 [n, E].

    That is max over actions of reward + discount * the member's value of the successor, as it is now; 0 for an end, and
    what the model says for an outcome that it does not know. With chance, its expectation, of the unknown too.
    """
    if isinstance(model, Chance):
        return _expect(states, domain, model, values, discount)
    imagined = model.imagine(states) if isinstance(model, PartialModel) else None
    answer = model.successors(states) if imagined is None else imagined.successors
    shape = (*answer.rewards.shape, values.num_members)
    ahead = _of_successors(answer, states[:, None], domain, values).reshape(shape)
    ahead = np.where(answer.terminal[:, :, None], np.float32(0.0), ahead)
    if imagined is not None:
        ahead = np.where(imagined.is_known[:, :, None], ahead, imagined.values)
    best: NDArray[np.float32] = (answer.rewards[:, :, None] + discount * ahead).max(axis=1).astype(np.float32)
    return best


def _expect(states: States, domain: Domain, model: Chance, values: Ensemble, discount: float) -> NDArray[np.float32]:
    imagined = model.imagine_outcomes(states) if isinstance(model, PartialChance) else None
    answer = model.outcomes(states) if imagined is None else imagined.outcomes
    shape = (*answer.rewards.shape, values.num_members)
    ahead = _of_successors(answer, states[:, None, None], domain, values).reshape(shape)
    worth = answer.rewards[..., None] + discount * np.where(answer.terminal[..., None], np.float32(0.0), ahead)
    expected: NDArray[np.float64] = (answer.probabilities[..., None] * worth).sum(axis=2)
    if imagined is not None:
        expected = expected + discount * imagined.unknown[..., None] * imagined.values
    best: NDArray[np.float32] = expected.max(axis=1).astype(np.float32)
    return best


def _of_successors(
    answer: Successors | Outcomes, states: States, domain: Domain, values: Ensemble
) -> NDArray[np.float32]:
    """Returns the values of what follows `states`; those of ends count for nothing, and a model's may be no states."""
    rows = np.where(answer.terminal[..., None], states, answer.states)
    return values.evaluate(domain.observe(rows.reshape(-1, domain.state_size)))
