"""The line that a search expects after each action: as states, as words, and as points on the board."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bathysphere.domains.base import Domain, Hopeless, Placed
from bathysphere.planning.inspect import RootReport
from bathysphere.planning.search_graph import SearchGraph

_MOST_ACTIONS = 32  # that get a line
_MOST_WORDS = 16  # of a line
_MOST_PICTURES = 6  # of a line


@dataclass(frozen=True)
class Line:
    """What a search expects to happen after an action."""

    actions: tuple[int, ...]  # T of them
    states: tuple[int, ...]  # numbers in the graph, from the root: T + 1 of them, or T if the last is not known


def best_line(graph: SearchGraph, first: int) -> Line:
    """Returns the line that begins with an action and goes on with the best mean value, until a state comes again."""
    actions, states, state, action = list[int](), [graph.root], graph.root, first
    while action >= 0:
        actions.append(action)
        state = int(graph.likely_child[state, action])
        if state < 0:
            break
        is_new = state not in states
        states.append(state)
        children = graph.likely_child[state]
        if not is_new or graph.terminal[state] or children[0] < 0:
            break
        worth = graph.likely_reward[state] + graph.mean[children]
        worth[[int(child) in states for child in children]] = -np.inf
        action = int(np.argmax(worth)) if np.isfinite(worth).any() else -1
    return Line(tuple(actions), tuple(states))


def told_lines(
    graph: SearchGraph, lines: dict[int, Line], domain: Domain, picture: str, most: int = _MOST_ACTIONS
) -> dict[str, Any]:
    """Returns lines, by the action they begin with, as a page draws them.

    Args:
      graph: of the search.
      lines: what it expects after each action.
      domain: may know where in the picture of the root its states lie.
      picture: address of a state's picture, with {} for its number.
      most: lines to tell.
    """
    told = {}
    for action, line in list(lines.items())[:most]:
        end = line.states[-1]
        places = np.empty((0, 2))
        if isinstance(domain, Placed):
            places = domain.places(graph.states[list(line.states)], graph.states[graph.root])
        shown = _spread(line.states[1:])
        told[str(action)] = {
            "text": line_text(graph, line, domain),
            "points": places.round(4).tolist(),
            "end": picture.format(end),
            "pictures": [] if len(places) else [picture.format(state) for state in shown],
            "steps": [line.states.index(state) for state in shown],
        }
    return told


def line_text(graph: SearchGraph, line: Line, domain: Domain) -> str:
    """Returns a line in words: its actions, equal ones together, and how it ends."""
    groups = [(domain.action_names[action], len(list(same))) for action, same in itertools.groupby(line.actions)]
    words = [f"{name} ×{count}" if count > 1 else name for name, count in groups]
    told = ", ".join(words[:_MOST_WORDS]) + (", ..." if len(words) > _MOST_WORDS else "")
    end, number = line.states[-1], len(line.actions)
    steps = "1 step" if number == 1 else f"{number} steps"
    if graph.chances is not None:
        told = f"{told}, chance permitting"
    if number == len(line.states):
        return f"{told}: it looks no further."
    if end == graph.root or end in line.states[:-1]:
        return f"{told}: {steps}, and nothing new."
    if graph.solved[end]:
        return f"{told}: {steps} to success."
    if graph.unknown is not None and graph.unknown[end]:
        return f"{told}: {steps} to what its model does not know."
    if graph.terminal[end]:
        return f"{told}: {steps} to an end without success."
    if isinstance(domain, Hopeless) and bool(domain.hopeless(graph.states[end][None])[0]):
        return f"{told}: {steps} to a dead end."
    return f"{told}: {steps} seen ahead, then worth {graph.mean[end]:.3g} ± {graph.std[end]:.2g}."


def told_ways(graph: SearchGraph, state: int, names: Sequence[str]) -> list[tuple[str, int]]:
    """Returns where the actions lead from a state that was expanded: in words, and the state's number."""
    chances = np.ones((len(names), 1)) if graph.chances is None else graph.chances[state]
    children = graph.child[state].reshape(chances.shape)
    ways: dict[tuple[int, int], float] = {}
    for (action, outcome), chance in np.ndenumerate(chances):
        way = action, int(children[action, outcome])
        ways[way] = ways.get(way, 0.0) + float(chance)
    told = []
    for (action, child), chance in ways.items():
        where = "stays" if child == state else str(child)
        share = f" ({chance:.0%})" if chance < 0.999 else ""
        if chance > 0 and child >= 0:
            told.append((f"{names[action]} → {where}{share}", child))
    return told


def told_marks(report: RootReport, lines: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns what is written on the board for each action that may be chosen: its value, votes and disagreement.

    Disagreement is the members' standard deviation as a share of itself and of the gap between the best and the worst
    action: near 0 where members agree which is better, near 1 where what they differ by is all there is.
    """
    free = [a for a, why in enumerate(report.excluded) if why is None]
    means, stds = report.q.mean(axis=1), report.q.std(axis=1)
    gap = float(np.ptp(means[free])) if free else 0.0
    votes = float(report.votes.sum()) or 1.0
    marks = []
    for a in free:
        points = lines.get(str(a), {}).get("points", [])
        if len(points) > 1 and points[1] != points[0]:
            marks.append(
                {
                    "action": a,
                    "name": report.action_names[a],
                    "from": points[0],
                    "at": points[1],
                    "value": short(means[a]),
                    "std": f"±{short(stds[a], 2)}",
                    "votes": round(float(report.votes[a]) / votes, 4),
                    "unsure": round(float(stds[a] / (stds[a] + gap)), 4) if stds[a] > 0 else 0.0,
                    "chosen": a == report.chosen,
                }
            )
    return marks


def told_worth(report: RootReport, action: int) -> str:
    """Returns the mean and the spread of what members estimate an action at; nothing if it may not be chosen."""
    q = report.q[action]
    return "" if report.excluded[action] else f"{short(q.mean())} ±{short(q.std(), 2)}"


def short(number: float, digits: int = 3) -> str:
    """Returns a number in few characters.

    >>> [short(x) for x in (7.9083, -0.01234, 0.5, 12345.6, 0.0)]
    ['7.91', '-.012', '.5', '1e4', '0']
    """
    told = f"{number:.{digits}g}".replace("e+0", "e").replace("e-0", "e-")
    while len(told.lstrip("-").replace("0.", ".")) > 4 and digits > 1:
        digits -= 1
        told = f"{number:.{digits}g}".replace("e+0", "e").replace("e-0", "e-")
    return told.replace("0.", ".", 1) if told.lstrip("-").startswith("0.") else told


def _spread(states: tuple[int, ...]) -> list[int]:
    """Returns some of a line's states, evenly apart, the last one among them."""
    if len(states) <= _MOST_PICTURES:
        return list(dict.fromkeys(states))
    places = np.linspace(0, len(states) - 1, _MOST_PICTURES).round().astype(int)
    return list(dict.fromkeys(states[place] for place in places.tolist()))
