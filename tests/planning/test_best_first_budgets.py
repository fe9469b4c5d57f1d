"""What ends a search and what is left of it; and that searches depend on nothing but where they begin."""

import itertools
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from bathysphere.errors import BathysphereError
from bathysphere.planning import BestFirst, BestFirstConfig, Pool
from bathysphere.planning.best_first import planner as planner_module
from bathysphere.planning.best_first.invariants import check_store
from bathysphere.planning.best_first.store import StoreSizes, allocate
from bathysphere.planning.planner import play_all
from tests.oracles.compiled_graph import CompiledGraph
from tests.oracles.random_graph import RandomGraph, TableValues
from tests.planning.best_first_lockstep import all_starts, draw, told
from tests.planning.small_worlds import make_domain

QUICK = numba.config.DISABLE_JIT


def corridor(length, *, first=0):
    """Returns edges from `first` on for `length` steps; one can also stay where one is."""
    return {first + k: [first + k + 1, first + k] for k in range(length)}


def make_values(values):
    table = np.asarray(values, np.float32)
    return TableValues(table[:, None])


def search(domain, values, *, batch=1, num_episodes=1, starts=None, **options):
    config = BestFirstConfig(**options)
    return play_all(BestFirst(domain, values, config, batch=batch, num_episodes=num_episodes, starts=starts))


# What ends a search.


@pytest.mark.parametrize(
    ("options", "ended_by", "num_expansions", "num_states"),
    [
        ({"max_expansions": 4}, "max_expansions", 4, 5),
        ({"max_states": 4}, "max_states", 3, 4),
        ({"max_steps": 6}, "no state left", 6, 7),
        ({"max_states": 1}, "max_states", 0, 1),
        ({}, "solution", 9, 10),
        ({"max_expansions": 9}, "solution", 9, 10),
        ({"max_steps": 9}, "solution", 9, 10),
    ],
)
def test_every_search_says_what_ended_it(options, ended_by, num_expansions, num_states):
    domain = make_domain(corridor(9), ends=(9,), solved=(9,), max_steps=50)
    (episode,) = search(domain, make_values(np.arange(10) / 10), **options)
    assert (episode.ended_by, episode.num_expansions, episode.num_states) == (ended_by, num_expansions, num_states)
    assert episode.solved == (ended_by == "solution")
    assert episode.truncated == (not episode.solved)
    assert len(episode) == max(num_states - 1, 1)  # the values rise, so the last state is the most promising one


def test_an_exhausted_search():
    (episode,) = search(make_domain({0: [1, 2], 1: [0, 2], 2: [1, 0]}), make_values([0, 0.25, 0.5]))
    assert (episode.ended_by, episode.num_expansions) == ("no state left", 3)


def test_what_is_not_solved_leads_to_the_most_promising_state():
    """Not to the deepest, and not to where it began, whose value is the highest."""
    domain = make_domain({0: [1, 2], 1: [3, 1], 2: [2, 4], 4: [5, 5], 5: [6, 6]}, max_steps=30)
    (episode,) = search(domain, make_values([0.9, 0.1, 0.2, 0.3, 0.6, 0.5, 0.4]))
    assert domain.number(episode.states).tolist() == [0, 2]
    assert episode.actions.tolist() == [1, 1]
    assert (episode.ended_by, episode.solved, episode.truncated) == ("no state left", False, True)


@pytest.mark.parametrize(
    ("edges", "ends", "truncated"), [({0: [0, 0]}, (), True), ({0: [(1, -0.5), 2]}, (1, 2), False)]
)
def test_a_start_without_a_way_out_makes_one_step(edges, ends, truncated):
    domain = make_domain(edges, ends=ends)
    (episode,) = search(domain, make_values(np.ones(len(domain.target))))
    assert (len(episode), episode.ended_by, episode.truncated) == (1, "no state left", truncated)
    assert episode.rewards.tolist() == domain.reward[0, :1].tolist()


@pytest.mark.parametrize("compiled", [False, True])
def test_time(compiled, monkeypatch):
    """By a clock that goes on by a second whenever it is looked at."""
    clock = itertools.count()
    monkeypatch.setattr(planner_module, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    monkeypatch.setattr(planner_module, "_ROUNDS", 1)
    graph = make_domain(corridor(9), ends=(9,), solved=(9,), max_steps=50)
    domain, values = CompiledGraph.of(graph) if compiled else graph, make_values(np.arange(10) / 10)
    for episode in search(domain, values, batch=2, num_episodes=5, max_seconds=1e-9):
        assert (episode.ended_by, episode.num_expansions, len(episode)) == ("max_seconds", 1, 1)
    for episode in search(domain, values, batch=2, num_episodes=5, max_seconds=1e9):
        assert episode.ended_by == "solution"


@pytest.mark.kernels
@pytest.mark.parametrize("width", [1, 4])
def test_reopening_counts_and_ends_with_the_budget(width):
    for seed in range(3 if QUICK else 20):
        domain, values = draw(seed)
        config = BestFirstConfig(order="value", reopen=True, width=width, max_expansions=9)
        options = {"batch": 3, "num_episodes": 9, "starts": all_starts(domain)}
        for episode in play_all(BestFirst(domain, values, config, **options)):
            assert episode.num_expansions <= 9
            assert (episode.ended_by == "max_expansions") <= (episode.num_expansions == 9)


# Memory.


@pytest.fixture
def small_memory(monkeypatch):
    """Has a megabyte hold 64 states."""
    monkeypatch.setattr(StoreSizes, "record_bytes", 1 << 14)
    monkeypatch.setattr(planner_module, "FIRST_RECORDS", 16)
    monkeypatch.setattr(planner_module, "allocate", lambda sizes, num_records=16: allocate(sizes, num_records))


@pytest.mark.kernels
@pytest.mark.parametrize("compiled", [False, True])
def test_memory_ends_the_largest_search_and_the_others_go_on(compiled, small_memory):
    graph = make_domain({**corridor(100), **corridor(20, first=110)}, ends=(100, 130), solved=(100, 130), max_steps=200)
    domain = CompiledGraph.of(graph) if compiled else graph
    values = make_values(np.arange(131) % 110 / 110)
    starts = domain.encode(np.array([0, 120, 122]))
    planner = BestFirst(domain, values, BestFirstConfig(memory_limit_mb=1), batch=3, num_episodes=9, starts=starts)
    episodes = []
    while planner.active.any():
        episodes += planner.step()
        check_store(planner.store)
        assert len(planner.store.records) <= 64
    episodes.sort(key=lambda episode: episode.index)
    assert [episode.ended_by for episode in episodes] == 3 * ["memory_limit_mb", "solution", "solution"]
    lengths = [len(episode) for episode in episodes]
    assert (lengths[1::3], lengths[2::3]) == ([10] * 3, [8] * 3)
    assert min(lengths[::3]) > 15  # as far as they came


@pytest.mark.kernels
def test_with_enough_memory_the_same_searches_are_finished(small_memory):
    domain = make_domain(corridor(100), ends=(100,), solved=(100,), max_steps=200)
    values = make_values(np.arange(101) / 101)
    for megabytes, ended_by in ((1, "memory_limit_mb"), (4, "solution")):
        for episode in search(domain, values, batch=2, num_episodes=2, memory_limit_mb=megabytes):
            assert episode.ended_by == ended_by


def test_planning_without_acting_ends_no_more_searches_than_it_must(small_memory):
    domain = make_domain(corridor(200), max_steps=250)
    values = make_values(np.arange(201) / 201)
    planner = BestFirst(domain, values, BestFirstConfig(memory_limit_mb=1), batch=2, num_episodes=2)
    for _ in range(100):
        planner.plan()
    ended_by = [episode.ended_by for episode in planner.act()]
    assert ended_by == ["memory_limit_mb"]


def test_too_little_memory_is_refused(small_memory):
    domain = make_domain(corridor(9))
    with pytest.raises(BathysphereError, match=r"30 searches of 2 actions do not fit .*memory_limit_mb=1\. Raise it"):
        BestFirst(domain, make_values(np.zeros(10)), BestFirstConfig(memory_limit_mb=1), batch=30)


# On what searches depend.


@pytest.mark.parametrize("order", ["steps", "value", "levin", "phs"])
def test_results_do_not_depend_on_the_batch(order):
    for seed in range(4):
        domain, values = draw(seed)
        starts = all_starts(domain)
        config = BestFirstConfig(order=order, reopen=True)
        options = {"num_episodes": len(starts), "starts": starts, "graph_states": 4}
        one, *others = (told(play_all(BestFirst(domain, values, config, batch=b, **options))) for b in (1, 3, 64))
        assert others == [one, one]


def test_finished_searches_and_silent_slots_show_nothing_strange():
    domain, values = draw(5)
    planner = BestFirst(domain, values, batch=4, num_episodes=2, starts=all_starts(domain))
    assert planner.active.tolist() == [True, True, False, False]
    assert planner.root_states.shape == (4, domain.state_size)
    assert planner.graph_bytes > 0
    planner.plan()
    for slot in (0, 1):
        graph = planner.search_graph(slot)
        known = graph.child[0, planner.actions[slot]]
        assert graph.depth[known] <= 1
    play_all(planner)
    assert planner.actions.tolist() == [0, 0, 0, 0]
    assert planner.step() == []


# Going on.


def same_state(one, other):
    return {k: v.tobytes() for k, v in one.items()} == {k: v.tobytes() for k, v in other.items()}


@pytest.mark.kernels
@pytest.mark.parametrize(("order", "width"), [("steps", 1), ("phs", 3)])
def test_resuming_in_mid_search_continues_bit_for_bit(order, width):
    for seed in range(2 if QUICK else 6):
        domain, values = draw(400 + seed)
        model = domain.misled(np.random.default_rng(seed), 0.1)

        def make(domain=domain, values=values, model=model):
            config = BestFirstConfig(order=order, width=width, reopen=True)
            return BestFirst(domain, values, config, batch=4, num_episodes=40, starts=all_starts(domain), model=model)

        whole, second = make(), make()
        for rounds in (1, 3, 6):
            whole.step(rounds)
            second = make()
            second.load_state_dict(whole.state_dict())
            check_store(second.store)
            assert same_state(whole.state_dict(), second.state_dict())
        while whole.active.any():
            assert told(whole.step()) == told(second.step())
            assert same_state(whole.state_dict(), second.state_dict())
        assert whole.work.model_errors == second.work.model_errors


def test_a_saved_planner_of_another_size():
    domain, values = draw(1)
    saved = BestFirst(domain, values, batch=2).state_dict()
    with pytest.raises(BathysphereError, match=r"saved search has batch.*\(2, .*this one has \(3, .*settings it was"):
        BestFirst(domain, values, batch=3).load_state_dict(saved)
    with pytest.raises(BathysphereError, match="saved search has batch"):
        BestFirst(domain, values, BestFirstConfig(order="levin"), batch=2).load_state_dict(saved)


def make_pool(domain, values):
    config = BestFirstConfig(order="phs", reopen=True, width=2)
    return Pool(domain, values, config, batch=5, workers=2, starts=all_starts(domain), graph_states=3)


def test_pools_go_on_bit_for_bit():
    domain, values = draw(6)
    here, elsewhere = make_pool(domain, values), make_pool(domain, values)
    here.step(7)
    elsewhere.load_state_dict(here.state_dict())
    for _ in range(12):
        assert told(here.step()) == told(elsewhere.step())
    assert same_state(here.state_dict(), elsewhere.state_dict())
    assert here.work.model_calls == elsewhere.work.model_calls


def test_pools_of_searches_in_compiled_code():
    graph, values = draw(6)
    domain = CompiledGraph.of(RandomGraph(graph.target, graph.reward, graph.is_end, graph.is_solved))
    values = TableValues(values.table)
    options = {"batch": 4, "num_episodes": 25, "starts": all_starts(domain)}
    together = Pool(domain, values, BestFirstConfig(), workers=2, **options).play()
    alone = play_all(BestFirst(domain, values, BestFirstConfig(), **options))
    assert told(together) == told(alone)
