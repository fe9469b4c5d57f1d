"""Conformance: what a world must keep so that the planner, the networks and the pictures can rely on it.

    check_domain(MyDomain(), np.random.default_rng(0))

raises `ConformanceError` with a sentence at the first promise that is broken.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import (
    Categories,
    Compilable,
    Domain,
    Features,
    NumberedStarts,
    Placed,
    Renderer,
    States,
    Successors,
    TextRenderer,
    ask_afresh,
)
from bathysphere.domains.presentation import picture_of, text_of

# How to mend what breaks a promise, by its name.
_FIXES = {
    "description": "Domain in bathysphere.domains.base says what each attribute is.",
    "array": "Make the array of this type and shape, or convert it with astype.",
    "start-not-from-rng": "Draw everything that is random from rng, the generator that initial gets.",
    "numbered-starts": "Seed a generator with the stream and the number, and draw the state from that.",
    "reward-not-finite": "Return finite numbers; a large negative one can stand for what must not happen.",
    "solved-without-done": "Set terminal wherever solved is set.",
    "changes-its-argument": "Work on a copy: states = states.copy().",
    "not-deterministic": "Compute answers from the arguments alone; what else they depend on belongs into the state.",
    "looks-at-neighbours": "Compute each row from itself; look for what works along the first axis (sum, sort, any).",
    "terminal-state": "Leave states that are over as they are: the same bytes, reward 0, terminal, solved as before.",
    "observation-not-finite": "Return finite numbers; networks cannot learn from others.",
    "category-out-of-range": "Declare all categories, Categories(shape, how_many), and number them from 0.",
    "compiled-rules": "Write every entry of every output, from numbers, cells and state alone; or leave the rules out.",
    "pictures": "Draw every state in one size as uint8 [height, width, 3], and as text that is not empty.",
}


class ConformanceError(AssertionError):
    """A domain breaks a promise of the `Domain` contract.

    Attributes:
      name: of the promise, short, words joined by hyphens.
      seen: a sentence, what was promised and what happened.
      fix: a sentence, how to mend it.
    """

    def __init__(self, name: str, seen: str) -> None:
        self.name, self.seen, self.fix = name, seen, _FIXES[name]
        super().__init__(f"{self.seen} {self.fix}")


def check_domain(domain: Domain, rng: np.random.Generator, num_states: int = 200) -> None:
    """Checks everything the `Domain` contract promises, on states found by random walks.

    Args:
      domain: the world to check.
      rng: draws the start states and the walks.
      num_states: about how many states to look at. Slow worlds may want fewer.

    Raises:
      ConformanceError: at the first broken promise.
    """
    check_description(domain)
    check_initial(domain, rng)
    check_numbered_starts(domain)
    states = walk(domain, rng, num_states)
    for check in (
        check_successors,
        check_purity,
        check_batching,
        check_terminal_states,
        check_observations,
        check_compiled_rules,
        check_pictures,
    ):
        check(domain, states.copy())


def walk(domain: Domain, rng: np.random.Generator, num_states: int) -> States:
    """Returns states that random play meets, terminal ones too: uint8 [about num_states, S]."""
    num_walks = 8
    states = domain.initial(num_walks, rng)
    met = [states]
    for _ in range(max(1, num_states // num_walks - 1)):
        out = domain.successors(states.copy())
        check_shapes(domain, states, out)
        actions = rng.integers(len(domain.action_names), size=num_walks)
        states = out.states[np.arange(num_walks), actions]
        met.append(states)
    # All successors of the start belong to it, so that short ways to an end are not missed by chance.
    met.append(domain.successors(domain.initial(1, rng)).states[0])
    return np.concatenate(met)


def check_description(domain: Domain) -> None:
    """The attributes are there and make sense."""
    _require(bool(domain.name) and isinstance(domain.name, str), "description", "name must be a non-empty string.")
    _require(domain.state_size >= 1, "description", f"state_size must be at least 1; it is {domain.state_size}.")
    names = domain.action_names
    unique = len(names) >= 1 and len(set(names)) == len(names)
    _require(unique, "description", f"action_names must be distinct and at least one; they are {names}.")
    _require(domain.max_steps >= 1, "description", f"max_steps must be at least 1; it is {domain.max_steps}.")
    _require(
        isinstance(domain.observation, Features | Categories),
        "description",
        f"observation must be Features or Categories; it is {domain.observation!r}.",
    )


def check_initial(domain: Domain, rng: np.random.Generator) -> None:
    """Start states are rows of bytes, as many as asked for, and drawn from the given generator only."""
    before = rng.bit_generator.state
    states = domain.initial(5, rng)
    _require_array("initial(5, rng)", states, np.uint8, (5, domain.state_size))
    _require_array("initial(0, rng)", domain.initial(0, rng), np.uint8, (0, domain.state_size))
    rng.bit_generator.state = before
    same = np.array_equal(domain.initial(5, rng), states)
    _require(same, "start-not-from-rng", "initial must give the same states for the same generator; it did not.")


def check_numbered_starts(domain: Domain) -> None:
    """Numbered start states, if there are any, follow from their number and their stream's alone."""
    if not isinstance(domain, NumberedStarts) or (starts := domain.numbered_starts(1)) is None:
        return
    numbers, none = np.array([4, 0, 4]), np.zeros(0, np.int64)
    states = starts.take(numbers, numbers + 1)
    _require_array("numbered starts 4, 0, 4", states, np.uint8, (3, domain.state_size))
    again = domain.numbered_starts(1)
    same = again is not None and np.array_equal(again.take(numbers[:2], none), states[:2])
    _require(
        same and np.array_equal(states[0], states[2]),
        "numbered-starts",
        "numbered starts must follow from the number; they do not.",
    )


def check_successors(domain: Domain, states: States) -> None:
    """Successors have the promised shapes and dtypes, also of no states at all; rewards are finite."""
    out = domain.successors(states)
    check_shapes(domain, states, out)
    check_shapes(domain, states[:0], domain.successors(states[:0]))
    _require(bool(np.isfinite(out.rewards).all()), "reward-not-finite", "rewards must be finite; some are not.")
    both = bool((out.terminal | ~out.solved).all())
    _require(both, "solved-without-done", "solved must imply terminal; a successor is solved and the episode goes on.")


def check_purity(domain: Domain, states: States) -> None:
    """Functions leave their arguments alone, and equal states give equal answers, whatever came before."""
    untouched = states.copy()
    first = copy.deepcopy(domain.successors(states))
    _require(
        np.array_equal(states, untouched), "changes-its-argument", "successors must not change its argument; it did."
    )
    ask_afresh(domain, states[::-1].copy())
    again = ask_afresh(domain, states)
    for name, before, after in _pairs(first, again):
        equal = np.array_equal(before, after)
        _require(
            equal,
            "not-deterministic",
            f"successors must be deterministic; {name} differ between two calls with equal states.",
        )
    seen = domain.observe(states).copy()
    _require(np.array_equal(states, untouched), "changes-its-argument", "observe must not change its argument; it did.")
    _require(
        np.array_equal(domain.observe(states), seen),
        "not-deterministic",
        "observe must be deterministic; two calls differ.",
    )
    state = untouched[0].copy()
    picture_of(domain, state)
    text_of(domain, state)
    _require(
        np.array_equal(state, untouched[0]),
        "changes-its-argument",
        "render and text must not change their argument; one did.",
    )


def check_batching(domain: Domain, states: States) -> None:
    """A batch gives what its states give one by one, so no state looks at its neighbours."""
    batch = domain.successors(states)
    seen = domain.observe(states)
    for i in range(len(states)):
        one = domain.successors(states[i : i + 1])
        for name, whole, part in _pairs(batch, one):
            equal = np.array_equal(whole[i], part[0])
            _require(
                equal,
                "looks-at-neighbours",
                f"successors of a batch must equal those of its states alone; {name} differ (row {i}).",
            )
        equal = np.array_equal(seen[i], domain.observe(states[i : i + 1])[0])
        _require(
            equal, "looks-at-neighbours", f"observe of a batch must equal that of its states alone; row {i} differs."
        )


def check_terminal_states(domain: Domain, states: States) -> None:
    """A terminal state leads to itself, is still terminal, still solved or not, and earns nothing more."""
    out = domain.successors(states)
    ends, solved = out.states[out.terminal], out.solved[out.terminal]
    if not len(ends):
        return
    after = domain.successors(ends)
    _require(
        bool((after.states == ends[:, None]).all()),
        "terminal-state",
        "a terminal state must lead to itself; its bytes changed.",
    )
    _require(
        bool((after.rewards == 0).all()),
        "terminal-state",
        "a terminal state must earn reward 0; it earned something else.",
    )
    _require(
        bool(after.terminal.all()), "terminal-state", "successors of a terminal state must be terminal; one is not."
    )
    kept = bool((after.solved == solved[:, None]).all())
    _require(kept, "terminal-state", "a terminal state must stay solved or unsolved; it changed.")


def check_observations(domain: Domain, states: States) -> None:
    """Observations have the declared shape, dtype and range."""
    seen = domain.observe(states)
    spec = domain.observation
    if isinstance(spec, Features):
        _require_array("observe", seen, np.float32, (len(states), spec.size))
        _require(bool(np.isfinite(seen).all()), "observation-not-finite", "observations must be finite; some are not.")
        return
    dtype = np.uint8 if seen.dtype == np.uint8 else np.int32
    _require_array("observe", seen, dtype, (len(states), *spec.shape))
    low, high = int(seen.min()), int(seen.max())
    inside = low >= 0 and high < spec.num_categories
    _require(
        inside,
        "category-out-of-range",
        f"observations must be in 0..{spec.num_categories - 1}; they span {low}..{high}.",
    )


def check_compiled_rules(domain: Domain, states: States) -> None:
    """Compiled rules, if there are any, say what `successors` and `observe` say, and write all of it."""
    if not isinstance(domain, Compilable):
        return
    rules = domain.compiled_rules()
    num_cells = math.prod(domain.observation.shape) if isinstance(domain.observation, Categories) else 0
    _require(
        num_cells == 1,
        "compiled-rules",
        f"compiled rules are for observations of one category; they are {domain.observation}.",
    )
    _require_array("compiled_rules' numbers", rules.numbers, np.float64, (rules.numbers.size,))
    _require_array("compiled_rules' cells", rules.cells, np.uint8, (rules.cells.size,))
    # As the planner compiles them, whatever the domain itself has made of them.
    plain = (getattr(function, "py_func", function) for function in (rules.successors, rules.category))
    successors, category = (numba.njit(function) for function in plain)
    answer, seen = domain.successors(states), domain.observe(states)
    for i in range(len(states)):
        expected = [part[i] for part in answer]
        written = [~expected[0], expected[1] - 1.0, ~expected[2], ~expected[3]]  # all of it wrong
        state = states[i].copy()
        successors(rules.numbers, rules.cells, state, *written)
        for name, one, other in zip(Successors._fields, expected, written, strict=True):
            equal = np.array_equal(one, other)
            _require(equal, "compiled-rules", f"compiled rules must say what successors says; {name} differ (row {i}).")
        _require(
            np.array_equal(state, states[i]), "compiled-rules", "compiled rules must not change the state; they did."
        )
        equal = category(rules.numbers, rules.cells, state) == seen[i].item()
        _require(equal, "compiled-rules", f"compiled rules must say what observe says; the category differs (row {i}).")


def check_pictures(domain: Domain, states: States) -> None:
    """Pictures and text, if there are any, are there for every kind of state met; pictures have one size."""
    shown = (states[0], states[-1], states[len(states) // 2])
    if isinstance(domain, Renderer):
        pictures = [domain.render(state) for state in shown]
        for picture in pictures:
            good = isinstance(picture, np.ndarray) and picture.dtype == np.uint8 and picture.ndim == 3
            _require(
                good and picture.shape[2] == 3, "pictures", "render must return uint8 [height, width, 3]; it did not."
            )
        shapes = {picture.shape for picture in pictures}
        _require(len(shapes) == 1, "pictures", f"render must draw all states in one size; got {sorted(shapes)}.")
    if isinstance(domain, Placed):
        places = domain.places(np.stack(shown), states[0])
        good = isinstance(places, np.ndarray) and places.shape == (len(shown), 2) and bool(np.isfinite(places).all())
        _require(good, "pictures", "places must return two finite numbers for each state, float64 [n, 2]; it did not.")
    if isinstance(domain, TextRenderer):
        for text in map(domain.text, shown):
            _require(
                isinstance(text, str) and bool(text), "pictures", "text must return a non-empty string; it did not."
            )


def _pairs(one: Successors, other: Successors) -> list[tuple[str, NDArray[np.generic], NDArray[np.generic]]]:
    """Returns the name and both values of each field."""
    return [(name, getattr(one, name), getattr(other, name)) for name in Successors._fields]


def check_shapes(domain: Domain, states: States, out: Successors) -> None:
    """Successors of `states` have the promised shapes and types."""
    shape = (len(states), len(domain.action_names))
    _require_array("successors' states", out.states, np.uint8, (*shape, domain.state_size))
    _require_array("successors' rewards", out.rewards, np.float64, shape)
    _require_array("successors' terminal", out.terminal, np.bool_, shape)
    _require_array("successors' solved", out.solved, np.bool_, shape)


def _require_array(name: str, array: NDArray[np.generic], dtype: Callable[..., object], shape: tuple[int, ...]) -> None:
    expected = f"{np.dtype(dtype).name} {list(shape)}"  # type: ignore[call-overload]
    good = isinstance(array, np.ndarray)
    _require(good, "array", f"{name} must be an array, {expected}; it is {type(array).__name__}.")
    actual = f"{array.dtype.name} {list(array.shape)}"
    _require(actual == expected, "array", f"{name} must be {expected}; it is {actual}.")


def _require(promise_kept: bool, name: str, sentence: str) -> None:
    if not promise_kept:
        raise ConformanceError(name, sentence)
