"""Networks that learn while acting what may happen in a world with chance, and how probable each outcome is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from bathysphere.domains.base import Categories, Domain, ImaginedOutcomes, Outcomes, States, Successors, as_rows
from bathysphere.models.learnt_networks import BATCH_SIZE, CHUNK, LearntNetworks
from bathysphere.models.predictable import check_predictable
from bathysphere.models.predictors import OutcomesPredictor
from bathysphere.models.step_replay import Steps
from bathysphere.models.unknown import UnknownValues
from bathysphere.storage.state import Arrays, require

MOST_CHANGES = 128  # that are told apart
_TOLD = 8  # outcomes of an action that are told; the least probable are left out
_LEAST = 0.01  # probability of what is told. A search takes the same row for an end wherever it is told to be one first


class ChanceNetworks(LearntNetworks):
    """Predicts a categorical distribution over changes: by how much each byte of a row changes, and the kind of step.

    Changes are listed as they are met; number 0 stands for those that were met when the list was full. What is not told
    is unknown: the rest beyond the likeliest; changes that would lead on to a row with a byte that no step has begun
    with, or that cannot be observed; and, of several networks, what they disagree about. That is the mutual information
    between the outcome and the network, as a share of the most it can be. Luck, which they agree on, is no part of it.

    Args:
      domain, seed, num_networks: as for `LearntNetworks`.
      num_members: E, of the values.
      spread: of what is unknown, as for `UnknownValues`.
    """

    def __init__(self, domain: Domain, seed: int, num_members: int, spread: float, num_networks: int = 1) -> None:
        check_predictable(domain)
        sizes = domain.state_size, len(domain.action_names), MOST_CHANGES
        super().__init__(domain, seed, num_networks, lambda rng: OutcomesPredictor(*sizes, rng))
        self._domain, self._unknown = domain, UnknownValues(self._num_actions, num_members, spread, seed)
        self._changes = np.zeros((1, self._state_size + 1), np.uint8)  # of every byte; and the kind of step
        self._numbers: dict[bytes, int] = {}  # of these
        self._seen = np.zeros((self._state_size, 256), np.bool_)  # values of each byte with which steps began

    def successors(self, states: States) -> Successors:
        """Returns the likeliest outcome of every action."""
        told = self.outcomes(states)
        best = *np.indices(told.rewards.shape[:2]), told.probabilities.argmax(axis=2)
        return Successors(told.states[best], told.rewards[best], told.terminal[best], told.solved[best])

    def outcomes(self, states: States) -> Outcomes:
        """Returns what is told, as if there were nothing else; an action of which nothing is told stays where it is."""
        told, unknown, _ = self.imagine_outcomes(states)
        told.probabilities[:, :, 0] += unknown == 1.0
        told.probabilities[:] /= told.probabilities.sum(axis=2, keepdims=True)
        return told

    def imagine_outcomes(self, states: States) -> ImaginedOutcomes:
        """Returns what may follow `states`, uint8 [n, S], and how probable something else is and what it is worth."""
        self.asked = states = as_rows(states, self._state_size)
        out = Outcomes.none(states, self._num_actions, _TOLD)
        chances = self._believed(states)
        likeliest = np.argsort(-chances, axis=2, kind="stable")[:, :, :_TOLD]
        chances = np.take_along_axis(chances, likeliest, axis=2)
        rows, replay = states[:, None, None] + self._changes[likeliest, :-1], self._replay
        if replay.num_kinds:
            kinds = self._changes[likeliest, -1]
            chances[(chances < _LEAST) | ~(replay.terminal[kinds] | self._can_be_observed(rows))] = 0.0
            place = np.nonzero(chances)
            kinds = kinds[place]
            out.probabilities[place], out.states[place] = chances[place], rows[place]
            out.rewards[place], out.terminal[place] = replay.rewards[kinds], replay.terminal[kinds]
            out.solved[place] = replay.solved[kinds]
        unknown = np.maximum(1.0 - out.probabilities.sum(axis=2), 0.0)
        return ImaginedOutcomes(out, unknown, self._unknown.of(states))

    def _can_be_observed(self, rows: States) -> NDArray[np.bool_]:
        """Tells of which of `rows`, uint8 [..., S], an observation could be made."""
        spec = self._domain.observation
        if not isinstance(spec, Categories):
            return np.ones(rows.shape[:-1], np.bool_)
        seen = self._domain.observe(rows.reshape(-1, self._state_size)).astype(np.int64)
        seen = seen.reshape(*rows.shape[:-1], -1)
        return np.asarray(((seen >= 0) & (seen < spec.num_categories)).all(axis=-1), np.bool_)

    def _believed(self, states: States) -> NDArray[np.float64]:
        """Returns how probable every change in the list is, as far as it is believed: [n, A, changes]."""
        said = np.stack([self._predict(network, states) for network in self._networks])
        mean: NDArray[np.float64] = said.mean(axis=0)
        believed = mean.copy()
        if len(said) > 1:
            information = _entropy(mean) - _entropy(said).mean(axis=0)
            believed *= 1.0 - np.clip(information / math.log(len(said)), 0.0, 1.0)[..., None]
        believed[:, :, 0] = 0.0
        if self._replay.num_kinds:
            rows = states[:, None] + self._changes[:, :-1]
            is_known = self._seen[np.arange(self._state_size), rows].all(axis=2)
            believed *= (is_known | self._replay.terminal[self._changes[:, -1]])[:, None]
        return believed

    def _predict(self, network: OutcomesPredictor, states: States) -> NDArray[np.float64]:
        """Returns how probable a network finds every change in the list: [n, A, changes]."""
        num_changes = len(self._changes)
        chances = np.empty((len(states), self._num_actions, num_changes))
        with torch.inference_mode():
            for start in range(0, len(states), CHUNK):
                part = np.s_[start : start + CHUNK]
                logits = network(torch.tensor(states[part]))[..., :num_changes]
                chances[part] = logits.double().softmax(dim=-1).numpy()
        return chances

    def _meet(self, steps: Steps) -> None:
        self._seen[np.arange(self._state_size), steps.before] = True
        for change in self._told(steps):
            if len(self._changes) < MOST_CHANGES and change.tobytes() not in self._numbers:
                self._numbers[change.tobytes()] = len(self._changes)
                self._changes = np.concatenate([self._changes, change[None]])

    def _told(self, steps: Steps) -> NDArray[np.uint8]:
        """Returns what happened in steps as the list has it."""
        return np.concatenate([steps.after - steps.before, steps.kinds[:, None].astype(np.uint8)], axis=1)

    def _loss(self, network: OutcomesPredictor) -> torch.Tensor:
        steps = self._replay.draw(BATCH_SIZE, self._rng)  # evenly, for how often is what is learnt
        numbers = torch.tensor([self._numbers.get(change.tobytes(), 0) for change in self._told(steps)])
        logits = network(torch.from_numpy(steps.before))[torch.arange(BATCH_SIZE), torch.from_numpy(steps.actions)]
        return functional.cross_entropy(logits[:, : len(self._changes)], numbers)

    def state_dict(self) -> Arrays:
        """As that of `LearntNetworks`, with the list of changes."""
        more = {"spread": np.array(self._unknown.spread), "changes": self._changes.copy(), "seen": self._seen.copy()}
        return super().state_dict() | more

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        changes, seen = state["changes"], state["seen"]
        require(np.isfinite(state["spread"]), "what is unknown has no spread")
        is_fitting = (
            changes.ndim == 2 and changes.shape[1:] == self._changes.shape[1:] and seen.shape == self._seen.shape
        )
        require(is_fitting and 1 <= len(changes) <= MOST_CHANGES, "the changes that were met are not of this world")
        super().load_state_dict(state)
        require((changes[:, -1] < max(self._replay.num_kinds, 1)).all(), "a change that was met is of no kind")
        self._numbers = {change.tobytes(): 1 + number for number, change in enumerate(changes[1:])}
        require(len(self._numbers) == len(changes) - 1, "a change was met twice")
        self._changes, self._seen = changes.copy(), seen.copy()
        self._unknown.spread = float(state["spread"])


def _entropy(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the entropy of distributions along the last axis, in nats."""
    logs = np.log(chances, where=chances > 0, out=np.zeros_like(chances))
    entropy: NDArray[np.float64] = -(chances * logs).sum(axis=-1)
    return entropy
