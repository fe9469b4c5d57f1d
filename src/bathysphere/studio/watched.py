"""An episode that is watched: steps of the agent or of a person, back and forth, and the plan behind each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.agents.agent import Agent
from bathysphere.domains.base import Chance, States
from bathysphere.domains.playing import PlayedEpisode
from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, BestFirst, BestFirstConfig, Planner, PlannerSettings, SearchConfig, make_planner
from bathysphere.planning.best_first import Replan
from bathysphere.planning.best_first.reading import OpenStates, read_graph, read_open
from bathysphere.planning.best_first.store import RUNNING
from bathysphere.planning.expectimax import Expectimax, ExpectimaxConfig
from bathysphere.planning.inspect import RootReport, root_report
from bathysphere.planning.named import changed_planner, planner_name
from bathysphere.planning.planner import PolicyValues
from bathysphere.planning.search_graph import SearchGraph
from bathysphere.studio.lines import Line, best_line

_MEMORY = 128 << 20  # bytes of planners that are kept to go back to
MOST_PASSES, MOST_EXPANSIONS = 2000, 5000
WITH_PASSES = (SearchConfig, ExpectimaxConfig)  # of planners that plan so many passes before every step
_PLAN_MAKERS, _EXPANSIONS = ("best-first", "levin", "phs", "replan"), 200


@dataclass(frozen=True)
class Thought:
    """What a planner knew at one step, after so much planning."""

    state: States  # uint8 [S]
    budget: int  # passes or expansions that were made; 0 if the planner knows neither
    most: int  # that would be made before the step
    graph: SearchGraph
    report: RootReport | None  # None for planners of whole plans, which rank no actions
    penalty: NDArray[np.float64] | None  # [A], that the report's scores hold for states where steps were made before
    plan: tuple[int, ...]  # actions to come; the first one is the choice
    plan_states: NDArray[np.int64]  # [T], where in the graph they start
    open_states: OpenStates | None  # of best-first search
    is_followed: bool = False  # the plan was found at an earlier step, and the graph is what is left of it
    members: NDArray[np.float64] | None = None  # [E], what they say of the state, where the graph says something else

    @property
    def path(self) -> list[int]:
        """The states of the graph that the plan leads through, the last one included."""
        states = self.plan_states.tolist()
        last = int(self.graph.likely_child[states[-1], self.plan[len(states) - 1]]) if states else -1
        return [*states, last] if last >= 0 else states

    def lines(self) -> dict[int, Line]:
        """Returns what is expected after each action that may be chosen, by its number, the best score first."""
        if self.report is None:
            return {self.plan[0]: Line(self.plan, tuple(self.path))} if self.plan else {}
        ranked = np.argsort(-np.nan_to_num(self.report.score, nan=-np.inf), kind="stable").tolist()
        return {a: best_line(self.graph, a) for a in ranked if self.report.excluded[a] is None}

    @property
    def moment(self) -> Moment:
        """What the choice is worth; of a planner that ranks no actions, what the state is."""
        q = self.graph.member_values[self.graph.root] if self.members is None else self.members
        if self.report is not None:
            q = self.report.q[self.report.chosen]
        return Moment(float(q.mean()), float(q.std()), self.choice)

    @property
    def choice(self) -> int | None:
        """The action that would be taken; None if there is nowhere to go."""
        return self.plan[0] if self.plan else None


def fitting_planners(agent: Agent) -> tuple[str, ...]:
    """Returns the names of the planners that an agent can be watched with, that of its training first."""
    names: tuple[str, ...] = ("expectimax",)
    if not isinstance(agent.domain, Chance):
        has_policy = isinstance(agent.values, PolicyValues) and agent.values.has_policy
        names = ("mcts", *(name for name in _PLAN_MAKERS if has_policy or name not in ("levin", "phs")))
    return tuple(dict.fromkeys((planner_name(agent.config), *names)))


class Moment(NamedTuple):
    """What one step was worth to the agent before it was made."""

    mean: float  # of the members
    std: float  # of the members
    choice: int | None


class Watched:
    """One episode and its agent.

    The agent plans as it does elsewhere: it keeps its search graph as long as the episode goes as it chose, and plans
    anew after another step or other settings. Everything follows from the seed, so that steps that are not kept in
    memory are planned again when one goes back to them.

    Args:
      agent: plans.
      start: uint8 [S].
      seed: of ties and drawn members.
    """

    def __init__(self, agent: Agent, start: States, seed: int = 0) -> None:
        self.agent, self.seed = agent, seed
        self.settings: PlannerSettings = agent.config
        limit = agent.config.max_steps or agent.domain.max_steps
        self.episode = PlayedEpisode(agent.domain, start, limit, np.random.default_rng(seed))
        self.version = 0  # another number after every change
        self.remark = ""  # about the last step of a person
        self.story: dict[int, Moment] = {}  # of the steps that were planned, by number
        self._fresh = [0]  # steps at which planning begins anew, increasing
        self._saved: dict[int, dict[str, Any]] = {}  # the planner before it plans a step
        self._plan: dict[bytes, int] = {}  # what is still to do of a whole plan, by state
        self._thoughts: dict[tuple[int, int | None], Thought] = {}

    @property
    def step(self) -> int:
        """Steps made so far."""
        return len(self.episode.actions)

    def change(self, planner: str | None = None, **changes: Any) -> None:
        """Plans with other settings from now on; the choice changes with them."""
        if planner is not None and planner != planner_name(self.settings) and planner in _PLAN_MAKERS:
            changes = {"max_expansions": _EXPANSIONS} | changes  # a moment; more can be asked for
        self._plan_by(changed_planner(self.settings, planner, changes))

    def plan_as_trained(self) -> None:
        """Plans with the settings of the agent's training from now on."""
        self._plan_by(self.agent.config)

    def _plan_by(self, settings: PlannerSettings) -> None:
        for name, most in (("passes", MOST_PASSES), ("max_expansions", MOST_EXPANSIONS)):
            allowed = max(most, getattr(self.agent.config, name, 0))  # or as many as in training
            if getattr(settings, name, 0) > allowed:
                unit = "expansions" if name == "max_expansions" else name
                raise BathysphereError(f"The studio plans up to {allowed} {unit} a step for this agent.")
        if settings == self.settings:
            return
        before, self.settings = self.settings, settings
        self._forget(self.step)
        self._fresh = sorted({0, self.step})
        self._saved.clear()
        self._plan.clear()
        try:
            if not self.episode.over:
                self.think()
        except BathysphereError:
            self.settings = before
            self._forget(self.step)
            raise

    def think(self, budget: int | None = None) -> Thought:
        """Plans the next step, without making it.

        Args:
          budget: passes or expansions; as the settings say if not given.

        Raises:
          BathysphereError: if the episode is over.
        """
        if self.episode.over:
            raise BathysphereError("The episode is over; there is nothing to plan.")
        known = self._thoughts.get((self.step, budget))
        if known is None:
            known = self._think(budget)
            if len(self._thoughts) > 8:
                self._thoughts.pop(next(iter(self._thoughts)))
            self._thoughts[self.step, budget] = known
        if budget is None:
            self.story[self.step] = known.moment
        return known

    def act(self) -> int:
        """Makes the step that the agent chooses; returns its action."""
        state = self.episode.state.tobytes()
        if self._plan_makers() and state in self._plan:
            action = self._plan[state]
            self._make(action)
            return action
        planner = self._planner_at(self.step)
        if planner.makes_plans:
            thought = self.think()
            states = thought.graph.states[thought.plan_states]
            self._plan = {s.tobytes(): a for s, a in zip(states, thought.plan, strict=True)}
            action = 0 if thought.choice is None else thought.choice
            self._make(action)
            return action
        planner.plan()
        finished = planner.act()
        action = int(planner.actions[0])
        self._make(action)
        if not finished and not self.episode.over:
            if planner.root_states[0].tobytes() == self.episode.state.tobytes():
                self._keep(planner)
            else:
                self._fresh = sorted({*self._fresh, self.step})
        return action

    def play(self, action: int) -> None:
        """Makes the step that a person chooses, and remarks what the agent thinks of it."""
        if self.episode.over:
            raise BathysphereError("The episode is over: go back, or restart.")
        if not 0 <= action < len(self.agent.domain.action_names):
            raise BathysphereError(f"There is no action {action}.")
        thought = self.think()
        remark = judge(thought, action, self.agent.domain.action_names)
        if thought.report is not None and action == thought.choice:
            self.act()
        else:
            self._make(action)
            self._fresh = sorted({*self._fresh, self.step})
        self.remark = remark

    @property
    def last(self) -> int:
        """The step to which one can go: those that were taken back can be made again."""
        return self.step + self.episode.num_undone

    def go_to(self, step: int) -> None:
        """Takes back steps, or makes steps again that were taken back, until so many are made."""
        while self.step > max(step, 0):
            self.episode.undo()
        while self.step < min(step, self.last):
            self.episode.redo()
        self._plan.clear()
        self._change_view()

    def back(self) -> None:
        """Takes back the last step."""
        self.go_to(self.step - 1)

    def forward(self) -> None:
        """Makes the step again that was taken back last."""
        self.go_to(self.step + 1)

    def restart(self) -> None:
        """Takes back all steps."""
        self.go_to(0)

    def _make(self, action: int) -> None:
        before = self.episode.num_undone
        self.episode.step(action)
        if before and not self.episode.num_undone:  # it goes on in another way
            self._forget(self.step - 1)
        self._change_view()

    def _forget(self, step: int) -> None:
        """Forgets what was planned after `step`."""
        self._fresh = [each for each in self._fresh if each <= step]
        self.story = {each: moment for each, moment in self.story.items() if each <= step}
        self._saved = {each: saved for each, saved in self._saved.items() if each <= step}
        self._change_view()

    def _change_view(self) -> None:
        self._thoughts.clear()
        self.version += 1
        self.remark = ""

    def _plan_makers(self) -> bool:
        return bool(self._plan) and isinstance(self.settings, BestFirstConfig)

    def _think(self, budget: int | None) -> Thought:
        planner = self._planner_at(self.step, budget)
        settings = self.settings
        if isinstance(planner, BestFirst) and isinstance(settings, BestFirstConfig):
            return self._think_of_plan(planner, settings, budget)
        if isinstance(planner, MCTS | Expectimax) and isinstance(settings, WITH_PASSES):
            passes = min(budget or settings.passes, settings.passes)
            planner.plan(passes=passes)
            return self._told(root_report(planner, 0), planner.search_graph(0), passes, settings.passes)
        planner.plan()
        try:
            return self._told(root_report(planner, 0), planner.search_graph(0), 0, 0)
        except BathysphereError:  # a planner of a user's own, which ranks no actions
            action = int(planner.actions[0])
            graph = planner.search_graph(0)
            root = np.array([graph.root])
            return Thought(self.episode.state, 0, 0, graph, None, None, (action,), root, None)

    def _think_of_plan(self, planner: BestFirst, settings: BestFirstConfig, budget: int | None) -> Thought:
        """Searches for a plan, and shows the search; of a plan that was found at an earlier step what is left."""
        is_followed = isinstance(planner, Replan) and planner.store.searches["status"][0] != RUNNING
        if is_followed:
            planner.plan()
            graph = planner.search_graph(0)
            plan, states = _chain(graph), np.arange(len(graph.states) - 1)
            if graph.terminal[-1]:  # of what kind of end it is, a plan says nothing
                answer = (self.agent.model or self.agent.domain).successors(graph.states[-2:-1])
                graph = replace(graph, solved=graph.terminal & answer.solved[0, plan[-1]])
            return Thought(self.episode.state, 0, 0, graph, None, None, plan, states, None, is_followed=True)
        if isinstance(planner, Replan) and budget is not None:
            limited = self._begin(self.episode.state, self.step, budget)
            assert isinstance(limited, Replan)
            planner = limited
        while planner.store.searches["status"][0] == RUNNING:
            BestFirst.plan(planner)  # a round: `Replan` would go on to take the plan, and forget the search
        found = read_graph(planner.store, planner.sizes, 0)
        graph, plan, states = found.to_search_graph(settings.discount), tuple(found.plan.tolist()), found.plan_states
        open_states, members = read_open(planner.store, 0), None
        if isinstance(planner, Replan):  # which may plan to go elsewhere, if there is nothing to find
            planner.plan()
            chain, way = planner.search_graph(0), [graph.root]
            plan, members = _chain(chain), chain.member_values[0]  # as at the steps that follow
            for action in plan[:-1]:
                way.append(int(graph.child[way[-1], action]))
            states = np.array(way)
        return Thought(
            state=self.episode.state,
            budget=found.num_expansions,
            most=settings.max_expansions,
            graph=graph,
            report=None,
            penalty=None,
            plan=plan,
            plan_states=states,
            open_states=open_states,
            members=members,
        )

    def _told(self, report: RootReport, graph: SearchGraph, budget: int, most: int) -> Thought:
        line = best_line(graph, report.chosen)
        states = np.array(line.states[: len(line.actions)], np.int64)
        weight = self.settings.episode_penalty if isinstance(self.settings, SearchConfig) else 0.0
        penalty = weight * graph.root_visits[graph.likely_child[graph.root]].astype(np.float64)
        return Thought(self.episode.state, budget, most, graph, report, penalty, line.actions, states, None)

    def _keep(self, planner: Planner) -> None:
        """Keeps a planner for the way back; of too many every second one is let go."""
        self._saved[self.step] = planner.state_dict()
        while len(self._saved) > 2 and sum(map(_size, self._saved.values())) > _MEMORY:
            for step in list(self._saved)[:-1:2]:
                del self._saved[step]

    def _planner_at(self, step: int, budget: int | None = None) -> Planner:
        """Returns the planner as it was before planning a step."""
        states = self.episode.states
        begin = max(each for each in self._fresh if each <= step)
        planner = self._begin(states[begin], begin, None)
        if planner.makes_plans:
            return self._begin(states[step], step, budget)
        at = max((each for each in self._saved if begin <= each <= step), default=begin)
        if at in self._saved:
            planner.load_state_dict(self._saved[at])
        for number in range(at, step):
            planner.plan()
            planner.act()
            if not planner.active[0] or planner.root_states[0].tobytes() != states[number + 1].tobytes():
                break
        if not planner.active[0] or planner.root_states[0].tobytes() != states[step].tobytes():
            planner = self._begin(states[step], step, None)
            self._fresh = sorted({*self._fresh, step})
        return planner

    def _begin(self, state: States, step: int, budget: int | None) -> Planner:
        """Returns a planner that begins in a state; its step limit is what is left of the episode's."""
        settings = replace(self.settings, max_steps=max(self.episode.max_steps - step, 1))
        if isinstance(settings, BestFirstConfig) and budget is not None:
            settings = replace(settings, max_expansions=max(min(budget, settings.max_expansions), 1))
        agent = self.agent
        options: dict[str, Any] = {"starts": state[None], "seed": self.seed + step, "num_episodes": 1}
        return make_planner(agent.domain, agent.values, settings, batch=1, model=agent.model, **options)


def _chain(graph: SearchGraph) -> tuple[int, ...]:
    """Returns the actions of a graph in which every state but the last has one."""
    return tuple((graph.child[:-1] >= 0).argmax(axis=1).tolist())


def judge(thought: Thought, action: int, names: tuple[str, ...]) -> str:
    """Says what an agent thinks of a step."""
    if thought.choice == action:
        return f"You chose {names[action]}, and so would the agent."
    chosen = "nothing" if thought.choice is None else names[thought.choice]
    told = f"You chose {names[action]}; the agent would have chosen {chosen}."
    report = thought.report
    if report is None:
        return told
    if report.excluded[action]:
        return f"{told} It does not consider {names[action]}: the state {report.excluded[action]}."
    place = 1 + int(np.nansum(report.score > report.score[action]))
    gap = report.score[report.chosen] - report.score[action]
    return f"{told} Of {len(names)} actions it ranks yours number {place}, {gap:.3g} below its own."


def _size(saved: dict[str, Any]) -> int:
    return sum(array.nbytes for array in saved.values())
