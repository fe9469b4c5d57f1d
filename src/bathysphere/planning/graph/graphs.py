"""The search graphs of B episodes, with everything that kernels are handed besides them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.planning.config import SearchConfig
from bathysphere.planning.graph import kernels, scoring
from bathysphere.planning.graph.arena import Arena, Sizes, allocate, ensure_room, pack, unpack
from bathysphere.planning.graph.compiled import Scratch, translate
from bathysphere.planning.graph.invariants import check_graph
from bathysphere.planning.graph.risk import check_measure, find_risk_measure, no_number
from bathysphere.planning.words import WordRows


class Graphs:
    """The arena of B episodes, the numbers of the config that kernels need, and their scratch memory.

    Args:
      sizes: of the arena.
      config: how actions are ranked; its `passes` decide how much room a step needs.
    """

    def __init__(self, sizes: Sizes, config: SearchConfig) -> None:
        self.sizes, self.config = sizes, config
        self.rules, self.addresses = translate(config)
        self.arena: Arena = allocate(sizes, memory_limit=config.memory_limit_mb << 20)
        num_actions, num_drawn = sizes.num_actions, sizes.num_subsampled
        self.scratch = Scratch(
            eligible=np.empty(num_actions, np.bool_),
            scores=np.empty(num_actions),
            drawn=np.empty(num_drawn),
            q=np.empty((num_actions, num_drawn)),
            value=np.empty(sizes.num_members),
        )
        final = config.final_risk or config.risk
        for name, risk_coef in ((config.risk, self.rules.risk_coef), (final, self.rules.final_risk_coef)):
            check_measure(find_risk_measure(name), num_drawn, risk_coef)
        rows = WordRows(sizes.state_size, (sizes.batch, num_actions))
        self.states, self.words = rows.states, rows.words

    @property
    def kernel_arguments(self) -> tuple[Any, ...]:
        """What most kernels take first: arena, scratch, rules and addresses."""
        return self.arena, self.scratch, self.rules, self.addresses

    @property
    def root_states(self) -> States:
        """The state each episode is in, uint8 [B, S]."""
        slots = np.arange(self.sizes.batch)
        states = self.arena.nodes["state"][slots, self.arena.episodes["root"]]
        return self.states(self.arena.words[slots, states])

    @property
    def nbytes(self) -> int:
        """Memory of the arena, in bytes."""
        return sum(array.nbytes for array in self.arena)

    def make_room(self, num_passes: int | None = None) -> None:
        """Grows the arena until one more step of every episode fits, or so many passes of it."""
        passes = self.config.passes if num_passes is None else num_passes
        self.arena = ensure_room(self.arena, self.sizes, passes, self.config.memory_limit_mb << 20)

    def start(self, slots: NDArray[np.intp], states: States, seeds: NDArray[np.uint64]) -> None:
        """Begins an episode in each of `slots` [k] at `states`, uint8 [k, S]. Their values are still missing."""
        kernels.start(self.arena, self.config.transpositions, slots, self.words(states), seeds)

    def choose(self, active: NDArray[np.bool_], actions: NDArray[np.int32]) -> None:
        """Chooses the next action of every active episode. Mutates: actions [B]; the episodes' random streams."""
        scoring.choose(*self.kernel_arguments, active, actions)

    def check_scores(self, slots: NDArray[np.intp]) -> None:
        """Refuses NaN among the scores that a user's own measure gave to states of the episodes in `slots`."""
        names = {self.config.risk, self.config.final_risk or self.config.risk}
        measures = [measure for measure in map(find_risk_measure, sorted(names)) if not measure.is_built_in]
        if not measures:
            return
        scores = self.arena.stats["score"][slots]
        is_known = np.arange(scores.shape[1]) < self.arena.episodes["num_states"][slots, None]
        if np.isnan(scores[is_known]).any():
            raise no_number(" or ".join(measure.name for measure in measures), "values that came up in an episode")

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns all graphs without unused memory."""
        return pack(self.arena)

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; sizes must be the same. Refuses graphs that no search has made."""
        arena = unpack(state, self.sizes, memory_limit=self.config.memory_limit_mb << 20)
        check_graph(arena, transpositions=self.config.transpositions, merged=self.config.merge_nodes)
        self.arena = arena
