"""Several planners side by side: the same work on more than one core."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model, Starts, States
from bathysphere.errors import BathysphereError
from bathysphere.planning import compiled_rules
from bathysphere.planning.config import PlannerSettings, SearchConfig
from bathysphere.planning.episode import Episode
from bathysphere.planning.planner import Values, VersionedValues, Work
from bathysphere.planning.real_steps import MadeSteps
from bathysphere.planning.start_states import find_starts
from bathysphere.planning.transport import pickled
from bathysphere.planning.worker_process import ProcessGroup
from bathysphere.planning.workers import Group, LocalGroup, Plan, Report, ThreadGroup, Worker


class Pool:
    """Plays `batch` episodes with `workers` planners, each with its own share of the batch and its own seed.

    Which episodes are played depends on the seed and on `workers`, never on `processes`. The pool's n-th episode begins
    with the n-th of the start states, if those are numbered.

    Workers beyond the first group run in processes of their own. (Threads were no faster than one where each step needs
    the interpreter dozens of times; planners that stay in compiled code, see compiled_rules.py, do run in threads.)

    Args:
      workers: number of planners; at most `batch`.
      processes: how many groups of workers run at the same time, one of them here; as many as there are cores (and
        workers) if None. With 1 all run here, in turn. With more, domain, values and model must be picklable, unless
        threads will do; values and model that have changed are sent again before the next step.
      The others: as for `MCTS`.
    """

    def __init__(
        self,
        domain: Domain,
        values: Values,
        config: PlannerSettings | None = None,
        *,
        batch: int = 1,
        seed: int | np.random.SeedSequence = 0,
        workers: int = 1,
        processes: int | None = None,
        model: Model | None = None,
        num_episodes: int | None = None,
        starts: States | Starts | None = None,
        steady: bool = False,
        graph_states: int | None = None,
    ) -> None:
        if not 1 <= workers <= batch:
            raise BathysphereError(
                f"workers is {workers}; expected 1 to {batch}, the number of episodes played at once."
            )
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        starts = find_starts(starts, domain, sequence)  # one stream for all workers
        self.num_episodes = num_episodes
        self._values, self._model = values, None if model is domain else model
        plan = Plan(domain, values, config or SearchConfig(), self._model, starts, workers, steady, graph_states)
        everyone = [
            Worker(
                number=number,
                batch=len(range(number, batch, workers)),
                seed=child,
                num_episodes=None if num_episodes is None else len(range(number, num_episodes, workers)),
            )
            for number, child in enumerate(sequence.spawn(workers))
        ]
        num_groups = min(processes or os.cpu_count() or 1, workers)
        bounds = [workers * group // num_groups for group in range(num_groups + 1)]
        shares = [everyone[low:high] for low, high in pairwise(bounds)]
        self._sent: bytes | None = None  # values and model as other processes know them
        self._version: int | None = None  # of those values
        # The first share stays here: its episodes need not travel. The others are under way before it begins.
        others: list[Group]
        if self._model is None and not steady and compiled_rules.is_possible(domain, values):
            others = [ThreadGroup(plan, share) for share in shares[1:]]
        else:
            if num_groups > 1:
                self._sent = pickled((values, self._model))
                self._version = _version(values)
            others = [ProcessGroup(plan, share, num_groups) for share in shares[1:]]
        self._groups: list[Group] = [LocalGroup(plan, shares[0], num_groups), *others]
        self._reports: list[Report] = []
        self._all(None)

    def step(self, steps: int = 1) -> list[Episode]:
        """Makes `steps` steps in every running episode, before which workers do not wait for each other.

        Returns:
          The episodes that finished, worker after worker; within a worker those of the first step first.
        """
        return [episode for episodes in self._all("step", steps, changed=self._changed()) for episode in episodes]

    def made(self) -> list[MadeSteps]:
        """Returns the steps that were made last by workers that plan with a model."""
        return [made for some in self._all("made") for made in some]

    def play(self) -> list[Episode]:
        """Plays until no episode is left (`num_episodes` must be set); returns them in order of starting.

        Workers wait for each other only at the end.
        """
        if self.num_episodes is None:
            raise BathysphereError("Pool.play needs num_episodes; without it the search never ends.")
        episodes = [episode for played in self._all("play", changed=self._changed()) for episode in played]
        return sorted(episodes, key=lambda episode: episode.index)

    @property
    def num_active(self) -> int:
        """Episodes running now."""
        return sum(report.num_active for report in self._reports)

    @property
    def work(self) -> Work:
        """What planning has cost so far, summed over workers."""
        return sum((report.work for report in self._reports), Work())

    @property
    def graph_bytes(self) -> int:
        """Memory of all search graphs together, in bytes."""
        return sum(report.graph_bytes for report in self._reports)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed pool needs to go on bit for bit, half-played episodes included."""
        return {name: array for part in self._all("state_dict") for name, array in part.items()}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; sizes and config must be the same."""
        self._all("load_state_dict", dict(state))

    def _changed(self) -> bytes | None:
        """Returns values and model if other processes have older ones."""
        version = _version(self._values)
        is_same = version is not None and version == self._version and self._model is None
        if self._sent is None or is_same:
            return None
        now = pickled((self._values, self._model))
        changed = None if now == self._sent else now
        self._sent, self._version = now, version
        return changed

    def _all(self, method: str | None, *args: Any, changed: bytes | None = None) -> list[Any]:
        """Has all groups do something (or nothing) at the same time; returns what they answer."""
        try:
            if method is not None:
                for group in self._groups:
                    group.ask(method, *args, changed=changed)
            answers = [group.answer() for group in self._groups]
        except BaseException:  # Ctrl-C too: answers still under way would be taken for the next ones
            for group in self._groups:
                group.close()
            raise
        self._reports = [report for _, report in answers]
        return [returned for returned, _ in answers]


def _version(values: Values) -> int | None:
    return values.version if isinstance(values, VersionedValues) else None
