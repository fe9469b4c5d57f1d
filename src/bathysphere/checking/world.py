"""The whole check of a world: every mistake that can be found in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bathysphere import testing
from bathysphere.checking.findings import Fact, Finding, WorldCheck
from bathysphere.checking.hidden import find_hidden, find_made_differently
from bathysphere.checking.speed import find_slow, speed_of
from bathysphere.checking.states import find_aliases, find_counter, find_never_again, find_stuck, share_of_repeats
from bathysphere.checking.walks import Walks, walk_about
from bathysphere.domains import make_domain
from bathysphere.domains.adapters.calling import explained, user_code
from bathysphere.domains.adapters.packing import Packer
from bathysphere.domains.adapters.per_state import actions_of
from bathysphere.domains.base import Categories, Chance, Domain, DomainConfig, Explored
from bathysphere.domains.user_code import find_named
from bathysphere.domains.worlds import PythonConfig, as_domain, build, find_world
from bathysphere.errors import NO_PICTURES, BathysphereError, WorldError

_NUM_STATES = 200


def check(world: Any, /, *, seed: int = 0, **settings: Any) -> WorldCheck:
    """Says what is wrong with a world and how to mend it, or what it is if all is well.

    It makes random walks in the world and looks for all mistakes that show in them: hidden chance, state that is kept
    outside the state, rewards that depend on history, observations that hide a difference, and every broken promise of
    the `Domain` contract. What walks do not meet it cannot find.

    Args:
      world: a class or object of yours, an environment, the name of a world ("my_world:MyWorld", "gymnasium:ID",
        "sokoban"), or a config that describes one.
      seed: of the walks.
      **settings: arguments for the class or function that makes the world.

    Returns:
      What was found; printed, it is a report.
    """
    if isinstance(world, str):
        world = find_world(world)
    found = _Found()
    domain = None
    with found:
        domain = _make(world, settings)
    if domain is None:
        _look_closer(found, world, settings)
        return WorldCheck(_name(world), found.sorted(), ())
    walks = _run_checks(found, domain, lambda: _make(world, settings), seed, _unused(domain, world, settings))
    return WorldCheck(domain.name, found.sorted(), () if walks is None else _facts(domain, walks))


class _Found:
    """Gathers findings: as a context it turns what a world raises into one."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, str], Finding] = {}

    def add(self, findings: list[Finding]) -> None:
        for finding in findings:
            # A mistake shows in many states; the first of each kind is enough.
            self._findings.setdefault((finding.name, finding.seen.partition("(")[0]), finding)

    def has(self, *names: str) -> bool:
        return any(finding.name in names for finding in self._findings.values())

    def sorted(self) -> tuple[Finding, ...]:
        return tuple(sorted(self._findings.values(), key=lambda finding: not finding.is_wrong))

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, WorldError | testing.ConformanceError):
            self.add([Finding(error.name, error.seen, error.fix, is_wrong=error.name != NO_PICTURES)])
        elif isinstance(error, BathysphereError):
            self.add([Finding("refused", str(error), "Mend that first; it keeps the rest from being looked at.")])
        elif isinstance(error, Exception):
            told = explained(error, "The world")
            self.add([Finding(told.name, told.seen, told.fix)])
        return error is None or isinstance(error, Exception)


def _make(world: Any, settings: dict[str, Any]) -> Domain:
    return make_domain(world) if isinstance(world, DomainConfig) else as_domain(world, **settings)


def _unused(domain: Domain, world: Any, settings: dict[str, Any]) -> Any:
    """Returns a world like that of a domain which is written one state at a time; None if it cannot be made anew."""
    if isinstance(world, PythonConfig):
        world, settings = find_named(world.world), world.settings
    is_maker = isinstance(getattr(domain, "world", None), world) if isinstance(world, type) else False
    return build(world, **settings) if is_maker else None


def _run_checks(
    found: _Found, domain: Domain, make: Callable[[], Domain], seed: int, unused: Any = None
) -> Walks | None:
    rng = np.random.default_rng(seed)
    with found:
        testing.check_description(domain)
    with found:
        testing.check_initial(domain, rng)
    with found:
        testing.check_numbered_starts(domain)
    walks = None
    with found:
        walks = walk_about(domain, rng, _NUM_STATES)
    if walks is None:
        return None
    with found:
        found.add(find_hidden(domain, walks, unused))
    searches = [find_counter, find_aliases, find_slow]
    if not found.has("random-step", "hidden-state", "start-changes-the-world", "reward-depends-on-history"):
        searches.insert(0, find_stuck)
        _check_certain(found, domain, walks)
        if not found.has("start-not-from-rng"):
            with found:
                found.add(find_made_differently(domain, make, walks))
    for search in searches:
        with found:
            found.add(search(domain, walks))
    if not found.has("time-limit-in-the-state"):
        found.add(find_never_again(domain, walks))
    return walks


def _check_certain(found: _Found, domain: Domain, walks: Walks) -> None:
    """Makes the checks that mean something only if equal questions have equal answers."""
    ends = walks.successors.states[walks.successors.terminal][:20]
    states = np.concatenate([walks.states[: walks.most], ends])
    with found:
        testing.check_purity(domain, states.copy())
    if found.has("changes-its-argument"):
        return  # whatever else showed would come of that
    for promise in (
        testing.check_successors,
        testing.check_batching,
        testing.check_terminal_states,
        testing.check_observations,
        testing.check_compiled_rules,
        testing.check_pictures,
    ):
        with found:
            promise(domain, states.copy())


def _look_closer(found: _Found, world: Any, settings: dict[str, Any]) -> None:
    """Tries the parts of a world written one state at a time by themselves, after it could not be made as a whole."""
    if isinstance(world, PythonConfig):
        world, settings = find_named(world.world), world.settings
    with found:
        world = build(world, **settings)
    if not all(callable(getattr(world, name, None)) for name in ("start", "step")):
        return
    start: Any = None
    with found:
        with user_code("start"):
            start = world.start(np.random.default_rng(0))
        Packer(type(world).__module__).pack(start)
    if start is None:
        return
    actions: Sequence[Any] = ()
    with found:
        actions = actions_of(world)
    for action in actions:
        with found, user_code("step", start, action):
            world.step(start, action)
    for part in ("legal", "observe", "text", "render"):
        if hasattr(world, part):
            with found, user_code(part, start):
                getattr(world, part)(start)


def _name(world: Any) -> str:
    known = getattr(world, "world", None) or getattr(world, "id", None) or getattr(world, "name", None)
    return known if isinstance(known, str) else getattr(world, "__name__", type(world).__name__)


def _explored(domain: Domain) -> list[str]:
    """Returns what a domain found out about itself by trying."""
    return [f"{each.what}: {each.reason}" for each in domain.findings] if isinstance(domain, Explored) else []


def _chance(domain: Domain, walks: Walks) -> list[Fact]:
    """Tells how much of a world is chance; nothing of one that is deterministic."""
    if not isinstance(domain, Chance):
        return []
    several = np.count_nonzero(domain.outcomes(walks.states).probabilities, axis=2)
    share, most = float((several > 1).mean()), int(several.max(initial=1))
    told = f"{share:.0%} of steps may end in several ways, up to {most}; plan with --planner expectimax"
    return [Fact("chance", share, told)]


def _facts(domain: Domain, walks: Walks) -> tuple[Fact, ...]:
    rewards = np.unique(walks.successors.rewards)
    met = ", ".join(f"{reward:g}" for reward in rewards[:6]) + (" ..." if len(rewards) > 6 else "")
    repeats = share_of_repeats(walks)
    spec = domain.observation
    if isinstance(spec, Categories):
        size = " x ".join(map(str, spec.shape))
        seen = f"{'one number' if size == '1' else f'{size} numbers'} below {spec.num_categories:,}"
    else:
        seen = f"{spec.size:,} numbers"
    names = ", ".join(domain.action_names[:8]) + (" ..." if len(domain.action_names) > 8 else "")
    is_paid = bool(np.any(rewards != 0))
    return (
        Fact("actions", list(domain.action_names), f"{len(domain.action_names)}: {names}"),
        Fact("observation", repr(spec), seen),
        Fact("state_size", domain.state_size, f"{domain.state_size:,} bytes"),
        Fact("seconds_per_state", walks.seconds, speed_of(walks.seconds)),
        Fact("max_steps", domain.max_steps, f"{domain.max_steps:,} steps, then an episode is cut off"),
        Fact("rewards", rewards[:100].tolist(), met if is_paid else "none but 0 within reach of random walks"),
        Fact(
            "solved",
            walks.num_solved,
            f"{walks.num_solved} of {walks.num_episodes} episodes that random walks ended",
        ),
        Fact("repeats", repeats, f"{repeats:.0%} of steps led to a state that another step led to as well"),
        *_chance(domain, walks),
        *(Fact("found_out", told, told) for told in _explored(domain)),
        Fact("looked_at", len(walks.states), f"{len(walks.states):,} states on random walks"),
    )
