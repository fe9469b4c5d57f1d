"""What never changes is left out of copies; what changes after all is noticed, and answers do not depend on it."""

import pickle

import gymnasium
import numpy as np
from gymnasium import spaces

from bathysphere.domains.adapters.gymnasium import from_gymnasium
from bathysphere.domains.adapters.sharing import Constants, Shared


class Crumbling(gymnasium.Env):
    """A corridor on a large floor, whose last place but one gives way when it is stepped on, far from the start."""

    length = 60
    observation_space = spaces.MultiDiscrete([length, 2])
    action_space = spaces.Discrete(2)

    def __init__(self):
        self.floor = [[1, number] for number in range(1000)]
        self.here = self.floor[0]

    def _get_obs(self):
        return np.array([self.here[1], self.floor[self.length - 2][0]])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.floor[self.length - 2][0] = 1
        self.here = self.floor[0]
        return self._get_obs(), {}

    def step(self, action):
        at = max(self.here[1] + 2 * action - 1, 0)
        self.here = self.floor[at]
        if at == self.length - 2:
            self.here[0] = 0
        return self._get_obs(), float(at == self.length - 1), at == self.length - 1, False, {}


def test_copies_of_taxi_leave_its_table_out():
    domain = from_gymnasium(lambda: gymnasium.make("Taxi-v4"))
    assert len(pickle.dumps(domain._simulator.env)) > 50_000
    assert len(domain._simulator.save()) < 2_000


def test_a_late_change_of_something_large_is_noticed_and_changes_no_answer():
    domain = from_gymnasium(Crumbling, key="observation", max_steps=100)
    assert domain._simulator.shared.numbers
    row = domain.initial(1, np.random.default_rng(0))
    seen = [row[0]]
    for _ in range(Crumbling.length - 2):
        out = domain.successors(seen[-1][None])
        seen.append(out.states[0, 1])
    assert not domain._simulator.shared.numbers
    env = Crumbling()
    expected = [env.reset(seed=0)[0]] + [env.step(1)[0] for _ in seen[1:]]
    shown = np.array(seen)[:, :8].copy().view(np.int32)
    assert np.array_equal(shown, expected)
    back = domain.successors(seen[-1][None]).states[0, 0]
    assert np.array_equal(back[:8].view(np.int32), env.step(0)[0])
    again = domain.successors(domain.initial(1, np.random.default_rng(0)))
    assert again.states[0, 1][:8].view(np.int32).tolist() == [1, 1]


def test_parts_of_what_is_shared_stay_parts_of_it():
    env = Crumbling()
    env.reset(seed=0)
    shared = Shared([env.floor])
    copied = shared.loads(shared.dumps(env))
    assert copied is not env
    assert copied.here is env.floor[0]
    assert not shared.has_changed()
    copied.here[0] = 5
    assert shared.has_changed()


def test_what_refers_to_the_environment_or_draws_or_is_replaced_is_no_constant():
    env = Crumbling()
    env.reset(seed=0)
    env.around = [env] * 5000
    env.drawing = [list(range(2000)), np.random.default_rng(0)]
    env.replaced = list(range(5000))
    env.changing = list(range(5000))
    constants = Constants([env])
    env.replaced = list(range(5000))
    env.changing[0] = 1
    constants.keep_unchanged([env])
    assert constants.values() == [env.floor]
