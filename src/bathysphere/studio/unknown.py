"""What an agent does not know: maps over training, maps of its states now, and the states its members dispute most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bathysphere.config.saved import open_checkpoints
from bathysphere.domains.base import Domain, Observed, StateMap, States, WithMaps
from bathysphere.domains.observing import MapsOfTraining, TrainingMap
from bathysphere.errors import BathysphereError
from bathysphere.storage.state import section
from bathysphere.studio.agents import Known

_AT_ONCE = 512  # states that the network sees together
_WALKS = 32  # random walks that look for states
_WALK_STEPS = 100
_MOST_STATES = 4000


@dataclass(frozen=True)
class JudgedMap:
    """A map of states, with what the members say about each."""

    map: StateMap
    mean: NDArray[np.float64]  # [n]
    std: NDArray[np.float64]  # [n]


@dataclass(frozen=True)
class Disputed:
    """A state about which members differ."""

    state: States  # uint8 [S]
    members: NDArray[np.float64]  # [E]

    @property
    def mean(self) -> float:
        """Of the members' values."""
        return float(self.members.mean())

    @property
    def std(self) -> float:
        """Of the members' values."""
        return float(self.members.std())


def training_maps(known: Known) -> dict[str, list[TrainingMap]]:
    """Returns the maps that were made while an agent was trained, as of its newest checkpoint, by name.

    They are those of the observers that its world offers; none for agents that are no runs.
    """
    domain, path = known.agent.domain, known.trained.path
    if not path.is_dir() or not isinstance(domain, Observed):
        return {}
    observers = domain.observers(_evaluate(known, domain))
    if not any(isinstance(observer, MapsOfTraining) for observer in observers):
        return {}
    store = open_checkpoints(path)
    arrays = store.read(store.newest()).arrays
    found: dict[str, list[TrainingMap]] = {}
    for observer in observers:
        saved = section(arrays, f"{observer.name}.")
        if not isinstance(observer, MapsOfTraining) or not saved:
            continue
        observer.load_state_dict(saved)
        for each in observer.training_maps():
            found.setdefault(each.name, []).append(each)
    return found


def judged_maps(known: Known, domain: Domain, state: States) -> list[JudgedMap]:
    """Returns the maps that a world offers of states like `state`, uint8 [S], with the members' mean and spread."""
    if not isinstance(domain, WithMaps):
        return []
    judged = []
    for each in domain.state_maps(state):
        values = judge_states(known, domain, each.states)
        judged.append(JudgedMap(each, values.mean(axis=1), values.std(axis=1)))
    return judged


def judge_states(known: Known, domain: Domain, states: States) -> NDArray[np.float64]:
    """Returns every member's value of states, uint8 [n, S]: float64 [n, E]."""
    evaluate = _evaluate(known, domain)
    parts = [evaluate(states[i : i + _AT_ONCE]) for i in range(0, len(states), _AT_ONCE)]
    if not parts:
        return np.empty((0, known.trained.values.num_members))
    return np.concatenate(parts).astype(np.float64)


def most_disputed(known: Known, domain: Domain, seen: Sequence[States], most: int = 12) -> list[Disputed]:
    """Returns the states about which members differ most, among those that random walks find and those in `seen`.

    Args:
      known: the agent.
      domain: its world.
      seen: further states, uint8 [n, S] each.
      most: how many.
    """
    found = np.unique(np.concatenate([_walked(domain, np.random.default_rng(0)), *seen]), axis=0)[:_MOST_STATES]
    if not len(found):
        raise BathysphereError("No state was found that is not an end.")
    members = judge_states(known, domain, found)
    chosen = np.argsort(-members.std(axis=1), kind="stable")[:most]
    return [Disputed(found[i], members[i]) for i in chosen]


def _walked(domain: Domain, rng: np.random.Generator) -> States:
    """Returns states that random walks come through, ends left out: uint8 [n, S]."""
    states = domain.initial(_WALKS, rng)
    found = [states]
    for _ in range(min(domain.max_steps, _WALK_STEPS)):
        answer = domain.successors(states)
        actions = rng.integers(len(domain.action_names), size=len(states))
        rows = np.arange(len(states))
        states = answer.states[rows, actions][~answer.terminal[rows, actions]]
        if not len(states):
            break
        found.append(states)
    return np.concatenate(found)


def _evaluate(known: Known, domain: Domain) -> Callable[[States], NDArray[np.float32]]:
    values = known.trained.values
    return lambda states: values.evaluate(domain.observe(np.ascontiguousarray(states)))


def map_csv(judged: JudgedMap | None) -> str:
    """Returns a map as comma-separated text."""
    if judged is None:
        return ""
    lines = ["row,column,mean,std"]
    for (row, column), mean, std in zip(judged.map.cells, judged.mean, judged.std, strict=True):
        lines.append(f"{row:g},{column:g},{mean:.6g},{std:.6g}")
    return "\n".join(lines) + "\n"


def training_csv(maps: Sequence[TrainingMap]) -> str:
    """Returns maps of training as comma-separated text."""
    lines = ["steps,row,column,value"]
    for each in maps:
        for (row, column), value in np.ndenumerate(each.values):
            if np.isfinite(value):
                lines.append(f"{'' if each.env_steps is None else each.env_steps},{row},{column},{value:.6g}")
    return "\n".join(lines) + "\n"


def disputed_csv(states: Sequence[Disputed]) -> str:
    """Returns disputed states as comma-separated text, their bytes in hexadecimal."""
    lines = ["state,mean,std,members"]
    for each in states:
        members = " ".join(f"{value:.6g}" for value in each.members)
        lines.append(f"{each.state.tobytes().hex()},{each.mean:.6g},{each.std:.6g},{members}")
    return "\n".join(lines) + "\n"
