"""The lines that a search expects, as they are drawn and told."""

import numpy as np
import pytest

from bathysphere.domains.base import Placed
from bathysphere.studio.agents import SHIPPED, Agents, agent_in, start_states
from bathysphere.studio.folder import RunsFolder
from bathysphere.studio.lines import best_line, line_text, told_lines, told_marks
from bathysphere.studio.thoughts import story_csv
from bathysphere.studio.watched import Watched


@pytest.fixture(scope="module")
def watched(sokoban_run):
    known = Agents(RunsFolder(sokoban_run.parent)).load(sokoban_run.name)
    domain, start = start_states(known, 4)
    return Watched(agent_in(known, domain), start, 4)


def follow(graph, line):
    """Checks that a line is a way through the graph, and returns where it ends."""
    state = graph.root
    assert line.states[0] == state
    for number, action in enumerate(line.actions):
        state = int(graph.child[state, action])
        assert line.states[number + 1] == state
    return state


def test_lines_follow_the_graph_and_begin_with_their_action(watched):
    thought = watched.think()
    graph, lines = thought.graph, thought.lines()
    assert next(iter(lines)) == thought.choice
    assert set(lines) == {a for a, why in enumerate(thought.report.excluded) if why is None}
    for action, line in lines.items():
        assert line.actions[0] == action
        end = follow(graph, line)
        assert len(set(line.states[:-1])) == len(line.states) - 1
        is_known = graph.child[end, 0] >= 0 and not graph.terminal[end]
        assert not is_known or set(graph.child[end].tolist()) <= {*line.states, end}
    assert lines[thought.choice].actions == thought.plan
    assert list(lines[thought.choice].states) == thought.path


def test_an_action_that_changes_nothing_leads_nowhere(watched):
    graph = watched.think().graph
    stuck = [a for a, child in enumerate(graph.child[graph.root]) if child == graph.root]
    for action in stuck:
        line = best_line(graph, action)
        assert (line.actions, line.states) == ((action,), (graph.root, graph.root))
        assert line_text(graph, line, watched.agent.domain).endswith("1 step, and nothing new.")


def test_lines_are_told_with_places_and_pictures(watched):
    thought, domain = watched.think(), watched.agent.domain
    assert isinstance(domain, Placed)
    told = told_lines(thought.graph, thought.lines(), domain, "/picture/{}")
    for action, line in thought.lines().items():
        one = told[str(action)]
        assert one["end"] == f"/picture/{line.states[-1]}"
        assert len(one["points"]) == len(line.states)
        assert one["pictures"] == []
        assert f"{len(line.actions)} step" in one["text"]
    plain = type("Plain", (), {"action_names": domain.action_names})()
    one = told_lines(thought.graph, thought.lines(), plain, "/picture/{}")[str(thought.choice)]
    line = thought.lines()[thought.choice]
    assert one["points"] == []
    assert one["pictures"][-1] == f"/picture/{line.states[-1]}"
    assert one["steps"][-1] == len(line.actions)


def test_marks_have_votes_that_sum_to_one_and_one_choice(watched):
    thought = watched.think()
    lines = told_lines(thought.graph, thought.lines(), watched.agent.domain, "{}")
    marks = told_marks(thought.report, lines)
    assert [mark["action"] for mark in marks if mark["chosen"]] == [thought.choice]
    assert sum(mark["votes"] for mark in marks) == pytest.approx(1, abs=1e-3)
    assert all(0 <= mark["unsure"] <= 1 for mark in marks)
    for mark in marks:
        (down, right), moves = np.subtract(mark["at"], mark["from"]), {"up": 0, "right": 1, "down": 2, "left": 3}
        where = [down < 0, right > 0, down > 0, right < 0]
        assert where.index(True) == moves[mark["name"]]


def test_members_that_agree_are_sure(folder):
    known = Agents(RunsFolder(folder)).load(f"{SHIPPED}deep-sea")
    domain, start = start_states(known, 0)
    thought = Watched(agent_in(known, domain), start).think()
    marks = told_marks(thought.report, told_lines(thought.graph, thought.lines(), domain, "{}"))
    q = thought.report.q
    gap = abs(q[0].mean() - q[1].mean())
    for mark in marks:
        std = q[mark["action"]].std()
        assert mark["unsure"] == pytest.approx(std / (std + gap), abs=1e-4)


def test_the_story_of_an_episode_is_what_was_thought(watched):
    watched.restart()
    thoughts = []
    for _ in range(4):
        thoughts.append(watched.think())
        watched.think(1)  # looks inside the search tell no story
        watched.act()
    assert [watched.story[step].choice for step in range(4)] == [thought.choice for thought in thoughts]
    q = thoughts[2].report.q[thoughts[2].choice]
    assert watched.story[2].mean == pytest.approx(q.mean())
    assert watched.story[2].std == pytest.approx(q.std())
    watched.back()
    watched.back()
    assert sorted(watched.story) == [0, 1, 2, 3]
    made = watched.episode.all_actions
    copied = story_csv(watched.story, made, watched.agent.domain.action_names).splitlines()
    assert copied[0] == "step,choice,made,mean,std"
    assert len(copied) == 5
    watched.restart()
