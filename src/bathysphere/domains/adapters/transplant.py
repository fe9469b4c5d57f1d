"""The state of an environment with other wrappers around it, put into the wrappers of a domain's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bathysphere.domains.adapters.attributes import chain_of
from bathysphere.domains.adapters.digests import is_description
from bathysphere.domains.adapters.simulator import Counter

_MADE_WITH = "_saved_kwargs"  # Gymnasium's note of the arguments a wrapper was made with


def transplanted(theirs: Any, ours: Any, held: Sequence[Counter]) -> Any:
    """Returns an environment in the state of `theirs`, with the wrappers of `ours`; uses up both.

    Wrappers of one type stand for each other, the innermost first. Those that only `theirs` has are left out, those
    that only `ours` has stay as they are. Descriptions stay ours, and so do whole numbers in wrappers that count steps
    for a time limit: limits may differ.

    Args:
      theirs: a copy of the environment that is read.
      ours: a copy of the domain's.
      held: counters of the domain's environment that are no part of a state.
    """
    own, found = chain_of(ours), list[Any]()
    waiting = chain_of(theirs)
    if len(own) == len(waiting) and list(map(type, own)) == list(map(type, waiting)):
        found = waiting
    else:
        for mine in reversed(own):
            at = next((i for i in reversed(range(len(waiting))) if type(waiting[i]) is type(mine)), None)
            found.insert(0, mine if at is None else waiting[at])
            waiting = waiting if at is None else waiting[:at]
    for depth, (mine, thing) in enumerate(zip(own, found, strict=True)):
        if thing is not mine:
            limits = thing is not ours.unwrapped and any(counter.depth == depth for counter in held)
            _keep_ours(mine, thing, limits)
        if "env" in vars(thing) and depth + 1 < len(found):
            thing.env = found[depth + 1]
    return found[0]


def _keep_ours(mine: Any, thing: Any, limits: bool) -> None:
    for name, value in vars(mine).items():
        if name != "env" and (name == _MADE_WITH or is_description(value) or (limits and type(value) is int)):
            vars(thing)[name] = value
