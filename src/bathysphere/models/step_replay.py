"""The latest real steps, from which a model learns while acting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States, Successors
from bathysphere.storage.state import Arrays, require

MOST_KINDS = 32


class Steps(NamedTuple):
    """Real steps."""

    before: States  # uint8 [n, S]
    actions: NDArray[np.int64]  # [n]
    after: States  # uint8 [n, S]
    kinds: NDArray[np.int64]  # [n], numbers of what each paid and whether it ended


class StepReplay:
    """Keeps the latest steps, each with its kind: its reward and whether it ended or solved the episode.

    Kinds are numbered as they are first seen. There are at most `MOST_KINDS`; what comes later counts as the nearest by
    reward, of those that end likewise if there are any.

    Args:
      capacity: steps to keep.
      state_size: S.
      num_actions: A.

    Attributes:
      rewards, terminal, solved: of each kind.
    """

    def __init__(self, capacity: int, state_size: int, num_actions: int) -> None:
        self._num_actions = num_actions
        self._steps = Steps(
            np.zeros((capacity, state_size), np.uint8),
            np.zeros(capacity, np.int64),
            np.zeros((capacity, state_size), np.uint8),
            np.zeros(capacity, np.int64),
        )
        self.num_added = 0
        self.rewards, self.terminal, self.solved = np.zeros(0), np.zeros(0, np.bool_), np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return min(self.num_added, len(self._steps.actions))

    @property
    def num_kinds(self) -> int:
        """Kinds seen so far."""
        return len(self.rewards)

    def add(self, states: States, actions: NDArray[np.integer], outcomes: Successors) -> Steps:
        """Keeps steps: `actions` [n] in `states`, uint8 [n, S], had `outcomes`, arrays without an action axis."""
        places = (self.num_added + np.arange(len(actions))) % len(self._steps.actions)
        kinds = [self._kind(*about) for about in zip(*(part.tolist() for part in outcomes[1:]), strict=True)]
        steps = Steps(states, actions.astype(np.int64), outcomes.states, np.array(kinds, np.int64))
        kept: Any
        for kept, part in zip(self._steps, steps, strict=True):
            kept[places] = part
        self.num_added += len(actions)
        return steps

    def draw(self, size: int, rng: np.random.Generator) -> Steps:
        """Draws `size` steps evenly."""
        return self._at(rng.integers(len(self), size=size))

    def sample(self, size: int, rng: np.random.Generator) -> Steps:
        """Draws `size` steps: half of them evenly, and half with all kinds as likely, for ends are rare."""
        rows = rng.integers(len(self), size=size)
        kinds = self._steps.kinds[: len(self)]
        there = [np.flatnonzero(kinds == kind) for kind in range(self.num_kinds)]
        there = [numbers for numbers in there if len(numbers)]
        chosen = rng.integers(len(there), size=size // 2)
        for k, (which, share) in enumerate(zip(chosen.tolist(), rng.random(size // 2).tolist(), strict=True)):
            rows[k] = there[which][int(share * len(there[which]))]
        return self._at(rows)

    def _at(self, rows: NDArray[np.int64]) -> Steps:
        kept = self._steps
        return Steps(kept.before[rows], kept.actions[rows], kept.after[rows], kept.kinds[rows])

    def _kind(self, reward: float, terminal: bool, solved: bool) -> int:
        same_end = (self.terminal == terminal) & (self.solved == solved)
        same = np.flatnonzero(same_end & (self.rewards == reward))
        if len(same):
            return int(same[0])
        if self.num_kinds < MOST_KINDS:
            self.rewards = np.append(self.rewards, reward)
            self.terminal = np.append(self.terminal, terminal)
            self.solved = np.append(self.solved, solved)
            return self.num_kinds - 1
        distance = np.abs(self.rewards - reward)
        return int(np.where(same_end, distance, np.inf).argmin() if same_end.any() else distance.argmin())

    def state_dict(self) -> Arrays:
        """Returns all steps and kinds."""
        kept = {name: part[: len(self)].copy() for name, part in self._steps._asdict().items()}
        kinds = {"rewards": self.rewards, "terminal": self.terminal, "solved": self.solved}
        return {**kept, **{name: array.copy() for name, array in kinds.items()}, "num_added": np.array(self.num_added)}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        num_added, num_kinds = int(state["num_added"]), len(state["rewards"])
        num_kept = min(num_added, len(self._steps.actions))
        is_fitting = num_added >= 0 and all(
            state[name].shape == (num_kept, *part.shape[1:]) for name, part in self._steps._asdict().items()
        )
        require(is_fitting, "the steps that a model learns from are not of this world")
        is_fitting = num_kinds <= MOST_KINDS and state["terminal"].shape == state["solved"].shape == (num_kinds,)
        require(is_fitting and np.isfinite(state["rewards"]).all(), "a kind of step is none")
        for name, most in (("actions", self._num_actions), ("kinds", num_kinds)):
            require(((state[name] >= 0) & (state[name] < most)).all(), f"of a step that a model learns from, {name}")
        for name, part in self._steps._asdict().items():
            part[:num_kept] = state[name]
        self.num_added = num_added
        self.rewards, self.terminal, self.solved = (state[name].copy() for name in ("rewards", "terminal", "solved"))
