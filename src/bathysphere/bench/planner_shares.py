"""Which part of planning takes how long."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bathysphere.bench.timing import seconds as seconds_of
from bathysphere.planning import MCTS, compiled_rules
from bathysphere.planning.graph.arena import Arena, ensure_room
from bathysphere.planning.graph.compiled import kernel
from bathysphere.planning.graph.risk import bonus_at, joint_at, separable_at
from bathysphere.planning.graph.steps import back_up, select

_STEPS = 20  # steps in which the parts of a sweep are timed apart
_MUCH = 2**40  # bytes: a copy of the arena may be as large as it has to


def shares(planner: MCTS, seconds: dict[str, float]) -> dict[str, float]:
    """Returns which part of `seconds` each phase takes; "other" holds inserting states and making steps.

    A sweep does several things in one go. A few steps of `planner`, another one like that which took the seconds, tell
    how to split the time of a sweep.
    """
    parts = _parts_of_a_sweep(planner)
    scale = seconds["sweep"] / sum(parts.values())
    share = {
        "select": scale * parts["select"],
        "model": scale * parts["model"] + seconds["model"],
        "network": scale * parts["network"] + seconds["network"],
        "backup": scale * parts["backup"],
        "other": scale * parts["insert"] + seconds["insert"] + seconds["starts"] + seconds["other"],
    }
    total = sum(share.values())
    return {name: part / total for name, part in share.items()}


def _parts_of_a_sweep(planner: MCTS) -> dict[str, float]:
    """Plays a few steps; returns the seconds, more or less, that one of them spends in each phase of its sweeps.

    After a step is planned, one more pass is made on a copy of the graph, part by part.
    """
    parts: dict[str, list[float]] = {name: [] for name in ("select", "backup", "model", "network", "insert")}
    for _ in range(_STEPS):
        calls = np.array([planner.work.model_calls, planner.work.network_calls])
        planner.plan()
        num_expanded, num_evaluated = np.array([planner.work.model_calls, planner.work.network_calls]) - calls
        copy = Arena(*(array.copy() for array in planner.arena))
        num_active = planner.active.sum()
        selecting, backing_up = _halves_of_a_pass(planner, copy)
        parts["select"].append(planner.config.passes * selecting)
        parts["backup"].append(planner.config.passes * backing_up)
        table = planner.table()
        if table is not None:
            model, network, everything = (part / num_active for part in _expansion(planner, copy, table))
            parts["model"].append(num_expanded * model)
            parts["network"].append(num_evaluated * network)
            parts["insert"].append(num_expanded * max(everything - model - planner.sizes.num_actions * network, 0.0))
        planner.act()
    # Not the sum: a process that is interrupted once would seem to do nothing else.
    return {name: float(np.median(times)) if times else 0.0 for name, times in parts.items()}


def _halves_of_a_pass(planner: MCTS, copy: Arena) -> tuple[float, float]:
    """Returns how long selection and backup take for all active episodes."""
    graphs = planner.graphs
    before = after = between = 0.0
    for _ in range(2):  # the first time compiles, and warms the caches
        before = time.perf_counter()
        _select_all(copy, graphs.scratch, graphs.rules, graphs.addresses, planner.active)
        between = time.perf_counter()
        _back_up_all(copy, graphs.scratch, graphs.rules, planner.active)
        after = time.perf_counter()
    return between - before, after - between


def _expansion(planner: MCTS, copy: Arena, table: Any) -> tuple[float, float, float]:
    """Returns how long compiled rules, the table, and the whole expansion take for one leaf of every active episode."""
    compiled = compiled_rules.compile_domain(planner.domain)
    transpositions = planner.config.transpositions
    copy = ensure_room(copy, planner.sizes, planner.config.passes, _MUCH)

    def expand() -> None:
        copy.episodes["stamp"] += 1  # makes every child a new state
        _expand_all(copy, transpositions, compiled, table, planner.active)

    return (
        _warm(lambda: _ask_all(copy, compiled, planner.active)),
        _warm(lambda: _look_up_all(copy, compiled, table, planner.active)),
        _warm(expand),
    )


def _warm(call: Callable[[], object]) -> float:
    call()  # compiles, and warms the caches
    return seconds_of(call)


@kernel
def _select_all(arena, scratch, rules, addresses, active):
    """Walks every active episode to a leaf. Mutates: arena."""
    separable, joint, bonus = separable_at(addresses.separable), joint_at(addresses.joint), bonus_at(addresses.bonus)
    for b in range(active.shape[0]):
        if active[b]:
            select(arena, scratch, rules, separable, joint, bonus, b)


@kernel
def _back_up_all(arena, scratch, rules, active):
    """Backs up every active episode's last pass. Mutates: arena."""
    for b in range(active.shape[0]):
        if active[b]:
            back_up(arena, scratch, rules, b)


@kernel
def _ask_all(arena, compiled, active):
    """Computes the successors of every active episode's first state. Mutates: compiled."""
    successors = compiled_rules.successors_at(compiled.successors)
    for b in range(active.shape[0]):
        if active[b]:
            compiled_rules.ask(arena, compiled, b, 0, successors)


@kernel
def _look_up_all(arena, compiled, table, active):
    """Looks up the values of every active episode's first state. Mutates: arena, compiled."""
    category = compiled_rules.category_at(compiled.category)
    for b in range(active.shape[0]):
        if active[b]:
            compiled_rules.look_up(arena, compiled, table, b, 0, category)


@kernel
def _expand_all(arena, transpositions, compiled, table, active):
    """Expands every active episode's first state once more. Mutates: arena, compiled."""
    successors, category = (
        compiled_rules.successors_at(compiled.successors),
        compiled_rules.category_at(compiled.category),
    )
    for b in range(active.shape[0]):
        if active[b]:
            compiled_rules.expand(arena, transpositions, compiled, table, b, 0, successors, category)
