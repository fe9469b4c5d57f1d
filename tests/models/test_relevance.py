"""The memory that generalises: against plain Python step by step, and what it may and may not believe."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bathysphere.config.convert import override
from bathysphere.config.presets import find_preset
from bathysphere.domains.adapters.gymnasium import from_gymnasium
from bathysphere.domains.base import AskedModel, LearningModel, PartialModel, Successors
from bathysphere.errors import BathysphereError
from bathysphere.learning.graph_errors import graph_errors
from bathysphere.models import relevant_bytes as chooser
from bathysphere.models.memory import MemoryModel
from bathysphere.models.relevance import RelevanceModel
from bathysphere.runs.build import make_trainer
from tests.oracles import relevance as oracle


def model_of(state_size=5, num_actions=2, spread=1.0):
    world = SimpleNamespace(name="levers", state_size=state_size, action_names=("go",) * num_actions)
    return RelevanceModel(world, 3, spread, 0)


class Levers:
    """A world of small bytes: what an action does depends on two or three of them, drawn by a seed."""

    def __init__(self, seed, state_size=5, num_values=3, num_actions=2):
        rng = np.random.default_rng(seed)
        shape = (num_actions, num_values, num_values)
        self.bytes = rng.permutation(state_size)[:2]
        self.kind = rng.integers(4, size=shape)
        self.changes = rng.integers(3, size=(4, state_size)).astype(np.uint8)
        self.changes[0] = 0  # nothing happens
        self.rewards, self.terminal = np.array([0.0, 0.0, 1.0, 0.0]), np.array([False, False, True, False])
        self.exception = (int(rng.integers(state_size)), int(rng.integers(num_values)))
        self.where = rng.integers(num_values, size=2)

    def outcomes(self, states, actions):
        one, two = states[:, self.bytes].T
        kinds = self.kind[actions, one, two].copy()
        byte, value = self.exception
        kinds[(one == self.where[0]) & (two == self.where[1]) & (states[:, byte] == value)] = 3
        ends = self.terminal[kinds]
        return Successors(states + self.changes[kinds], self.rewards[kinds], ends, ends.copy())

    def draw(self, rng, n):
        return rng.integers(3, size=(n, 5)).astype(np.uint8), rng.integers(2, size=n)


def learn_both(model, twin, states, actions, outcomes):
    model.learn(states, actions, outcomes)
    twin.learn(
        [
            (tuple(s), int(a), (tuple((after - s).tolist()), float(r), bool(t), bool(w)))
            for s, a, after, r, t, w in zip(states, actions, *outcomes, strict=True)
        ]
    )


def check_same(model, twin, states):
    imagined = model.imagine(states)
    for k, state in enumerate(states):
        for action in range(imagined.is_known.shape[1]):
            did = twin.told(tuple(state), action)
            assert imagined.is_known[k, action] == (did is not None)
            after, *about = (part[k, action] for part in imagined.successors)
            changes, *expected = ((0,) * len(state), 0.0, False, False) if did is None else did
            assert tuple((after - state).tolist()) == changes
            assert about == expected
            assert imagined.values[k, action].any() == (did is None)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), enough=st.sampled_from([1, 4, 32]), tolerance=st.sampled_from([3, 10]))
def test_it_equals_plain_python_after_every_step(seed, enough, tolerance):
    rng, world = np.random.default_rng(seed), Levers(seed)
    model, twin = model_of(), oracle.Relevance(enough, tolerance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chooser, "ENOUGH", enough)
        patch.setattr(chooser, "TOLERANCE", tolerance)
        for _ in range(12):
            states, actions = world.draw(rng, int(rng.integers(1, 30)))
            learn_both(model, twin, states, actions, world.outcomes(states, actions))
            assert model.relevant == twin.relevant
            check_same(model, twin, world.draw(rng, 15)[0])
            check_same(model, twin, rng.integers(5, size=(4, 5)).astype(np.uint8))
    assert model.num_known == len(twin.steps)


def test_a_trap_learnt_once_is_known_for_every_set_of_keys_and_the_errors_are_counted():
    """Bytes 0 and 1 are a place, 2 to 4 keys; the action goes on along byte 0, or into a trap that was drawn."""
    rng = np.random.default_rng(0)
    trap = rng.random((8, 8)) < 0.3

    class Keys:
        def successors(self, states):
            trapped = trap[states[:, 0] % 8, states[:, 1] % 8]
            after = states.copy()
            after[~trapped, 0] += 1
            return Successors(
                after[:, None], np.zeros((len(states), 1)), trapped[:, None], np.zeros_like(trapped)[:, None]
            )

    def draw(n, keys):
        return np.column_stack([rng.integers(8, size=(n, 2)), rng.integers(keys, size=(n, 3))]).astype(np.uint8)

    model, world = model_of(num_actions=1), Keys()
    states = draw(600, 2)
    model.learn(states, np.zeros(600, np.int64), Successors(*(part[:, 0] for part in world.successors(states))))
    assert model.relevant == [0, 1]
    everywhere = draw(500, 2)
    told, truth = model.imagine(everywhere), world.successors(everywhere)
    assert told.is_known.all()
    for one, other in zip(told.successors, truth, strict=True):
        assert (one == other).all()
    assert set(graph_errors(model, world).values()) == {0.0}
    plain = MemoryModel(5, 1, 3, 1.0, 0)
    plain.learn(states, np.zeros(600, np.int64), Successors(*(part[:, 0] for part in world.successors(states))))
    assert not plain.imagine(everywhere).is_known.all()
    # A third key, which no step has begun with, is unknown everywhere.
    strange = everywhere.copy()
    strange[:, 3] = 2
    assert not model.imagine(strange).is_known.any()


def test_nothing_happens_is_believed_only_with_values_of_bytes_that_were_tried_there():
    """Byte 0 is a place with a wall at every second one; byte 1 has varied without effect everywhere but at place 0."""
    model = model_of(state_size=2, num_actions=1)
    states = np.array([(p, k) for p in range(1, 100) for k in (0, 1)] + [(0, 0)], np.uint8)
    wall = states[:, 0] % 2 == 0
    after = states.copy()
    after[~wall, 0] += 1
    no = np.zeros(len(states), bool)
    model.learn(states, np.zeros(len(states), np.int64), Successors(after, np.zeros(len(states)), no, no))
    assert model.relevant == [0]
    assert model.imagine(np.array([(0, 0), (2, 1), (1, 1)], np.uint8)).is_known.all()
    assert not model.imagine(np.array([(0, 1)], np.uint8)).is_known.any()


def test_a_contradiction_makes_a_place_as_exact_as_a_memory():
    rng, world = np.random.default_rng(3), Levers(3)
    model = model_of()
    states, actions = world.draw(rng, 2000)
    model.learn(states, actions, world.outcomes(states, actions))
    everything = np.unique(states, axis=0)
    told = model.imagine(everything)
    assert told.is_known.all()
    for action in (0, 1):
        truth = world.outcomes(everything, np.full(len(everything), action))
        for one, other in zip(told.successors, truth, strict=True):
            assert (one[:, action] == other).all()


def test_what_is_saved_goes_on_bit_for_bit():
    rng, world = np.random.default_rng(5), Levers(5)
    model, loaded = model_of(), model_of(spread=0.0)
    for _ in range(5):
        states, actions = world.draw(rng, 17)
        model.learn(states, actions, world.outcomes(states, actions))
    model.imagine(states)
    loaded.load_state_dict(model.state_dict())
    for _ in range(5):
        for mine, theirs in zip(model.state_dict().items(), loaded.state_dict().items(), strict=True):
            assert mine[0] == theirs[0]
            assert (mine[1] == theirs[1]).all()
        asked = world.draw(rng, 40)[0]
        one, other = model.imagine(asked), loaded.imagine(asked)
        for part, same in zip((*one.successors, *one[1:]), (*other.successors, *other[1:]), strict=True):
            assert (part == same).all()
        states, actions = world.draw(rng, 17)
        for each in (model, loaded):
            each.learn(states, actions, world.outcomes(states, actions))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("relevant", lambda saved: np.array([5])),
        ("relevant", lambda saved: np.array([1, 0])),
        ("relevant", lambda saved: np.array([-1])),
        ("relevant", lambda saved: np.zeros((1, 1), np.int64)),
        ("num_chosen_from", lambda saved: np.array(10**6)),
        ("num_chosen_from", lambda saved: np.array(-1)),
        ("asked", lambda saved: saved[:, 1:]),
        ("seen", lambda saved: saved[:-1]),
        ("rewards", lambda saved: np.full_like(saved, np.nan)),
    ],
)
def test_a_state_that_nobody_saved_is_refused(name, change):
    rng, world = np.random.default_rng(5), Levers(5)
    model = model_of()
    states, actions = world.draw(rng, 60)
    model.learn(states, actions, world.outcomes(states, actions))
    model.imagine(states)
    saved = model.state_dict()
    with pytest.raises(BathysphereError):
        model_of().load_state_dict({**saved, name: change(saved[name])})


def test_a_run_goes_on_bit_for_bit_learns_from_every_step_and_tells_its_errors():
    config = override(
        find_preset("deep-sea"),
        {"domain": {"size": 6}, "batch": 4, "model": "relevance", "seed": 3},
    )
    whole, first, rest = (make_trainer(config) for _ in range(3))
    for _ in range(60):
        whole.advance()
    for _ in range(25):
        first.advance()
    rest.load_state_dict(first.state_dict())
    for _ in range(35):
        rest.advance()
    one, other = whole.state_dict(), rest.state_dict()
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert (array == other[name]).all() or name.endswith("seconds"), name
    assert "model_graph_wrong_state" in whole.columns()
    for protocol in (PartialModel, LearningModel, AskedModel):
        assert isinstance(whole.model, protocol)


def test_blocks_are_refused():
    with pytest.raises(BathysphereError, match="cannot be used in blocks"):
        make_trainer(override(find_preset("deep-sea"), {"model": "relevance", "scale": {"block": 4}}))


def test_worlds_that_it_cannot_predict_are_refused():
    with pytest.raises(BathysphereError, match="Learn them with the model memory"):
        RelevanceModel(from_gymnasium(gymnasium.make("MountainCar-v0")), 1, 1.0, 0)
    with pytest.raises(BathysphereError, match="at most 256"):
        model_of(state_size=257)


def test_a_byte_that_hardly_varied_draws_no_others_in():
    """Bytes 0 and 1 are a place; byte 2 varied in few places, one of them disputed; byte 3 goes with it by accident."""
    rng = np.random.default_rng(0)
    states = np.zeros((1200, 4), np.uint8)
    states[:, :2] = rng.integers(10, size=(1200, 2))
    states[:, 3] = rng.integers(2, size=1200)
    kinds = states[:, 0].astype(np.int64) * 10 + states[:, 1]
    strange = np.flatnonzero((states[:, :2] == 5).all(axis=1))[:6]
    states[strange, 2] = states[strange, 3] = 1
    kinds[strange] = 100
    assert chooser.relevant_bytes(states, np.zeros(1200, np.int64), kinds) == [0, 1, 2]


def test_the_treasure_is_found_without_rules_in_a_small_world():
    """Toy Montezuma's four rooms: the plans lead to what is not known, and a resumed run goes on bit for bit."""
    config = override(find_preset("toy-montezuma-unknown"), {"domain": {"map": "four-rooms"}, "seed": 3})
    whole, first, rest = (make_trainer(config) for _ in range(3))
    for _ in range(333):
        first.advance()
    rest.load_state_dict(first.state_dict())
    for trainer, steps in ((whole, 3000), (rest, 3000 - 333)):
        solved = [any(episode.solved for episode in trainer.advance()) for _ in range(steps)]
        assert any(solved)
    assert whole.progress.env_steps == 3000
    one, other = whole.state_dict(), rest.state_dict()
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert (array == other[name]).all() or name.endswith("seconds") or ".store." in name, name


def test_deep_sea_is_solved_by_going_where_nothing_is_known():
    config = override(find_preset("deep-sea-memory"), {"domain": {"size": 8}})
    trainer = make_trainer(config)
    episodes = [episode for _ in range(400) for episode in trainer.advance()]
    assert sum(episode.solved for episode in episodes[-20:]) >= 19
    assert trainer.model.num_known <= 8 * 9
