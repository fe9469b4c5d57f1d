"""How well an agent plays: one record for episodes of its own world and for levels of a file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from bathysphere.agents.card import Measurement
from bathysphere.agents.loading import Trained, load_trained, make_model
from bathysphere.compiling import announcing
from bathysphere.domains import make_domain
from bathysphere.domains.base import Domain, States
from bathysphere.errors import BathysphereError
from bathysphere.learning.blocks import BlockPlayer, Knowledge, Players, check_playable
from bathysphere.planning import Episode, PlannerSettings, Pool
from bathysphere.planning.named import changed_planner, planner_name
from bathysphere.planning.planner import TimedSteps
from bathysphere.statistics import mean_interval, wilson_interval
from bathysphere.storage.files import read_json

Unit = Literal["episode", "level"]


@dataclass(frozen=True)
class Words:
    """What files and sentences call the numbers of one kind of unit."""

    count: str
    solved: str
    rate: str
    what: str  # the rate is a share of


WORDS: dict[Unit, Words] = {
    "episode": Words("episodes", "wins", "win_rate", "episodes won"),
    "level": Words("levels", "solved", "solve_rate", "levels solved"),
}
_OF_EPISODES = ("mean_return", "mean_return_low", "mean_return_high", "worst_return", "best_return", "mean_length")
_MOST_EPISODES = 10**12
_LOOK_SECONDS = 0.5  # that a block is waited for, before an interrupt is heard
_COUNTED = ("waits", "states", "expansions", "model_calls")


class Outcome(NamedTuple):
    """What is counted of one episode or level."""

    solved: bool
    length: int  # steps played
    solution_length: int  # steps of the solution; unused if it was not solved
    waits: int
    states: int
    expansions: int
    model_calls: int
    earned: float = 0.0  # sum of rewards; levels earn nothing that counts


@dataclass(frozen=True)
class Evaluation:
    """What was counted while an agent played, without learning."""

    unit: Unit
    agent: str
    weights: str
    """Fingerprint of the agent's weights."""
    preset: str
    """Which the agent was trained with."""
    seed: int
    planner: str
    """By the name that people use."""
    passes: int | None
    """Of planning per step; None for planners without passes."""
    max_steps: int
    """Steps after which a unit was cut off."""
    changed: dict[str, Any]
    """Settings of the planner that were asked for."""
    count: int
    """Units played, at least 1."""
    solved: int
    mean_length: float
    """Steps per unit."""
    mean_solution_length: float | None
    """Steps of a solution; None without solutions."""
    waits: float
    """Per unit: steps spent on planning, to put off one that cannot be taken back."""
    states: float
    """Per unit: distinct states in the search graph, each evaluated by the network."""
    expansions: float
    """Per unit: nodes of the search tree that got children."""
    model_calls: float
    """Per unit: states whose successors were computed; the graph knew those of the other expansions."""
    solved_after: tuple[int, ...]
    """Expansions of every unit that was solved, fewest first."""
    most_expansions: int
    """Of a unit, solved or not."""
    solved_states: float | None
    """States per unit that was solved; None without any."""
    seconds: float
    """Wall clock, in all."""
    results: tuple[dict[str, Any], ...] = ()
    """Of levels: the numbers and the solution of each, as plain data."""
    mean_return: float = 0.0
    """Of episodes: the sum of rewards, not discounted; its mean ..."""
    mean_return_low: float = 0.0
    mean_return_high: float = 0.0
    """... with its 95 % interval, which luck in the world or at the start makes wide ..."""
    worst_return: float = 0.0
    """... the lowest ..."""
    best_return: float = 0.0
    """... and the highest."""

    @property
    def rate(self) -> float:
        """Share of units that were solved."""
        return self.solved / self.count

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the rate."""
        return wilson_interval(self.solved, self.count)

    @property
    def solved_expansions(self) -> float | None:
        """Expansions per unit that was solved; None without any."""
        return _mean(self.solved_after)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data, under the keys that `evaluate --json` prints."""
        words, (low, high), is_level = WORDS[self.unit], self.interval, self.unit == "level"
        return {
            "agent": self.agent,
            "weights": self.weights,
            "preset": self.preset,
            "seed": self.seed,
            "planner": self.planner,
            "passes": self.passes,
            "max_steps": self.max_steps,
            words.count: self.count,
            words.solved: self.solved,
            words.rate: self.rate,
            f"{words.rate}_low": low,
            f"{words.rate}_high": high,
            **({} if is_level else {name: getattr(self, name) for name in _OF_EPISODES}),
            "mean_solution_length": self.mean_solution_length,
            **{f"{name}_per_{self.unit}": getattr(self, name) for name in _COUNTED},
            f"expansions_per_solved_{self.unit}": self.solved_expansions,
            f"states_per_solved_{self.unit}": self.solved_states,
            "seconds": self.seconds,
            **({"seconds_per_level": self.seconds / self.count} if is_level else {}),
            "changed": self.changed,
            **({"results": list(self.results)} if is_level else {}),
        }

    def __repr__(self) -> str:
        return f"<Evaluation of {self.agent}: {str(self).splitlines()[0]}>"

    def __str__(self) -> str:
        if self.unit == "episode":
            steps = f"{self.mean_length:.1f} steps, "
        else:
            length = self.mean_solution_length
            steps = "" if length is None else f"{length:.1f} moves in a solution, "
        return (
            f"{self._outcome()}\n"
            f"Per {self.unit} {steps}{self.states:,.1f} states, {self.expansions:,.1f} expansions and "
            f"{self.model_calls:,.1f} calls of the model; {self.seconds:.2f} s in all."
        )

    def _outcome(self) -> str:
        """Says how often the agent won, and what it earned; only that if nothing it earned counts as won."""
        low, high = self.interval
        rate = f"{self.rate:.1%} (95 % interval {low:.1%} to {high:.1%})."
        if self.unit == "level":
            return f"Solved {self.solved:,} of {self.count:,} levels: {rate}"
        half = (self.mean_return_high - self.mean_return_low) / 2
        earned = f"{self.mean_return:.4g} ± {half:.2g} ({self.worst_return:.4g} to {self.best_return:.4g})"
        if not self.solved and (self.worst_return or self.best_return):
            return f"Mean return {earned} in {self.count:,} episodes; none of them counts as won."
        return f"Won {self.solved:,} of {self.count:,} episodes: {rate} Mean return {earned}."


def evaluate(
    agent: str | PathLike[str],
    episodes: int = 100,
    seed: int = 0,
    planner: str | None = None,
    *,
    on_progress: Callable[[int], None] | None = None,
    players: Callable[[BlockPlayer, int], Players] | None = None,
    **search: Any,
) -> Evaluation:
    """Plays episodes with an agent, without learning, and counts.

    Args:
      agent: name of a shipped agent, agent file, or a run or its directory (as of its newest checkpoint).
      episodes: how many.
      seed: decides start states, ties and the members drawn.
      planner: mcts, best-first, levin, phs or none; as in training if not given.
      on_progress: called about twice a second with the number of episodes played so far.
      players: who plays, in blocks, given what plays them and how many there are; they are closed. This process,
        without blocks, if not given. What is counted does not depend on who plays, but blocks have other ties and
        members drawn.
      **search: settings of the planner to change; those that are None stay as they are.
    """
    if not 1 <= episodes <= _MOST_EPISODES or seed < 0:
        raise BathysphereError(
            f"episodes is {episodes} and seed {seed}; expected 1 to {_MOST_EPISODES:,} and at least 0."
        )
    with announcing():
        trained = load_trained(agent)
        domain, changed = make_domain(trained.config.domain), given(search)
        if changed.get("model_risk") and (not trained.config.knows_limits or not trained.path.is_dir()):
            raise BathysphereError(
                f"model_risk is about what a model does not know, and that of {fspath(agent)} answers everything. It "
                "is for the directory of a run with the model memory, relevance or ensemble, or network in a world "
                "with chance."
            )
        config = changed_planner(trained.config.search, planner, changed)
        began = time.perf_counter()
        tell = on_progress or (lambda played: None)
        if players is None:
            played = _play_and_tell(make_pool(trained, domain, config, episodes=episodes, seed=seed), tell)
        else:
            played = _play_in_blocks(trained, domain, config, episodes, seed, players, tell)
        seconds = time.perf_counter() - began
    outcomes = [_outcome(episode) for episode in played]
    return Evaluation(
        unit="episode",
        agent=fspath(agent),
        weights=trained.fingerprint,
        preset=trained.config.preset,
        seed=seed,
        planner=planner_name(config),
        passes=getattr(config, "passes", None),
        max_steps=config.max_steps or domain.max_steps,
        changed=changed,
        seconds=seconds,
        **counts(outcomes),
    )


def _play_and_tell(pool: Pool, on_progress: Callable[[int], None]) -> list[Episode]:
    episodes, timed = list[Episode](), TimedSteps()
    while pool.num_active:
        episodes += timed.step(pool)
        on_progress(len(episodes))
    return sorted(episodes, key=lambda episode: episode.index)


def _play_in_blocks(
    trained: Trained,
    domain: Domain,
    config: PlannerSettings,
    episodes: int,
    seed: int,
    players: Callable[[BlockPlayer, int], Players],
    on_progress: Callable[[int], None],
) -> list[Episode]:
    """Has as many blocks played as there are batches, all of the same size."""
    check_playable(domain)
    num_blocks = -(-episodes // trained.config.batch)
    size = -(-episodes // num_blocks)
    player = BlockPlayer(
        domain,
        trained.values,
        config,
        batch=trained.config.batch,
        size=size,
        seed=np.random.SeedSequence(seed),
        model=make_model(trained.config, domain, trained.path),
    )
    knowledge, workers, played = Knowledge(trained.values.weights()), players(player, num_blocks), list[Episode]()
    try:
        for number in range(num_blocks):
            workers.submit(number, 0, knowledge)
        for number in range(num_blocks):
            while (block := workers.take(number, _LOOK_SECONDS)) is None:
                pass
            played += block.episodes()
            on_progress(min(len(played), episodes))
    finally:
        workers.close()
    return played[:episodes]  # the last block may have some more


def _outcome(e: Episode) -> Outcome:
    counted = (len(e), len(e), e.num_waits, e.num_states, e.num_expansions, e.num_model_calls)
    return Outcome(e.solved, *counted, e.total_reward)


def make_pool(
    trained: Trained,
    domain: Domain,
    search: PlannerSettings,
    *,
    episodes: int,
    seed: int,
    batch: int | None = None,
    workers: int | None = None,
    starts: States | None = None,
) -> Pool:
    """Returns what plays episodes as in training, but without learning.

    Args:
      trained: the agent.
      domain: its world, or one like it.
      search: how to plan.
      episodes: how many are played in all.
      seed: decides start states, ties and the members drawn.
      batch: so many at once; as in training if not given.
      workers: planners that share them in turn; as in training if not given.
      starts: uint8 [episodes, S]; the domain's own if not given.
    """
    config = trained.config
    batch = min(episodes, batch or config.batch)
    return Pool(
        domain,
        trained.values,
        search,
        batch=batch,
        seed=seed,
        workers=min(workers or config.workers, batch),
        model=make_model(config, domain, trained.path),
        num_episodes=episodes,
        starts=starts,
    )


def counts(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Returns the fields of an `Evaluation` that are sums and means over its units."""
    total = Outcome(*(sum(column) for column in zip(*outcomes, strict=True)))
    solved = [outcome for outcome in outcomes if outcome.solved]
    low, high = mean_interval([outcome.earned for outcome in outcomes])
    return {
        "count": len(outcomes),
        "solved": len(solved),
        "mean_length": total.length / len(outcomes),
        "mean_solution_length": _mean([outcome.solution_length for outcome in solved]),
        **{name: getattr(total, name) / len(outcomes) for name in _COUNTED},
        "solved_after": tuple(sorted(outcome.expansions for outcome in solved)),
        "most_expansions": max(outcome.expansions for outcome in outcomes),
        "solved_states": _mean([outcome.states for outcome in solved]),
        "mean_return": math.fsum(outcome.earned for outcome in outcomes) / len(outcomes),
        "mean_return_low": low,
        "mean_return_high": high,
        "worst_return": min(outcome.earned for outcome in outcomes),
        "best_return": max(outcome.earned for outcome in outcomes),
    }


def read_measurements(path: Path, weights: str) -> list[Measurement]:
    """Reads what `bathysphere evaluate AGENT --json` printed.

    Args:
      path: the file it was saved in.
      weights: fingerprint of the agent's weights; numbers of any others are refused.
    """
    evaluation = read_json(path)
    parts = evaluation.get("evaluations", [evaluation]) if isinstance(evaluation, dict) else [evaluation]
    measurements = []
    for part in parts:
        words = next((words for words in WORDS.values() if isinstance(part, dict) and words.rate in part), None)
        if words is None or not {"weights", "command"} <= part.keys():
            raise BathysphereError(
                f"{path} is not an evaluation. Expected what 'bathysphere evaluate AGENT --json' prints."
            )
        if part["weights"] != weights:
            raise BathysphereError(
                f"{path} was measured with other weights. Evaluate the agent file itself (its weights have half "
                "precision), then export once more with what came out."
            )
        measurements.append(_measurement(part, words))
    return measurements


def _measurement(part: dict[str, Any], words: Words) -> Measurement:
    effort = part["planner"] if part["passes"] is None else f"{part['passes']} passes a step"
    said = [effort, f"at most {part['max_steps']} steps"]
    said += [f"{name} {value}" for name, value in part["changed"].items() if name not in ("passes", "max_steps")]
    rate, low, high = (part[words.rate + end] for end in ("", "_low", "_high"))
    return Measurement(", ".join([words.what, *said]), rate, low, high, part[words.count], part["command"])


def given(changes: dict[str, Any]) -> dict[str, Any]:
    """Returns the changes that are not None."""
    return {name: value for name, value in changes.items() if value is not None}


def _mean(numbers: Sequence[int]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None
