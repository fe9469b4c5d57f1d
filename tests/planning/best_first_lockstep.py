"""Runs best-first searches and their plain-Python twins side by side and compares everything after every round."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from bathysphere.domains.base import PartialModel
from bathysphere.planning import BestFirst, BestFirstConfig, Episode
from bathysphere.planning.best_first.invariants import check_store
from bathysphere.planning.best_first.store import ENDED_BY, chain_of
from bathysphere.planning.planner import MODEL_ERRORS
from tests.oracles.best_first import OracleSearch, OracleState
from tests.oracles.random_graph import RandomGraph, TableValues


class Guided(TableValues):
    """Values with a policy: probabilities of actions, float32 [states, A]."""

    has_policy = True

    def __init__(self, table, policy):
        super().__init__(table)
        self.policy = policy

    def evaluate_with_policy(self, observations):
        return self.evaluate(observations), self.policy[observations[:, 0].astype(np.int64)]


@dataclass
class Perilous(RandomGraph):
    """A world that knows some states to be hopeless; they need not be."""

    is_hopeless: np.ndarray | None = None

    @classmethod
    def of(cls, graph: RandomGraph, is_hopeless) -> Perilous:
        return cls(graph.target, graph.reward, graph.is_end, graph.is_solved, graph.max_steps, is_hopeless=is_hopeless)

    def hopeless(self, states):
        return self.is_hopeless[self.number(states)]


def draw(seed, *, ties=True, **kwargs):
    """Returns a random world with some hopeless states, and values with a policy; few distinct ones for ties."""
    rng = np.random.default_rng(seed)
    graph = RandomGraph.draw(rng, **kwargs)
    num_states, num_actions = graph.target.shape
    domain = Perilous.of(graph, (rng.random(num_states) < rng.choice([0.0, 0.2])) & ~graph.is_end)
    table = rng.choice([0.0, 0.25, 0.5, 1.0, -0.5], size=(num_states, int(rng.integers(1, 4))))
    table = (table if ties else rng.normal(size=table.shape)).astype(np.float32)
    policy = rng.choice([0.0, 1.0, 1.0, 3.0], size=(num_states, num_actions)) + 1e-12
    return domain, Guided(table, (policy / policy.sum(axis=1, keepdims=True)).astype(np.float32))


def all_starts(domain: RandomGraph):
    """Returns every state that is no end, so that searches differ in length."""
    return domain.encode(np.flatnonzero(~domain.is_end))


def rules_of(model):
    """Returns a model's answer about one state as plain data."""

    def successors(key):
        answer = model.successors(np.frombuffer(key, np.uint8)[None])
        parts = (part[0].tolist() for part in answer[1:])
        return list(zip([state.tobytes() for state in answer.states[0]], *parts, strict=True))

    return successors


def unknown_to(model):
    """Returns what a model says about the unknown as plain data; None if it knows everything."""
    if not isinstance(model, PartialModel):
        return None

    def unknown(key):
        imagined = model.imagine(np.frombuffer(key, np.uint8)[None])
        members = imagined.values[0].tolist()
        return [None if known else told for known, told in zip(imagined.is_known[0], members, strict=True)]

    return unknown


def make_twin(planner: BestFirst, slot: int, depth: int = 0) -> OracleSearch:
    """Returns the twin of the search that has just begun in `slot`, `depth` steps into its episode."""
    domain, values, config = planner.domain, planner.values, planner.config

    def row(key):
        return np.frombuffer(key, np.uint8)[None]

    def log_policy(key):
        _, policy = values.evaluate_with_policy(domain.observe(row(key)))
        return np.log(np.maximum(policy[0], np.float32(1e-9))).tolist()

    return OracleSearch(
        start=planner.root_states[slot].tobytes(),
        config=config,
        max_steps=config.max_steps or domain.max_steps,
        goal=config.goal_reward or 1.0,
        successors=rules_of(planner.model),
        evaluate=lambda key: values.evaluate(domain.observe(row(key)))[0].tolist(),
        log_policy=log_policy if config.order in ("levin", "phs") else None,
        is_hopeless=lambda key: bool(config.prune and hasattr(domain, "hopeless") and domain.hopeless(row(key))[0]),
        unknown=unknown_to(planner.model),
        depth=depth,
    )


def assert_same(planner: BestFirst, slot: int, twin: OracleSearch) -> None:
    """Asserts that the search in `slot` is its twin, number for number."""
    store, search = planner.store, planner.store.searches[slot]
    chain = chain_of(store, slot)
    records, theirs = store.records[chain], list(twin.states.values())
    number = {int(record): k for k, record in enumerate(chain)} | {-1: -1}
    assert planner._words.states(store.words[chain]).tobytes() == b"".join(state.key for state in theirs)

    def births(states: list[OracleState | None]):
        return [-1 if state is None else state.birth for state in states]

    assert [number[r] for r in records["parent"].tolist()] == births([state.way.parent for state in theirs])
    for name in ("action", "depth", "returned", "power", "log_probability"):
        assert records[name].tolist() == [getattr(state.way, name) for state in theirs], name
    for name in ("value", "is_expanded", "terminal", "solved"):
        assert records[name].tolist() == [getattr(state, name) for state in theirs], name
    # Compiled powers and logarithms may be off by the last bit.
    np.testing.assert_allclose(records["priority"], [state.priority for state in theirs], rtol=1e-12)
    assert records["is_open"].tolist() == [state in twin.open for state in theirs]
    assert records["is_evaluated"].tolist() == [state.members is not None for state in theirs]
    no_value = [0.0] * planner.sizes.num_members
    assert store.members[chain].tolist() == [state.members or no_value for state in theirs]
    num_actions = planner.sizes.num_actions
    children = [[number[r] for r in row] for row in store.child[chain].tolist()]
    assert children == [births(state.children) or [-1] * num_actions for state in theirs]
    assert store.reward[chain].tolist() == [state.rewards or [0.0] * num_actions for state in theirs]
    assert [number[int(search[name])] for name in ("start", "best", "solution")] == births(
        [twin.start, twin.best, twin.solution]
    )
    assert ENDED_BY[search["status"]] == twin.ended_by
    counts = [int(search[name]) for name in ("num_states", "num_expansions", "num_model_calls")]
    assert counts == [len(theirs), twin.num_expansions, twin.num_model_calls]


def assert_same_episode(episode: Episode, twin: OracleSearch, domain) -> dict[str, int]:
    """Asserts that an episode is what comes of the twin's plan in the domain; returns where the twin's model erred."""
    errors = dict.fromkeys((*MODEL_ERRORS, "unknown"), 0)
    keys, actions, rewards, solved, truncated = [], [], [], False, True
    for state, action in twin.plan() or [(twin.start, 0)]:
        key, reward, terminal, solved = rules_of(domain)(state.key)[action]
        keys, actions, rewards, truncated = [*keys, state.key], [*actions, action], [*rewards, reward], not terminal
        if not state.children:  # the start was not even expanded
            break
        predicted = state.children[action]
        if predicted.is_unknown:
            errors["unknown"] += 1
            break
        errors["wrong_reward"] += state.rewards[action] != reward
        errors["false_end"] += predicted.terminal and not terminal
        errors["missed_end"] += terminal and not predicted.terminal
        errors["wrong_state"] += predicted.key != key
        if terminal or predicted.key != key:
            break
    assert [row.tobytes() for row in episode.states] == keys
    assert (episode.actions.tolist(), episode.rewards.tolist()) == (actions, rewards)
    assert (episode.solved, episode.truncated) == (solved, truncated)
    assert len(episode) <= twin.max_steps
    assert episode.ended_by == twin.ended_by
    assert episode.num_states == len(twin.states)
    assert (episode.num_expansions, episode.num_model_calls) == (twin.num_expansions, twin.num_model_calls)
    return errors


def search_in_lockstep(
    domain, values, config: BestFirstConfig, *, batch=3, num_episodes=8, starts=None, model=None
) -> tuple[BestFirst, list[OracleSearch]]:
    """Makes all searches both ways; slots are used again once they are free. Returns the planner and the twins."""
    starts = all_starts(domain) if starts is None else starts
    planner = BestFirst(domain, values, config, batch=batch, num_episodes=num_episodes, starts=starts, model=model)
    running, done = {slot: make_twin(planner, slot) for slot in np.flatnonzero(planner.active).tolist()}, []
    errors = dict.fromkeys((*MODEL_ERRORS, "unknown"), 0)
    while running:
        planner.plan()
        check_store(planner.store)
        for slot, twin in running.items():
            twin.round()
            assert_same(planner, slot, twin)
        ended = [slot for slot, twin in sorted(running.items()) if twin.ended_by]
        episodes = planner.act()
        check_store(planner.store)
        assert len(episodes) == len(ended)
        for slot, episode in zip(ended, episodes, strict=True):
            twin = running.pop(slot)
            wrong = assert_same_episode(episode, twin, domain)
            errors = {name: count + wrong[name] for name, count in errors.items()}
            done.append(twin)
            if planner.active[slot]:
                running[slot] = make_twin(planner, slot)
                assert_same(planner, slot, running[slot])
    assert not planner.active.any()
    assert len(done) == num_episodes
    assert planner.work.network_calls == sum(twin.num_evaluations for twin in done)
    assert planner.work.model_calls == sum(twin.num_model_calls for twin in done)
    assert planner.work.unknown_steps == errors.pop("unknown")
    assert planner.work.model_errors == errors
    return planner, done


def told(episodes: list[Episode]) -> list[list[Any]]:
    """Returns everything about episodes as plain data, to be compared."""

    def plain(part):
        if isinstance(part, tuple):
            return [plain(piece) for piece in part]
        return part.tolist() if isinstance(part, np.ndarray) else part

    fields = dataclasses.fields(Episode)
    return [[plain(getattr(episode, field.name)) for field in fields] for episode in episodes]
