"""How leaves get children and values, many at a time: one call of the model and one of the network for all episodes.

The other way, for worlds with compiled rules and values that are a table, is in compiled_rules.py.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Hopeless, Model, PartialModel, States, Successors
from bathysphere.domains.real_steps import MadeSteps, take_steps
from bathysphere.errors import BathysphereError
from bathysphere.planning.episode_values import EpisodeValues, checked_values, weighed_unknown
from bathysphere.planning.graph import kernels
from bathysphere.planning.graph.compiled import direct
from bathysphere.planning.graph.graphs import Graphs
from bathysphere.planning.planner import MODEL_ERRORS, PolicyValues, Values, Work, not_finite


class BatchedExpansion:
    """Runs passes in lock step: every episode goes as far as it can, then all their leaves are expanded together.

    Args:
      domain: says what networks see of a state, and what really happens.
      graphs: of the episodes.
      work: where costs are counted.
      episode_values: the values each episode began with, if episodes are planned with those.
      rng: decides what really happens in a world with chance.
    """

    def __init__(
        self,
        domain: Domain,
        graphs: Graphs,
        work: Work,
        episode_values: EpisodeValues | None,
        rng: np.random.Generator,
    ) -> None:
        self._rng = rng
        self._domain, self._graphs, self._work, self._episode_values = domain, graphs, work, episode_values
        sizes = graphs.sizes
        if sizes.num_priors and episode_values is not None:
            raise BathysphereError(
                f"search.prior_coef is {graphs.config.prior_coef}, but the values of an episode's beginning are kept "
                "without their policy. Plan with the newest values (learning.steady_values off), or set it to 0."
            )
        room = sizes.batch * max(sizes.num_actions, 1)
        self._pending_slots = np.empty(sizes.batch, np.int64)
        self._pending_rows = np.empty((sizes.batch, sizes.words), np.uint64)
        self._new_slots = np.empty(room, np.int64)
        self._new_states = np.empty(room, np.int64)
        self._new_rows = np.empty((room, sizes.words), np.uint64)

    def run(self, model: Model, values: Values, active: NDArray[np.bool_], num_passes: int) -> None:
        """Brings every active episode to `num_passes` passes of this step."""
        graphs, seconds = self._graphs, self._work.seconds
        while True:
            before = time.perf_counter()
            num_pending = self._sweep(
                *graphs.kernel_arguments, active, num_passes, self._pending_slots, self._pending_rows
            )
            seconds["sweep"] += time.perf_counter() - before
            if num_pending == 0:
                return
            self._expand(model, values, num_pending)

    def evaluate_starts(self, values: Values, slots: NDArray[np.intp], states: States) -> None:
        """Gives the start states of episodes that begin in `slots` [k] their values."""
        self._new_slots[: len(slots)] = slots
        self._new_states[: len(slots)] = 0
        self._new_rows[: len(slots)] = self._graphs.words(states)
        self._evaluate(values, len(slots))

    def correct(self, values: Values, active: NDArray[np.bool_], actions: NDArray[np.int32]) -> MadeSteps:
        """Repairs what the model predicted wrongly, or not at all, about the steps to be made. Mutates: the graphs.

        Returns:
          These steps.
        """
        graphs, work = self._graphs, self._work
        slots = np.flatnonzero(active)
        before, chosen = graphs.root_states[slots], actions[slots]
        truth = take_steps(self._domain, before, chosen, self._rng)
        errors = np.zeros(len(MODEL_ERRORS) + 1, np.int64)
        num_new = kernels.correct(
            graphs.arena,
            graphs.config.transpositions,
            slots,
            actions,
            graphs.words(truth.states),
            truth.rewards,
            truth.terminal,
            truth.solved,
            errors,
            self._new_slots,
            self._new_states,
        )
        for name, count in zip(MODEL_ERRORS, errors.tolist(), strict=False):
            work.model_errors[name] += count
        work.unknown_steps += int(errors[-1])
        self._new_rows[:num_new] = graphs.arena.words[self._new_slots[:num_new], self._new_states[:num_new]]
        self._evaluate(values, num_new)
        return MadeSteps(before, chosen, Successors(*truth))

    def _expand(self, model: Model, values: Values, num_pending: int) -> None:
        """Asks the model for the children of the pending leaves, and the network for the values of the new ones."""
        clock, seconds, graphs = time.perf_counter, self._work.seconds, self._graphs
        t0 = clock()
        states = graphs.states(self._pending_rows[:num_pending])
        imagined = model.imagine(states) if isinstance(model, PartialModel) else None
        answer = self._ask(model, states) if imagined is None else self._checked(imagined.successors, len(states))
        self._work.model_calls += num_pending
        t1 = clock()
        where = graphs.arena, graphs.config.transpositions, self._pending_slots[:num_pending]
        told = graphs.words(answer.states), answer.rewards, answer.terminal, answer.solved
        new = self._new_slots, self._new_states, self._new_rows
        if imagined is None:
            num_new = self._insert(*where, *told, *new)
        else:
            worth = weighed_unknown(imagined.values, graphs.config.model_risk)
            num_new = kernels.insert_partly(*where, *told, imagined.is_known, worth, *new)
        seconds["model"] += t1 - t0
        seconds["insert"] += clock() - t1
        self._evaluate(values, num_new)

    def _ask(self, model: Model, states: States) -> Successors:
        return self._checked(model.successors(states), len(states))

    def _checked(self, answer: Successors, num_states: int) -> Successors:
        sizes = self._graphs.sizes
        return checked_answer(answer, num_states, sizes.num_actions, sizes.state_size)

    def _evaluate(self, values: Values, num_new: int) -> None:
        """Asks the network for the values of the first `num_new` new states, and the policy if need be; stores both."""
        if num_new == 0:
            return
        clock, work, graphs = time.perf_counter, self._work, self._graphs
        t0 = clock()
        found = graphs.states(self._new_rows[:num_new])
        observations = self._domain.observe(found)
        t1 = clock()
        slots, states = self._new_slots[:num_new], self._new_states[:num_new]
        priors = None
        if self._episode_values is not None:
            answer = self._episode_values.evaluate(observations, slots)
        elif graphs.sizes.num_priors:
            answer, priors = values_with_policy(values, graphs.config.prior_coef).evaluate_with_policy(observations)
        else:
            answer = values.evaluate(observations)
        t2 = clock()
        checked = checked_values(answer, num_new, graphs.sizes.num_members)
        if graphs.config.prune and isinstance(self._domain, Hopeless):
            checked = np.where(self._domain.hopeless(found)[:, None], np.float32(0.0), checked)
        work.network_calls += num_new
        work.network_batches += 1
        if priors is not None:
            graphs.arena.priors[slots, states] = checked_priors(priors, num_new, graphs.sizes.num_priors)
        if not self._store(graphs.arena, slots, states, checked):
            raise not_finite("values.evaluate returned numbers that are")
        work.seconds["network"] += t2 - t1
        work.seconds["insert"] += clock() - t2 + t1 - t0

    # The kernels of every pass, fixed to the types they are called with.

    @cached_property
    def _sweep(self) -> Any:
        graphs, active = self._graphs, np.zeros(self._graphs.sizes.batch, np.bool_)
        pending = self._pending_slots, self._pending_rows
        return direct(kernels.sweep, *graphs.kernel_arguments, active, graphs.config.passes, *pending)

    @cached_property
    def _insert(self) -> Any:
        graphs, sizes = self._graphs, self._graphs.sizes
        shape = (sizes.batch, sizes.num_actions)
        rows, rewards, flags = np.zeros((*shape, sizes.words), np.uint64), np.zeros(shape), np.zeros(shape, np.bool_)
        new = self._new_slots, self._new_states, self._new_rows
        answer = rows, rewards, flags, flags
        return direct(kernels.insert, graphs.arena, graphs.config.transpositions, self._pending_slots, *answer, *new)

    @cached_property
    def _store(self) -> Any:
        sizes = self._graphs.sizes
        values = np.zeros((sizes.batch, sizes.num_members), np.float32)
        return direct(kernels.store_values, self._graphs.arena, self._new_slots, self._new_states, values)


def values_with_policy(values: Values, prior_coef: float) -> PolicyValues:
    """Returns `values`, or refuses them if they have no policy to take priors from."""
    if not isinstance(values, PolicyValues) or not values.has_policy:
        raise BathysphereError(
            f"search.prior_coef is {prior_coef}, but these values have no policy. Train with values.policy, or set it "
            "to 0."
        )
    return values


def checked_priors(priors: NDArray[Any], num_states: int, num_actions: int) -> NDArray[np.float32]:
    """Returns a policy's answer as float32 [n, A], or refuses its shape and numbers that cannot be probabilities."""
    array = np.asarray(priors, np.float32)
    if array.shape != (num_states, num_actions):
        raise BathysphereError(
            f"values.evaluate_with_policy returned a policy of shape {array.shape}; expected [n, A] = "
            f"{(num_states, num_actions)}."
        )
    if not (np.isfinite(array) & (array >= 0)).all():
        raise not_finite("values.evaluate_with_policy returned probabilities that are negative or")
    return array


def checked_answer(answer: Successors, num_states: int, num_actions: int, state_size: int) -> Successors:
    """Returns a model's answer with the types that kernels expect, or refuses its shape."""
    expected = (num_states, num_actions, state_size)
    shapes = {part.shape for part in answer[1:]}
    if answer.states.shape != expected or shapes != {expected[:2]}:
        raise BathysphereError(
            f"successors returned states of shape {answer.states.shape} and rewards, terminal, solved of "
            f"{[part.shape for part in answer[1:]]}; expected {expected} and {expected[:2]}."
        )
    return Successors(
        np.asarray(answer.states, np.uint8),
        np.ascontiguousarray(answer.rewards, np.float64),
        np.ascontiguousarray(answer.terminal, np.bool_),
        np.ascontiguousarray(answer.solved, np.bool_),
    )
