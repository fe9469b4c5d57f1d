"""Runs a MCTS and one oracle per episode side by side and compares everything after every pass."""

from __future__ import annotations

import numpy as np

from bathysphere.domains.base import PartialModel
from bathysphere.planning import MCTS, Episode, SearchConfig
from bathysphere.planning.graph import kernels
from bathysphere.planning.graph.invariants import check_graph
from tests.oracles.planner import OracleEpisode


def make_oracles(search: MCTS, domain, values, model=None) -> list[OracleEpisode]:
    """Returns one oracle per slot, started exactly as the planner has started its episodes."""

    def rules_of(model):
        def successors(key):
            row = np.frombuffer(key, np.uint8)[None]
            imagined = model.imagine(row) if isinstance(model, PartialModel) else None
            answer = imagined.successors if imagined else model.successors(row)
            told = [
                (next_row.tobytes(), *rest)
                for next_row, *rest in zip(
                    answer.states[0],
                    answer.rewards[0].tolist(),
                    answer.terminal[0].tolist(),
                    answer.solved[0].tolist(),
                    strict=True,
                )
            ]
            for a in np.flatnonzero(~imagined.is_known[0]) if imagined else ():
                told[a] += (imagined.values[0, a].tolist(),)
            return told

        return successors

    def evaluate(key):
        row = np.frombuffer(key, np.uint8)[None]
        return [float(v) for v in values.evaluate(domain.observe(row))[0]]

    oracles = []
    for b, start in enumerate(search.root_states):
        oracle = OracleEpisode(
            start.tobytes(),
            0,
            rules_of(model or domain),
            evaluate,
            search.config,
            values.num_members,
            search.sizes.max_steps,
            truth=rules_of(domain) if model is not None else None,
        )
        oracle.rng.state = int(search.arena.episodes["rng"][b])
        oracle.members = search.arena.members[b].tolist()
        oracles.append(oracle)
    return oracles


def assert_same(search: MCTS, b: int, oracle: OracleEpisode) -> None:
    """Asserts that slot b's graph, tree, flags and random stream are the oracle's, number for number."""
    arena = search.arena
    episode = arena.episodes[b]
    num_states, num_nodes, size = (
        int(episode["num_states"]),
        int(episode["num_nodes"]),
        search.sizes.state_size,
    )
    assert num_states == len(oracle.states)
    assert int(episode["rng"]) == oracle.rng.state
    assert int(episode["num_waits"]) == oracle.num_waits
    number = {id(state): k for k, state in enumerate(oracle.states)}

    # Whole columns at once: reading arrays entry by entry would take longer than both planners together.
    rows = np.ascontiguousarray(arena.words[b, :num_states]).view(np.uint8)[:, :size]
    assert rows.tobytes() == b"".join(state.key for state in oracle.states)
    assert arena.sums[b, :num_states].tolist() == [state.sums for state in oracle.states]
    for field in ("count", "root_visits", "path_visits", "terminal", "solved", "unknown"):
        assert arena.stats[field][b, :num_states].tolist() == [getattr(state, field) for state in oracle.states], field
    children, rewards = (
        arena.edges["child"][b, :num_states].tolist(),
        arena.edges["reward"][b, :num_states].tolist(),
    )
    for k, state in enumerate(oracle.states):
        if state.children:
            assert children[k] == [number[id(state.children[a])] for a in range(len(state.children))]
            assert rewards[k] == [state.rewards[a] for a in range(len(state.rewards))]
        else:
            assert set(children[k]) == {-1}

    node_state, node_child = (
        arena.nodes["state"][b, :num_nodes].tolist(),
        arena.nodes["child"][b, :num_nodes].tolist(),
    )
    pairs, twins = [(int(episode["root"]), oracle.root)], {}
    while pairs:
        node, twin = pairs.pop()
        if node in twins:  # merged nodes are met again and again
            assert twins[node] is twin
            continue
        twins[node] = twin
        assert node_state[node] == number[id(twin.state)]
        first = node_child[node]
        assert (first >= 0) == (twin.children is not None)
        if twin.children is not None:
            pairs += [(first + a, child) for a, child in enumerate(twin.children)]
    steps = arena.history[b, : episode["step"]]
    assert [(int(m["state"]), int(m["action"]), float(m["reward"])) for m in steps] == [
        (number[id(state)], action, reward) for state, action, reward in oracle.history
    ]


def assert_same_episode(episode: Episode, oracle: OracleEpisode) -> None:
    """Asserts that a finished episode tells what the oracle lived through."""
    states = [state for state, _, _ in oracle.history]
    assert [row.tobytes() for row in episode.states] == [state.key for state in states]
    assert episode.actions.tolist() == [action for _, action, _ in oracle.history]
    assert episode.rewards.tolist() == [reward for _, _, reward in oracle.history]
    members = [[state.value(i) for i in range(oracle.num_members)] for state in states]
    assert episode.search_values.tolist() == members
    np.testing.assert_allclose(episode.search_std, np.std(members, axis=1).mean(), rtol=1e-9, atol=1e-12)
    assert episode.solved == oracle.root.state.solved
    assert episode.truncated == (oracle.outcome == "cut off")
    assert episode.num_states == len(oracle.states)


def play_in_lockstep(domain, values, config: SearchConfig, *, batch, seed, model=None, steps=6, compare_passes=True):
    """Makes `steps` steps both ways; episodes that finish fall silent. Returns the planner and its oracles."""
    search = MCTS(domain, values, config, batch=batch, seed=seed, model=model, num_episodes=batch)
    oracles = make_oracles(search, domain, values, model)
    running = dict(enumerate(oracles))
    for _ in range(steps):
        if not running:
            break
        for oracle in running.values():
            oracle.begin_step()
        if compare_passes:
            # What MCTS.plan does, with a look after every pass.
            search.graphs.make_room()
            kernels.begin_steps(search.arena, search.active)
            for number in range(config.passes):
                search._run_passes(number + 1)
                for b, oracle in running.items():
                    oracle.one_pass()
                    assert_same(search, b, oracle)
            if model is None:  # an erring model may call one state an end here and not there
                check_graph(search.arena, transpositions=config.transpositions)
            episodes = search.act()
        else:
            for oracle in running.values():
                for _ in range(config.passes):
                    oracle.one_pass()
            episodes = search.step()
        finished = []
        for b, oracle in list(running.items()):
            assert search.actions[b] == oracle.end_step()
            assert_same(search, b, oracle)
            if oracle.outcome:
                finished.append(b)
                del running[b]
        assert [episode.index for episode in episodes] == finished
        for episode in episodes:
            assert_same_episode(episode, oracles[episode.index])
    return search, oracles
