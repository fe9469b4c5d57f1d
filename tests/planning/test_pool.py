"""Several workers: the same episodes whatever the number of processes."""

import gc
import multiprocessing
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.errors import BathysphereError
from bathysphere.planning import Pool, SearchConfig
from tests.oracles.compiled_graph import CompiledGraph
from tests.oracles.random_graph import HashedValues, RandomGraph, TableValues

SEA = DeepSea(DeepSeaConfig(size=8))
CONFIG = SearchConfig(risk_coef=5.0, num_subsampled=2, avoid_loops=False, passes=6)


def play(**options):
    return Pool(SEA, HashedValues(4), CONFIG, batch=6, seed=3, num_episodes=20, **options).play()


def told(episodes):
    return [(e.index, e.states.tobytes(), e.actions.tolist(), e.search_values.tolist()) for e in episodes]


def test_processes_change_nothing():
    alone, together = play(workers=3, processes=1), play(workers=3, processes=2)
    assert told(alone) == told(together)
    assert [episode.index for episode in alone] == list(range(20))


def test_other_processes_know_the_measures_of_users():
    from tests.planning import own_measure

    config = replace(CONFIG, risk=own_measure.best_member.__name__)
    alone, together = (
        Pool(SEA, HashedValues(4), config, batch=6, seed=3, num_episodes=12, workers=2, processes=n).play()
        for n in (1, 2)
    )
    assert told(alone) == told(together)


@pytest.mark.parametrize("compiled", [False, True])
def test_many_steps_between_meetings_give_the_same_episodes(compiled):
    """Episodes of one worker are in order of finishing, and worker comes after worker."""
    rng = np.random.default_rng(5)
    domain = CompiledGraph.of(RandomGraph.draw(rng))
    values = TableValues(rng.normal(size=(len(domain.target), 2)).astype(np.float32))

    def make(processes):
        config = SearchConfig(passes=4, max_steps=6, final_ties="random")
        chosen = values if compiled else HashedValues(2)
        return Pool(domain, chosen, config, batch=7, workers=3, processes=processes, num_episodes=40)

    one_by_one, here, elsewhere = make(1), make(1), make(2)
    while one_by_one.num_active:
        steps = 5
        expected = [episode for _ in range(steps) for episode in one_by_one.step()]
        expected.sort(key=lambda episode: episode.index % 3)
        assert told(expected) == told(here.step(steps)) == told(elsewhere.step(steps))
    assert here.num_active == elsewhere.num_active == 0
    assert (here.work.seconds["model"] == 0.0) == compiled
    assert here.work.network_calls == elsewhere.work.network_calls == one_by_one.work.network_calls


def test_processes_learn_of_new_values_and_resume():
    def make(processes):
        domain = RandomGraph.draw(np.random.default_rng(5))
        values, model = HashedValues(2), domain.misled(np.random.default_rng(6), rate=0.3)
        config = SearchConfig(passes=4, max_steps=6)
        return values, Pool(domain, values, config, batch=5, workers=2, processes=processes, model=model)

    (values, here), (other_values, elsewhere) = make(1), make(2)
    for step in range(20):
        values._seed = other_values._seed = step // 5
        assert told(here.step()) == told(elsewhere.step())
    assert here.work.model_errors == elsewhere.work.model_errors
    assert here.work.model_errors["wrong_state"] > 0
    assert here.num_active == elsewhere.num_active == 5
    assert here.graph_bytes == elsewhere.graph_bytes
    assert here.work.seconds.keys() == elsewhere.work.seconds.keys()
    assert min(elsewhere.work.seconds.values()) > 0
    state, other = here.state_dict(), elsewhere.state_dict()
    assert {k: v.tobytes() for k, v in state.items()} == {k: v.tobytes() for k, v in other.items()}
    for _ in range(3):
        here.step()
    elsewhere.load_state_dict(here.state_dict())
    for _ in range(8):
        assert told(here.step()) == told(elsewhere.step())


class FailingValues(HashedValues):
    """Fails as it is told to, once it is told; in the process that made it only if told so."""

    failure: Exception | None = None
    fails_here = False

    def __init__(self, num_members):
        super().__init__(num_members)
        self._home = os.getpid()

    def evaluate(self, observations):
        if self.failure is not None and self.fails_here == (os.getpid() == self._home):
            raise self.failure
        return super().evaluate(observations)


@pytest.mark.parametrize("fails_here", [False, True])
@pytest.mark.parametrize("failure", [BathysphereError("The sea is dry."), KeyError("a bug")])
def test_what_fails_in_one_process_ends_the_others(failure, fails_here):
    values = FailingValues(4)
    values.fails_here = fails_here
    pool = Pool(SEA, values, CONFIG, batch=4, workers=2, processes=2)
    pool.step()
    values.failure = failure
    with pytest.raises(type(failure), match=failure.args[0]) as caught:
        pool.step()
    if not fails_here:
        notes = "".join(getattr(caught.value, "__notes__", ""))
        assert ("test_pool.py" in notes) == isinstance(failure, KeyError)
    with pytest.raises(BathysphereError, match="interrupted in the middle of a step"):
        pool.step()
    assert not multiprocessing.active_children()


class ThreadCounter(HashedValues):
    """Notes with how many of PyTorch's threads it is asked."""

    def __init__(self, num_members):
        super().__init__(num_members)
        self.seen = set()

    def evaluate(self, observations):
        self.seen.add(torch.get_num_threads())
        return super().evaluate(observations)


@pytest.mark.parametrize(("processes", "share"), [(1, 4), (2, 2)])
def test_processes_share_the_threads_of_networks(processes, share):
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        values = ThreadCounter(4)
        Pool(SEA, values, CONFIG, batch=4, workers=2, processes=processes).step()
        assert values.seen == {share}
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)


class FailingTable(TableValues):
    """Values in a table that is lost to the first thread, or to all others, if told so."""

    lost_to_first: bool | None = None

    def __init__(self, table):
        self.num_members = table.shape[1]
        self.anything = lambda: None  # cannot be pickled
        self._table = table

    @property
    def table(self):
        if self.lost_to_first is (threading.current_thread() is threading.main_thread()):
            raise BathysphereError("The table is lost.")
        return self._table


def test_workers_that_stay_in_compiled_code_are_threads():
    """They never need the interpreter, so they need no process of their own, and nothing has to travel."""
    rng = np.random.default_rng(1)
    domain = CompiledGraph.of(RandomGraph.draw(rng))
    values = FailingTable(rng.normal(size=(len(domain.target), 2)).astype(np.float32))
    pool = Pool(domain, values, SearchConfig(passes=4, max_steps=6), batch=4, workers=2, processes=2)
    assert not multiprocessing.active_children()
    pool.step(3)
    values.lost_to_first = False
    with pytest.raises(BathysphereError, match="table is lost"):
        pool.step()
    with pytest.raises(BathysphereError, match="interrupted in the middle of a step"):
        pool.step()


def test_a_thread_that_plays_ends_when_the_others_fail():
    rng = np.random.default_rng(1)
    domain = CompiledGraph.of(RandomGraph.draw(rng))
    values = FailingTable(rng.normal(size=(len(domain.target), 2)).astype(np.float32))
    config = SearchConfig(passes=4, max_steps=6)
    pool = Pool(domain, values, config, batch=4, workers=2, processes=2, num_episodes=10**9)
    values.lost_to_first = True
    before = threading.active_count()
    with pytest.raises(BathysphereError, match="table is lost"):
        pool.play()
    for thread in threading.enumerate():
        if thread.name.startswith("bathysphere-workers"):
            thread.join(timeout=600)  # a billion episodes would take hours
            assert not thread.is_alive()
    assert threading.active_count() <= before


def test_the_death_of_a_process_is_noticed_and_the_others_end():
    pool = Pool(SEA, HashedValues(4), CONFIG, batch=4, workers=2, processes=2)
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
    with pytest.raises(BathysphereError, match=r"ended unexpectedly \(exit code -9\)"):
        pool.step()
    assert not multiprocessing.active_children()


def test_processes_end_with_their_pool_and_not_with_ctrl_c():
    pool = Pool(SEA, HashedValues(4), CONFIG, batch=4, workers=3, processes=3)
    assert len(multiprocessing.active_children()) == 2  # and this one
    for process in multiprocessing.active_children():
        os.kill(process.pid, signal.SIGINT)
    pool.step()
    del pool
    gc.collect()
    assert not multiprocessing.active_children()


def test_what_cannot_travel_is_refused():
    values = HashedValues(4)
    values.evaluate = lambda observations: None
    with pytest.raises(BathysphereError, match=r"cannot be sent to another process.*Leave out the workers"):
        Pool(SEA, values, CONFIG, batch=4, workers=2, processes=2)


def test_one_worker_is_enough():
    assert len(told(play(workers=1))) == 20
    assert told(play(workers=1)) == told(play(workers=1))


def test_the_nth_episode_plays_the_nth_start():
    rng = np.random.default_rng(0)
    domain = RandomGraph.draw(rng)
    starts = domain.encode(np.array([0, 1, 0]) % len(domain.target))
    pool = Pool(domain, HashedValues(2), SearchConfig(passes=3), batch=4, workers=2, num_episodes=10, starts=starts)
    episodes = pool.play()
    assert [e.states[0].tobytes() for e in episodes] == [starts[k % 3].tobytes() for k in range(10)]


def test_resuming_in_mid_episode_continues_bit_for_bit():
    def make():
        return Pool(SEA, HashedValues(4), CONFIG, batch=5, workers=2, seed=1)

    whole, first, second = make(), make(), make()
    for _ in range(4):
        whole.step(), first.step()
    second.load_state_dict(first.state_dict())
    for _ in range(30):
        assert told(whole.step()) == told(second.step())


def test_more_workers_than_episodes_are_refused():
    with pytest.raises(BathysphereError, match="workers is 7; expected 1 to 6"):
        play(workers=7)
