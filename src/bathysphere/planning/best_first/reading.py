"""What a search leaves behind: its graph, and the episode that it found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, States
from bathysphere.planning.best_first.store import NONE, Store, StoreSizes, chain_of, goal_of, way_to
from bathysphere.planning.episode import Episode, SeenStates
from bathysphere.planning.graph.best_known import best_known_values, can_succeed, tree_means
from bathysphere.planning.planner import MODEL_ERRORS
from bathysphere.planning.search_graph import SearchGraph, depths_from


class FoundGraph(NamedTuple):
    """The N states of one search, in order of discovery: state 0 is where it began."""

    states: States  # uint8 [N, S]
    members: NDArray[
        np.float32
    ]  # [N, E], the network's, of the unknown the model's; 0 at ends and where neither was asked
    child: NDArray[np.int32]  # [N, A]; -1 if not expanded
    reward: NDArray[np.float64]  # [N, A]
    terminal: NDArray[np.bool_]  # [N]
    solved: NDArray[np.bool_]  # [N]
    unknown: NDArray[np.bool_]  # [N], outcomes that the model does not know; their state is the one before
    is_evaluated: NDArray[np.bool_]  # [N], not at ends and where the state was left out
    parent: NDArray[np.int32]  # [N], the state before on the best way known; -1 for the start
    action: NDArray[np.int32]  # [N], that leads here from there
    depth: NDArray[np.int32]  # [N], steps of that way
    plan_states: NDArray[np.int64]  # [T], states from which the best plan's steps are made
    plan: NDArray[np.int32]  # [T], its actions
    end: int  # the state that the plan leads to
    num_expansions: int
    num_model_calls: int

    def to_search_graph(self, discount: float) -> SearchGraph:
        """Returns the graph in the form in which all planners show theirs, values by the best continuation known."""
        values = best_known_values(self.child, self.reward, self.terminal, self.members, discount)
        child = self.child.astype(np.int64)
        return SearchGraph(
            states=self.states,
            count=np.ones(len(self.states), np.int64),
            member_values=values,
            mean=values.mean(axis=1),
            std=values.std(axis=1),
            child=child,
            reward=self.reward,
            terminal=self.terminal,
            solved=self.solved,
            root_visits=np.zeros(len(self.states), np.int64),
            root=0,
            depth=depths_from(child, 0),
            unknown=self.unknown,
        )


def read_graph(store: Store, sizes: StoreSizes, slot: int) -> FoundGraph:
    """Copies the search in `slot` out of the store."""
    chain, search = chain_of(store, slot), store.searches[slot]
    number = np.full(len(store.records) + 1, NONE, np.int32)  # by record; the last place is for NONE
    number[chain] = np.arange(len(chain))
    records = store.records[chain]
    goal = goal_of(store, slot)
    way, actions = way_to(store, goal)
    words = np.ascontiguousarray(store.words[chain])
    return FoundGraph(
        states=np.ascontiguousarray(words.view(np.uint8)[:, : sizes.state_size]),
        members=store.members[chain],
        child=number[store.child[chain]],
        reward=store.reward[chain],
        terminal=records["terminal"] & ~records["is_evaluated"],
        solved=records["solved"].copy(),
        unknown=records["terminal"] & records["is_evaluated"],
        is_evaluated=records["is_evaluated"].copy(),
        parent=number[records["parent"]],
        action=records["action"].copy(),
        depth=records["depth"].copy(),
        plan_states=number[way].astype(np.int64),
        plan=actions,
        end=int(number[goal]),
        num_expansions=int(search["num_expansions"]),
        num_model_calls=int(search["num_model_calls"]),
    )


class OpenStates(NamedTuple):
    """The open list of one search, the state that is expanded next first."""

    states: NDArray[np.int64]  # [n], numbers in order of discovery, as in `FoundGraph`
    priorities: NDArray[np.float64]  # [n], increasing


def read_open(store: Store, slot: int) -> OpenStates:
    """Copies the open list of the search in `slot` out of the store."""
    records = store.records[chain_of(store, slot)]
    numbers = np.flatnonzero(records["is_open"])
    order = np.argsort(records["priority"][numbers], kind="stable")
    return OpenStates(numbers[order].astype(np.int64), records["priority"][numbers[order]])


class Steps(NamedTuple):
    """The T steps of an episode."""

    places: NDArray[np.int64]  # [T], states of the graph from which they are made
    actions: NDArray[np.int32]  # [T]
    rewards: NDArray[np.float64]  # [T]
    terminal: bool  # whether the last one led to an end
    solved: bool  # whether that is a success
    errors: dict[str, int]  # how often the graph was wrong about them, by kind
    num_unknown: int  # how often it did not know


def planned_steps(graph: FoundGraph) -> Steps:
    """Returns the steps of a graph's plan, if everything is as the graph says."""
    terminal, solved = bool(graph.terminal[graph.end]), bool(graph.solved[graph.end])
    rewards = graph.reward[graph.plan_states, graph.plan]
    return Steps(graph.plan_states, graph.plan, rewards, terminal, solved, dict.fromkeys(MODEL_ERRORS, 0), 0)


def followed_steps(graph: FoundGraph, domain: Domain) -> Steps:
    """Makes the steps of a graph's plan in the domain, up to one that leads elsewhere than the graph says.

    Without a plan, for there is nowhere to go, one step is made, so that there is an episode.
    """
    is_empty = len(graph.plan) == 0
    plan = np.zeros(1, np.int32) if is_empty else graph.plan
    places = np.zeros(1, np.int64) if is_empty else graph.plan_states
    answer = domain.successors(graph.states[places])
    steps, children = np.arange(len(plan)), graph.child[places, plan]
    rewards, terminal, solved = answer.rewards[steps, plan], answer.terminal[steps, plan], answer.solved[steps, plan]
    is_elsewhere = (answer.states[steps, plan] != graph.states[children]).any(axis=1)
    has_ended = is_elsewhere | terminal
    made = int(np.argmax(has_ended)) + 1 if has_ended.any() else len(plan)
    is_wrong = {
        "wrong_reward": rewards != graph.reward[places, plan],
        "false_end": graph.terminal[children] & ~terminal,
        "missed_end": ~graph.terminal[children] & terminal,
        "wrong_state": is_elsewhere,
    }
    # All of them, but for the unknown, and unless the start was not even expanded.
    is_unknown = graph.unknown[children] & (children != NONE)
    is_predicted = (children != NONE) & ~is_unknown
    errors = {name: int((where & is_predicted)[:made].sum()) for name, where in is_wrong.items()}
    ends = bool(terminal[made - 1]), bool(solved[made - 1])
    return Steps(places[:made], plan[:made], rewards[:made], *ends, errors, int(is_unknown[:made].sum()))


def read_episode(
    graph: FoundGraph, steps: Steps, index: int, discount: float, ended_by: str, graph_states: int | None
) -> Episode:
    """Returns the steps that a search has led to as an episode.

    Args:
      graph: what was searched.
      steps: at least one.
      index: number of the episode.
      discount: of the values.
      ended_by: what ended the search.
      graph_states: how many further states of the search to hand on to learning, at most; None for none of the graph.
    """
    known = best_known_values(graph.child, graph.reward, graph.terminal, graph.members, discount)
    paid = np.where(graph.parent == NONE, 0.0, graph.reward[graph.parent, graph.action])
    means = tree_means(graph.parent, paid, graph.depth, graph.members, discount)
    searched = np.where(can_succeed(graph.child, graph.solved)[:, None], known, means)
    places, seen = steps.places, None
    if graph_states:  # those that were expanded or left out
        is_known = (graph.child[:, 0] != NONE) | ~(graph.is_evaluated | graph.terminal)
        seen = SeenStates.taken(graph.states, searched, is_known, places, graph_states)
    return Episode(
        states=graph.states[places],
        actions=steps.actions,
        rewards=steps.rewards,
        search_values=searched[places],
        solved=steps.solved,
        truncated=not steps.terminal,
        index=index,
        num_states=len(graph.states),
        search_std=float(graph.members[places].std(axis=1).mean()),
        num_expansions=graph.num_expansions,
        num_model_calls=graph.num_model_calls,
        graph_values=None if graph_states is None else known[places],
        seen=seen,
        ended_by=ended_by,
    )
