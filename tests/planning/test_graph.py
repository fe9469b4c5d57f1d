"""The arena: its invariants, growth, memory limit and saving."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, SearchConfig
from bathysphere.planning.graph.arena import allocate, arena_bytes, ensure_room, pack, unpack
from bathysphere.planning.graph.invariants import check_graph
from tests.oracles.random_graph import RandomGraph, TableValues
from tests.planning.lockstep import assert_same, assert_same_episode, make_oracles
from tests.planning.small_worlds import plan

QUICK = numba.config.DISABLE_JIT


def draw(seed, num_members=3):
    rng = np.random.default_rng(seed)
    domain = RandomGraph.draw(rng)
    return domain, TableValues(rng.normal(size=(len(domain.target), num_members)).astype(np.float32))


CONFIGS = st.builds(
    SearchConfig,
    passes=st.integers(1, 12),
    max_steps=st.integers(1, 8),
    discount=st.sampled_from([0.5, 0.99, 1.0]),
    risk=st.sampled_from(["mean_std", "second_moment", "exponential", "vote"]),
    risk_coef=st.floats(-5, 5),
    bonus=st.sampled_from(["none", "ucb1", "moss"]),
    final_ties=st.sampled_from(["highest", "random"]),
    num_subsampled=st.sampled_from([None, 1, 2]),
    avoid_loops=st.booleans(),
    dead_end_value=st.sampled_from([None, -1.0]),
    episode_penalty=st.floats(0, 3),
    path_penalty=st.floats(0, 3),
)


@pytest.mark.kernels
@settings(max_examples=15 if QUICK else 60, derandomize=True)
@given(config=CONFIGS, domain_seed=st.integers(0, 1000), batch=st.integers(1, 4), steps=st.integers(1, 12))
def test_invariants_hold_whatever_is_played(config, domain_seed, batch, steps):
    search = MCTS(*draw(domain_seed), config, batch=batch, seed=domain_seed)
    for _ in range(steps):
        for episode in search.step():
            assert 1 <= len(episode) <= config.max_steps
            assert np.isfinite(episode.search_values).all()
        check_graph(search.arena)


@pytest.mark.kernels
@settings(max_examples=10 if QUICK else 30, derandomize=True)
@given(passes=st.integers(1, 12), domain_seed=st.integers(0, 1000), steps=st.integers(1, 8))
def test_invariants_hold_without_a_table(passes, domain_seed, steps):
    config = SearchConfig(passes=passes, avoid_loops=False, transpositions=False)
    search = MCTS(*draw(domain_seed), config, batch=2, seed=domain_seed)
    for _ in range(steps):
        search.step()
        check_graph(search.arena, transpositions=False)


def planned_arena():
    """Returns a healthy arena with a few expanded states, one step into an episode."""
    domain = RandomGraph.draw(np.random.default_rng(8))
    values = TableValues(np.random.default_rng(0).normal(size=(len(domain.target), 3)).astype(np.float32))
    search = MCTS(domain, values, SearchConfig(passes=12), seed=3)
    search.step()
    plan(search)
    check_graph(search.arena)
    assert search.arena.episodes["num_states"][0] > 4
    return search.arena


def damage_words(arena):
    arena.words[0, 1] = arena.words[0, 0]


def damage_lookup(arena):
    used = np.flatnonzero(arena.lookup["stamp"][0] == arena.episodes["stamp"][0])
    arena.lookup["state"][0, used[0]] = arena.lookup["state"][0, used[1]]


def damage_count(arena):
    arena.stats["count"][0, 2] = 0


def damage_sums(arena):
    arena.sums[0, 2, 1] = np.nan


def damage_path(arena):
    arena.stats["path_visits"][0, 1] = 1


def damage_solved(arena):
    arena.stats["terminal"][0, 0], arena.stats["solved"][0, 0] = False, True


def damage_expansion(arena):
    arena.edges["child"][0, 0, -1] = -1


def damage_child(arena):
    arena.edges["child"][0, 0, -1] = 10_000


def damage_num_model_calls(arena):
    arena.episodes["num_model_calls"][0] += 1


def damage_num_expansions(arena):
    arena.episodes["num_expansions"][0] -= 1


def damage_root(arena):
    arena.episodes["root"][0] = arena.episodes["num_nodes"][0]


def damage_node(arena):
    arena.nodes["state"][0, 1] = arena.episodes["num_states"][0]


def damage_tree(arena):
    first = arena.nodes["child"][0, 0]
    arena.nodes["state"][0, first] = (arena.nodes["state"][0, first] + 1) % arena.episodes["num_states"][0]


def damage_parent(arena):
    arena.nodes["parent"][0, arena.nodes["child"][0, 0]] = 3


def damage_missing_visit(arena):
    arena.stats["root_visits"][0, 0] = 0


def damage_extra_visit(arena):
    arena.stats["root_visits"][0, 0] += 5


def damage_members(arena):
    arena.members[0, 1] = arena.members[0, 0]


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (damage_words, "two entries hold one state"),
        (damage_lookup, "lookup and states disagree"),
        (damage_count, "a state has no value"),
        (damage_sums, "a sum is not finite"),
        (damage_path, "a path was not undone"),
        (damage_solved, "a solved state goes on"),
        (damage_expansion, "a state is half expanded"),
        (damage_child, "a child does not exist"),
        (damage_num_model_calls, "a question to the model was not counted"),
        (damage_num_expansions, "an expansion was not counted"),
        (damage_root, "the root does not exist"),
        (damage_node, "a node points at no state"),
        (damage_tree, "tree and graph disagree"),
        (damage_parent, "a child does not know its parent"),
        (damage_missing_visit, "a step was not counted"),
        (damage_extra_visit, "a step was counted twice"),
        (damage_members, "a member was drawn twice"),
    ],
)
def test_every_invariant_is_checked(damage, complaint):
    arena = planned_arena()
    damage(arena)
    with pytest.raises(BathysphereError, match=complaint):
        check_graph(arena)


def test_slots_that_never_played_are_healthy():
    search = MCTS(*draw(1), SearchConfig(passes=3), batch=4, num_episodes=2)
    search.step()
    check_graph(search.arena)


def same(one, other):
    return all(
        np.array_equal(getattr(a, field), getattr(b, field))
        for a, b in zip(one, other, strict=True)
        for field in ("states", "actions", "rewards", "search_values", "num_states")
    )


@pytest.mark.parametrize("transpositions", [True, False])
def test_an_arena_that_grows_plays_like_one_that_need_not(transpositions, monkeypatch):
    def play():
        config = SearchConfig(
            passes=20, risk_coef=1.0, transpositions=transpositions, avoid_loops=transpositions, max_steps=10
        )
        search = MCTS(*draw(4), config, batch=3, seed=2, num_episodes=7)
        first = search.arena.stats.shape[1]
        episodes = search.play()
        return episodes, search.arena.stats.shape[1] > first

    roomy, grew = play()
    assert transpositions != grew  # 40 states at most with a table, hundreds without
    monkeypatch.setattr(allocate, "__defaults__", (2, 2))
    tight, grew = play()
    assert grew
    assert same(roomy, tight)


def test_growth_keeps_everything():
    domain, values = draw(6)
    search = MCTS(domain, values, SearchConfig(passes=15), batch=2)
    search.step()
    arena, sizes = search.arena, search.sizes
    small = unpack(pack(arena), sizes, memory_limit=2**30)
    small.episodes["num_nodes"][:] = arena.nodes.shape[1]  # as if every node were taken
    grown = ensure_room(small, sizes, 15, 1 << 40)
    assert grown.nodes.shape[1] == 2 * arena.nodes.shape[1]
    grown.episodes["num_nodes"][:] = arena.episodes["num_nodes"]
    check_graph(grown)
    before, after = pack(arena), pack(grown)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_arena_bytes_is_what_the_arrays_take():
    search = MCTS(*draw(2), SearchConfig(max_steps=7), batch=3)
    arena = search.arena
    measured = sum(array.nbytes for array in arena)
    assert arena_bytes(search.sizes, arena.stats.shape[1], arena.nodes.shape[1]) == measured


def test_the_memory_limit_is_a_sentence():
    search = MCTS(*draw(3), SearchConfig(), batch=4)
    sizes = search.sizes
    arena = allocate(sizes, states=2, nodes=2, memory_limit=2**30)
    arena.episodes["num_states"] = 2
    arena.episodes["stamp"] = 1
    grown = ensure_room(arena, sizes, 10, 1 << 40)
    enough = arena_bytes(sizes, grown.stats.shape[1], grown.nodes.shape[1])
    ensure_room(arena, sizes, 10, enough)
    with pytest.raises(BathysphereError, match=r"4 episodes need .* MB.*batch.*search\.memory_limit_mb"):
        ensure_room(arena, sizes, 10, enough - 1)


def test_the_memory_limit_holds_from_the_start():
    config = SearchConfig(memory_limit_mb=1)
    with pytest.raises(BathysphereError, match=r"search\.memory_limit_mb=1"):
        MCTS(*draw(3), config, batch=1000)


def test_pack_and_unpack():
    search = MCTS(*draw(9), SearchConfig(passes=8, risk_coef=1.0), batch=3, seed=1)
    for _ in range(3):
        search.step()
    packed = pack(search.arena)
    assert all(array.dtype.names is None for array in packed.values())  # plain arrays go into plain files
    copy = unpack(packed, search.sizes, memory_limit=2**30)
    check_graph(copy)
    again = pack(copy)
    assert packed.keys() == again.keys()
    assert all(np.array_equal(packed[name], again[name]) for name in packed)


@pytest.mark.kernels
def test_the_table_is_never_cleared_and_never_wrong():
    """Five episodes after each other in one slot, each compared with a planner that starts from nothing."""
    domain, values = draw(5)
    config = SearchConfig(passes=6, risk_coef=1.0, max_steps=4)
    starts = domain.encode(np.flatnonzero(~domain.is_end)[:5])
    search = MCTS(domain, values, config, seed=4, num_episodes=5, starts=starts)
    table = search.arena.lookup
    for number in range(5):
        (oracle,) = make_oracles(search, domain, values)
        assert search.arena.episodes["stamp"][0] == number + 1
        finished = []
        while not finished:
            plan(search)
            oracle.begin_step()
            for _ in range(config.passes):
                oracle.one_pass()
            assert_same(search, 0, oracle)
            finished = search.act()
            oracle.end_step()
        assert_same_episode(finished[0], oracle)
    assert search.arena.lookup is table
    assert len(np.unique(table["stamp"])) > 2  # entries of earlier episodes are still there, and harmless
