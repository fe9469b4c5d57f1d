"""An episode that is watched is the one that the agent would play, however one moves about in it."""

import numpy as np
import pytest

from bathysphere.agents.agent import Agent
from bathysphere.agents.loading import load_agent
from bathysphere.domains.sokoban.levels import solves
from bathysphere.errors import BathysphereError
from bathysphere.planning import make_planner
from bathysphere.planning.inspect import root_report
from bathysphere.planning.planner import play_all
from bathysphere.studio import watched as module
from bathysphere.studio.agents import SHIPPED, Agents, agent_in, level_start, start_states
from bathysphere.studio.charts import story_chart
from bathysphere.studio.folder import RunsFolder
from bathysphere.studio.graph_view import view_graph
from bathysphere.studio.levels import generated, read_text
from bathysphere.studio.lines import line_text
from bathysphere.studio.sessions import Sessions
from bathysphere.studio.thoughts import action_rows, actions_csv, graph_csv, sentence
from bathysphere.studio.watched import Watched, fitting_planners
from tests.studio.test_chance import watch as watch_lake


@pytest.fixture(scope="module")
def agents(folder):
    return Agents(RunsFolder(folder))


@pytest.fixture(scope="module")
def boxes(sokoban_run):
    return Agents(RunsFolder(sokoban_run.parent)).load(sokoban_run.name)


def watch(known, seed=0):
    domain, start = start_states(known, seed)
    return Watched(agent_in(known, domain), start, seed)


def played_by_planner(watched):
    """The episode of a planner that nobody looks at."""
    agent, start = watched.agent, watched.episode.states[0]
    options = {"batch": 1, "starts": start[None], "seed": watched.seed, "num_episodes": 1, "model": agent.model}
    settings = module.replace(watched.settings, max_steps=watched.episode.max_steps)
    (episode,) = play_all(make_planner(agent.domain, agent.values, settings, **options))
    return episode.actions.tolist()


@pytest.mark.parametrize("memory", [module._MEMORY, 0])
@pytest.mark.parametrize("planner", ["mcts", "replan"])
def test_watching_changes_nothing(boxes, monkeypatch, memory, planner):
    monkeypatch.setattr(module, "_MEMORY", memory)  # nothing kept: all is planned again
    watched = watch(boxes, seed=4)
    watched.change(planner=planner)
    expected = played_by_planner(watched)
    made = []
    while not watched.episode.over:
        thought = watched.think()
        watched.think(1)
        made.append(watched.act())
        assert thought.choice == made[-1]
        if len(made) in (2, 3, 7) and not watched.episode.over:
            watched.back()
            assert watched.think().choice == made[-1]
            assert watched.act() == made[-1]
    assert made == expected


def test_looking_at_the_beginning_of_a_search_leaves_earlier_plans_as_they_are(boxes, monkeypatch):
    monkeypatch.setattr(module, "_MEMORY", 0)
    watched = watch(boxes, seed=4)
    watched.change(planner="replan", max_expansions=20, width=1)
    thoughts = []
    while not watched.episode.over and watched.step < 12:
        thoughts.append(watched.think())
        watched.act()
    assert sum(not thought.is_followed for thought in thoughts) > 1
    for step, thought in enumerate(thoughts):
        watched.go_to(step)
        watched.think(1)
        assert (watched.think().plan, watched.think().is_followed) == (thought.plan, thought.is_followed)


def test_the_thought_is_that_of_the_planner_after_so_many_passes(boxes):
    watched = watch(boxes, seed=1)
    agent = watched.agent
    start = watched.episode.state
    sizes = []
    for passes in (1, 4, 10):
        thought = watched.think(passes)
        settings = module.replace(watched.settings, max_steps=watched.episode.max_steps)
        planner = make_planner(agent.domain, agent.values, settings, starts=start[None], seed=1, num_episodes=1)
        planner.plan(passes=passes)
        report = root_report(planner, 0)
        assert np.array_equal(thought.report.q, report.q)
        assert np.array_equal(thought.report.score, report.score, equal_nan=True)
        assert thought.budget == passes
        sizes.append(len(thought.graph.states))
    assert sizes == sorted(set(sizes))


def test_a_step_of_ones_own_is_judged_and_planned_from(boxes):
    for seed in range(20):
        watched = watch(boxes, seed)
        choice = watched.think().choice
        free = [a for a, why in enumerate(watched.think().report.excluded) if why is None and a != choice]
        if free:
            break
    watched.play(free[0])
    names = watched.agent.domain.action_names
    assert f"You chose {names[free[0]]}; the agent would have chosen {names[choice]}." in watched.remark
    assert "it ranks yours number" in watched.remark
    assert watched.think().report.step == 0  # begun anew
    watched.back()
    watched.play(choice)
    assert "so would the agent" in watched.remark
    watched.restart()
    assert watched.step == 0
    with pytest.raises(BathysphereError, match="no action 9"):
        watched.play(9)


def test_one_goes_back_and_forward_until_one_steps_elsewhere(boxes):
    watched = watch(boxes, seed=4)
    thoughts = []
    for _ in range(5):
        thoughts.append(watched.think())
        watched.act()
    states, expected = watched.episode.states, [thought.choice for thought in thoughts]
    for step in (2, 4, 0, 5, 99, -1, 3):
        watched.go_to(step)
        assert (watched.step, watched.last) == (min(max(step, 0), 5), 5)
        assert np.array_equal(watched.episode.states, states[: watched.step + 1])
        if watched.step < 5:
            assert np.array_equal(watched.think().graph.states, thoughts[watched.step].graph.states)
        assert watched.episode.all_actions == expected
        assert [watched.story[each].choice for each in range(5)] == expected
    assert watched.act() == expected[3]  # the same step again: what comes after it is still there
    assert watched.last == 5
    watched.back()
    other = next(a for a in range(4) if a != expected[3] and thoughts[3].report.excluded[a] is None)
    watched.play(other)
    assert (watched.step, watched.last) == (4, 4)
    assert sorted(watched.story) == [0, 1, 2, 3]
    drawn = story_chart(watched.story, watched.episode.all_actions, 4, watched.agent.domain.action_names)
    points = drawn["series"][-1]["data"]
    assert [point.get("symbol") for point in points] == [None, None, None, "diamond"]
    assert "it would have chosen" in points[3]["about"]


def test_going_forward_ends_as_before_in_a_world_with_chance():
    watched = watch_lake(3)
    for _ in range(4):
        watched.act()
    states = watched.episode.states
    watched.restart()
    watched.go_to(4)
    assert np.array_equal(watched.episode.states, states)


def test_other_settings_change_the_choice(agents):
    watched = watch(agents.load("sea-0"))
    seeking, sure = None, None
    for _ in range(watched.episode.max_steps):
        watched.change(risk_coef=1000.0)
        seeking = watched.think()
        watched.change(risk_coef=-1000.0)
        sure = watched.think()
        if seeking.choice != sure.choice:
            break
        watched.act()
    assert seeking.choice != sure.choice
    stds = seeking.report.q.std(axis=1)
    assert stds[seeking.choice] >= stds[sure.choice]
    watched.plan_as_trained()
    assert watched.settings == watched.agent.config
    with pytest.raises(BathysphereError, match="up to 2000 passes"):
        watched.change(passes=10**6)
    with pytest.raises(BathysphereError, match="finite"):
        watched.change(risk_coef=float("nan"))
    with pytest.raises(BathysphereError, match="no setting"):
        watched.change(pases=3)
    with pytest.raises(BathysphereError, match="policy"):
        watched.change(planner="levin")
    assert watched.settings == watched.agent.config
    assert watched.think().report is not None


def test_best_first_search_is_seen_growing_and_its_plan_is_followed(boxes):
    watched = watch(boxes, seed=4)
    watched.change(planner="best-first")
    few, many = watched.think(3), watched.think()
    assert few.budget <= 3 < many.budget
    assert len(few.graph.states) < len(many.graph.states)
    priorities = few.open_states.priorities
    assert (np.diff(priorities) >= 0).all()
    assert not (few.graph.child[few.open_states.states] >= 0).any()
    for action in many.plan:
        assert watched.act() == action
    assert watched.episode.solved == bool(many.graph.solved.any())


def test_a_plan_that_is_followed_is_seen_being_found_and_then_what_is_left_of_it(agents):
    watched = watch(agents.load("sea-0"))
    names, domain = watched.agent.domain.action_names, watched.agent.domain
    watched.change(planner="replan")
    few, found = watched.think(1), watched.think()
    assert len(few.graph.states) < len(found.graph.states)
    assert found.open_states is not None
    assert found.graph.solved[found.path[-1]]
    assert sentence(found, names).endswith(f"{len(found.plan)} steps are planned, a plan that succeeds.")
    for number, action in enumerate(found.plan):
        left = watched.think()
        assert left.is_followed == (number > 0)
        assert left.plan == found.plan[number:]
        assert line_text(left.graph, left.lines()[action], domain).endswith("to success.")
        kinds = {node.kind for node in view_graph(left.graph, left.path, domain).nodes}
        assert number == 0 or kinds <= {"root", "state", "success"}
        assert watched.act() == action
        if number == 1:
            count = len(found.plan) - 2
            assert (
                sentence(watched.think(), names)
                == f"It chooses {names[found.plan[2]]}: {count} steps of its plan are left."
            )
    assert watched.episode.solved
    values = watched.agent.values.evaluate(domain.observe(watched.episode.states[:-1])).astype(float)
    for step, members in enumerate(values):
        assert watched.story[step][:2] == (pytest.approx(members.mean()), pytest.approx(members.std()))


def test_all_planners_and_measures_that_are_offered_fit(agents, boxes):
    offered = {
        agents.load("sea-0"): ("mcts", "best-first", "replan"),
        boxes: ("mcts", "best-first", "levin", "phs", "replan"),
    }
    for known, names in offered.items():
        watched = watch(known, seed=1)
        assert fitting_planners(watched.agent) == names
        for name in names:
            watched.change(planner=name, **({} if name == "mcts" else {"max_expansions": 20}))
            assert watched.think().choice is not None
    assert fitting_planners(watch_lake(0).agent) == ("expectimax",)


def test_as_much_is_planned_as_in_training_even_if_that_is_more_than_the_page_offers(agents):
    known = agents.load("sea-0")
    domain, start = start_states(known, 0)
    agent = agent_in(known, domain)
    trained = module.changed_planner(agent.config, "replan", {"max_expansions": module.MOST_EXPANSIONS + 1})
    watched = Watched(Agent(domain, agent.values, trained, model=agent.model), start)
    watched.change(risk_coef=1.0)
    watched.plan_as_trained()
    with pytest.raises(BathysphereError, match=f"up to {module.MOST_EXPANSIONS + 1} expansions"):
        watched.change(max_expansions=module.MOST_EXPANSIONS + 2)


def test_numbers_can_be_copied_and_read(boxes):
    thought = watch(boxes).think()
    rows = action_rows(thought)
    assert [row["marked"] for row in rows].count(True) == 1
    assert {row["name"] for row in rows} == {"up", "right", "down", "left"}
    copied = actions_csv(thought).splitlines()
    assert len(copied) == 5
    assert len(copied[1].split(",")) == 7 + thought.report.q.shape[1]
    assert len(graph_csv(thought).splitlines()) == 1 + len(thought.graph.states)
    assert sentence(thought, ("up", "right", "down", "left")).startswith("It chooses ")
    assert actions_csv(None) == graph_csv(None) == ""
    assert action_rows(None) == []


def test_levels_are_played_by_agents_that_can(boxes, agents):
    level = generated(7, 7, 1, seed=5)
    domain, start = level_start(boxes, level)
    watched = Watched(agent_in(boxes, domain), start)
    watched.change(planner="best-first", max_expansions=2000)
    while not watched.episode.over:
        watched.act()
    letters = "".join(domain.action_names[a][0] for a in watched.episode.actions)
    assert watched.episode.solved == solves(level, letters)
    with pytest.raises(BathysphereError, match="solved from the start"):
        level_start(boxes, read_text("#####\n#@ *#\n#####")[0])
    with pytest.raises(BathysphereError, match="not trained in Sokoban"):
        level_start(agents.load("sea-0"), level)


def test_the_agent_that_is_shown_can_be_chosen_though_the_list_does_not_have_it(folder):
    """The list of runs is a moment old: it may lack a run that has just begun, and one that is gone is not in it."""
    agents = Agents(RunsFolder(folder))
    assert agents.names("gone").keys() - agents.names().keys() == {"gone"}
    assert agents.names(f"{SHIPPED}deep-sea") == agents.names()


def test_agents_come_from_the_package_and_the_folder_only(agents, folder):
    assert agents.load("sea-0") is agents.load("sea-0")
    shipped = agents.load(f"{SHIPPED}deep-sea")
    assert shipped.agent.domain.name == load_agent("deep-sea").domain.name
    assert {"sea-0", f"{SHIPPED}sokoban"} <= set(agents.names())
    for name in ("../sea-0", "/etc", f"{SHIPPED}nothing", f"{SHIPPED}../x", "nothing"):
        with pytest.raises(BathysphereError):
            agents.load(name)


def test_sessions_are_few_and_have_pictures(agents):
    sessions = Sessions(agents)
    first = sessions.begin("sea-0")
    assert first.picture("now").startswith(b"\x89PNG")
    with pytest.raises(BathysphereError, match="no such picture"):
        first.picture("3")
    first.thought = first.watched.think()
    assert first.picture("1").startswith(b"\x89PNG")
    again = sessions.begin("sea-0", 1, like=first)
    assert again.name == first.name
    assert again.version != first.version
    for _ in range(8):
        sessions.begin("sea-0")
    with pytest.raises(BathysphereError, match="no longer in memory"):
        sessions.find(first.name)
    with pytest.raises(BathysphereError, match="seed is -1"):
        sessions.begin("sea-0", -1)
