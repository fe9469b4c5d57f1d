"""How fast a world answers, and what of it copying states takes."""

from __future__ import annotations

from bathysphere.checking.findings import Finding
from bathysphere.checking.walks import Walks
from bathysphere.config.auto import duration
from bathysphere.domains.base import Domain
from bathysphere.timing import timed

_SLOW = 0.01  # seconds for the successors of one state from which on training is a matter of patience
_SLOW_COPY = 0.001  # the same of copying, if that is most of it
_REPEATS = 3  # of which the fastest counts
_PASSES = 20  # as chosen for most worlds


def find_slow(domain: Domain, walks: Walks) -> list[Finding]:
    """Tells whether successors take long, and whether it is for packing and unpacking states."""
    copying = _seconds_of_copying(domain, walks)
    if copying > _SLOW_COPY and copying > walks.seconds / 2:
        return [
            Finding(
                "slow-copying",
                f"Packing and unpacking states takes {duration(copying)} of the {duration(walks.seconds)} for the "
                "successors of a state.",
                "Make states small and plain: tuples of small whole numbers are copied fastest. Leave out what stays "
                "the same in an episode.",
                is_wrong=False,
            )
        ]
    if walks.seconds > _SLOW:
        return [
            Finding(
                "slow",
                f"The successors of a state take {duration(walks.seconds)}, so that a step planned with {_PASSES} "
                f"passes takes {duration(_PASSES * walks.seconds)}.",
                "Make step faster (Numba, fewer objects), write successors for many states at once, or plan with fewer "
                "passes.",
                is_wrong=False,
            )
        ]
    return []


def speed_of(seconds: float) -> str:
    """Returns a sentence about the time that the successors of a state take."""
    return f"{duration(seconds)} for all successors of a state, {1 / seconds:,.0f} states a second"


def _seconds_of_copying(domain: Domain, walks: Walks) -> float:
    """Returns what packing a state's successors and unpacking it costs; 0 for worlds that are rows of bytes anyway."""
    if not hasattr(domain, "objects") or not hasattr(domain, "rows"):
        return 0.0
    states = walks.states[:20]
    objects = domain.objects(states)
    seconds = min(timed(lambda: domain.rows(objects))[1] for _ in range(_REPEATS))
    return seconds / len(states) * len(domain.action_names)
