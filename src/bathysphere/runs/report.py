"""What to make of a run when it has ended: solved, or what looks wrong and what to try next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bathysphere.config.run import RunConfig

_FEWEST_EPISODES = 20  # before which nothing is concluded
_SLOW_MODEL = 0.6  # share of the time from which on the world is what a run waits for
_ALL_NEW = 0.98  # share of new states among all that were looked at, from which on none seems to come again
_UNSURE = 1e-3  # spread of the members, in units of values.scale, below which they agree


class Remark(NamedTuple):
    """Something that looks wrong in a run, and what to try."""

    name: str
    """Short, words joined by hyphens; docs/guide/faq.md explains each."""
    seen: str
    """A sentence: what shows it."""
    advice: str
    """A sentence: the next thing to try."""


def report_on(result: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], config: RunConfig) -> list[Remark]:
    """Returns what looks wrong in a run; nothing if it is solved and plausible.

    Args:
      result: what `result.json` holds.
      rows: the metrics; without any, less can be told.
      config: of the run.
    """
    if result["episodes"] < _FEWEST_EPISODES:
        return [] if result["solved_step"] is not None else [_too_short(result)]
    # The latest row during which episodes ended: others have no averages.
    row = next((row for row in reversed(rows) if row["ensemble_std"] is not None), dict[str, Any]())
    unsolved = [] if result["solved_step"] is not None else _unsolved(result, row, config)
    return [*_solved_says_nothing(result), *unsolved, *_slow(row)]


def told(report: Sequence[Mapping[str, str]]) -> str:
    """Returns the report in a result as text, a line for each remark."""
    return "\n".join(f"{remark['seen']} {remark['advice']}" for remark in report)


def _too_short(result: Mapping[str, Any]) -> Remark:
    ended = {0: "No episode", 1: "Only one episode"}.get(result["episodes"], f"Only {result['episodes']:,} episodes")
    return Remark(
        "too-short",
        f"{ended} came to an end, which is too few to judge.",
        "Give the run more steps or seconds; search.max_steps makes episodes shorter.",
    )


def _solved_says_nothing(result: Mapping[str, Any]) -> list[Remark]:
    """Looks for a meaning of "solved" that never or always applies, whatever the return does."""
    best, mean, worst = result["return_best"], result["return_mean_50"], result["return_worst"]
    if not result["wins"] and (best or worst):
        return [
            Remark(
                "never-solved",
                f"Episodes returned {worst:g} to {best:g}, lately {mean:g}, but none ever counted as solved.",
                "If the world has no success, judge it by the return (stop.mean_return). If it has one, see that step "
                "says so; otherwise it was never reached.",
            )
        ]
    if result["wins"] == result["episodes"] and best > worst:
        return [
            Remark(
                "always-solved",
                f"Every episode counted as solved, though returns differ ({worst:g} to {best:g}, lately {mean:g}).",
                "Solved says nothing here: judge by the return (stop.mean_return), or let step say what success is.",
            )
        ]
    return []


def _unsolved(result: Mapping[str, Any], row: Mapping[str, Any], config: RunConfig) -> list[Remark]:
    remarks = []
    best, worst, scale = result["return_best"], result["return_worst"], config.values.scale
    if best == 0 and worst == 0:
        agree = row.get("ensemble_std", 1.0) < _UNSURE * scale
        why = " and the members of the ensemble agree by now that there is none" if agree else ""
        advice = (
            "Raise search.risk_coef or values.init_scale, so that they doubt longer; reward a step on the way, or "
            "begin some episodes nearer to the goal."
            if agree
            else "Give it more time or passes (search.passes), reward a step on the way, or begin some episodes nearer "
            "to the goal."
        )
        remarks.append(Remark("no-reward", f"No reward was ever met{why}.", advice))
    elif max(abs(best), abs(worst)) > 20 * scale:
        largest = max(abs(best), abs(worst))
        remarks.append(
            Remark(
                "values-too-large",
                f"Returns reach {largest:g}, and networks learn values in units of {scale:g}, which is slow.",
                f"Set values.scale to about {largest / 4:.2g}.",
            )
        )
    new_states = row.get("new_states") or 0.0
    if new_states > _ALL_NEW:
        remarks.append(
            Remark(
                "states-never-repeat",
                f"{new_states:.0%} of the states that the search looked at were new to it.",
                "If the state holds what makes no difference (a clock, noise), leave it out: bathysphere check says "
                "what it finds.",
            )
        )
    return remarks


def _slow(row: Mapping[str, Any]) -> list[Remark]:
    share = row.get("share_model")
    if share is None or share < _SLOW_MODEL:
        return []
    return [
        Remark(
            "slow-world",
            f"{share:.0%} of the time went to the world's own steps.",
            "Make step faster (Numba, or successors for many states at once), or plan with fewer search.passes.",
        )
    ]
