"""Each conformance check is shown a domain that breaks just that promise."""

import dataclasses

import numba
import numpy as np
import pytest

from bathysphere.domains.base import Categories, CompiledRules, Features
from bathysphere.testing import ConformanceError, check_domain
from tests.domains.corridor import Corridor, DrawnCorridor


def broken(**overrides):
    """Returns a corridor with some attributes or methods replaced."""
    return type("Broken", (DrawnCorridor,), overrides)()


def changed(function):
    """Returns a `successors` whose honest answer goes through `function(self, states, out)`."""

    def successors(self, states):
        return function(self, states, Corridor.successors(self, states))

    return successors


def counting(self, states, out):
    self.calls = getattr(self, "calls", 0) + 1
    return out._replace(rewards=out.rewards + (0.001 * self.calls) * ~out.terminal)


def overwriting(self, states, out):
    states[:] = 1
    return out


def overwriting_observe(self, states):
    states[:] = 1
    return states.astype(np.int32)


def overwriting_render(self, state):
    state[:] = state + 1
    return np.zeros((1, 5, 3), np.uint8)


def neighbourly(self, states, out):
    return out._replace(rewards=out.rewards + (len(states) > 1) * ~out.terminal)


def restless(self, states, out):
    out.states[states[:, 0] == 4] = 3
    return out


def generous(self, states, out):
    out.rewards[states[:, 0] == 4] = 1.0
    return out


def reviving(self, states, out):
    ended = np.isin(states[:, 0], (0, 4))
    out.terminal[ended] = False
    return out._replace(solved=out.solved & out.terminal)


def forgetful(self, states, out):
    out.solved[states[:, 0] == 4] = False
    return out


class Starts:
    """A stream of start states made by a function of their numbers."""

    def __init__(self, function):
        self._function = function

    def take(self, numbers, ahead):
        return self._function(numbers)


def step(numbers, cells, state, states, rewards, terminal, solved):
    cell, last = np.int64(state[0]), np.int64(numbers[0])
    for action in range(2):
        moved = cell if cell in (0, last) else cell + 2 * action - 1
        states[action, 0] = moved
        rewards[action] = moved == last and cell != last
        terminal[action] = moved in (0, last)
        solved[action] = moved == last


def negligent_step(numbers, cells, state, states, rewards, terminal, solved):
    step_compiled(numbers, cells, state, states, rewards, terminal, solved.copy())


def overwriting_step(numbers, cells, state, states, rewards, terminal, solved):
    step_compiled(numbers, cells, state, states, rewards, terminal, solved)
    state[0] = 4 - state[0]


step_compiled = numba.njit(step)


def cell_of(numbers, cells, state):
    return np.int64(state[0])


def next_cell_of(numbers, cells, state):
    return np.int64(state[0]) + 1


RULES = CompiledRules(step, cell_of, np.array([4.0]), np.zeros(0, np.uint8))


def offering(**changes):
    """Returns what a Corridor with compiled rules has besides."""
    return {"compiled_rules": lambda self: dataclasses.replace(RULES, **changes)}


BROKEN = {
    "name must be": {"name": ""},
    "state_size must be": {"state_size": 0},
    "action_names must be": {"action_names": ("left", "left")},
    "max_steps must be": {"max_steps": 0},
    "observation must be": {"observation": "pixels"},
    r"initial\(5, rng\) must be uint8 \[5, 1\]; it is uint8": {
        "initial": lambda self, n, rng: np.ones((2, 1), np.uint8)
    },
    r"initial\(5, rng\) must be uint8 \[5, 1\]; it is int64": {"initial": lambda self, n, rng: np.ones((n, 1), int)},
    r"initial\(5, rng\) must be an array": {"initial": lambda self, n, rng: [[1]] * n},
    "initial must give the same": {
        "initial": lambda self, n, rng: np.random.default_rng().integers(1, 4, (n, 1)).astype(np.uint8)
    },
    "numbered starts 4, 0, 4 must be uint8": {"numbered_starts": lambda self, stream: Starts(lambda n: n[:, None])},
    "numbered starts must follow": {
        "numbered_starts": lambda self, stream: Starts(lambda n: np.arange(1, 1 + len(n), dtype=np.uint8)[:, None])
    },
    "successors' states must be": {"successors": changed(lambda self, s, o: o._replace(states=o.states[:, :, 0]))},
    "successors' rewards must be": {
        "successors": changed(lambda self, s, o: o._replace(rewards=o.rewards.astype(np.float32)))
    },
    "successors' terminal must be": {
        "successors": changed(lambda self, s, o: o._replace(terminal=o.terminal.astype(np.uint8)))
    },
    "successors' solved must be": {"successors": changed(lambda self, s, o: o._replace(solved=o.solved[:, :1]))},
    "rewards must be finite": {"successors": changed(lambda self, s, o: o._replace(rewards=o.rewards + np.nan))},
    "solved must imply terminal": {
        "successors": changed(lambda self, s, o: o._replace(terminal=np.zeros_like(o.terminal)))
    },
    "successors must not change its argument": {"successors": changed(overwriting)},
    "successors must be deterministic": {"successors": changed(counting)},
    "observe must not change its argument": {"observe": overwriting_observe},
    "observe must be deterministic": {
        "observe": lambda self, states: np.random.default_rng().integers(0, 5, (len(states), 1)).astype(np.int32)
    },
    "render and text must not change": {"render": overwriting_render},
    "successors of a batch": {"successors": changed(neighbourly)},
    "observe of a batch": {"observe": lambda self, states: np.sort(states, axis=0).astype(np.int32)},
    "a terminal state must lead to itself": {"successors": changed(restless)},
    "a terminal state must earn reward 0": {"successors": changed(generous)},
    "successors of a terminal state must be terminal": {"successors": changed(reviving)},
    "a terminal state must stay solved": {"successors": changed(forgetful)},
    r"observe must be int32 \[\d+, 1\]; it is int64": {"observe": lambda self, states: states.astype(np.int64)},
    r"observe must be float32": {"observation": Features(1)},
    r"observations must be finite": {
        "observation": Features(1),
        "observe": lambda self, states: np.full((len(states), 1), np.inf, np.float32),
    },
    r"observations must be in 0\.\.2": {"observation": Categories((1,), 3)},
    "compiled rules are for observations of one category": {
        **offering(),
        "observation": Features(1),
        "observe": lambda self, states: states.astype(np.float32),
    },
    "compiled_rules' numbers must be float64": offering(numbers=np.array([4])),
    "compiled_rules' cells must be uint8": offering(cells=np.zeros(3)),
    "compiled rules must say what successors says; rewards differ": offering(numbers=np.array([5.0])),
    "compiled rules must say what successors says; solved differ": offering(successors=negligent_step),
    "compiled rules must say what observe says": offering(category=next_cell_of),
    "compiled rules must not change the state": offering(successors=overwriting_step),
    "render must return": {"render": lambda self, state: np.zeros((4, 4), np.uint8)},
    "text must return": {"text": lambda self, state: ""},
    "places must return": {"places": lambda self, states, shown: np.full((len(states), 2), np.nan)},
    "render must draw all states in one size": {"render": lambda self, state: np.zeros((1 + state[0], 5, 3), np.uint8)},
}


def test_an_honest_domain_passes():
    check_domain(Corridor(), np.random.default_rng(0))
    check_domain(DrawnCorridor(), np.random.default_rng(0))
    check_domain(broken(**offering()), np.random.default_rng(0))
    check_domain(broken(**offering(successors=step_compiled)), np.random.default_rng(0))


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_broken_domain_is_told_what_it_breaks(sentence):
    with pytest.raises(ConformanceError, match=sentence):
        check_domain(broken(**BROKEN[sentence]), np.random.default_rng(0))
