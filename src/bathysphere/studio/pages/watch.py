"""The page on which an agent is watched: step by step, at any level, with other settings, beside a person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from nicegui import events, ui
from nicegui.element import Element

from bathysphere.domains.sokoban import Level
from bathysphere.errors import BathysphereError
from bathysphere.planning import BestFirstConfig
from bathysphere.planning.named import planner_name
from bathysphere.studio.charts import actions_chart, story_chart
from bathysphere.studio.lines import told_lines, told_marks, told_worth
from bathysphere.studio.pages import parts
from bathysphere.studio.pages.level_desk import LevelDesk
from bathysphere.studio.sessions import Session
from bathysphere.studio.studio import Studio
from bathysphere.studio.thoughts import ACTION_COLUMNS, action_rows, actions_csv, sentence, story_csv
from bathysphere.studio.watched import MOST_EXPANSIONS, WITH_PASSES, Thought, fitting_planners

RISKS = ("mean_std", "mean_variance", "second_moment", "exponential", "vote", "vote_once")
DEFAULT = "shipped:deep-sea"
DOTS = (
    "A dot is a member's estimate, the bar their mean, the band one standard deviation. The choice is orange, what "
    "it may not choose grey."
)
_POINT = "Point at an action to see the line that is expected after it."
_MARKS = (
    f"{_POINT} A disc tells the members' mean and spread, its arc how many of them vote for the action; the wider the "
    "halo, the less they agree which action is better."
)
_NO_MARKS = f"{_POINT} Its button tells the members' mean and spread."


class Board(Element, component=str(parts.STATIC / "board.js")):
    """The world as it is, with what every action is worth, and the line that is expected."""


def register(studio: Studio) -> None:
    """Makes the page known."""

    @ui.page("/watch")
    def watch(session: str = "", agent: str = "", seed: int = 0) -> None:
        page = WatchPage(studio)
        parts.every(0.01, lambda: page.begin(session, agent, seed), once=True)


class WatchPage:
    """What one browser sees of an episode."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.session: Session | None = None
        self.thought: Thought | None = None
        self.is_playing = False
        self.turn = asyncio.Lock()  # of one who changes the session and shows it
        self.next: Callable[[Session], Any] | None = None  # what is to be done after that
        self.worths: list[ui.label] = []  # on the buttons of actions
        with parts.frame("Watch", "An agent at work, and what it thinks of every step.") as beside:
            with beside:
                self.inside = parts.link("Inside the search", "/search", classes="act")
                self.unknown = parts.link("What it does not know", "/unknown", classes="act")
            with ui.element("div").classes("columns two watch"):
                self._make_board()
                with ui.element("div").classes("stack mind"):
                    self._make_thoughts()
                    self._make_settings()
                    self._make_story()
                self._make_start()
        ui.keyboard(on_key=parts.guarded(self._key), ignore=["input", "select", "textarea", "button"])

    async def begin(self, session: str, agent: str, seed: int) -> None:
        """Shows the session that an address names, or begins one."""
        if session:
            try:
                self.session = self.studio.sessions.find(session)
            except BathysphereError as error:
                self.problem.set_text(str(error))
        if self.session is None:
            try:
                self.session = await self.studio.thinking(self.studio.sessions.begin, agent or DEFAULT, max(seed, 0))
            except BathysphereError as error:
                self.problem.set_text(str(error))
                return
        self._begun()
        await self._show()
        parts.every(0.5, self._follow)

    def _make_board(self) -> None:
        with parts.card():
            self.problem = parts.text("", "p", "bad")
            self.board = Board()
            self.board.props.update({"alt": "The world as it is now", "on": True, "marks": [], "lines": {}})
            self.board.on("play", parts.guarded(lambda event: self._do(partial(_play, int(event.args)))))
            self.status = parts.text("", "p", "said")
            self.status.props["role"] = "status"
            self.remark = parts.text("", "p", "muted")
            with ui.element("div").classes("row-of middle"):
                parts.button("Restart", lambda: self._do(lambda s: s.watched.restart()))
                parts.button("Back", lambda: self._do(lambda s: s.watched.back()))
                self.forward = parts.button("Forward", lambda: self._do(lambda s: s.watched.forward()))
                self.step = parts.button("Step", self._step, main=True)
                self.play = parts.button("Play", self._toggle)
                self.speed = parts.Slider("Steps a second", 0.5, 20, 0.5, 4, None)
                with ui.element("div") as self.on_board:
                    parts.tick("Values on the board", True, self._show_values)
            parts.text("Play yourself", "h2")
            self.buttons = ui.element("div").classes("row-of middle")
            self.about = parts.text(_POINT, "p", "muted")
            note = (
                "Keys: n steps, b and f go back and forward, space plays and pauses; arrows and digits are your own "
                "steps."
            )
            parts.text(note, "p", "muted")

    def _make_start(self) -> None:
        with parts.card("Agent and start"):
            with ui.element("div").classes("row-of"):
                names = self.studio.agents.names()
                self.agent = parts.Choice("Agent", names, DEFAULT, lambda name: self._begin(name, 0, None))
                self.seed = parts.entry("Seed of the start", "0", on_enter=self._new_start)
                parts.button("New start", self._new_start)
            self.desk = LevelDesk(self.studio, self._play_level)

    def _make_thoughts(self) -> None:
        with parts.card("What it thinks"):
            self.told = parts.text("Loading the agent and planning ...", "p", "said")
            self.dots = parts.chart("Every member's estimate of every action", {}, height=230)
            self.about_dots = parts.text(DOTS, "p", "muted")
            self.actions = parts.Table("The actions and their numbers", ACTION_COLUMNS, pointing=True)
            with ui.element("div").classes("row-of") as self.copy:
                parts.copy_button(lambda: actions_csv(self.thought))

    def _make_settings(self) -> None:
        with parts.card("How it plans", "A change is planned at once."):
            with ui.element("div").classes("row-of"):
                self.planner = parts.Choice("Planner", {}, "", lambda name: self._change(planner=name))
                self.budget = parts.Slider("Passes", 1, 200, 1, 10, self._change_budget)
            with ui.element("div").classes("row-of"):
                self.risk = parts.Choice(
                    "Risk measure", {r: r for r in RISKS}, RISKS[0], lambda r: self._change(risk=r)
                )
                self.slid_kappa = parts.Slider("Slide κ", -10, 10, 0.1, 0, lambda kappa: self._change(risk_coef=kappa))
            with ui.element("div").classes("row-of"):
                self.kappa = parts.entry("κ (weight of uncertainty)", "0", on_enter=self._set_kappa)
                parts.button("Set κ", self._set_kappa)
                parts.button("κ = 0", lambda: self._change(risk_coef=0.0))
                parts.button("As trained", self._as_trained)

    def _make_story(self) -> None:
        note = (
            "What each step was worth, and by how much members differed about it. A diamond: the agent would have "
            "made another. Click on a step, or slide, to go there; nothing is lost until you step elsewhere."
        )
        with parts.card("The episode so far", note):
            self.story = parts.chart("Value and disagreement at every step", {}, height=190)
            self.story.on("componentClick", parts.guarded(self._clicked), ["value"])
            with ui.element("div").classes("row-of middle"):
                self.place = parts.Slider("Step shown", 0, 0, 1, 0, self._go_to)
                self.place.classes("grow")
                parts.copy_button(self._story_csv)

    def _story_csv(self) -> str:
        if self.session is None:
            return ""
        watched = self.session.watched
        return story_csv(watched.story, watched.episode.all_actions, self._names())

    async def _clicked(self, event: Any) -> None:
        told = event.args.get("value")
        if isinstance(told, list) and told:
            await self._go_to(float(told[0]))

    async def _go_to(self, step: float) -> None:
        """Shows the episode as it was at a step."""
        await self._do(lambda session: session.watched.go_to(int(step)))

    def _names(self) -> tuple[str, ...]:
        return () if self.session is None else self.session.watched.agent.domain.action_names

    async def _play_level(self, level: Level, seed: int) -> None:
        await self._begin(self.agent.value, seed, level)

    async def _begin(self, agent: str, seed: int, level: Any) -> None:
        self.is_playing = False
        self.problem.set_text("")
        async with self.turn:
            begin = self.studio.sessions.begin
            self.session = await self.studio.thinking(begin, agent, seed, level, self.session)
            self._begun()
            await self._show()

    def _begun(self) -> None:
        """Shows what belongs to an episode from its beginning to its end."""
        assert self.session is not None
        watched = self.session.watched
        shown = self.session.known.name
        self.agent.offer(self.studio.agents.names(shown), shown)
        self.seed.props["value"] = str(self.session.seed)
        self.seed.update()
        self.inside.props["href"] = f"/search?session={self.session.name}"
        self.unknown.props["href"] = f"/unknown?session={self.session.name}"
        self.inside.update()
        self.unknown.update()
        self.desk.seed = self.session.seed
        self.desk.place.set_visibility(self.session.known.player is not None)
        if self.session.known.player is not None:
            state = watched.episode.states[0].reshape(watched.agent.domain.shape)  # type: ignore[attr-defined]
            self.desk.show(state)
        self.buttons.clear()
        self.worths = []
        with self.buttons:
            for number, name in enumerate(watched.agent.domain.action_names[:32]):
                made = parts.button(name, partial(self._do, partial(_play, number)), label=name)
                parts.points_at(made, number)
                with made:
                    self.worths.append(parts.text("", "span", "note"))
        self._show_settings()

    def _show_settings(self) -> None:
        assert self.session is not None
        agent, settings = self.session.watched.agent, self.session.watched.settings
        self.planner.offer({name: name for name in fitting_planners(agent)}, planner_name(settings))
        has_passes = isinstance(settings, WITH_PASSES)
        self.budget._props["label"] = "Passes" if has_passes else "Expansions"
        self.budget.set_visibility(has_passes or isinstance(settings, BestFirstConfig))
        if isinstance(settings, WITH_PASSES):
            self.budget.range(1, max(200, settings.passes), settings.passes)
        elif isinstance(settings, BestFirstConfig):
            self.budget.range(1, max(MOST_EXPANSIONS, settings.max_expansions), settings.max_expansions)
        risk = getattr(settings, "risk", "")
        ranks_actions = not isinstance(settings, BestFirstConfig)  # votes compare actions
        offered = [name for name in RISKS if ranks_actions or not name.startswith("vote")]
        self.risk.offer({name: name for name in dict.fromkeys((*offered, risk)) if name}, risk)
        self.risk.enable(bool(risk))
        kappa, trained = getattr(settings, "risk_coef", 0.0), getattr(agent.config, "risk_coef", 0.0)
        self.kappa.props["value"] = f"{kappa:g}"
        self.kappa.update()
        side = float(np.ceil(max(10.0, 2 * abs(trained), abs(kappa))))
        self.slid_kappa.range(-side, side, kappa)

    async def _show(self) -> None:
        """Shows the episode as it is, and what the agent thinks of it."""
        session = self.session
        assert session is not None
        self._seen = session.version
        watched = session.watched
        self.status.set_text(_status(session))
        self.remark.set_text(watched.remark)
        parts.enabled(self.step, not watched.episode.over)
        parts.enabled(self.play, not watched.episode.over)
        if watched.episode.over:
            self.thought = None
            self.told.set_text("The episode is over.")
        else:
            self.thought = await self.studio.thinking(watched.think)
            self.told.set_text(sentence(self.thought, watched.agent.domain.action_names))
        session.thought = self.thought
        await self._show_board()
        parts.enabled(self.forward, watched.episode.num_undone > 0)
        self.place.range(0, watched.last, watched.step)
        parts.draw(self.story, story_chart(watched.story, watched.episode.all_actions, watched.step, self._names()))
        report = None if self.thought is None else self.thought.report
        for part in (self.dots, self.about_dots, self.actions, self.copy):
            part.set_visibility(report is not None)
        if report is not None:
            self.dots.style(f"height: {max(170, 44 * min(len(report.q), 24) + 50)}px")
            parts.draw(self.dots, actions_chart(report))
        self.actions.show(action_rows(self.thought))

    async def _show_board(self) -> None:
        """Shows the board, and on it what the agent expects."""
        session, thought = self.session, self.thought
        assert session is not None
        props: dict[str, Any] = {"src": f"/picture/{session.name}/now?{session.watched.version}"}
        props |= {"lines": {}, "marks": [], "chosen": None}
        if thought is not None:
            address = f"/picture/{session.name}/{{}}?{session.watched.version}-{thought.budget}"
            domain = session.watched.agent.domain
            lines = await self.studio.thinking(told_lines, thought.graph, thought.lines(), domain, address)
            marks = [] if thought.report is None else told_marks(thought.report, lines)
            props |= {"lines": lines, "marks": marks, "chosen": thought.choice}
            self.on_board.set_visibility(bool(marks))
            self.about.set_text(_POINT if thought.report is None else _MARKS if marks else _NO_MARKS)
        report = None if thought is None or props["marks"] else thought.report
        for action, label in enumerate(self.worths):
            label.set_text("" if report is None else told_worth(report, action))
        self.board.props.update(props)
        self.board.update()

    def _show_values(self, on: bool) -> None:
        self.board.props["on"] = on
        self.board.update()

    async def _follow(self) -> None:
        """Plays on, and shows what another window has done."""
        if self.session is None or self.turn.locked():
            return
        if self.session.version != self._seen:
            await self._show()

    async def _do(self, what: Callable[[Session], Any]) -> None:
        """Does something with the session, and shows it; of what is wanted while something is done, the latest."""
        if self.session is None:
            raise BathysphereError("There is no episode. Choose an agent first.")
        is_first, self.next = self.next is None, what
        if not is_first:
            return
        async with self.turn:
            what, self.next = self.next, None
            await self.studio.thinking(what, self.session)
            await self._show()

    async def _step(self) -> None:
        if self.session is not None and self.session.watched.episode.over:
            raise BathysphereError("The episode is over: go back, or restart.")
        await self._do(lambda session: session.watched.act())

    def _toggle(self) -> None:
        self.is_playing = not self.is_playing
        self.play.default_slot.children[0].set_text("Pause" if self.is_playing else "Play")  # type: ignore[attr-defined]
        if self.is_playing:
            self.timer = parts.every(1 / self.speed.value, self._go_on)

    async def _go_on(self) -> None:
        is_over = self.session is None or self.session.watched.episode.over
        if not self.is_playing or is_over:
            self.timer.cancel()
            if self.is_playing:
                self._toggle()
            return
        self.timer.interval = 1 / self.speed.value
        if not self.turn.locked():
            await self._step()

    async def _key(self, event: events.KeyEventArguments) -> None:
        if not event.action.keydown or self.session is None:
            return
        arrows = {"ArrowUp": ("up", "north"), "ArrowRight": ("right", "east", "action-1")}
        arrows |= {"ArrowDown": ("down", "south"), "ArrowLeft": ("left", "west", "action-0")}
        names = self.session.watched.agent.domain.action_names
        key = event.key.name
        chosen = [number for number, name in enumerate(names) if name in arrows.get(key, ())]
        if key.isdigit() and int(key) < len(names):
            chosen = [int(key)]
        if key == "n":
            await self._step()
        elif key == "b":
            await self._do(lambda session: session.watched.back())
        elif key == "f":
            await self._do(lambda session: session.watched.forward())
        elif key == " ":
            self._toggle()
        elif chosen:
            await self._do(lambda session: session.watched.play(chosen[0]))

    async def _change(self, **changes: Any) -> None:
        try:
            await self._do(lambda session: session.watched.change(**changes))
        finally:
            if self.next is None:  # else another change comes at once
                self._show_settings()

    async def _change_budget(self, value: float) -> None:
        has_passes = self.session is not None and isinstance(self.session.watched.settings, WITH_PASSES)
        await self._change(**{"passes" if has_passes else "max_expansions": int(value)})

    async def _set_kappa(self) -> None:
        told = str(self.kappa.props["value"]).strip().replace(",", ".")
        try:
            kappa = float(told)
        except ValueError as error:
            raise BathysphereError(f"κ is {told!r}; expected a number, such as 0, 3 or -0.5.") from error
        await self._change(risk_coef=kappa)

    async def _as_trained(self) -> None:
        await self._do(lambda session: session.watched.plan_as_trained())
        self._show_settings()

    async def _new_start(self) -> None:
        told = str(self.seed.props["value"]).strip()
        if not told.isdigit():
            raise BathysphereError(f"The seed is {told!r}; expected a whole number from 0.")
        await self._begin(self.agent.value, int(told), None)


def _play(action: int, session: Session) -> None:
    session.watched.play(action)


def _status(session: Session) -> str:
    episode = session.watched.episode
    told = f"Step {len(episode.actions)} of {episode.max_steps}, reward {episode.total_reward:.4g}"
    if episode.actions:
        told += f", last {episode.domain.action_names[episode.actions[-1]]}"
    return told + (". Solved!" if episode.solved else ". The end." if episode.over else ".")
