"""Attributes that are only written: found by reading the code, and by nothing less."""

import numpy as np
import pytest

import bathysphere
from bathysphere.domains.adapters.unread import unread
from bathysphere.domains.estimated import EstimatedChance
from tests.domains.adapters import broken_environments as broken
from tests.domains.adapters.test_trial import reachable


class Tallied(broken.Corridor):
    """Keeps totals over all episodes, as environments of benchmarks do."""

    steps_in_all, reward_in_all, bad_episodes, is_bad, gives_up_at = 0, 0.0, 0, False, 10**9

    def reset(self, *, seed=None, options=None):
        self.is_bad = False
        return super().reset(seed=seed)

    def step(self, action):
        seen, reward, ended, truncated, info = super().step(action)
        self.steps_in_all += 1
        self.reward_in_all = self.reward_in_all + float(reward)
        if action == 0:
            self.is_bad = True
        if ended:
            if self.is_bad:
                self.bad_episodes += 1
            return self.goodbye(seen, reward)
        return seen, reward, ended, truncated, info

    def goodbye(self, seen, reward):
        return seen, reward, True, False, {}

    def summary(self):
        """Nothing that a step calls."""
        return {"steps": self.steps_in_all, "reward": self.reward_in_all, "bad": self.bad_episodes}


class Remembers(Tallied):
    """Its door opens after a reward in an earlier episode, far from where walks come."""

    def goodbye(self, seen, reward):
        return seen, reward + 100.0 * (self.bad_episodes > 1000), True, False, {}


class Decides(Tallied):
    """What is done depends on a total."""

    def step(self, action):
        if self.reward_in_all > 1000:
            self.cell = 0
        return super().step(action)


class Tells(Tallied):
    """A total is told."""

    def step(self, action):
        *answer, _ = super().step(action)
        return *answer, self.summary()


class Hands(Tallied):
    """A total is handed to a function on its way to another."""

    def step(self, action):
        self.reward_in_all += self.changed(self.steps_in_all)
        return super().step(action)

    def changed(self, number):
        self.cell = 0 if number > 10**6 else self.cell
        return 0.0


class Computes(Tallied):
    """Attributes are used by names that are not written down."""

    def step(self, action):
        for name in ("is" + "_bad",):
            if getattr(self, name) is None:
                self.cell = 0
        return super().step(action)


class Names(Tallied):
    """An attribute is used by its name."""

    def step(self, action):
        if getattr(self, "steps_in_all", 0) > 10**6:
            self.cell = 0
        return super().step(action)


class Grows(Tallied):
    """Other attributes are what a total was."""

    def step(self, action):
        self.shown = self.steps_in_all
        return super().step(action)


class Makes(Tallied):
    """It makes another environment, whose code is not looked at."""

    def step(self, action):
        Tells().reset()
        return super().step(action)


TOTALS = {"steps_in_all", "reward_in_all", "bad_episodes", "is_bad"}


@pytest.mark.parametrize(
    ("kind", "used"),
    [
        (Tallied, set()),
        (Remembers, {"bad_episodes", "is_bad"}),
        (Decides, {"reward_in_all"}),
        (Tells, {"steps_in_all", "reward_in_all", "bad_episodes", "is_bad"}),
        (Hands, {"steps_in_all"}),
        (Computes, TOTALS),
        (Names, {"steps_in_all"}),
        (Grows, {"steps_in_all"}),
        (Makes, TOTALS),
    ],
)
def test_only_what_no_answer_depends_on_is_found(kind, used):
    assert unread([kind()], {*TOTALS, "cell", "gives_up_at"}) == TOTALS - used


def test_without_source_nothing_is_found():
    space: dict = {}
    exec("class Hidden:\n    def step(self, action):\n        self.total += 1\n", space)
    assert unread([space["Hidden"]()], {"total"}) == frozenset()


def test_states_come_again_although_totals_differ():
    domain = bathysphere.from_gymnasium(Tallied)
    (key,) = [finding for finding in domain.findings if finding.what == "domain.key snapshot"]
    for name in ("reward_in_all", "bad_episodes", "is_bad"):
        assert f"Tallied.{name} (written and not used)" in key.reason
    assert len(reachable(domain)) == broken.SIZE
    assert len(reachable(bathysphere.from_gymnasium(Remembers))) > broken.SIZE


class Unlucky(Tallied):
    """The same with chance."""

    def step(self, action):
        return super().step(action if self.np_random.random() < 0.8 else 0)


def test_chances_are_counted_although_totals_differ():
    domain = bathysphere.from_gymnasium(Unlucky)
    assert isinstance(domain, EstimatedChance)
    states = domain.initial(1, np.random.default_rng(0))
    known = {states[0].tobytes()}
    for _ in range(3 * broken.SIZE):
        told = domain.outcomes(states)
        after = told.states[told.probabilities > 0]
        states = np.unique(after[after[:, -1] == 0], axis=0)
        known |= {row.tobytes() for row in states}
    assert len(known) == broken.SIZE - 1
    (told,) = domain.outcomes(domain.initial(1, np.random.default_rng(0))).probabilities
    assert sorted(told[1].tolist())[-2:] == pytest.approx([0.2, 0.8], abs=0.1)
