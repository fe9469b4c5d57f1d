"""Walks through an environment, made without any copy: what copies and keys are measured against."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bathysphere.domains.adapters.digests import digest_of
from bathysphere.domains.adapters.simulator import Simulator, Step

_STEPS = 32


class Walk(NamedTuple):
    """An episode's first steps."""

    seed: int
    actions: list[int]
    looks: list[bytes]  # digest of what each step answered; the first of the reset
    steps: list[Step]  # those answers, with copies of observations


def look_of(step: Step) -> bytes:
    """Returns a digest of everything that a step answers."""
    mask = None if step.mask is None else step.mask.tobytes()
    return digest_of((step.observation, step.reward, step.ended, step.solved, mask))


def walk_at_random(simulator: Simulator, seed: int, rng: np.random.Generator) -> Walk:
    """Walks at random from the reset with a seed; `rng` decides the actions."""
    step = simulator.reset(seed)
    walk = _beginning(seed, step)
    while len(walk.actions) < _STEPS:
        possible = np.arange(simulator.num_actions) if step.mask is None else np.flatnonzero(step.mask)
        if step.ended or not len(possible):
            break
        step = _go_on(simulator, walk, int(rng.choice(possible)))
    return walk


def walk_again(simulator: Simulator, seed: int, actions: Sequence[int]) -> Walk:
    """Makes given actions."""
    walk = _beginning(seed, simulator.reset(seed))
    for action in actions:
        _go_on(simulator, walk, action)
    return walk


def _beginning(seed: int, step: Step) -> Walk:
    return Walk(seed, [], [look_of(step)], [copy.deepcopy(step)])


def _go_on(simulator: Simulator, walk: Walk, action: int) -> Step:
    step = simulator.step(action)
    walk.actions.append(action)
    walk.looks.append(look_of(step))
    walk.steps.append(copy.deepcopy(step))
    return step
