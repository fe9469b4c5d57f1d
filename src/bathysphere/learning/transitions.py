"""Replay of steps, for members that estimate actions: what they learn looks ahead by their own values, as they are when
the batch is drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain
from bathysphere.learning.replay import Replay, ReplayConfig, Sample
from bathysphere.planning import Episode
from bathysphere.values.action_ensemble import ActionEnsemble
from bathysphere.values.batch import Batch

_ACTION, _RETURN, _TRUST = range(3)  # what is kept of a step besides two states


class TransitionReplay(Replay):
    """Steps of recent episodes, each with where it led after `num_steps` of them (or at the end).

    A step is kept as an entry of an ordinary replay: its state and the later one side by side as the state; and in
    place of targets the action, the discounted rewards between the two, and the factor on the value of the later one:
    0 if that is an end.

    Args:
      config, state_size, num_members, max_length: as for `Replay`.
      num_steps: n, rewards that are summed before values take over.
      discount: of rewards and values.
    """

    def __init__(
        self,
        config: ReplayConfig,
        state_size: int,
        num_members: int,
        max_length: int,
        num_steps: int,
        discount: float,
    ) -> None:
        super().__init__(config, 2 * state_size, num_members, max_length, num_targets=3)
        self._num_steps, self._discount = num_steps, discount

    def add_episode(self, episode: Episode, mask: NDArray[np.bool_], solved: bool, has_ended: bool) -> None:
        """Stores an episode's steps.

        Args:
          episode: with its last state, unless it has ended.
          mask: bool [T, E].
          solved: the class.
          has_ended: whether nothing can follow its last step; otherwise it was cut off, and values say what might have.
        """
        length, num_steps = len(episode), self._num_steps
        last = episode.states[-1] if episode.last_state is None else episode.last_state
        states = np.concatenate([episode.states, last[None]])
        later = np.minimum(np.arange(length) + num_steps, length)
        returns = np.zeros(length)
        for ahead in range(min(num_steps, length)):
            returns[: length - ahead] += self._discount**ahead * episode.rewards[ahead:]
        trust = self._discount ** (later - np.arange(length)).astype(np.float64)
        trust[(later == length) & has_ended] = 0.0
        pairs = np.concatenate([states[:-1], states[later]], axis=1)
        self.add(pairs, np.stack([episode.actions, returns, trust], axis=1), mask, solved)

    def lessons(self, sample: Sample, domain: Domain, values: ActionEnsemble) -> Batch:
        """Returns drawn steps as `ActionEnsemble.update_many` takes them.

        The target of member e is the discounted rewards plus what e itself, as it is now, thinks of the later state.
        """
        num_updates, batch_size, width = sample.states.shape
        pairs = sample.states.reshape(-1, 2, width // 2)
        ahead = values.evaluate(domain.observe(np.ascontiguousarray(pairs[:, 1])))
        ahead = ahead.reshape(num_updates, batch_size, -1)
        observations = domain.observe(np.ascontiguousarray(pairs[:, 0]))
        return Batch(
            observations.reshape(num_updates, batch_size, *observations.shape[1:]),
            sample.targets[:, :, _RETURN, None] + sample.targets[:, :, _TRUST, None] * ahead,
            sample.mask,
            actions=sample.targets[:, :, _ACTION].astype(np.int64),
        )
