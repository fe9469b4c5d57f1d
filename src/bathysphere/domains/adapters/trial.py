"""What is found out about an environment by trying: how to copy its state, what counts steps, what identifies a state.

Everything is found by counted steps of fixed walks, so that it is found again in the same way by whoever looks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bathysphere.domains.adapters.attributes import Attributes
from bathysphere.domains.adapters.digests import digest_of
from bathysphere.domains.adapters.identity import check_observation, identify_by_snapshot
from bathysphere.domains.adapters.sharing import Constants, Shared
from bathysphere.domains.adapters.simulator import Access, Counter, Pickled, Simulator, Step, Way, seeded, ways_of
from bathysphere.domains.adapters.walks import Walk, look_of, walk_again, walk_at_random
from bathysphere.domains.base import Discovery
from bathysphere.errors import BathysphereError, WorldError

_WALKS = 4
_JUMPS = (1, 10, 100, 1000, 10_000)  # what counters are set to, to see whether anything depends on them
_REPEATS = 4
_VIEWS = ("_get_obs", "get_obs", "gen_obs", "_get_observation", "_observe", "observe")  # methods for the observation

_RANDOM = (
    "Draw chance from self.np_random or another generator that the environment keeps, so that a seed can decide it; "
    "or switch it off if the environment lets you (repeat_action_probability=0)."
)


class Found(NamedTuple):
    """What the trial shows."""

    key: str  # "observation" or "snapshot"
    examples: list[Any]  # observations
    findings: list[Discovery]
    view: str | None  # name of what returns the present observation inside the environment, if anything does


def try_out(simulator: Simulator, seeds: Sequence[int], key: Any = None) -> Found:
    """Finds out how an environment can be used. Sets the simulator's `way` and `held`.

    Args:
      simulator: the environment.
      seeds: of resets to try.
      key: what is to identify a state: "observation", "snapshot" or a function; None to find out.

    Raises:
      WorldError: if it cannot be used, or not with this key.
    """
    if (stickiness := simulator.stickiness) > 0:
        seen = f"ALE repeats the last action instead of the next one with probability {stickiness:g}: chance."
        raise WorldError("random-step", seen, _RANDOM)
    first = simulator.reset(seeds[0])
    _wander(simulator, first, 0)  # wrappers note once that they were reset and stepped: not part of any state
    walks = [walk_at_random(simulator, seed, np.random.default_rng(seed)) for seed in seeds[:_WALKS]]
    for number, walk in enumerate(walks):
        _check_again(simulator, walk, 1000 + number)
    share(simulator, walks)
    findings = [_choose_way(simulator, walks)]
    findings += _hold_counters(simulator, walks)
    if simulator.held:  # what counts steps no longer tells states apart
        walks = [walk_again(simulator, walk.seed, walk.actions) for walk in walks]
    if key is None or key == "snapshot":
        findings += identify_by_snapshot(simulator, walks, with_echoes=key is not None)
        key = "snapshot"
    elif key == "observation":
        findings.append(check_observation(simulator, walks))
    examples = [step.observation for walk in walks for step in walk.steps]
    return Found(key, examples, findings, _find_view(simulator, walks))


def share(simulator: Simulator, walks: Sequence[Walk]) -> None:
    """Finds out what stays the same object with the same contents, through resets too. Sets the simulator's `shared`.

    Whether it still does is asked again after the steps of every state; what changes and changes back there is missed.
    """
    simulator.reset(walks[0].seed)
    constants = Constants(simulator.chain())
    for walk in walks:
        simulator.reset(walk.seed)
        for action in walk.actions:
            simulator.step(action)
        constants.keep_unchanged(simulator.chain())
    simulator.shared = Shared(constants.values())


def view_of(simulator: Simulator, name: str) -> Any:
    """Returns the present observation, by the name of what has it inside the environment."""
    *wrappers, inner = [each for each in simulator.chain() if hasattr(each, "unwrapped")]
    seen = getattr(inner, name)
    seen = seen() if callable(seen) else seen
    for wrapper in reversed(wrappers):
        if callable(getattr(type(wrapper), "observation", None)):
            seen = wrapper.observation(seen)
    return seen


def _find_view(simulator: Simulator, walks: list[Walk]) -> str | None:
    """Returns the name of an attribute or method that always was the observation; None if there is none."""
    simulator.reset(walks[0].seed)
    inner = simulator.env.unwrapped
    names = [name for name in _VIEWS if callable(getattr(inner, name, None))] + sorted(getattr(inner, "__dict__", {}))
    for walk in walks[:2]:
        simulator.reset(walk.seed)
        for number, step in enumerate(walk.steps):
            if number:
                simulator.step(walk.actions[number - 1])
            if not step.ended:
                names = [name for name in names if _shows(simulator, name, step.observation)]
    return names[0] if names else None


def _shows(simulator: Simulator, name: str, observation: Any) -> bool:
    try:
        seen = view_of(simulator, name)
        if isinstance(observation, np.ndarray):
            return np.shape(seen) == observation.shape and np.array_equal(
                np.asarray(seen).astype(observation.dtype), observation
            )
        return digest_of(seen) == digest_of(observation)
    except Exception:  # it was something else
        return False


def _check_again(simulator: Simulator, walk: Walk, seed: int) -> None:
    """Makes a walk once more, with other numbers in the generators that all programs share."""
    looks = [look_of(simulator.reset(walk.seed))]
    if looks[0] != walk.looks[0]:
        raise WorldError(
            "random-reset",
            f"reset(seed={walk.seed}) twice gave two different observations.",
            "Draw everything random from the generator that reset(seed) sets: super().reset(seed=seed), then "
            "self.np_random.",
        )
    with seeded(seed):
        looks += [look_of(simulator.step(action)) for action in walk.actions]
    if looks == walk.looks:
        return
    at = next(i for i, pair in enumerate(zip(looks, walk.looks, strict=True)) if pair[0] != pair[1])
    seen = f"The same {at} steps after reset(seed={walk.seed}) led to different answers the second time"
    simulator.reset(walk.seed)
    with seeded(seed):
        if looks[1:] == [look_of(simulator.step(action)) for action in walk.actions]:
            raise WorldError("random-step", f"{seen}: steps draw from the module random or numpy.random.", _RANDOM)
    raise WorldError(
        "shared-generator",
        f"{seen}: they depend on a random generator that reset(seed) does not set, or on something kept in the "
        "class or module.",
        "Keep everything that steps depend on in the environment, and set it in reset.",
    )


def _choose_way(simulator: Simulator, walks: list[Walk]) -> Discovery:
    """Finds the first way of copying that works."""
    failures: list[tuple[Way, WorldError]] = []
    for way in ways_of(simulator):
        simulator.way = way
        failure = _failure(simulator, walks)
        if simulator.shared.has_changed():
            simulator.share_no_more()
            failure = _failure(simulator, walks)
        if failure is None:
            rest = "".join(f"; {tried.name} did not: {error.seen}" for tried, error in failures)
            way = _shorter(simulator, walks)
            return Discovery(f"copies by {way.name}", f"the first way that led to the same steps as no copy{rest}")
        if failure.name == "random-step":
            raise failure
        failures.append((way, failure))
    _, worst = next((pair for pair in failures if pair[1].name != "cannot-copy"), failures[-1])
    tried = " ".join(f"By {way.name}: {error.seen}" for way, error in failures)
    raise WorldError(worst.name, tried, worst.fix)


def _shorter(simulator: Simulator, walks: list[Walk]) -> Way:
    """Copies attributes instead of whole environments, if pickling works and this does too; returns the way taken."""
    way = simulator.way
    if isinstance(way, Pickled):
        simulator.way = Attributes(simulator.shared, without_generators=simulator.dice is not None)
        if _failure(simulator, walks) is not None or simulator.shared.has_changed():
            simulator.way = way
    return simulator.way


def _failure(simulator: Simulator, walks: list[Walk]) -> WorldError | None:
    """Returns what is wrong with the simulator's way of copying; None if nothing is found."""
    original = simulator.env
    try:
        for walk in walks:
            simulator.reset(walk.seed)
            for number, action in enumerate(walk.actions):
                failure = _failure_at(simulator, walk, number, action)
                if failure is not None:
                    return failure
    except BathysphereError as error:
        return WorldError("cannot-copy", f"A copy cannot be used: {error}", _FIX_COPY)
    except Exception as error:  # whatever copying raises
        told = f"{type(error).__name__}: {error}".rstrip(".")
        return WorldError("cannot-copy", f"It failed with {told}.", _FIX_COPY)
    finally:
        simulator.env = original
    return None


_FIX_COPY = (
    "Give the environment get_state() and set_state(state), or keep things that cannot be copied (windows, files, "
    "sockets) out of it."
)


def _failure_at(simulator: Simulator, walk: Walk, number: int, action: int) -> WorldError | None:
    """Saves a state, leaves it, and comes back to it twice; returns what goes wrong."""
    expected = walk.looks[number + 1]
    saved = simulator.save()
    _wander(simulator, walk.steps[number], action)
    simulator.load(saved)
    simulator.disturb_generators(number)
    with seeded(number):
        perturbed = look_of(simulator.step(action))
    simulator.load(saved)
    plain = look_of(simulator.step(action))
    if plain == expected == perturbed:
        return None
    where = f"after {number} steps from reset(seed={walk.seed})"
    again = {plain, perturbed}
    for repeat in range(_REPEATS):
        simulator.load(saved)
        with seeded(repeat):
            again.add(look_of(simulator.step(action)))
    if _is_random(simulator, walk, number) or _varies_inside(simulator, saved, action):
        return WorldError(
            "random-step",
            f"From one state, {where}, action {action} led to different answers: chance decides steps.",
            _RANDOM,
        )
    if len(again) == 1:
        return _diagnosis(simulator, walk, number, plain, where)
    return _forgets_wrappers(simulator, where) or _shares(where)


def _is_random(simulator: Simulator, walk: Walk, number: int) -> bool:
    """Tells whether a step depends on random generators, without any copy."""
    answers = set()
    for repeat in range(4 * _REPEATS):
        simulator.reset(walk.seed)
        for action in walk.actions[:number]:
            simulator.step(action)
        simulator.disturb_generators(repeat)
        with seeded(repeat):
            answers.add(look_of(simulator.step(walk.actions[number])))
    return len(answers) > 1


def _varies_inside(simulator: Simulator, saved: Any, action: int) -> bool:
    """Tells whether an environment that hands out its state answers differently from the same one."""
    if not isinstance(simulator.way, Access):
        return False
    answers = set()
    for _ in range(8 * _REPEATS):
        simulator.load(saved)
        answers.add(digest_of(simulator.step_inside(action)))
    return len(answers) > 1


def _diagnosis(simulator: Simulator, walk: Walk, number: int, plain: bytes, where: str) -> WorldError:
    """Says why a copy goes on otherwise than the environment itself."""
    action = walk.actions[number]
    simulator.reset(walk.seed)
    if number and look_of(simulator.step(action)) == plain:
        return WorldError(
            "copy-resets",
            f"A copy made {where} goes on as if it had just been reset.",
            "Its __getstate__, __deepcopy__ or set_state forgets the state (gymnasium.utils.EzPickle does): give it "
            "get_state() and set_state(state) that keep everything.",
        )
    if forgetting := _forgets_wrappers(simulator, where):
        return forgetting
    simulator.reset(walk.seed)
    for earlier in walk.actions[:number]:
        simulator.step(earlier)
    simulator.load(simulator.save())  # without leaving it meanwhile
    if look_of(simulator.step(action)) == walk.looks[number + 1]:
        return _shares(where)
    return WorldError(
        "copy-forgets-state",
        f"A copy made {where} goes on otherwise than the environment itself.",
        "Something that the future depends on is left out of copies, or is kept in the class or in module variables.",
    )


def _forgets_wrappers(simulator: Simulator, where: str) -> WorldError | None:
    if not isinstance(simulator.way, Access) or len(simulator.chain()) == 1:
        return None
    return WorldError(
        "copy-forgets-wrappers",
        f"What {simulator.way.name} brought back {where} goes on otherwise: the state of a wrapper "
        f"({', '.join(type(each).__name__ for each in simulator.chain()[:-1])}) is missing.",
        "Leave out the wrapper that has a state of its own, or make the environment one that can be pickled.",
    )


def _shares(where: str) -> WorldError:
    return WorldError(
        "copy-shares-state",
        f"A snapshot made {where} changes when the environment goes on: it shares something with it.",
        "Let copies and get_state have arrays, lists and objects of their own; keep no state in the class or in "
        "module variables.",
    )


def _wander(simulator: Simulator, step: Step, action: int) -> None:
    """Leaves a state by some steps, other ones than `action` where possible."""
    for other in range(1, 3):
        possible = np.arange(simulator.num_actions) if step.mask is None else np.flatnonzero(step.mask)
        if step.ended or not len(possible):
            return
        step = simulator.step(int(possible[(action + other) % len(possible)]))


def _hold_counters(simulator: Simulator, walks: list[Walk]) -> list[Discovery]:
    """Finds attributes that count steps, and holds those on which nothing depends but a time limit or rewards."""
    findings = []
    for counter in _counters(simulator, walks):
        name = f"{type(simulator.chain()[counter.depth]).__name__}.{counter.name}"
        if _matters(simulator, walks, counter):
            findings.append(
                Discovery(
                    f"{name} in the state",
                    "it counts steps and steps depend on it, so that no state is met twice in an episode; if it is "
                    "a time limit, let the environment say truncated instead of terminated",
                )
            )
        else:
            simulator.held.append(counter)
            findings.append(
                Discovery(
                    f"{name} held at {counter.first}", "it counts steps for a time limit, which is no part of a state"
                )
            )
    return findings


def _counters(simulator: Simulator, walks: list[Walk]) -> list[Counter]:
    """Returns the attributes of wrappers and environment that were one larger after every step of every walk."""
    candidates: dict[tuple[int, str], int] | None = None
    longest = max(len(walk.actions) for walk in walks)
    for walk in walks:
        simulator.reset(walk.seed)
        first = _whole_numbers(simulator)
        candidates = first if candidates is None else {k: v for k, v in candidates.items() if first.get(k) == v}
        for number, action in enumerate(walk.actions, 1):
            simulator.step(action)
            now = _whole_numbers(simulator)
            candidates = {k: v for k, v in candidates.items() if now.get(k) == v + number}
    if longest < 3:  # too few to tell
        return []
    return [Counter(depth, name, first) for (depth, name), first in (candidates or {}).items()]


def _whole_numbers(simulator: Simulator) -> dict[tuple[int, str], int]:
    return {
        (depth, name): int(value)
        for depth, thing in enumerate(simulator.chain())
        for name, value in vars(thing).items()
        if isinstance(value, int | np.integer) and not isinstance(value, bool)
    }


def _matters(simulator: Simulator, walks: list[Walk], counter: Counter) -> bool:
    """Tells whether setting a counter changes what is seen or how episodes end."""
    for walk in (walk for walk in walks if len(walk.actions) > 1):
        for number, jump in enumerate((counter.first, *_JUMPS)):
            begin = min(1 + number * 4, len(walk.actions) - 1)
            simulator.reset(walk.seed)
            for action in walk.actions[:begin]:
                simulator.step(action)
            setattr(simulator.chain()[counter.depth], counter.name, jump)
            for place, action in enumerate(walk.actions[begin : begin + 8], begin + 1):
                try:
                    step = simulator.step(action)
                except BathysphereError:
                    return True
                usual = walk.steps[place]
                if digest_of((step.observation, step.ended)) != digest_of((usual.observation, usual.ended)):
                    return True
    return False
