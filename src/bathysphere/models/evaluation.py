"""How often a model is right: on random episodes, on an agent's steps, and in its search trees."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model, States, Successors
from bathysphere.domains.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    PLAYER,
    PLAYER_ON_TARGET,
    TARGET,
    WALL,
)
from bathysphere.models.config import DataConfig
from bathysphere.models.data import make_boards, play_randomly
from bathysphere.planning import PlannerSettings, Values, make_planner
from bathysphere.planning.planner import play_all

# What no step changes the number of: walls, boxes, targets, players.
_CONSERVED = ((WALL,), (BOX, BOX_ON_TARGET), (TARGET, BOX_ON_TARGET, PLAYER_ON_TARGET), (PLAYER, PLAYER_ON_TARGET))


@dataclass
class Tally:
    """Counts of what a model got right and wrong, against the rules."""

    transitions: int = 0
    """Steps predicted."""
    wrong_frames: int = 0
    """Boards with at least one wrong cell."""
    impossible_frames: int = 0
    """Wrong boards with another number of walls, boxes, targets or players than before the step."""
    changed_cells: int = 0
    """Cells that the step changes."""
    wrong_changed_cells: int = 0
    """Those of them that were predicted wrongly."""
    solved: int = 0
    """Steps that solve the board."""
    missed_rewards: int = 0
    """Those of them that were not predicted to."""
    false_rewards: int = 0
    """Steps that were predicted to solve the board and do not."""

    def add(self, states: States, predicted: Successors, truth: Successors) -> None:
        """Counts predictions for `states`, uint8 [n, S]; the two answers have any number of actions, the same."""
        wrong = predicted.states != truth.states
        is_wrong = wrong.any(axis=2)
        changed = truth.states != states[:, None]
        self.transitions += is_wrong.size
        self.wrong_frames += int(is_wrong.sum())
        rows, actions = np.nonzero(is_wrong)
        self.impossible_frames += int(_is_impossible(states[rows], predicted.states[rows, actions]).sum())
        self.changed_cells += int(changed.sum())
        self.wrong_changed_cells += int((changed & wrong).sum())
        self.solved += int(truth.solved.sum())
        self.missed_rewards += int((truth.solved & ~predicted.solved).sum())
        self.false_rewards += int((predicted.solved & ~truth.solved).sum())

    @property
    def frames_right(self) -> float:
        """Share of boards without a wrong cell."""
        return 1 - self.wrong_frames / max(self.transitions, 1)

    @property
    def changed_cells_right(self) -> float:
        """Share of the cells that change which were predicted right."""
        return 1 - self.wrong_changed_cells / max(self.changed_cells, 1)

    def report(self) -> dict[str, Any]:
        """Returns the two shares and all counts."""
        shares = {"frames_right": self.frames_right, "changed_cells_right": self.changed_cells_right}
        return {**shares, **asdict(self)}


class WatchedModel:
    """A model whose every answer is compared with the rules before the planner gets it.

    Args:
      model: what the planner believes.
      domain: the rules.
      tally: what the comparison adds to.
    """

    def __init__(self, model: Model, domain: Domain, tally: Tally) -> None:
        self.model, self.domain, self.tally = model, domain, tally

    def successors(self, states: States) -> Successors:
        """Predicts, and counts mistakes."""
        answer = self.model.successors(states)
        self.tally.add(states, answer, self.domain.successors(states))
        return answer


def on_random_episodes(model: Model, domain: Domain, config: DataConfig) -> Tally:
    """Compares all actions from every position of random episodes on the held-out boards of `config`."""
    starts = np.repeat(make_boards(config, held_out=True), config.episodes, axis=0)
    rng = np.random.default_rng([config.seed, 1])
    return on_states(model, domain, positions(domain, starts, config.max_steps, rng))


def positions(domain: Domain, starts: States, steps: int, rng: np.random.Generator) -> States:
    """Returns the positions in which random episodes from `starts` make their steps, uint8 [n, S]."""
    episodes = play_randomly(domain, starts, steps, rng)
    return episodes.frames[episodes.before]


def on_states(model: Model, domain: Domain, states: States) -> Tally:
    """Compares all actions from every one of `states`, uint8 [n, S]."""
    tally = Tally()
    for start in range(0, len(states), 4096):
        part = states[start : start + 4096]
        tally.add(part, model.successors(part), domain.successors(part))
    return tally


@dataclass(frozen=True)
class SearchReport:
    """A model in an agent's episodes."""

    steps: Tally  # the steps that were really made
    trees: Tally  # all actions from every state that the search expanded
    wins: int
    episodes: int


def in_search(
    model: Model, domain: Domain, values: Values, search: PlannerSettings, *, episodes: int, batch: int, seed: int
) -> SearchReport:
    """Lets an agent play with the model and compares all that it is told on the way.

    Args:
      model: what the agent believes.
      domain: what really happens.
      values: the agent's value function.
      search: how it plans.
      episodes: episodes to play.
      batch: episodes at once.
      seed: decides boards, ties and members drawn.
    """
    trees, steps = Tally(), Tally()
    watched = WatchedModel(model, domain, trees)
    planner = make_planner(
        domain, values, search, model=watched, batch=min(batch, episodes), num_episodes=episodes, seed=seed
    )
    played = play_all(planner)
    for episode in played:
        predicted, truth = (_chosen(world.successors(episode.states), episode.actions) for world in (model, domain))
        steps.add(episode.states, predicted, truth)
    return SearchReport(steps, trees, sum(episode.solved for episode in played), len(played))


def _chosen(answer: Successors, actions: NDArray[Any]) -> Successors:
    """Returns the part of an answer about one action from each state: [n, 1, ...]."""
    rows = np.arange(len(actions))
    return Successors(*(part[rows, actions][:, None] for part in answer))


def _is_impossible(before: States, after: States) -> NDArray[np.bool_]:
    counts = [[np.isin(board, kind).sum(axis=1) for kind in _CONSERVED] for board in (before, after)]
    different: NDArray[np.bool_] = (np.array(counts[0]) != np.array(counts[1])).any(axis=0)
    return different
