"""Worlds that are written one state at a time become domains that keep every promise."""

import time

import numpy as np
import pytest

from bathysphere import check, from_steps
from bathysphere.domains.adapters import per_state
from bathysphere.domains.base import (
    Categories,
    Domain,
    Features,
    Relabeller,
    Renderer,
    Symmetric,
    TextRenderer,
    WithGoal,
)
from bathysphere.errors import WorldError
from bathysphere.planning import MCTS, BestFirst, BestFirstConfig, SearchConfig
from bathysphere.testing import ConformanceError, check_domain, walk
from tests.domains.per_state_worlds import Drops, Keys, Lamps, Place, Stairs

WORLDS = (Stairs, Lamps, Keys, Drops)


class Flat:
    """Three members that know nothing."""

    num_members = 3

    def evaluate(self, observations):
        return np.zeros((len(observations), 3), np.float32)


def changed(world, **overrides):
    """Returns a world with some attributes or methods replaced."""
    return type(world.__name__, (world,), overrides)()


def stepping(*answers):
    """Returns a `step` that answers always the same."""
    return lambda self, state, action: answers


@pytest.mark.parametrize("world", WORLDS)
def test_every_promise_is_kept(world):
    domain = from_steps(world)
    assert isinstance(domain, Domain)
    check_domain(domain, np.random.default_rng(0))


@pytest.mark.parametrize("world", WORLDS)
def test_successors_are_the_worlds_own_steps(world):
    domain, own = from_steps(world()), world()
    rows = walk(domain, np.random.default_rng(1), 100)
    out = domain.successors(rows)
    actions = list(range(own.actions)) if isinstance(own.actions, int) else own.actions
    for i, (row, state) in enumerate(zip(rows, domain.objects(rows), strict=True)):
        for a, action in enumerate(actions):
            if row[-1]:
                expected = state, 0.0, True, row[-1] == 2
            elif hasattr(own, "legal") and action not in own.legal(state):
                expected = state, 0.0, False, False
            else:
                expected = own.step(state, action)
                expected = expected if len(expected) == 4 else (*expected, expected[2] and expected[1] > 0)
            (reached,) = domain.objects(out.states[i, a][None])
            np.testing.assert_array_equal(reached, expected[0])
            assert (out.rewards[i, a], out.terminal[i, a], out.solved[i, a]) == expected[1:]


def test_what_networks_see_follows_from_the_state():
    assert from_steps(Stairs).observation == Categories((1,), 128)
    assert from_steps(Lamps).observation == Categories((6,), 2)
    assert from_steps(Drops).observation == Categories((2, 2), 8)
    assert from_steps(Keys).observation == Categories((3,), 4)
    grid = changed(Stairs, start=lambda self, rng: ((1, 2), (3, 0)), step=stepping(((0, 9), (1, 1)), 0, False))
    assert from_steps(grid).observation == Categories((2, 2), 16)
    tall = changed(Stairs, start=lambda self, rng: (1000, 2), step=stepping((7, -3), 0, False))
    assert from_steps(tall).observation == Features(2)
    mixed = changed(
        Stairs, start=lambda self, rng: ((1, 0.5), b"\1\2", (Place(1, 2, ()),)), step=lambda *a: (a[1], 0, False)
    )
    domain = from_steps(mixed)
    assert domain.observation == Features(6)
    seen = domain.observe(domain.initial(2, np.random.default_rng(0)))
    np.testing.assert_array_equal(seen, np.array([[1, 0.5, 1, 2, 1, 2]] * 2, np.float32))


def test_an_observation_that_is_stated_counts():
    domain = from_steps(changed(Stairs, observation=Categories((1,), 7)))
    assert domain.observation == Categories((1,), 7)
    np.testing.assert_array_equal(domain.observe(domain.rows([6, 0])), [[6], [0]])


def test_rows_follow_from_states_in_every_process_and_have_room():
    domain = from_steps(Lamps)
    np.testing.assert_array_equal(domain.rows([(True, 0, 0, 1, 0, 0)]), from_steps(Lamps).rows([(1, 0.0, 0, 1, 0, 0)]))
    assert domain.state_size == 32
    assert from_steps(changed(Lamps, state_bytes=8)).state_size == 9


def test_objects_are_read_back_alike_whether_remembered_or_not(monkeypatch):
    monkeypatch.setattr(per_state, "_REMEMBERED", 3)
    domain, whole = from_steps(Lamps), from_steps(Lamps)
    rows = walk(domain, np.random.default_rng(0), 60)
    assert domain.objects(rows) == whole.objects(rows)
    assert len(domain._objects) <= 3


def test_what_a_world_offers_besides_is_offered():
    domain = from_steps(Lamps)
    rng = np.random.default_rng(0)
    state = domain.initial(1, rng)[0]
    assert isinstance(domain, TextRenderer)
    assert isinstance(domain, Renderer)
    assert isinstance(domain, WithGoal)
    assert isinstance(domain, Symmetric)
    assert isinstance(domain, Relabeller)
    assert set(domain.text(state)) <= {".", "#"}
    assert domain.render(state).shape == (1, 6, 3)
    assert domain.goal_reward == 1.0
    assert (domain.name, domain.max_steps, domain.action_names[:2]) == ("lamps", 200, ("0", "1"))
    turned, actions = domain.transform(state[None], rng)
    there = domain.successors(turned).states[0]
    here = domain.successors(state[None]).states[0][actions[0]]
    assert [sum(thing) for thing in domain.objects(there)] == [sum(thing) for thing in domain.objects(here)]
    rows, rewards = domain.relabel(np.repeat(state[None], 3, axis=0), rng)
    assert rows.shape == (2, domain.state_size)
    np.testing.assert_array_equal(rewards, [0.0, 1.0])
    plain = from_steps(Stairs)
    assert not any(isinstance(plain, kind) for kind in (Renderer, WithGoal, Symmetric, Relabeller))
    start = plain.initial(1, rng)
    assert plain.text(start[0]) == str(*plain.objects(start))


def test_planners_solve_it():
    domain = from_steps(Lamps)
    search = BestFirst(domain, Flat(), BestFirstConfig(), batch=1, seed=0)
    episode = next(episode for episode in iter(lambda: search.step(), None) if episode)
    assert episode[0].solved
    episodes = []
    mcts = MCTS(from_steps(Stairs), Flat(), SearchConfig(passes=20), batch=2, seed=0)
    while not episodes:
        episodes = mcts.step()
    assert episodes[0].solved


class Boxed:
    """A state that Bathysphere cannot pack."""

    def __init__(self, number):
        self.number = number


class Boxes(Stairs):
    """Stairs whose state packs itself."""

    def start(self, rng):
        return Boxed(super().start(rng))

    def step(self, state, action):
        after, reward, done = super().step(state.number, action)
        return Boxed(after), reward, done

    def observe(self, state):
        return state.number

    def pack(self, state):
        return bytes([state.number]) * state.number

    def unpack(self, data):
        return Boxed(len(data))


def test_a_world_may_pack_its_states_itself():
    domain = from_steps(Boxes)
    check_domain(domain, np.random.default_rng(0))
    twin = from_steps(Stairs)
    rng = np.random.default_rng(0)
    rows = walk(domain, rng, 50)
    np.testing.assert_array_equal(
        domain.successors(rows).rewards[rows[:, -1] == 0],
        twin.successors(twin.rows([box.number for box in domain.objects(rows)])).rewards[rows[:, -1] == 0],
    )


WRONG = {
    "incomplete": (type("Empty", (), {"actions": 2})(), "Empty has no start and no step"),
    "actions": (changed(Stairs, actions=("up", "up")), "List the actions, each once"),
    "step-returns": (changed(Stairs, step=stepping(1, 2)), r"step\(\d, 'down'\) returned \(1, 2\)"),
    "reward-not-finite": (changed(Stairs, step=stepping(1, float("inf"), False)), "returned the reward inf"),
    "reward-not-a-number": (changed(Stairs, step=stepping(1, "much", False)), "returned the reward 'much'"),
    "solved-without-done": (changed(Stairs, step=stepping(1, 1.0, False, True)), "solved without done"),
    "unhashable-state": (changed(Stairs, start=lambda self, rng: [1]), "holds a list.*Return a tuple"),
    "unknown-type": (changed(Stairs, start=lambda self, rng: Boxed(1)), r"a Boxed, .*pack\(state\)"),
    "state-too-long": (
        changed(Lamps, start=lambda self, rng: (0,) * 70_000),
        "70,00. bytes, and rows have at most 65,536",
    ),
    "state-bytes": (changed(Lamps, state_bytes=3), "state_bytes is 3, and states take 8 bytes"),
    "no-observation": (changed(Stairs, start=lambda self, rng: "a", step=stepping("b", 0, True)), "no method observe"),
    "one-large-number": (changed(Stairs, start=lambda self, rng: 1 << 25), "one whole number as large as"),
    "observation-shape": (changed(Stairs, observe=lambda self, state: [0] * state), "numbers in one shape"),
    "observation-text": (changed(Stairs, observe=lambda self, state: "a"), "observe gave 'a'"),
    "unknown-action": (changed(Stairs, legal=lambda self, state: ["left"]), "names 'left'"),
    "exception": (
        changed(Stairs, step=lambda self, state, action: 1 // 0),
        r"ZeroDivisionError: .*test_per_state.py, line \d+",
    ),
    "exception-in-start": (changed(Stairs, start=lambda self, rng: {}["a"]), r"start raised KeyError: 'a' \("),
    "changes-its-argument": (
        changed(Drops, step=lambda self, state, action: (state.fill(0), 0.0, False)),
        "Work on a copy",
    ),
    "pack": (changed(Boxes, unpack=lambda self, data: Boxed(2)), "which pack makes other bytes of"),
    "pack-no-bytes": (changed(Boxes, pack=lambda self, state: state.number), "Let it return bytes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_told_in_a_sentence_that_says_what_to_do(name):
    world, sentence = WRONG[name]
    with pytest.raises(WorldError, match=sentence):
        from_steps(world)


def test_what_is_met_later_only_is_told_too():
    growing = changed(
        Lamps,
        step=lambda self, state, action: (state + state if len(state) < 99 else state, 0.0, False),
        max_steps=2,
        observe=lambda self, state: sum(state),
    )
    with pytest.raises(WorldError, match="Without a method observe"):
        from_steps(changed(Lamps, step=growing.step.__func__))
    domain = from_steps(growing)
    rows = domain.rows([(1,) * 50])
    with pytest.raises(WorldError, match="state_bytes = "):
        domain.successors(rows)
    domain = from_steps(Lamps)
    with pytest.raises(WorldError, match=r"Categories\(\(6,\), 10\)"):
        domain.observe(domain.rows([(9, 0, 0, 0, 0, 0)]))
    with pytest.raises(WorldError, match="was expected"):
        domain.observe(domain.rows([(1, 0)]))
    domain = from_steps(
        changed(Stairs, start=lambda self, rng: 0.5, step=lambda self, state, action: (state, 0.0, False))
    )
    with pytest.raises(WorldError, match="not finite"):
        domain.observe(domain.rows([float("inf")]))


class Slow(Stairs):
    """Counts what it is asked, and takes its time."""

    asked = 0

    def step(self, state, action):
        Slow.asked += 1
        time.sleep(2e-3)
        return super().step(state, action)


def test_a_slow_world_is_asked_once_about_a_state():
    domain, fast = from_steps(Slow), from_steps(Stairs)
    rows = fast.rows([2, 3, 2, 5])
    Slow.asked = 0
    for _ in range(3):
        for part in (rows, rows[:1], rows[3:]):
            for ours, theirs in zip(domain.successors(part), fast.successors(part), strict=True):
                np.testing.assert_array_equal(ours, theirs)
    assert Slow.asked == 3 * 2
    domain.forget()
    domain.successors(rows)
    assert Slow.asked == 2 * 3 * 2


class SlowAndRandom(Slow):
    """Sometimes a step fails."""

    def __init__(self):
        self.generator = np.random.default_rng(0)

    def step(self, state, action):
        return (state, 0.0, False) if self.generator.random() < 0.5 else super().step(state, action)


def test_memory_hides_no_chance():
    with pytest.raises(ConformanceError, match="deterministic"):
        check_domain(from_steps(SlowAndRandom), np.random.default_rng(0))
    assert "random-step" in {finding.name for finding in check(SlowAndRandom).findings}
