"""Several searches side by side: the same work on more than one core."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model, States
from bathysphere.errors import BathysphereError
from bathysphere.planning.config import SearchConfig
from bathysphere.planning.episode import Episode
from bathysphere.planning.search import Search, Values


class Crew:
    """Plays `batch` episodes as `lanes` lock-step searches, each with its own share of the batch and its own seed.

    Lanes can run in threads, because kernels and networks leave the interpreter free. Which episodes are played
    depends on the seed and on `lanes`, never on `threads`.

    Args:
      lanes: number of searches; at most `batch`.
      threads: how many run at the same time.
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
        threads: int = 1,
        model: Model | None = None,
        num_episodes: int | None = None,
        starts: States | None = None,
    ) -> None:
        if not 1 <= lanes <= batch:
            raise BathysphereError(f"lanes is {lanes}; expected 1 to {batch}, the number of episodes played at once.")
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self.searches = [
            Search(
                domain,
                values,
                config,
                batch=len(range(lane, batch, lanes)),
                seed=child,
                model=model,
                num_episodes=None if num_episodes is None else len(range(lane, num_episodes, lanes)),
                starts=None if starts is None else starts[_every(lanes, lane, len(starts))],
            )
            for lane, child in enumerate(sequence.spawn(lanes))
        ]
        self._pool = ThreadPoolExecutor(min(threads, lanes)) if min(threads, lanes) > 1 else None

    def step(self) -> list[Episode]:
        """Makes one move in every running episode; returns the episodes that finished, lane after lane."""
        if self._pool is None:
            finished = [search.step() for search in self.searches]
        else:
            finished = list(self._pool.map(Search.step, self.searches))
        lanes = len(self.searches)
        return [
            replace(episode, index=episode.index * lanes + lane)
            for lane, episodes in enumerate(finished)
            for episode in episodes
        ]

    def play(self) -> list[Episode]:
        """Plays until no episode is left (`num_episodes` must be set); returns them in order of starting."""
        if any(search.num_episodes is None for search in self.searches):
            raise BathysphereError("Crew.play needs num_episodes; without it the search never ends.")
        episodes = []
        while self.num_active:
            episodes += self.step()
        return sorted(episodes, key=lambda episode: episode.index)

    @property
    def num_active(self) -> int:
        """Episodes running now."""
        return sum(int(search.active.sum()) for search in self.searches)

    @property
    def model_errors(self) -> Counter[str]:
        """Every kind of model error made on real moves so far."""
        return sum((search.model_errors for search in self.searches), Counter())

    @property
    def seconds(self) -> dict[str, float]:
        """Time spent in each phase of planning, summed over lanes."""
        phases = self.searches[0].seconds
        return {phase: sum(search.seconds[phase] for search in self.searches) for phase in phases}

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed crew needs to go on bit for bit, half-played episodes included."""
        return {
            f"lane{lane}.{name}": array
            for lane, search in enumerate(self.searches)
            for name, array in search.state_dict().items()
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; sizes and config must be the same."""
        for lane, search in enumerate(self.searches):
            prefix = f"lane{lane}."
            search.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})


def _every(lanes: int, lane: int, num_starts: int) -> NDArray[np.intp]:
    """Returns the starts a lane plays, so that the crew's n-th episode plays the n-th start, again and again."""
    period = np.lcm(lanes, num_starts)
    return np.arange(lane, period, lanes) % num_starts
