"""Where episodes begin: the n-th episode with the n-th state of a stream, whatever plays it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from bathysphere.domains import DeepSea, Sokoban, SokobanConfig
from bathysphere.domains.base import NumberedStarts
from bathysphere.domains.sokoban import GeneratorConfig, generate
from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, Pool, SearchConfig
from tests.oracles.random_graph import HashedValues, RandomGraph
from tests.planning.test_pool import told

BOARDS = GeneratorConfig(height=6, width=7, num_boxes=1, max_depth=20, max_states=50)
SOKOBAN = Sokoban(SokobanConfig(generator=BOARDS, max_steps=5))
CONFIG = SearchConfig(passes=3)


@dataclass
class Stream:
    """Start states that tell their number and the number of their stream; notes what it is asked for."""

    number: int
    size: int = 11
    calls: list[tuple[list[int], list[int]]] = field(default_factory=list)

    def take(self, numbers, ahead):
        self.calls.append((numbers.tolist(), ahead.tolist()))
        states = np.zeros((len(numbers), self.size), np.uint8)
        states[:, 0] = 1
        states[:, 2:10] = (np.asarray(numbers) + self.number).astype(np.int64)[:, None].view(np.uint8)
        return states


@dataclass
class NumberedGraph(RandomGraph):
    """A graph whose start states are numbered."""

    streams: list[Stream] = field(default_factory=list)

    def numbered_starts(self, stream):
        self.streams.append(Stream(stream))
        return self.streams[-1]

    def initial(self, n, rng):
        raise AssertionError("starts are numbered")


def make_graph() -> NumberedGraph:
    loop = np.array([[0, 0], [1, 2], [2, 2]])
    flags = np.array([False, False, True])
    return NumberedGraph(loop, np.zeros((3, 2)), flags, flags, 4)


def starts_of(episodes) -> list[int]:
    return [int(episode.states[0, 2:10].view(np.int64)[0]) for episode in episodes]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_nth_episode_begins_with_the_nth_state_of_one_stream(workers):
    domain = make_graph()
    pool = Pool(domain, HashedValues(2), CONFIG, batch=4, workers=workers, num_episodes=13, seed=9)
    episodes = pool.play()
    (stream,) = domain.streams
    assert starts_of(episodes) == list(range(stream.number, stream.number + 13))
    asked = [number for numbers, _ in stream.calls for number in numbers]
    assert sorted(asked) == list(range(13))


def test_a_planner_alone_opens_the_stream_of_a_pool():
    one, other = make_graph(), make_graph()
    MCTS(one, HashedValues(2), CONFIG, seed=9)
    Pool(other, HashedValues(2), CONFIG, batch=2, workers=2, seed=9)
    assert one.streams[0].number == other.streams[0].number >= 0


def test_the_stream_follows_from_the_seed_alone():
    domain = make_graph()
    for seed in (1, 1, 2):
        Pool(domain, HashedValues(2 + seed), SearchConfig(passes=seed), batch=1 + seed, seed=seed)
    first, again, other = (stream.number for stream in domain.streams)
    assert first == again != other


def test_a_planner_tells_what_it_will_want_next():
    stream = Stream(0)
    search = MCTS(make_graph(), HashedValues(2), CONFIG, batch=3, num_episodes=7, starts=stream, worker=1, workers=2)
    assert stream.calls == [([1, 3, 5], [7, 9, 11])]
    search.play()
    assert [number for numbers, _ in stream.calls for number in numbers] == list(range(1, 14, 2))
    assert max(number for _, ahead in stream.calls for number in ahead) == 13
    assert stream.calls[-1][1] == []


def test_a_resumed_pool_goes_on_with_the_next_number():
    whole, first, second = (Pool(make_graph(), HashedValues(2), CONFIG, batch=5, workers=2, seed=1) for _ in range(3))
    for _ in range(4):
        whole.step(), first.step()
    second.load_state_dict(first.state_dict())
    rest = [whole.step() for _ in range(20)]
    assert [told(episodes) for episodes in rest] == [told(second.step()) for _ in range(20)]
    assert sum(map(len, rest)) > 20


def test_a_stream_of_misfits_is_refused():
    with pytest.raises(BathysphereError, match=r"starts are uint8 of shape \(1, 12\); expected uint8 \[n, 11\]"):
        MCTS(make_graph(), HashedValues(2), CONFIG, starts=Stream(0, size=12))


def test_which_worlds_have_numbered_starts():
    assert isinstance(SOKOBAN, NumberedStarts)
    assert not isinstance(DeepSea(), NumberedStarts)
    assert Sokoban(SokobanConfig(generator=BOARDS, num_boards=2)).numbered_starts(0) is None
    assert Sokoban(levels=generate(2, BOARDS)).numbered_starts(0) is None


def test_a_fixed_set_of_levels_is_drawn_from():
    domain = Sokoban(SokobanConfig(max_steps=2), levels=generate(2, BOARDS))
    episodes = Pool(domain, HashedValues(2), CONFIG, batch=4, workers=2, num_episodes=30).play()
    assert len({episode.states[0].tobytes() for episode in episodes}) == 2


def test_no_board_comes_twice_whatever_plays():
    def boards(**options):
        pool = Pool(SOKOBAN, HashedValues(3), CONFIG, seed=4, num_episodes=40, **options)
        return told(pool.play())

    size = SOKOBAN.state_size
    first = [states[:size] for _, states, *_ in boards(batch=6, workers=2)]
    assert len(set(first)) == 40
    # Other settings, same boards.
    assert [states[:size] for _, states, *_ in boards(batch=3)] == first
