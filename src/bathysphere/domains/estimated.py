"""Worlds with chance that can only be run: how probable each outcome is, is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.adapters.calling import told
from bathysphere.domains.adapters.digests import digest
from bathysphere.domains.base import (
    Chance,
    Domain,
    ObservationSpec,
    Outcomes,
    Remembers,
    Sampler,
    States,
    Successors,
    as_rows,
)
from bathysphere.domains.counting import Counts, add, most_frequent, write
from bathysphere.errors import BathysphereError
from bathysphere.storage.state import prefixed, require, section

SEEDS = 2**31  # of runs: 0 to one less


class _State:
    """What runs from one state have shown: for every action its outcomes, in the order in which they first came."""

    def __init__(self, num_actions: int) -> None:
        self.runs = 0
        self.counts: list[Counts] = [{} for _ in range(num_actions)]

    def add(self, answer: Successors, number: int) -> None:
        for action, counts in enumerate(self.counts):
            outcome = (
                answer.states[number, action].tobytes(),
                bool(answer.terminal[number, action]),
                bool(answer.solved[number, action]),
            )
            add(counts, outcome, float(answer.rewards[number, action]))
        self.runs += 1


class EstimatedChance:
    """A world with a sampler, and with outcomes that are counted in runs of it.

    Whenever the outcomes of a state are asked for, some more runs are made from it, up to a number; what was counted
    is kept, so that estimates get sharper where planning comes often. Outcomes are told apart by the state they lead
    to; rewards that differ are averaged. Everything follows from the seed and the questions asked so far.

    Args:
      domain: offers `Sampler`.
      runs: runs of every action at each question.
      most_runs: after which no more are made from a state.
      num_outcomes: C; of more, the most frequent are kept, and their probabilities add up to 1.
      seed: decides the runs.
    """

    def __init__(
        self, domain: Domain, *, runs: int = 16, most_runs: int = 256, num_outcomes: int = 8, seed: int = 0
    ) -> None:
        if not isinstance(domain, Sampler):
            raise BathysphereError(f"{domain.name} offers no sample, so that its chances cannot be counted.")
        if not 1 <= runs <= most_runs or num_outcomes < 1:
            raise BathysphereError(
                f"runs is {runs}, most_runs {most_runs} and num_outcomes {num_outcomes}; expected 1 <= runs <= "
                "most_runs and at least one outcome."
            )
        self._domain, self._sample = domain, domain.sample
        self._runs, self._most_runs, self._num_outcomes, self._seed = runs, most_runs, num_outcomes, seed
        self._states: dict[bytes, _State] = {}
        self._first: dict[bytes, _State] = {}  # after the first runs only
        self._saved: dict[bytes, int] = {}  # runs from states of a checkpoint that nobody has asked about since
        self.num_runs = 0  # steps of the simulator for counting
        self.name: str = domain.name
        self.state_size: int = domain.state_size
        self.action_names: tuple[str, ...] = domain.action_names
        self.max_steps: int = domain.max_steps
        self.observation: ObservationSpec = domain.observation
        # What else the world offers is an attribute here too: since Python 3.12 protocols look for nothing else.
        for name in sorted(set(dir(domain)) - set(dir(self))):
            if not name.startswith("_"):
                setattr(self, name, getattr(domain, name))

    def seed_runs(self, seed: int) -> None:
        """Has other runs made from now on. Forgets what was counted."""
        self._seed = seed
        self._states.clear()
        self._first.clear()
        self._saved.clear()

    def __repr__(self) -> str:
        return told(self)

    def initial(self, n: int, rng: np.random.Generator) -> States:
        """Returns `n` start states, uint8 [n, S]."""
        return self._domain.initial(n, rng)

    def observe(self, states: States) -> NDArray[np.generic]:
        """Returns what networks see of `states`."""
        return self._domain.observe(states)

    def sample(self, states: States, seeds: NDArray[np.int64]) -> Successors:
        """Runs every action once."""
        return self._sample(states, seeds)

    def successors(self, states: States) -> Successors:
        """Returns the most frequent outcome of every action in the first runs; of several, the one that came first."""
        rows = as_rows(states, self.state_size)
        out = Successors.empty(len(rows), len(self.action_names), self.state_size)
        for number, row in enumerate(rows):
            first = self._first.setdefault(row.tobytes(), _State(len(self.action_names)))
            if not first.runs:
                self._run(row, first)
            for action, counts in enumerate(first.counts):
                ((outcome, count),) = most_frequent(counts, 1)
                write(out, (number, action), outcome, count)
        return out

    def outcomes(self, states: States) -> Outcomes:
        """Returns what followed `states`, uint8 [n, S], in all runs so far, after some more of them."""
        rows = as_rows(states, self.state_size)
        out = Outcomes.none(rows, len(self.action_names), self._num_outcomes)
        for number, row in enumerate(rows):
            for action, counts in enumerate(self._asked(row).counts):
                for place, (outcome, count) in enumerate(most_frequent(counts, self._num_outcomes)):
                    write(out, (number, action, place), outcome, count)
                    out.probabilities[number, action, place] = count.times
        out.probabilities[:] /= out.probabilities.sum(axis=2, keepdims=True)
        return out

    def _asked(self, row: States) -> _State:
        """Returns what is known of a state, after the runs that are due."""
        key = row.tobytes()
        known = self._states.setdefault(key, _State(len(self.action_names)))
        wanted = min(max(known.runs, self._saved.pop(key, 0)) + self._runs, self._most_runs)
        while known.runs < wanted:
            self._run(row, known)
        return known

    def _run(self, row: States, known: _State) -> None:
        """Makes the next runs from a state, as many as a question brings."""
        place = int.from_bytes(digest(row.tobytes()), "little")
        seeds = np.random.default_rng([self._seed, place, known.runs]).integers(SEEDS, size=self._runs)
        answer = self._sample(np.repeat(row[None], self._runs, axis=0), seeds)
        self.num_runs += self._runs * len(self.action_names)
        for number in range(self._runs):
            known.add(answer, number)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns from which states how many runs were made: they can be made again."""
        made = self._saved | {key: known.runs for key, known in self._states.items() if known.runs}
        runs = dict(sorted(made.items()))
        return {
            "states": np.frombuffer(b"".join(runs), np.uint8).reshape(len(runs), self.state_size).copy(),
            "runs": np.array(list(runs.values()), np.int64),
            **(prefixed("world.", self._domain.state_dict()) if isinstance(self._domain, Remembers) else {}),
        }

    def load_state_dicts(self, states: Sequence[Mapping[str, NDArray[Any]]]) -> None:
        """Adds what the `state_dict` of domains like this one returned."""
        if isinstance(self._domain, Remembers):
            self._domain.load_state_dicts([section(state, "world.") for state in states])
        for state in states:
            rows, runs = state["states"], state["runs"]
            is_fitting = rows.ndim == 2 and rows.shape == (len(runs), self.state_size) and rows.dtype == np.uint8
            require(is_fitting, "what was counted is not of this world")
            require(((runs >= 0) & (runs <= self._most_runs + self._runs)).all(), "runs were counted that nobody made")
            for row, number in zip(rows, runs.tolist(), strict=True):
                key = row.tobytes()
                if key not in self._states or self._states[key].runs < number:
                    # Asking adds runs; so as many are put back as were made before.
                    self._saved[key] = max(number, self._saved.get(key, 0))


def with_outcomes(domain: Domain) -> Domain:
    """Returns a domain that offers `Sampler` with outcomes counted; any other, or one that has them, as it is."""
    if isinstance(domain, Sampler) and not isinstance(domain, Chance):
        return EstimatedChance(domain)
    return domain
