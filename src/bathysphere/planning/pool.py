"""Several searches side by side: the same work on more than one core."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model, Starts, States
from bathysphere.errors import BathysphereError
from bathysphere.planning import compiled_rules as in_place
from bathysphere.planning.config import SearchConfig
from bathysphere.planning.episode import Episode
from bathysphere.planning.mcts import Values
from bathysphere.planning.start_states import find_starts
from bathysphere.planning.workers import Lane, LanesBeside, LanesElsewhere, LanesHere, Plan, Report, pickled


class Crew:
    """Plays `batch` episodes as `lanes` lock-step searches, each with its own share of the batch and its own seed.

    Lanes can run in processes of their own. (Threads were no faster than one where each move takes the interpreter back
    dozens of times; searches that stay in compiled code, see in_place.py, do run in threads.) Which episodes are played
    depends on the seed and on `lanes`, never on `processes`. The crew's n-th episode begins with the n-th of the start
    states, if those are numbered.

    Args:
      lanes: number of searches; at most `batch`.
      processes: how many lanes run at the same time, one of them here. With 1 all run here, in turn. With more, domain,
        values and model must be picklable, unless threads will do; values and model that have changed are sent again
        before the next move.
      The others: as for `Search`.
    """

    def __init__(
        self,
        domain: Domain,
        values: Values,
        config: SearchConfig | None = None,
        *,
        batch: int = 1,
        seed: int | np.random.SeedSequence = 0,
        lanes: int = 1,
        processes: int = 1,
        model: Model | None = None,
        num_episodes: int | None = None,
        starts: States | Starts | None = None,
        steady: bool = False,
    ) -> None:
        if not 1 <= lanes <= batch:
            raise BathysphereError(f"lanes is {lanes}; expected 1 to {batch}, the number of episodes played at once.")
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        starts = find_starts(starts, domain, sequence)  # one stream for all lanes
        self.num_episodes = num_episodes
        self._values, self._model = values, None if model is domain else model
        plan = Plan(domain, values, config, self._model, starts, lanes, steady)
        all_lanes = [
            Lane(
                number=number,
                batch=len(range(number, batch, lanes)),
                seed=child,
                num_episodes=None if num_episodes is None else len(range(number, num_episodes, lanes)),
            )
            for number, child in enumerate(sequence.spawn(lanes))
        ]
        num_groups = min(processes, lanes)
        bounds = [lanes * group // num_groups for group in range(num_groups + 1)]
        shares = [all_lanes[low:high] for low, high in pairwise(bounds)]
        self._sent: bytes | None = None  # values and model as other processes know them
        self._version: int | None = None  # of those values
        # The first share stays here: its episodes need not travel. The others are under way before it begins.
        others: list[LanesBeside | LanesElsewhere]
        if self._model is None and not steady and in_place.is_possible(domain, values):
            others = [LanesBeside(plan, share) for share in shares[1:]]
        else:
            if num_groups > 1:
                self._sent = pickled((values, self._model))
                self._version = getattr(values, "version", None)
            others = [LanesElsewhere(plan, share, num_groups) for share in shares[1:]]
        self._groups = [LanesHere(plan, shares[0], num_groups), *others]
        self._reports: list[Report] = []
        self._all(None)

    def step(self, moves: int = 1) -> list[Episode]:
        """Makes `moves` moves in every running episode, before which lanes do not wait for each other.

        Returns:
          The episodes that finished, lane after lane; within a lane those of the first move first.
        """
        return [episode for episodes in self._all("step", moves, news=self._news()) for episode in episodes]

    def play(self) -> list[Episode]:
        """Plays until no episode is left (`num_episodes` must be set); returns them in order of starting.

        Lanes wait for each other only at the end.
        """
        if self.num_episodes is None:
            raise BathysphereError("Crew.play needs num_episodes; without it the search never ends.")
        episodes = [episode for played in self._all("play", news=self._news()) for episode in played]
        return sorted(episodes, key=lambda episode: episode.index)

    @property
    def num_active(self) -> int:
        """Episodes running now."""
        return sum(report.num_active for report in self._reports)

    @property
    def model_errors(self) -> Counter[str]:
        """Every kind of model error made on real moves so far."""
        return sum((report.model_errors for report in self._reports), Counter())

    @property
    def seconds(self) -> dict[str, float]:
        """Time spent in each phase of planning, summed over lanes."""
        phases = self._reports[0].seconds
        return {phase: sum(report.seconds[phase] for report in self._reports) for phase in phases}

    @property
    def network_calls(self) -> int:
        """States evaluated by the network so far."""
        return sum(report.network_calls for report in self._reports)

    @property
    def network_batches(self) -> int:
        """Calls of the network in which that was done."""
        return sum(report.network_batches for report in self._reports)

    @property
    def arena_bytes(self) -> int:
        """Memory of all search graphs together, in bytes."""
        return sum(report.arena_bytes for report in self._reports)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed crew needs to go on bit for bit, half-played episodes included."""
        return {name: array for part in self._all("state_dict") for name, array in part.items()}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; sizes and config must be the same."""
        self._all("load_state_dict", dict(state))

    def _news(self) -> bytes | None:
        """Returns values and model if other processes have to be told of them."""
        version = getattr(self._values, "version", None)
        is_same = version is not None and version == self._version and self._model is None
        if self._sent is None or is_same:
            return None
        now = pickled((self._values, self._model))
        news = None if now == self._sent else now
        self._sent, self._version = now, version
        return news

    def _all(self, what: str | None, *args: Any, news: bytes | None = None) -> list[Any]:
        """Has all groups of lanes do something (or nothing) at the same time; returns what they answer."""
        try:
            if what is not None:
                for group in self._groups:
                    group.ask(what, *args, news=news)
            answers = [group.answer() for group in self._groups]
        except BaseException:  # Ctrl-C too: answers that nobody waits for any more would be taken for the next ones
            for group in self._groups:
                group.close()
            raise
        self._reports = [report for _, report in answers]
        return [said for said, _ in answers]
