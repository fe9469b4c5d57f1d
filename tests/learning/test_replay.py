import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from bathysphere.domains import DeepSea, Sokoban, SokobanConfig
from bathysphere.domains.base import Categories
from bathysphere.domains.sokoban import GeneratorConfig
from bathysphere.errors import BathysphereError
from bathysphere.learning import Replay, ReplayConfig
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig
from tests.oracles.learning import ListReplay

STATE_SIZE, MAX_LENGTH = 3, 5


def draw_episode(length, num_members, num_targets, num_actions, rng):
    states = rng.integers(256, size=(length, STATE_SIZE)).astype(np.uint8)
    policy = rng.dirichlet(np.ones(num_actions), size=length) if num_actions else None
    return states, rng.normal(size=(length, num_targets)), rng.random((length, num_members)) < 0.5, policy


def entries(states, targets, mask, policy):
    policy = np.zeros((len(states), 0)) if policy is None else policy
    rows = zip(states, targets.astype(np.float32), mask, policy.astype(np.float32), strict=True)
    return [(bytes(s), t.tolist(), m.tolist(), p.tolist()) for s, t, m, p in rows]


def assert_same(sample, draws, oracle):
    num_batches, batch_size = sample.targets.shape[:2]
    assert sample.num_solved == oracle.num_solved_of(batch_size)
    for u in range(num_batches):
        for b in range(batch_size):
            expected = oracle.entry(b < sample.num_solved, draws[u, b].tolist())
            arrived = (
                bytes(sample.states[u, b]),
                sample.targets[u, b].tolist(),
                sample.mask[u, b].tolist(),
                [] if sample.policy is None else sample.policy[u, b].tolist(),
            )
            assert arrived == expected


@pytest.mark.kernels
@settings(max_examples=15 if config.DISABLE_JIT else 150, derandomize=True)
@given(
    capacity=st.integers(1, 4),
    num_members=st.sampled_from([1, 3, 8, 20]),
    has_own_targets=st.booleans(),
    num_actions=st.sampled_from([0, 1, 4]),
    share=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    sampling=st.sampled_from(["episode", "length"]),
    steps=st.lists(st.tuples(st.booleans(), st.integers(1, MAX_LENGTH)), min_size=1, max_size=12),
    seed=st.integers(0, 2**32 - 1),
)
def test_replay_follows_the_list_of_lists(
    capacity, num_members, has_own_targets, num_actions, share, sampling, steps, seed
):
    rng = np.random.default_rng(seed)
    settings_ = ReplayConfig(capacity, share, sampling)
    num_targets = num_members if has_own_targets else 1
    replay = Replay(settings_, STATE_SIZE, num_members, MAX_LENGTH, num_targets, num_actions)
    oracle = ListReplay(capacity, share, sampling == "length")
    for solved, length in steps:
        states, targets, mask, policy = draw_episode(length, num_members, num_targets, num_actions, rng)
        replay.add(states, targets, mask, solved, policy)
        oracle.add(entries(states, targets, mask, policy), solved)
        assert replay.num_solved_episodes == len(oracle.episodes[True])
        assert replay.num_unsolved_episodes == len(oracle.episodes[False])
        assert replay.num_episodes_added == sum(oracle.added.values())
        sample_seed = int(rng.integers(2**32))
        sample = replay.sample(2, 6, np.random.default_rng(sample_seed))
        assert_same(sample, np.random.default_rng(sample_seed).random((2, 6, 2)), oracle)
    # A copy made from the saved state gives the same samples, now and after more episodes.
    copy = Replay(settings_, STATE_SIZE, num_members, MAX_LENGTH, num_targets, num_actions)
    copy.load_state_dict(replay.state_dict())
    for solved in (True, False):
        left, right = (r.sample(2, 6, np.random.default_rng(seed)) for r in (replay, copy))
        for a, b in zip(left, right, strict=True):
            np.testing.assert_array_equal(a, b)
        states, targets, mask, policy = draw_episode(MAX_LENGTH, num_members, num_targets, num_actions, rng)
        replay.add(states, targets, mask, solved, policy)
        copy.add(states, targets, mask, solved, policy)


def labelled(lengths, sampling):
    replay = Replay(ReplayConfig(100, 0.5, sampling), 1, 1, 100)
    for label, length in enumerate(lengths):
        mask = np.ones((length, 1), np.bool_)
        targets = np.arange(length, dtype=np.float64)[:, None]
        replay.add(np.full((length, 1), label, np.uint8), targets, mask, False)
    sample = replay.sample(500, 32, np.random.default_rng(0))
    return sample.states.ravel(), sample.targets.ravel()


def test_by_episode_short_ones_weigh_as_much():
    labels, _ = labelled([2, 6], "episode")
    assert (labels == 0).mean() == pytest.approx(0.5, abs=0.02)


def test_by_length_every_state_weighs_as_much():
    labels, positions = labelled([2, 6], "length")
    assert (labels == 0).mean() == pytest.approx(0.25, abs=0.02)
    counts = np.bincount(positions[labels == 1].astype(int), minlength=6) / len(labels)
    np.testing.assert_allclose(counts, 1 / 8, atol=0.02)


def test_solved_come_first_in_their_share():
    replay = Replay(ReplayConfig(10, 0.3), 1, 1, 4)
    for label, solved in ((1, True), (2, False)):
        replay.add(np.full((4, 1), label, np.uint8), np.zeros((4, 1)), np.ones((4, 1), np.bool_), solved)
    sample = replay.sample(1, 5, np.random.default_rng(0))
    assert sample.num_solved == 1
    assert sample.states[0, :, 0].tolist() == [1, 2, 2, 2, 2]


def test_a_sample_trains_an_ensemble():
    class Cells:
        def observe(self, states):
            return states.astype(np.int32)

    replay = Replay(ReplayConfig(), 1, 4, 6)
    rng = np.random.default_rng(0)
    cells = np.arange(6, dtype=np.uint8)[:, None]
    replay.add(cells, np.linspace(0, 1, 6)[:, None], np.ones((6, 4), np.bool_), True)
    ensemble = Ensemble(ValuesConfig(num_members=4, bias=False), OptimiserConfig("delta", 0.3), Categories((1,), 6), 0)
    ensemble.update_many(replay.sample(50, 32, rng).observed(Cells()))
    np.testing.assert_allclose(ensemble.evaluate(cells).mean(1), np.linspace(0, 1, 6), atol=1e-5)


def test_a_sample_gives_each_member_its_own_target():
    class Cells:
        def observe(self, states):
            return states.astype(np.int32)

    replay = Replay(ReplayConfig(), 1, 4, 6, num_targets=4)
    cells = np.arange(6, dtype=np.uint8)[:, None]
    own = np.random.default_rng(1).normal(size=(6, 4))
    replay.add(cells, own, np.ones((6, 4), np.bool_), True)
    ensemble = Ensemble(ValuesConfig(num_members=4, bias=False), OptimiserConfig("delta", 0.3), Categories((1,), 6), 0)
    ensemble.update_many(replay.sample(50, 32, np.random.default_rng(0)).observed(Cells()))
    np.testing.assert_allclose(ensemble.evaluate(cells), own, atol=1e-5)


def test_split_shares_every_batch_among_the_members():
    replay = Replay(ReplayConfig(10, 0.5), 1, 3, 4)
    for solved in (True, False):
        replay.add(np.zeros((4, 1), np.uint8), np.zeros((4, 1)), np.ones((4, 3), np.bool_), solved)
    sample = replay.sample(2, 12, np.random.default_rng(0))
    mask = sample.split().mask
    assert sample.mask.all()
    assert mask.shape == (2, 12, 3)
    assert mask[:, :6].sum(1).tolist() == mask[:, 6:].sum(1).tolist() == [[2, 2, 2], [2, 2, 2]]


class TestRefusals:
    def test_empty(self):
        with pytest.raises(BathysphereError, match="empty"):
            Replay(ReplayConfig(), 1, 1, 4).sample(1, 2, np.random.default_rng(0))

    @pytest.mark.parametrize("length", [0, 5])
    def test_length(self, length):
        replay = Replay(ReplayConfig(), 1, 1, 4)
        with pytest.raises(BathysphereError, match="1 to 4 states"):
            replay.add(np.zeros((length, 1), np.uint8), np.zeros((length, 1)), np.ones((length, 1), np.bool_), True)

    def test_foreign_state(self):
        saved = Replay(ReplayConfig(), 1, 1, 4)
        saved.add(np.zeros((4, 1), np.uint8), np.zeros((4, 1)), np.ones((4, 1), np.bool_), True)
        with pytest.raises(BathysphereError, match="does not fit"):
            Replay(ReplayConfig(), 2, 1, 4).load_state_dict(saved.state_dict())
        with pytest.raises(BathysphereError, match="does not fit"):
            Replay(ReplayConfig(), 1, 1, 3).load_state_dict(saved.state_dict())
        with pytest.raises(BathysphereError, match="does not fit"):
            Replay(ReplayConfig(), 1, 2, 4, num_targets=2).load_state_dict(saved.state_dict())
        with pytest.raises(BathysphereError, match="lacks states"):
            saved.load_state_dict({})

    @pytest.mark.parametrize("has_policy", [True, False])
    def test_a_policy_too_many_or_too_few(self, has_policy):
        replay = Replay(ReplayConfig(), 1, 1, 4, num_actions=0 if has_policy else 3)
        policy = np.zeros((4, 3)) if has_policy else None
        with pytest.raises(BathysphereError, match=r"targets and mask have shapes"):
            replay.add(np.zeros((4, 1), np.uint8), np.zeros((4, 1)), np.ones((4, 1), np.bool_), True, policy)

    def test_a_saved_replay_without_policies(self):
        saved = Replay(ReplayConfig(), 1, 1, 4)
        saved.add(np.zeros((4, 1), np.uint8), np.zeros((4, 1)), np.ones((4, 1), np.bool_), True)
        with pytest.raises(BathysphereError, match="does not fit"):
            Replay(ReplayConfig(), 1, 1, 4, num_actions=3).load_state_dict(saved.state_dict())

    @pytest.mark.parametrize("kwargs", [{"capacity": 0}, {"solved_share": 1.1}])
    def test_config(self, kwargs):
        with pytest.raises(BathysphereError, match="replay"):
            ReplayConfig(**kwargs)


def test_a_sample_can_be_turned_and_mirrored():
    domain = Sokoban(SokobanConfig(generator=GeneratorConfig(6, 6, num_boxes=1)))
    boards = domain.initial(5, np.random.default_rng(0))
    replay = Replay(ReplayConfig(capacity=3), domain.state_size, num_members=2, max_length=5)
    replay.add(boards, np.arange(5.0)[:, None], np.ones((5, 2), bool), solved=False)
    sample = replay.sample(4, 50, np.random.default_rng(1))
    turned = sample.transformed(domain, np.random.default_rng(2))
    assert (turned.states != sample.states).any()
    assert np.array_equal(np.sort(turned.states, axis=-1), np.sort(sample.states, axis=-1))
    assert turned.targets is sample.targets
    with pytest.raises(BathysphereError, match=r"symmetries.*DeepSea"):
        sample.transformed(DeepSea(), np.random.default_rng(2))


def test_policies_turn_with_the_board():
    """The policy of each board says which moves push its box; it still does when both are turned."""
    domain = Sokoban(SokobanConfig(generator=GeneratorConfig(6, 6, num_boxes=1, max_states=2000)))
    starts = domain.initial(8, np.random.default_rng(0))
    boards = np.unique(
        domain.successors(domain.successors(starts).states.reshape(-1, 36)).states.reshape(-1, 36), axis=0
    )
    boards = boards[pushes(domain, boards).any(axis=1) & (boards == 4).any(axis=1)]
    assert 5 < len(boards) < 200
    replay = Replay(ReplayConfig(capacity=3), domain.state_size, num_members=2, max_length=200, num_actions=4)
    mask = np.ones((len(boards), 2), np.bool_)
    replay.add(boards, np.arange(len(boards))[:, None], mask, False, pushes(domain, boards))
    sample = replay.sample(4, 100, np.random.default_rng(1))
    assert np.array_equal(sample.policy, pushes(domain, sample.states.reshape(-1, 36)).reshape(4, 100, 4))
    turned = sample.transformed(domain, np.random.default_rng(2))
    assert turned.policy.dtype == np.float32
    assert not np.array_equal(turned.policy, sample.policy)
    assert np.array_equal(turned.policy, pushes(domain, turned.states.reshape(-1, 36)).reshape(4, 100, 4))
    assert turned.targets is sample.targets
    batch = turned.observed(domain)
    assert batch.policy is turned.policy
    assert batch.observations.shape == (4, 100, 6, 6)
    assert np.array_equal(turned.split().policy, turned.policy)


def pushes(domain, boards):
    """Tells which moves push a box, float [n, 4]."""
    boxes, after = np.isin(boards, (3, 4)), np.isin(domain.successors(boards).states, (3, 4))
    return (after != boxes[:, None]).any(axis=2).astype(np.float64)


@pytest.mark.kernels
def test_backward_samples_are_whole_episodes_from_their_ends():
    """Every column walks back through an episode and begins with another at its end; the first one with the newest."""
    rng = np.random.default_rng(0)
    replay = Replay(ReplayConfig(capacity=4, sampling="backward"), STATE_SIZE, 2, MAX_LENGTH)
    kept = {False: [], True: []}
    for number in range(11):
        states, targets, mask, _ = draw_episode(int(rng.integers(1, MAX_LENGTH + 1)), 2, 1, 0, rng)
        solved = number % 3 == 0
        replay.add(states, targets, mask, solved)
        kept[solved] = [*kept[solved], [bytes(state) for state in states]][-4:]
    sample = replay.sample(40, 6, rng)
    for column in range(6):
        episodes = kept[column < sample.num_solved]
        walked = [bytes(state) for state in sample.states[:, column]]
        begun = 0
        while begun < len(walked):
            episode = next(e for e in episodes if e[-1] == walked[begun])
            if begun == 0 and column in (0, sample.num_solved):
                assert episode == episodes[-1]
            backward = episode[::-1][: len(walked) - begun]
            assert walked[begun : begun + len(backward)] == backward
            begun += len(backward)
    assert sample.part(3, 5).states.tolist() == sample.states[3:5].tolist()
