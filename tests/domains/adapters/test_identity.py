"""What identifies a state: nothing that may matter is left out, on real environments too."""

import gymnasium
import minigrid  # noqa: F401  (makes its ids known)
import numpy as np
import pytest

import bathysphere
from bathysphere.domains.adapters.digests import digest
from bathysphere.errors import WorldError
from tests.domains.adapters import broken_environments as broken
from tests.domains.adapters.test_trial import reachable


class HiddenKey(broken.Corridor):
    """A corridor with a key at its second place and a door before its end; only the place is seen."""

    def reset(self, *, seed=None, options=None):
        self.has_key = False
        return super().reset(seed=seed)

    def step(self, action):
        if self.cell == broken.SIZE - 2 and action == 1 and not self.has_key:
            return self.look(), 0.0, False, False, {}
        answer = super().step(action)
        self.has_key |= self.cell == 1
        return answer


class Momentum(broken.Corridor):
    """A corridor in which only the second of two equal actions moves: the latest action is part of the state."""

    latest = None

    def reset(self, *, seed=None, options=None):
        self.latest = None
        return super().reset(seed=seed)

    def step(self, action):
        moves, self.latest = action == self.latest, action
        return super().step(action) if moves else (self.look(), 0.0, False, False, {})


class NotesSeed(broken.Corridor):
    """A corridor that keeps the seed of its reset, for no reason."""

    def reset(self, *, seed=None, options=None):
        self.given = seed
        return super().reset(seed=seed)


class SeedDecides(broken.Corridor):
    """A corridor whose direction is decided by the seed of the reset."""

    def step(self, action):
        return super().step((action + self.np_random_seed) % 2)


@pytest.mark.parametrize("name", ["MiniGrid-KeyCorridorS6R3-v0", "MiniGrid-ObstructedMaze-2Dlh-v0"])
def test_a_partial_view_is_never_the_key(name):
    domain = bathysphere.from_gymnasium(lambda: gymnasium.make(name), seeds=1)
    assert "domain.key snapshot" in [finding.what for finding in domain.findings]
    wholes: dict[bytes, set[str]] = {}
    waiting = [domain.initial(1, np.random.default_rng(1))]
    while len(wholes) < 150:
        row = waiting.pop(0)
        domain._simulator.load(domain._place(digest(row.tobytes())).saved)
        inner = domain._simulator.env.unwrapped
        whole = (tuple(map(int, inner.agent_pos)), int(inner.agent_dir), inner.grid.encode().tobytes())
        wholes.setdefault(row.tobytes(), set()).add(repr(whole))
        waiting += [child for child in domain.successors(row).states[0, :, None] if child.tobytes() not in wholes]
    assert all(len(states) == 1 for states in wholes.values())
    assert len({row[: domain._layout.num_bytes] for row in wholes}) < len(wholes)  # views alone would merge some


def test_a_partial_view_is_refused_as_a_key():
    with pytest.raises(WorldError, match="would merge states that differ"):
        bathysphere.from_gymnasium(lambda: gymnasium.make("MiniGrid-KeyCorridorS6R3-v0"), seeds=1, key="observation")


@pytest.mark.parametrize(
    ("name", "attribute", "num_states"),
    [("FrozenLake-v1", "FrozenLakeEnv.lastaction", 16), ("CliffWalking-v1", "CliffWalkingEnv.lastaction", 38)],
)
def test_the_latest_action_is_left_out_where_it_does_not_matter(name, attribute, num_states):
    settings = {"is_slippery": False} if name == "FrozenLake-v1" else {}
    domain = bathysphere.from_gymnasium(lambda: gymnasium.make(name, **settings))
    (key,) = [finding for finding in domain.findings if finding.what == "domain.key snapshot"]
    assert attribute in key.reason
    assert len(reachable(domain)) == num_states


def test_text_of_the_environment_is_there_beside_pictures_with_marks_instead_of_colours():
    domain = bathysphere.from_gymnasium(lambda: gymnasium.make("FrozenLake-v1", is_slippery=False))
    start = domain.initial(1, np.random.default_rng(0))
    assert domain.text(start[0]).splitlines()[-4:] == ["[S]FFF", "FHFH", "FFFH", "HFFG"]
    assert domain.text(domain.successors(start).states[0, 2]).splitlines()[-4:] == ["S[F]FF", "FHFH", "FFFH", "HFFG"]
    assert domain.render(start[0]).shape[2] == 3


def starts(domain, count=20):
    return len(np.unique(domain.initial(count, np.random.default_rng(0)), axis=0))


@pytest.mark.parametrize("key", [None, "snapshot"])
def test_equal_states_of_different_resets_are_one(key):
    make = gymnasium.make
    assert starts(bathysphere.from_gymnasium(lambda: make("FrozenLake-v1", is_slippery=False), key=key)) == 1
    assert starts(bathysphere.from_gymnasium(lambda: make("CliffWalking-v1"), key=key)) == 1
    assert starts(bathysphere.from_gymnasium(broken.Corridor, key=key)) == 1


def test_the_seed_of_a_reset_counts_where_steps_depend_on_it():
    domain = bathysphere.from_gymnasium(SeedDecides)
    assert starts(domain) == 20
    assert "seed" not in " ".join(finding.reason for finding in domain.findings)


def test_a_seed_that_the_environment_keeps_is_told():
    domain = bathysphere.from_gymnasium(NotesSeed)
    assert starts(domain) == 20
    (told,) = [finding for finding in domain.findings if finding.what == "NotesSeed.given in the state"]
    assert "states of different resets are never the same" in told.reason
    assert starts(bathysphere.from_gymnasium(NotesSeed, key=lambda env: env.unwrapped.cell)) == 1


def test_what_is_remembered_for_later_is_not_left_out():
    domain = bathysphere.from_gymnasium(HiddenKey)
    cells, key_at = range(broken.SIZE), 1
    assert len(reachable(domain)) == len([cell for cell in cells if cell < key_at]) + broken.SIZE


def test_the_latest_action_counts_where_steps_depend_on_it():
    domain = bathysphere.from_gymnasium(Momentum)
    (key,) = [finding for finding in domain.findings if finding.what == "domain.key snapshot"]
    assert "latest" not in key.reason
    assert len(reachable(domain)) > broken.SIZE


class Entangling(broken.Corridor):
    """From the fourth place on, an attribute refers to the environment itself."""

    def step(self, action):
        answer = super().step(action)
        self.friends = [self] if self.cell >= 4 else []
        return answer


def test_copies_become_whole_when_an_attribute_refers_to_the_environment():
    domain, plain = bathysphere.from_gymnasium(Entangling), bathysphere.from_gymnasium(broken.Corridor)
    assert len(reachable(domain)) >= broken.SIZE
    assert domain._simulator.way.name == "pickling"
    assert plain._simulator.way.name == "pickling what can change"


def test_attributes_that_refer_to_one_thing_still_do_in_copies():
    domain = bathysphere.from_gymnasium(lambda: gymnasium.make("MiniGrid-KeyCorridorS3R1-v0"), seeds=1)
    simulator = domain._simulator
    assert simulator.way.name == "pickling what can change"
    simulator.reset(0)
    simulator.load(simulator.save())
    inner = simulator.env.unwrapped
    assert any(cell is inner.obj for cell in inner.grid.grid)
    space = inner.observation_space
    simulator.load(simulator.save())
    assert simulator.env.unwrapped.observation_space is space


def test_the_environment_that_is_read_is_not_touched():
    domain = bathysphere.from_gymnasium(lambda: gymnasium.make("MiniGrid-DoorKey-5x5-v0"), seeds=1)
    env = gymnasium.make("MiniGrid-DoorKey-5x5-v0")
    env.reset(seed=0)
    env.step(2)
    before = env.unwrapped.hash(64), env.unwrapped.step_count
    row = domain.state_of(env)
    domain.successors(row[None])
    assert (env.unwrapped.hash(64), env.unwrapped.step_count) == before
    wrapped = gymnasium.wrappers.TransformObservation(env, lambda seen: seen, env.observation_space)
    assert np.array_equal(domain.state_of(wrapped), row)
    domain.successors(domain.state_of(wrapped)[None])
    domain.successors(domain.initial(1, np.random.default_rng(0)))


@pytest.mark.parametrize("name", ["FrozenLake-v1", "MiniGrid-DoorKey-5x5-v0"])
def test_a_state_read_from_outside_is_the_one_that_steps_lead_to(name):
    settings = {"is_slippery": False} if name == "FrozenLake-v1" else {}
    domain = bathysphere.from_gymnasium(lambda: gymnasium.make(name, **settings), seeds=1)
    env = gymnasium.make(name, max_episode_steps=7, **settings)
    env.reset(seed=0)
    row = domain.initial(1, np.random.default_rng(0))
    for action in [1, 1, 2]:
        assert np.array_equal(domain.state_of(env), row[0])
        env.step(action)
        row = domain.successors(row).states[:, action]
    assert np.array_equal(domain.state_of(env), row[0])
