"""The planners side by side: expansions per second, time outside the network, memory of a state."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.agents.loading import load_trained
from bathysphere.domains import DeepSea, DeepSeaConfig, SokobanConfig, make_domain
from bathysphere.domains.base import Domain, States
from bathysphere.domains.sokoban import generate
from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, BestFirst, BestFirstConfig, Planner, PlannerSettings, Values, make_planner
from bathysphere.planning.named import changed_planner

AGENT = "sokoban"
PLANNERS = ("mcts", "best-first")
POLICY_PLANNERS = ("levin", "phs")  # measured if the agent has a policy
SECONDS = 5.0  # of processor time for each planner
BOARDS = 128  # generated before the clock runs; after the last one comes the first
IN_FLIGHT = 64
SEA_SIZE = 1000  # half a million states
SEA_MEMBERS = 20  # as in the paper's Deep-sea
SEA_SEARCHES = 3


class ZeroTable:
    """Members that know nothing, as a table, so that a search stays in compiled code."""

    num_members = SEA_MEMBERS

    def __init__(self, num_categories: int) -> None:
        self.table: NDArray[np.float32] | None = np.zeros((num_categories, self.num_members), np.float32)

    def evaluate(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Returns float32 [n, E]."""
        return np.zeros((len(observations), self.num_members), np.float32)


def bench_planners(agent: str | None = None, seconds: float | None = None) -> dict[str, Any]:
    """Measures planners with the network of a Sokoban agent, and best-first search in compiled code on Deep-sea.

    Speeds are per second of processor time and one thread, so that other work on the machine does not count. An
    expansion is a state whose successors were computed.

    Args:
      agent: name of a shipped agent, agent file, or run directory; `AGENT` if not given.
      seconds: of processor time for each planner that uses the network, after as long a warm-up; at least `SECONDS`
        evens out that searches end at different times.
    """
    import torch

    seconds = SECONDS if seconds is None else seconds
    if not seconds > 0:
        raise BathysphereError(f"--seconds is {seconds}; expected more than 0.")
    trained = load_trained(agent or AGENT)
    if not isinstance(trained.config.domain, SokobanConfig):
        raise BathysphereError(f"{agent} does not play Sokoban; choose an agent that does.")
    names = PLANNERS + (POLICY_PLANNERS if trained.values.has_policy else ())
    domain = make_domain(trained.config.domain)
    boards = np.stack([level.grid.ravel() for level in generate(BOARDS, trained.config.domain.generator)])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = [
            _with_network(
                name, domain, trained.values, changed_planner(trained.config.search, name, {}), boards, seconds
            )
            for name in names
        ]
    finally:
        torch.set_num_threads(threads)
    return {"agent": agent or AGENT, "rows": [*rows, _compiled()]}


def describe(result: dict[str, Any]) -> str:
    """Returns the result as lines for people."""
    lines = [
        f"{'work':<10} {'planner':<11} {'at once':>7} {'expansions/s':>13} {'outside network':>16} {'bytes/state':>12}"
    ]
    for row in result["rows"]:
        outside = "-" if row["outside_network"] is None else f"{row['outside_network']:.1%}"
        lines.append(
            f"{row['work']:<10} {row['planner']:<11} {row['batch']:>7} {row['expansions_per_second']:>13,.0f} "
            f"{outside:>16} {row['bytes_per_state']:>12,.0f}"
        )
    lines.append(f"sokoban: with the network of the agent {result['agent']}. deep-sea: a table, in compiled code.")
    left_out = [name for name in POLICY_PLANNERS if name not in {row["planner"] for row in result["rows"]}]
    if left_out:
        lines.append(f"Not measured, because this agent has no policy: {', '.join(left_out)}.")
    return "\n".join(lines)


def _with_network(
    name: str, domain: Domain, values: Values, config: PlannerSettings, boards: States, seconds: float
) -> dict[str, Any]:
    planner = make_planner(domain, values, config, batch=IN_FLIGHT, starts=boards)
    _play(planner, seconds)  # compiles, and lets searches come to be of different ages
    expansions, before = planner.work.model_calls, dict(planner.work.seconds)
    spent = _play(planner, seconds)
    phases = {phase: now - before[phase] for phase, now in planner.work.seconds.items() if phase != "starts"}
    share = {phase: part / sum(phases.values()) for phase, part in phases.items()}
    return {
        "work": "sokoban",
        "planner": name,
        "batch": IN_FLIGHT,
        "expansions_per_second": (planner.work.model_calls - expansions) / spent,
        "outside_network": 1.0 - share["network"],
        "share": share,
        "bytes_per_state": planner.graph_bytes / _num_states(planner),
    }


def _play(planner: Planner, seconds: float) -> float:
    """Makes steps for that much processor time; returns how much it was."""
    began = time.process_time()
    while (spent := time.process_time() - began) < seconds:
        planner.step()
    return spent


def _compiled() -> dict[str, Any]:
    """Measures searches of a whole sea, from an empty store on; reading the plan out of it does not count."""
    domain = DeepSea(DeepSeaConfig(size=SEA_SIZE))
    values = ZeroTable((domain.max_steps + 1) ** 2)
    config = BestFirstConfig(max_expansions=SEA_SIZE**2)
    speeds = []
    for _ in range(1 + SEA_SEARCHES):  # the first one compiles
        planner = BestFirst(domain, values, config, num_episodes=1)
        expansions, began = -1, time.process_time()
        while planner.work.model_calls > expansions:
            expansions = planner.work.model_calls
            planner.plan()
        speeds.append(expansions / (time.process_time() - began))
    return {
        "work": "deep-sea",
        "planner": "best-first",
        "batch": 1,
        "expansions_per_second": statistics.median(speeds[1:]),
        "outside_network": None,
        "share": None,
        "bytes_per_state": planner.graph_bytes / _num_states(planner),
    }


def _num_states(planner: Planner) -> int:
    """Returns how many states all searches know now."""
    if isinstance(planner, BestFirst):
        return int(planner.store.searches["num_states"].sum())
    assert isinstance(planner, MCTS)
    return int(planner.arena.episodes["num_states"].sum())
