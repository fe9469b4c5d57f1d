"""Settings for a world that nobody has tuned: read off what the world is, each with its reason.

They are starting points that learn something in most worlds, found on those of docs/lab/own-worlds.md; whatever the
user sets comes before them. They are chosen once: a run saves them in its config, and nothing is measured again when
it is resumed.
"""

from __future__ import annotations

import re
import statistics
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from bathysphere.config.run import CheckpointConfig, RunConfig
from bathysphere.domains.base import (
    Categories,
    Chance,
    Domain,
    DomainConfig,
    Explored,
    Features,
    Relabeller,
    States,
    Successors,
    Symmetric,
    ask_afresh,
)
from bathysphere.errors import BathysphereError
from bathysphere.learning.config import LearningConfig
from bathysphere.learning.masks import MaskConfig
from bathysphere.learning.replay import ReplayConfig
from bathysphere.planning import ExpectimaxConfig, PlannerSettings, SearchConfig
from bathysphere.timing import slowness, timed
from bathysphere.values.config import OptimiserConfig, ValuesConfig

_LARGEST_TABLE = 1_000_000  # entries per member
_SMALLEST_BOARD = 3  # cells on a side for which convolutions are worth it
_PROBES = 32  # random walks by which a world is looked at, at once
_PROBE_STEPS = 50
_PROBE_SECONDS = 1.0
# Steps after which walks of a slow world end: few numbers, for time to decide little.
_MAY_END = (1, 2, 4, 8, 16, 32)
_NEAR = 0.05  # share of random walks that come next to success, from which on it need not be searched for
_SLOW_STEP = 2e-4  # seconds for one state's successors from which on a simulator is slow, on the usual machine
_FEW_EPISODES = 4  # at a time, where they are long in coming
_CHANCE_SPREAD = 0.3  # of a reward: where a table's values begin at most, in worlds with chance


class Choice(NamedTuple):
    """A setting and why it is what it is."""

    setting: str
    reason: str


class Look(NamedTuple):
    """What a few random walks show of a world."""

    seconds: float  # for the successors of one state
    slowness: float  # of the machine, so that on all of them the same is chosen
    reward: float  # the largest that was met, in size; 0 if none was
    near: float  # share of walks that came to a state from which a step solves


def choose(domain: Domain, config: DomainConfig) -> tuple[RunConfig, list[Choice]]:
    """Returns settings for a world, and the reason of each choice.

    Args:
      domain: the world.
      config: what describes it.
    """
    look = look_around(domain)
    choices = [Choice(*finding) for finding in domain.findings] if isinstance(domain, Explored) else []
    # Step costs alone say nothing of the size of a reward that random walks do not reach.
    scale = look.reward if look.near and look.reward else max(look.reward, 1.0)
    discount = 1.0 - 1.0 / max(domain.max_steps, 20)
    discount = float(np.clip(round(discount, 4), 0.95, 0.999))
    choices.append(
        Choice(
            f"search.discount {discount:g}",
            f"episodes have up to {domain.max_steps:,} steps, and their end must count at their beginning",
        )
    )
    is_slow = look.seconds / look.slowness > _SLOW_STEP
    passes = 10 if is_slow else 20
    choices.append(
        Choice(f"search.passes {passes}", f"all actions of a state take {duration(look.seconds)} on average")
    )
    values, optimiser, learning, batch, why = _learner(domain, scale)
    choices.append(why)
    if is_slow and batch > _FEW_EPISODES:
        batch = _FEW_EPISODES
        choices.append(Choice(f"batch {batch}", "the world is slow, and few episodes at a time come to an end sooner"))
    met = f"no success, and no reward above {look.reward:.2g} in size" if look.reward else "no reward at all"
    choices.append(
        Choice(
            f"values.scale {scale:g}",
            "random walks met rewards of that size"
            if look.reward >= scale
            else f"random walks met {met}, so 1 is assumed",
        )
    )
    if isinstance(domain, Relabeller):
        learning = replace(learning, hindsight=0.5, hindsight_as="solved")
        choices.append(Choice("learning.hindsight 0.5", "the world says what lost episodes did reach"))
    if isinstance(domain, Symmetric):
        learning = replace(learning, symmetries=True)
        choices.append(Choice("learning.symmetries", "the world says which states are equal but for a symmetry"))
    risk_coef = 0.0 if look.near >= _NEAR else 3.0
    search: PlannerSettings = SearchConfig(
        discount=discount,
        passes=passes,
        risk_coef=risk_coef,
        num_subsampled=10 if values.num_members >= 20 else None,
        final_ties="random",
        merge_nodes=True,
        dead_end_value=None,
        episode_penalty=0.1 * scale,
    )
    choices.append(
        Choice(
            f"search.risk_coef {risk_coef:g}",
            f"{look.near:.0%} of random walks came next to success: it need not be searched for where nobody has been"
            if look.near >= _NEAR
            else "random walks hardly meet success; three standard deviations of the members lead to what they do not "
            "know yet",
        )
    )
    if isinstance(domain, Chance):
        num_subsampled = 10 if values.num_members >= 20 else None
        search = ExpectimaxConfig(discount=discount, passes=passes, risk_coef=3.0, num_subsampled=num_subsampled)
        learning = replace(learning, target="lookahead")
        choices.append(Choice("planner expectimax", "the world has chance, and says how probable each outcome is"))
        if values.network == "linear" and isinstance(domain.observation, Categories):
            # Glorot's limit for a table. Luck hides for long that values which begin above any reward are too high.
            widest = _CHANCE_SPREAD / (6.0 / (domain.observation.num_categories + 1)) ** 0.5
            values = replace(values, init_scale=round(min(values.init_scale, widest), 2))
            choices.append(Choice(f"values.init_scale {values.init_scale:g}", "members begin below what success pays"))
    run = RunConfig(
        preset=slug(domain.name),
        batch=batch,
        domain=config,
        search=search,
        values=values,
        optimiser=optimiser,
        learning=learning,
        checkpoint=CheckpointConfig(seconds=30.0),
    )
    return run, choices


def look_around(domain: Domain) -> Look:
    """Returns what random walks from the start show; they take a second or two at most."""
    rng = np.random.default_rng(0)
    states = domain.initial(_PROBES, rng)
    domain.successors(states[:1])  # compiles what has to be compiled
    largest, spent, costs, slow = 0.0, 0.0, list[float](), list[float]()
    ages, is_near = np.zeros(_PROBES, int), np.zeros(_PROBES, bool)
    num_walks, num_near = 0, 0  # that came to an end
    for step in range(1, _PROBE_STEPS + 1):
        out, seconds, num_different = ask_timed(domain, states)
        spent += seconds
        costs.append(seconds / num_different)
        slow.append(slowness())
        largest = max(largest, float(np.abs(out.rewards).max()))
        if not np.isfinite(largest):
            raise BathysphereError(f"{domain.name} pays a reward that is no number. Rewards must be finite.")
        is_near |= out.solved.any(axis=1)
        ages += 1
        actions = rng.integers(len(domain.action_names), size=len(states))
        states = out.states[np.arange(len(states)), actions]
        over = out.terminal[np.arange(len(states)), actions] | (ages >= domain.max_steps)
        if over.any():
            num_walks, num_near = num_walks + int(over.sum()), num_near + int(is_near[over].sum())
            states[over], ages[over], is_near[over] = domain.initial(int(over.sum()), rng), 0, False
        if step in _MAY_END and spent > _PROBE_SECONDS:
            break
    begun = ages > 0
    near = (num_near + int(is_near.sum())) / (num_walks + int(begun.sum()))
    return Look(statistics.median(costs), statistics.median(slow), largest, near)


def ask_timed(domain: Domain, states: States) -> tuple[Successors, float, int]:
    """Returns the successors of states, the seconds they took, and how many different states were asked about."""
    different, places = np.unique(states, axis=0, return_inverse=True)
    answers, seconds = timed(partial(ask_afresh, domain, different.copy()))
    at = places.ravel()
    out = Successors(answers.states[at], answers.rewards[at], answers.terminal[at], answers.solved[at])
    return out, seconds, len(different)


def duration(seconds: float) -> str:
    """Returns a short time as people write it.

    >>> duration(1.234e-6), duration(1.234e-4), duration(0.0123), duration(2.0)
    ('1.2 µs', '123 µs', '12 ms', '2.0 s')
    """
    count, unit = (
        (seconds, "s") if seconds >= 1 else (seconds * 1e3, "ms") if seconds >= 1e-3 else (seconds * 1e6, "µs")
    )
    return f"{count:.1f} {unit}" if count < 10 else f"{count:,.0f} {unit}"


def slug(name: str) -> str:
    """Returns a name for presets and folders.

    >>> slug("MyWorld"), slug("FrozenLake-v1"), slug("MiniGrid-KeyCorridorS3R3-v0")
    ('my-world', 'frozen-lake-v1', 'mini-grid-key-corridor-s3r3-v0')
    """
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return re.sub(r"[^a-z0-9]+", "-", parted.lower()).strip("-") or "world"


def _learner(domain: Domain, scale: float) -> tuple[ValuesConfig, OptimiserConfig, LearningConfig, int, Choice]:
    """Returns network, optimiser, learning and batch for what a world shows of its states."""
    spec = domain.observation
    if isinstance(spec, Categories) and int(np.prod(spec.shape)) == 1 and spec.num_categories <= _LARGEST_TABLE:
        why = Choice("values.network linear", f"an observation is one of {spec.num_categories:,} numbers: a table")
        return (
            ValuesConfig(network="linear", num_members=20, bias=False, init_scale=4.0, scale=scale),
            OptimiserConfig(name="delta", learning_rate=0.1),
            LearningConfig(
                target="bootstrap_members",
                steps_per_update=0.5,
                min_episodes=5,
                mask=MaskConfig(kind="none"),
                replay=ReplayConfig(capacity=50),
            ),
            4,
            why,
        )
    learning = LearningConfig(
        target="bootstrap_best",
        steps_per_update=4.0,
        min_episodes=10,
        mask=MaskConfig(kind="bernoulli", probability=0.5),
        replay=ReplayConfig(capacity=500),
    )
    if isinstance(spec, Categories) and len(spec.shape) == 2 and min(spec.shape) >= _SMALLEST_BOARD:
        rows, columns = spec.shape
        why = Choice("values.network cnn", f"an observation is a board of {rows} x {columns} cells")
        network = ValuesConfig(
            network="cnn", num_members=5, shared_trunk=True, conv_layers=3, conv_channels=32, dense=64, scale=scale
        )
        return network, OptimiserConfig(name="adam", learning_rate=5e-4), learning, 16, why
    size = spec.size if isinstance(spec, Features) else int(np.prod(spec.shape))
    why = Choice("values.network mlp", f"an observation has {size:,} numbers, and they are no board")
    network = ValuesConfig(network="mlp", num_members=20, hidden=(50, 50), scale=scale)
    return network, OptimiserConfig(name="tf_rmsprop", learning_rate=1e-3), learning, 16, why
