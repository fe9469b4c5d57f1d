"""Best-first search in plain Python, slow and easy to check: the twin of the compiled one.

One search over a world that is given as functions of a state's key:

    successors(key)  -> list over actions of (key, reward, terminal, solved)
    evaluate(key)    -> list of members' values
    log_policy(key)  -> list over actions of logarithmic probabilities; None if no policy is used
    is_hopeless(key) -> whether to leave the state out
    unknown(key)     -> list over actions of members' values of what is not known, or None where the answer is

What is not known is a state with the key of the one before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SOLVED, EXHAUSTED, EXPANSIONS, STATES = "solution", "no state left", "max_expansions", "max_states"
UNKNOWN = "the unknown"


class Way(NamedTuple):
    """How a state is reached."""

    parent: OracleState | None
    action: int
    depth: int
    returned: float
    power: float  # the discount of the next reward
    log_probability: float


@dataclass(eq=False)
class OracleState:
    key: bytes
    birth: int
    way: Way
    terminal: bool
    solved: bool
    members: list[float] | None = None  # until it is evaluated
    value: float = 0.0
    priority: float = 0.0
    is_expanded: bool = False
    is_unknown: bool = False
    children: list[OracleState] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


class OracleSearch:
    """One search. `config` is a BestFirstConfig with risk mean_std; `goal` what success pays."""

    def __init__(
        self,
        start: bytes,
        config: Any,
        max_steps: int,
        goal: float,
        successors: Callable[[bytes], list[tuple[bytes, float, bool, bool]]],
        evaluate: Callable[[bytes], list[float]],
        log_policy: Callable[[bytes], list[float]] | None,
        is_hopeless: Callable[[bytes], bool],
        unknown: Callable[[bytes], list[list[float] | None]] | None = None,
        depth: int = 0,
    ) -> None:
        self.config, self.max_steps, self.goal = config, max_steps, goal
        self.successors, self.evaluate, self.log_policy = successors, evaluate, log_policy
        self.is_hopeless, self.unknown = is_hopeless, unknown
        self.states: dict[bytes, OracleState] = {}  # in order of birth; the unknown under a longer key
        self.open: list[OracleState] = []
        self.best: OracleState | None = None
        self.solution: OracleState | None = None
        self.ended_by = ""
        self.num_expansions = self.num_model_calls = self.num_evaluations = 0
        self.expanded: list[OracleState] = []  # in order, again and again if re-opened
        self.start = self.create(
            start, Way(None, -1, depth, 0.0, math.prod([config.discount] * depth), 0.0), False, False
        )
        self.open_if_promising(self.start)
        self.judge()

    def round(self) -> None:
        """Expands the first `width` states of the open list."""
        if self.ended_by:
            return
        pending = []
        while len(pending) < self.config.width and (state := self.next_unexpanded()) is not None:
            state.is_expanded = True
            pending.append(state)
        fresh = []
        for state in pending:
            self.num_model_calls += 1
            unknown = self.unknown(state.key) if self.unknown else None
            for action, (key, reward, terminal, solved) in enumerate(self.successors(state.key)):
                if unknown is not None and unknown[action] is not None:
                    state.rewards.append(0.0)
                    state.children.append(self.open_unknown(state, action, unknown[action]))
                    continue
                state.rewards.append(reward)
                way = self.way_through(state, action)
                if key in self.states:
                    self.offer(self.states[key], way)
                else:
                    fresh.append(self.create(key, way, terminal, solved))
                state.children.append(self.states[key])
        for state in fresh:
            if not state.terminal:
                self.open_if_promising(state)
        self.judge()

    def next_unexpanded(self) -> OracleState | None:
        """Takes states off the open list until one was never expanded; the others hand on their better way."""
        while self.open and self.num_expansions < self.config.max_expansions:
            # Of equals the deeper, then the older one.
            state = min(self.open, key=lambda state: (state.priority, -state.way.depth, state.birth))
            self.open.remove(state)
            if state.is_unknown:
                self.solution = state
                return None
            self.expanded.append(state)
            self.num_expansions += 1
            if not state.is_expanded:
                return state
            for action, child in enumerate(state.children):
                self.offer(child, self.way_through(state, action))
        return None

    def way_through(self, state: OracleState, action: int) -> Way:
        """Returns the way that leads on from a state."""
        way = state.way
        logarithm = way.log_probability
        if self.log_policy is not None:
            logarithm += self.log_policy(state.key)[action]
        returned = way.returned + way.power * state.rewards[action]
        return Way(state, action, way.depth + 1, returned, way.power * self.config.discount, logarithm)

    def create(self, key: bytes, way: Way, terminal: bool, solved: bool) -> OracleState:
        state = OracleState(key, len(self.states), way, terminal, solved)
        self.states[key] = state
        if solved and self.solution is None:
            self.solution = state
        return state

    def offer(self, state: OracleState, way: Way) -> None:
        """Takes another way to a known state, if it is better and does no harm."""
        if state is self.start or (state.is_expanded and not self.config.reopen):
            return
        is_longer = way.depth > state.way.depth
        if is_longer and state.is_expanded:
            return  # others are reached through it, perhaps its own parent
        if is_longer and way.depth >= self.max_steps:
            return  # it could not be expanded any more
        if not self.priority(way, state.value) < self.priority(state.way, state.value):
            return
        state.way = way
        if state.members is not None:
            state.priority = self.priority(way, state.value)
            if state not in self.open and way.depth < self.max_steps and not state.is_unknown:
                self.open.append(state)

    def open_if_promising(self, state: OracleState) -> None:
        """Evaluates a new state and opens it, unless it is hopeless."""
        if self.is_hopeless(state.key):
            return
        assert state.members is None, "a state is evaluated once"
        self.num_evaluations += 1
        self.open_with(state, self.evaluate(state.key))

    def open_unknown(self, state: OracleState, action: int, members: list[float]) -> OracleState:
        """Opens what nobody knows of an action in a state."""
        way = self.way_through(state, action)
        unknown = OracleState(state.key, len(self.states), way, True, False, is_unknown=True)
        self.states[state.key + bytes([action]) + b"?"] = unknown
        self.open_with(unknown, members)
        return unknown

    def open_with(self, state: OracleState, members: list[float]) -> None:
        """Opens a state with its members' values."""
        state.members = members
        mean = sum(state.members) / len(state.members)
        variance = sum((member - mean) * (member - mean) for member in state.members) / len(state.members)
        state.value = mean + self.config.risk_coef * math.sqrt(variance)
        state.priority = self.priority(state.way, state.value)
        if state.is_unknown and state.value < 0:
            return
        if state.way.depth < self.max_steps or state.is_unknown:
            self.open.append(state)
        if state is not self.start and (self.best is None or state.value > self.best.value):
            self.best = state

    def priority(self, way: Way, value: float) -> float:
        """The lowest comes first."""
        weight, discount = self.config.weight, self.config.discount
        if self.config.order == "value":
            return -(way.returned + weight * discount**way.depth * value)
        g = way.depth + 1.0
        if self.config.order == "levin":
            return math.log(g) - way.log_probability
        to_go = math.log(min(max(value / self.goal, 1e-3), 1.0)) / math.log(discount)
        if self.config.order == "steps":
            return way.depth + weight * to_go
        assert self.config.order == "phs"
        return math.log(g + to_go) - (1.0 + to_go / g) * way.log_probability

    def judge(self) -> None:
        """Ends the search if there is a reason."""
        if self.solution is not None:
            self.ended_by = UNKNOWN if self.solution.is_unknown else SOLVED
        elif not self.open:
            self.ended_by = EXHAUSTED
        elif self.num_expansions >= self.config.max_expansions:
            self.ended_by = EXPANSIONS
        elif self.config.max_states is not None and len(self.states) >= self.config.max_states:
            self.ended_by = STATES

    def plan(self) -> list[tuple[OracleState, int]]:
        """Returns the states and actions on the way to the solution, or to the most promising state."""
        state, steps = self.solution or self.best or self.start, []
        while state.way.parent is not None:
            steps.append((state.way.parent, state.way.action))
            state = state.way.parent
        return steps[::-1]
