"""What a planner is, what it asks of values, and how one is made. Training, agents and pools know no more than this.

A new planner is one file: a config, a class that keeps the `Planner` protocol, and `@register_planner(Config)` on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Chance, Domain, Model, States
from bathysphere.domains.real_steps import MadeSteps
from bathysphere.errors import BathysphereError, did_you_mean
from bathysphere.planning.config import PlannerSettings
from bathysphere.planning.episode import Episode
from bathysphere.planning.search_graph import SearchGraph
from bathysphere.storage.plain import declare_family
from bathysphere.storage.state import MOST, require

MODEL_ERRORS = ("wrong_reward", "false_end", "missed_end", "wrong_state")
PHASES = ("starts", "sweep", "model", "insert", "network", "other")
_MAX_GROWTH = 4.0  # of the steps per call: a moment in which the machine was fast says little about the next


class Values(Protocol):
    """What every planner asks of a value function."""

    num_members: int

    def evaluate(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Returns every member's estimate for every observation, float32 [n, E], finite."""
        ...


@runtime_checkable
class TableValues(Protocol):
    """Values that may be a table, for planning that stays in compiled code."""

    @property
    def table(self) -> NDArray[np.float32] | None:
        """What `evaluate` looks one category up in, float32 [R, E]; None if there is no such table."""
        ...


@runtime_checkable
class PolicyValues(Protocol):
    """Values that may have a policy, for planners that are guided by one."""

    has_policy: bool

    def evaluate_with_policy(self, observations: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns every member's estimate, float32 [n, E], and the probabilities of actions, float32 [n, A]."""
        ...


@runtime_checkable
class ActionValues(Protocol):
    """Values of actions, for acting without a planner."""

    def evaluate_actions(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Returns every member's estimate of every action, float32 [n, A, E], finite."""
        ...


class Snapshot(Protocol):
    """Values that no longer change, unless weights are loaded into them."""

    def evaluate(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Returns every member's estimate for every observation, float32 [n, E]."""
        ...

    def weights(self) -> dict[str, NDArray[Any]]:
        """Returns copies of what `evaluate` depends on, by name."""
        ...

    def load_weights(self, weights: dict[str, NDArray[Any]]) -> None:
        """Restores what `weights` returned."""
        ...


@runtime_checkable
class SnapshotValues(Protocol):
    """Values that can be kept as they are now, for episodes that are planned with the values of their beginning."""

    def snapshot(self) -> Snapshot:
        """Returns a copy that stays as these values are now."""
        ...


@dataclass
class Work:
    """What planning has cost so far, and how often the model was wrong about a step that was then made."""

    steps: int = 0  # made in the world
    model_calls: int = 0  # states expanded by the model: what is only imagined
    network_calls: int = 0  # states evaluated by the network
    network_batches: int = 0  # calls in which that was done; in compiled code, expansions
    model_errors: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MODEL_ERRORS, 0))
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    unknown_steps: int = 0  # of which the model did not know where they would lead

    def __add__(self, other: Work) -> Work:
        return Work(
            self.steps + other.steps,
            self.model_calls + other.model_calls,
            self.network_calls + other.network_calls,
            self.network_batches + other.network_batches,
            {name: count + other.model_errors[name] for name, count in self.model_errors.items()},
            {phase: spent + other.seconds[phase] for phase, spent in self.seconds.items()},
            self.unknown_steps + other.unknown_steps,
        )

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns what a resumed planner goes on counting from."""
        return {
            "model_errors": np.array([self.model_errors[name] for name in MODEL_ERRORS]),
            "calls": np.array([self.model_calls, self.network_calls]),
            "unknown_steps": np.array(self.unknown_steps),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned, from arrays among which there may be others."""
        errors, calls = state["model_errors"].tolist(), state["calls"].tolist()
        require(len(errors) == len(MODEL_ERRORS) and len(calls) == 2, "counts are missing")
        require(all(0 <= count < MOST for count in (*errors, *calls)), "a count is none")
        self.model_errors.update(zip(MODEL_ERRORS, errors, strict=True))
        self.model_calls, self.network_calls = calls
        self.unknown_steps = int(state.get("unknown_steps", 0))
        require(0 <= self.unknown_steps < MOST, "a count is none")


class Planner(Protocol):
    """Plays episodes in slots, many at once.

    Finished episodes restart in their slot until `num_episodes` have been started. Everything follows from the seed.
    """

    domain: Domain
    values: Values
    model: Model  # what planning believes happens; the domain itself if it knows the rules
    work: Work
    made: MadeSteps | None  # the latest steps, where planning does not go by the rules; else None
    makes_plans: bool  # whether it searches for whole plans, which become episodes, instead of planning every step

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which slots hold a running episode, bool [B]."""
        ...

    @property
    def actions(self) -> NDArray[np.int32]:
        """The actions of the last step, int32 [B]."""
        ...

    @property
    def root_states(self) -> States:
        """The state each episode is in, uint8 [B, S]."""
        ...

    def step(self, steps: int = 1) -> list[Episode]:
        """Plans and makes `steps` steps in every running episode; returns the episodes that finished."""
        ...

    def plan(self) -> None:
        """Plans the next step of every episode without making it."""
        ...

    def act(self) -> list[Episode]:
        """Makes the planned steps; returns the episodes that finished."""
        ...

    @property
    def graph_bytes(self) -> int:
        """Memory of all search graphs, in bytes."""
        ...

    def search_graph(self, slot: int) -> SearchGraph:
        """Returns what the search of the episode in `slot` knows."""
        ...

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything that going on bit for bit needs, half-played episodes included."""
        ...

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        ...


PlannerClass = TypeVar("PlannerClass", bound=Callable[..., Any])
_PLANNERS: dict[type, Callable[..., Planner]] = {}
_CONFIGS: dict[str, type] = {}  # by the planner's name in configs


def register_planner(name: str, config_type: type) -> Callable[[PlannerClass], PlannerClass]:
    """Makes a class the planner of all configs of a type, which config files call `name`; a decorator."""

    def register(planner_class: PlannerClass) -> PlannerClass:
        _PLANNERS[config_type], _CONFIGS[name] = planner_class, config_type
        return planner_class

    return register


def make_planner(domain: Domain, values: Values, config: PlannerSettings, **options: Any) -> Planner:
    """Makes the planner that `config` is a config of; `options` as for `MCTS`."""
    return _PLANNERS[type(config)](domain, values, config, **options)


def _find_config(name: str) -> type:
    if name not in _CONFIGS:
        hint = did_you_mean(name, _CONFIGS)
        raise BathysphereError(f"There is no planner {name!r}; choose one of {', '.join(_CONFIGS)}.{hint}")
    return _CONFIGS[name]


def _name_of(config_type: type) -> str:
    return next(name for base in config_type.__mro__ for name, known in _CONFIGS.items() if known is base)


declare_family(PlannerSettings, _find_config, _name_of, usual="mcts")


class _Stepper(Protocol):
    def step(self, steps: int = 1) -> list[Episode]: ...


class TimedSteps:
    """Makes steps in calls that take about `seconds` each.

    Few long calls save time, but while one lasts Ctrl-C is not answered. Which episodes are played does not depend on
    it.
    """

    def __init__(self, seconds: float = 0.5) -> None:
        self.seconds = seconds
        self.steps = 1  # of the next call

    def step(self, planner: _Stepper) -> list[Episode]:
        """Has a planner or a pool make `steps` steps; returns the episodes that finished."""
        began = time.perf_counter()
        episodes = planner.step(self.steps)
        growth = self.seconds / (time.perf_counter() - began)
        self.steps = max(1, int(self.steps * min(growth, _MAX_GROWTH)))
        return episodes


def play_all(planner: Planner) -> list[Episode]:
    """Plays until no episode is left; returns them in order of starting. The planner must have a last episode."""
    episodes, timed = [], TimedSteps()
    while planner.active.any():
        episodes += timed.step(planner)
    return sorted(episodes, key=lambda episode: episode.index)


def refuse_chance(domain: Domain) -> None:
    """Refuses a world with chance, for planners that take what they see once for what always happens."""
    if isinstance(domain, Chance):
        raise BathysphereError(
            f"{domain.name} is a world with chance, and this planner is for worlds without. Use --planner expectimax, "
            "or none."
        )


def num_drawn_members(wanted: int | None, values: Values) -> int:
    """Returns how many members rank actions: all of them if nothing else is wanted."""
    if wanted is not None and wanted > values.num_members:
        raise BathysphereError(
            f"search.num_subsampled is {wanted}, but the ensemble has only {values.num_members} members. "
            "Lower it, or train more members."
        )
    return wanted or values.num_members


def not_finite(what: str) -> BathysphereError:
    """Returns the error of numbers that planning cannot compare; `what` are they, up to the word "not"?"""
    return BathysphereError(
        f"{what} not finite. If this came with training, lower the learning rate (optimiser.learning_rate); if it came "
        "at once, values.scale, values.init_scale, values.prior_scale, search.risk_coef or a reward of the world is "
        "too large, or a network of your own (values.network) makes them."
    )
