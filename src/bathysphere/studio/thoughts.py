"""What a planner thinks, as sentences and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bathysphere.studio.watched import Moment, Thought

ACTION_COLUMNS = {
    "name": "action",
    ">score": "score",
    ">mean": "mean",
    ">std": "std",
    ">reward": "reward",
    ">penalty": "penalty",
    ">visits": "visits",
    ">votes": "votes",
}


def sentence(thought: Thought, names: tuple[str, ...]) -> str:
    """Says what a planner would do, and why."""
    if thought.choice is None:
        return "It has found nowhere to go."
    name, report = names[thought.choice], thought.report
    if report is None:
        count = len(thought.plan)
        if thought.is_followed:
            return f"It chooses {name}: {_steps(count)} of its plan {'is' if count == 1 else 'are'} left."
        if thought.open_states is None:
            return f"It chooses {name}."
        return f"It chooses {name}: {_steps(count)} {'is' if count == 1 else 'are'} planned, {_aim(thought)}."
    q = report.q[report.chosen]
    told = f"It chooses {name}: value {q.mean():.3g}, and its members differ by {q.std():.2g}."
    others = [a for a in np.argsort(-np.nan_to_num(report.score, nan=-np.inf)) if a != report.chosen]
    rest = [int(a) for a in others if report.excluded[int(a)] is None]
    if rest:
        second = rest[0]
        told += (
            f" Next best is {names[second]}, {report.score[report.chosen] - report.score[second]:.3g} below in score."
        )
    return told


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _aim(thought: Thought) -> str:
    """Says where a plan leads."""
    graph, end = thought.graph, thought.path[-1]
    if graph.solved[end]:
        return "a plan that succeeds"
    if graph.unknown is not None and graph.unknown[end]:
        return "to what its model does not know"
    return "no success yet; it heads for the most promising state"


def action_rows(thought: Thought | None) -> list[dict[str, Any]]:
    """Returns a row for each action, the best score first."""
    if thought is None or thought.report is None:
        return []
    report, rows = thought.report, []
    penalty = np.zeros(len(report.score)) if thought.penalty is None else thought.penalty
    for a in np.argsort(np.where(np.isnan(report.score), -np.inf, report.score))[::-1].tolist():
        note = "chosen" if a == report.chosen else f"excluded: {report.excluded[a]}" if report.excluded[a] else ""
        rows.append(
            {
                "key": str(a),
                "marked": a == report.chosen,
                "name": report.action_names[a],
                "score": _number(report.score[a], 4),
                "mean": f"{report.q[a].mean():.4g}",
                "std": f"{report.q[a].std():.2g}",
                "reward": _number(report.reward[a], 3),
                "penalty": f"{penalty[a]:.3g}",
                "visits": f"{report.visits[a]}",
                "votes": f"{report.votes[a]:g}",
                "note": note,
            }
        )
    return rows


def _number(number: float, digits: int) -> str:
    """Returns a number, or a dash for what is not known."""
    return "–" if np.isnan(number) else f"{number:.{digits}g}"


def actions_csv(thought: Thought | None) -> str:
    """Returns the actions with every member's estimate, as comma-separated text."""
    if thought is None or thought.report is None:
        return ""
    report = thought.report
    members = [f"member_{i}" for i in range(report.q.shape[1])]
    lines = [",".join(["action", "chosen", "score", "reward", "visits", "votes", "excluded", *members])]
    for a, name in enumerate(report.action_names):
        told = [f'"{name}"', str(int(a == report.chosen)), f"{report.score[a]:.6g}", f"{report.reward[a]:.6g}"]
        told += [str(report.visits[a]), f"{report.votes[a]:g}", f'"{report.excluded[a] or ""}"']
        lines.append(",".join([*told, *(f"{value:.6g}" for value in report.q[a])]))
    return "\n".join(lines) + "\n"


def story_csv(story: Mapping[int, Moment], made: Sequence[int], names: tuple[str, ...]) -> str:
    """Returns what an episode's steps were worth as comma-separated text: what the agent chose, and what was made."""
    lines = ["step,choice,made,mean,std"]
    for step, (mean, std, choice) in sorted(story.items()):
        told = (choice, made[step] if step < len(made) else None)
        quoted = ['"' + ("" if action is None else names[action].replace('"', '""')) + '"' for action in told]
        lines.append(f"{step},{','.join(quoted)},{mean:.6g},{std:.6g}")
    return "\n".join(lines) + "\n"


def open_csv(thought: Thought | None) -> str:
    """Returns the open list of a search as comma-separated text, the state that is expanded next first."""
    if thought is None or thought.open_states is None:
        return ""
    graph, lines = thought.graph, ["state,priority,depth,mean,std"]
    for state, priority in zip(thought.open_states.states, thought.open_states.priorities, strict=True):
        lines.append(f"{state},{priority:.6g},{graph.depth[state]},{graph.mean[state]:.6g},{graph.std[state]:.6g}")
    return "\n".join(lines) + "\n"


def graph_csv(thought: Thought | None) -> str:
    """Returns the states of a search graph as comma-separated text."""
    if thought is None:
        return ""
    graph = thought.graph
    lines = ["state,depth,visits,mean,std,terminal,solved,children"]
    for s in range(len(graph.states)):
        children = " ".join(str(child) for child in graph.child[s].tolist() if child >= 0)
        flags = f"{int(graph.terminal[s])},{int(graph.solved[s])}"
        told = f"{s},{graph.depth[s]},{graph.count[s]},{graph.mean[s]:.6g},{graph.std[s]:.6g},{flags}"
        lines.append(f"{told},{children}")
    return "\n".join(lines) + "\n"
