"""Looking into a running planner: why it would act as it would, and its graph as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.errors import BathysphereError
from bathysphere.planning.graph import scoring
from bathysphere.planning.graph.arena import NO_CHILD
from bathysphere.planning.graph.compiled import Addresses, Rules
from bathysphere.planning.graph.graphs import Graphs
from bathysphere.planning.graph.risk import find_risk_measure
from bathysphere.planning.planner import Planner
from bathysphere.planning.search_graph import SearchGraph

STAYS = "stays where it is"


@dataclass(frozen=True)
class RootReport:
    """The decision at the state an episode is in, action by action."""

    state: States  # uint8 [S]
    step: int  # steps taken so far
    action_names: tuple[str, ...]
    reward: NDArray[np.float64]  # [A], on the edge
    q: NDArray[np.float64]  # [A, E], every member's reward + discount * mean value of the child
    score: NDArray[np.float64]  # [A], what the final measure says, bonus and penalties included; nan if excluded
    visits: NDArray[np.int64]  # [A], values in the child's mean, from whichever parent; the network's is the first
    votes: NDArray[np.float64]  # [A], plurality votes of the drawn members, whatever the measure; 0 if excluded
    excluded: tuple[str | None, ...]  # per action why it may not be chosen, or None
    chosen: int  # the action that would be taken now
    luck: NDArray[np.float64] | None = None  # [A], std over outcomes, inside members; None in a world without chance

    def table(self) -> str:
        """Returns the report as lines of text, best score first."""
        width = max(len("action"), *map(len, self.action_names))
        head = f"  {'action':<{width}} {'score':>10} {'mean':>10} {'std':>10} {'reward':>9} {'visits':>7} {'votes':>6}"
        lines = [head if self.luck is None else f"{head} {'luck':>10}"]
        for a in np.argsort(np.where(np.isnan(self.score), -np.inf, self.score))[::-1]:
            mark = ">" if a == self.chosen else " "
            score = f"{'-':>10}" if self.excluded[a] else f"{self.score[a]:>10.4g}"
            note = f"  {self.excluded[a]}" if self.excluded[a] else ""
            note = note if self.luck is None else f" {self.luck[a]:>10.4g}{note}"
            lines.append(
                f"{mark} {self.action_names[a]:<{width}} {score} "
                f"{self.q[a].mean():>10.4g} {self.q[a].std():>10.4g} "
                f"{self.reward[a]:>9.4g} {self.visits[a]:>7} {self.votes[a]:>6g}{note}"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"step {self.step}, {self.action_names[self.chosen]} is next\n{self.table()}"


@runtime_checkable
class ExplainsItself(Protocol):
    """A planner that ranks actions without a graph."""

    def root_report(self, slot: int) -> RootReport:
        """Explains the step that the episode in `slot` would make now."""
        ...


def root_report(planner: Planner, slot: int) -> RootReport:
    """Explains the step that the episode in `slot` would make now. Changes nothing in the planner.

    Raises:
      BathysphereError: if no episode runs there, or nothing has been planned from its state yet.
    """
    _check_slot(planner, slot)
    if isinstance(planner, ExplainsItself):
        return planner.root_report(slot)
    graphs = getattr(planner, "graphs", None)
    if not isinstance(graphs, Graphs):
        raise BathysphereError(
            f"{type(planner).__name__} searches for whole plans and ranks no actions; look at its search_graph instead."
        )
    arena = graphs.arena
    root = int(arena.nodes["state"][slot, arena.episodes["root"][slot]])
    children = arena.edges["child"][slot, root]
    if children[0] == NO_CHILD:
        raise BathysphereError(
            f"The state of the episode in slot {slot} has not been expanded yet, so there is nothing to "
            "report. Plan at least one pass from it first."
        )
    score, eligible = _score(graphs, slot, graphs.rules, graphs.addresses)
    by_vote = find_risk_measure("vote").address
    votes, _ = _score(
        graphs,
        slot,
        graphs.rules._replace(final_is_joint=True),
        graphs.addresses._replace(final_joint=by_vote),
    )
    reward = arena.edges["reward"][slot, root].copy()
    visits = arena.stats["count"][slot, children].astype(np.int64)
    means = arena.sums[slot, children].astype(np.float64) / visits[:, None]
    return RootReport(
        state=graphs.root_states[slot],
        step=int(arena.episodes["step"][slot]),
        action_names=planner.domain.action_names,
        reward=reward,
        q=reward[:, None] + graphs.rules.discount * means,
        score=np.where(eligible, score, np.nan),
        visits=visits,
        votes=np.where(eligible, votes, 0.0),
        excluded=tuple(None if is_eligible else STAYS for is_eligible in eligible),
        chosen=_choose(graphs, slot, root),
    )


def search_graph(planner: Planner, slot: int) -> SearchGraph:
    """Copies the search graph of the episode in `slot` out of the planner.

    Raises:
      BathysphereError: if no episode runs there.
    """
    _check_slot(planner, slot)
    return planner.search_graph(slot)


def _check_slot(planner: Planner, slot: int) -> None:
    batch = len(planner.active)
    if not 0 <= slot < batch:
        raise BathysphereError(f"slot is {slot}; this planner plays {batch} episodes, in slots 0 to {batch - 1}.")
    if not planner.active[slot]:
        running = np.flatnonzero(planner.active).tolist()
        raise BathysphereError(f"No episode runs in slot {slot}; running slots: {running or 'none'}.")


def _score(
    graphs: Graphs, slot: int, rules: Rules, addresses: Addresses
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Returns the scores [A] of the final choice, and which of them count [A]."""
    scoring.score_root(graphs.arena, graphs.scratch, rules, addresses, slot)
    return graphs.scratch.scores.copy(), graphs.scratch.eligible.copy()


def _choose(graphs: Graphs, slot: int, root: int) -> int:
    """Returns the action that would be chosen, and takes back what choosing it changes."""
    episodes, visits = graphs.arena.episodes, graphs.arena.stats["root_visits"][slot]
    before = episodes[slot].copy(), visits[root]
    only_here = np.arange(graphs.sizes.batch) == slot
    actions = np.zeros(graphs.sizes.batch, np.int32)
    graphs.choose(only_here, actions)
    episodes[slot], visits[root] = before
    return int(actions[slot])
