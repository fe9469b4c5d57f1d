"""Environments broken on purpose: each is refused with its own sentence, or used in spite of it."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import bathysphere
from bathysphere.domains.base import Categories, Features
from bathysphere.errors import BathysphereError, WorldError
from tests.domains.adapters import broken_environments as broken

BROKEN = {
    broken.SharedGenerator: ("shared-generator", "a random generator that reset\\(seed\\) does not set"),
    broken.RandomReset: ("random-reset", "twice gave two different observations"),
    broken.CopyResets: ("copy-resets", "goes on as if it had just been reset"),
    broken.CopyShares: ("copy-shares-state", "changes when the environment goes on"),
    broken.CannotBeCopied: ("cannot-copy", "By pickling: It failed with TypeError: cannot pickle"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_broken_has_its_own_sentence(kind):
    name, sentence = BROKEN[kind]
    with pytest.raises(WorldError, match=sentence) as raised:
        bathysphere.from_gymnasium(kind)
    assert raised.value.name == name
    assert raised.value.fix


def test_a_wrapper_whose_state_copies_forget_is_named():
    with pytest.raises(WorldError, match="the state of a wrapper \\(Doubling\\) is missing") as raised:
        bathysphere.from_gymnasium(lambda: broken.Doubling(broken.WithAccess()))
    assert raised.value.name == "copy-forgets-wrappers"


def test_where_the_environments_own_copies_forget_wrappers_others_are_taken():
    class Both(broken.WithAccess):
        __reduce_ex__ = object.__reduce_ex__

    domain = bathysphere.from_gymnasium(lambda: broken.Doubling(Both()))
    copies = domain.findings[0]
    assert copies.what == "copies by deep copies"  # a class inside a function cannot be pickled
    assert "get_state and set_state did not" in copies.reason
    bathysphere.check_domain(domain, np.random.default_rng(0), 40)


def test_an_observation_that_aliases_is_refused_as_a_key_and_replaced_otherwise():
    with pytest.raises(WorldError, match="observations alone would merge states that differ") as raised:
        bathysphere.from_gymnasium(broken.Aliasing, key="observation")
    assert raised.value.name == "observation-aliases"
    domain = bathysphere.from_gymnasium(broken.Aliasing)
    assert domain.findings[-2].what == "domain.key snapshot"
    assert len(reachable(domain)) == broken.SIZE
    by_function = bathysphere.from_gymnasium(broken.Aliasing, key=lambda env: env.unwrapped.cell)
    assert len(reachable(by_function)) == broken.SIZE


def test_a_count_of_steps_is_part_of_the_state_only_if_steps_depend_on_it():
    counting, truncating = map(bathysphere.from_gymnasium, (broken.Counting, broken.Truncating))
    assert "Counting.count in the state" in [finding.what for finding in counting.findings]
    assert "Truncating.count held at 0" in [finding.what for finding in truncating.findings]
    assert len(reachable(truncating)) == broken.SIZE
    bathysphere.check_domain(truncating, np.random.default_rng(0), 40)


@pytest.mark.parametrize("kind", [broken.Masked, broken.MaskedByMethod])
def test_impossible_actions_are_not_asked_for(kind):
    domain = bathysphere.from_gymnasium(kind)
    start = domain.initial(1, np.random.default_rng(0))
    out = domain.successors(start)
    assert np.array_equal(out.states[0, 0], start[0])
    assert not np.array_equal(out.states[0, 1], start[0])
    bathysphere.check_domain(domain, np.random.default_rng(0), 40)


def test_success_is_what_info_says():
    domain = bathysphere.from_gymnasium(broken.SaysSuccess)
    ends = [out for out in map(domain.successors, reachable(domain)) if out.terminal.any()]
    assert all((out.solved == out.terminal).all() for out in ends)
    assert ends


def test_every_kind_of_space_is_seen():
    domain = bathysphere.from_gymnasium(broken.Everything)
    bathysphere.check_domain(domain, np.random.default_rng(0), 40)
    assert domain.observation == Features(1 + 2 + 3 + 8 + 4)
    rows = np.concatenate(list(reachable(domain)))
    assert len(np.unique(domain.observe(rows), axis=0)) == len(rows)


@pytest.mark.parametrize(
    ("space", "spec"),
    [
        (spaces.MultiDiscrete([broken.SIZE, 2]), Categories((1,), 2 * broken.SIZE)),
        (spaces.MultiBinary(3), Categories((1,), 8)),
        (spaces.Box(0, 1, (4, 5), np.int8), Categories((4, 5), 2)),
        (spaces.Box(0, 255, (3,), np.uint8), Categories((3,), 8)),
        (spaces.Box(-np.inf, np.inf, (3,)), Features(3)),
    ],
)
def test_spaces_become_what_networks_read(space, spec):
    class Shown(broken.Corridor):
        observation_space = space

        def look(self):
            shown = np.zeros(space.shape, space.dtype)
            bits = [self.cell] if space.shape == (3,) and space.dtype != np.int8 else []
            bits = bits or ([self.cell, 1] if space.shape == (2,) else [int(b) for b in f"{self.cell:03b}"])
            shown.ravel()[: len(bits)] = bits
            return shown

    domain = bathysphere.from_gymnasium(Shown)
    assert domain.observation == spec
    assert len(reachable(domain)) == broken.SIZE


def test_bad_arguments_are_named():
    with pytest.raises(BathysphereError, match="key is 'look'; expected one of observation, snapshot"):
        bathysphere.from_gymnasium(broken.Corridor, key="look")
    with pytest.raises(BathysphereError, match="seeds is 0; expected at least 1"):
        bathysphere.from_gymnasium(broken.Corridor, seeds=0)
    with pytest.raises(WorldError, match="Actions must be Discrete"):
        bathysphere.from_gymnasium(lambda: gymnasium.make("Pendulum-v1"))


def reachable(domain):
    """All states that can be met, each as uint8 [1, S]; those that are over among them."""
    met, waiting = {}, [domain.initial(1, np.random.default_rng(0))]
    while waiting:
        row = waiting.pop()
        if row.tobytes() in met:
            continue
        met[row.tobytes()] = row
        waiting += [state[None] for state in domain.successors(row).states[0]]
    return met.values()
