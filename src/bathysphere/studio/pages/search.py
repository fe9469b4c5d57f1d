"""The page inside a search: every action and member, the graph as it grows, any state of it, the open list."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import ui

from bathysphere.domains.presentation import text_of
from bathysphere.errors import BathysphereError
from bathysphere.plots import ORANGE
from bathysphere.studio.charts import GREEN, PURPLE, RAMPS, actions_chart, graph_chart
from bathysphere.studio.graph_view import GraphView, view_graph
from bathysphere.studio.lines import told_ways
from bathysphere.studio.pages import parts
from bathysphere.studio.pages.watch import DEFAULT, DOTS
from bathysphere.studio.sessions import Session
from bathysphere.studio.studio import Studio
from bathysphere.studio.thoughts import ACTION_COLUMNS, action_rows, actions_csv, graph_csv, open_csv, sentence
from bathysphere.studio.watched import Thought

_COLOURED = {"std": "disagreement (std among members)", "value": "value"}
_OPEN_COLUMNS = {
    ">place": "place",
    "@state": "state",
    ">priority": "priority",
    ">depth": "steps",
    ">mean": "value",
    ">std": "std",
}
_MOST_OPEN = 200
_MOST_WAYS = 16  # out of a state


def register(studio: Studio) -> None:
    """Makes the page known."""

    @ui.page("/search")
    def search(session: str = "", agent: str = "") -> None:
        page = SearchPage(studio)
        parts.every(0.01, lambda: page.begin(session, agent), once=True)


class SearchPage:
    """What one browser sees of a search."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.session: Session | None = None
        self.thought: Thought | None = None
        self.view: GraphView | None = None
        self.budget: int | None = None
        self.opened: int | None = None
        self._seen: Any = None
        with parts.frame(
            "Search", "The plan behind the next step: what every member says, and the graph that was searched."
        ) as beside:
            with beside:
                self.watch = parts.link("Watch the episode", "/watch", classes="act")
            self.problem = parts.text("", "p", "bad")
            with parts.card():
                self.told = parts.text("Loading the agent and planning ...", "p", "said")
                with ui.element("div").classes("row-of"):
                    self.slider = parts.Slider("Planned so far", 1, 1, 1, 1, self._slide)
                    self.slider.classes("grow")
                    self.by = parts.Choice("Colour states by", _COLOURED, "std", lambda _: self._draw_graph())
                    self.step = parts.button("Step", self._step, main=True)
            with ui.element("div").classes("columns side"):
                with parts.card(
                    "The graph", "Drag to move, scroll to zoom, point at a state to see it, click to open it."
                ):
                    self.graph = parts.chart("The search graph", {}, height=470).classes("graph")
                    self.graph.on("componentClick", parts.guarded(self._clicked), ["name", "dataType"])
                    self._make_legend()
                    with ui.element("div").classes("row-of middle"):
                        self.counted = parts.text("", "span", "muted grow")
                        parts.copy_button(lambda: graph_csv(self.thought))
                with ui.element("section").classes("card") as self.node:
                    pass
            with parts.card("Actions", DOTS) as self.acts:
                self.dots = parts.chart("Every member's estimate of every action", {}, height=230)
                self.actions = parts.Table("The actions and their numbers", ACTION_COLUMNS, sortable=True)
                with ui.element("div").classes("row-of"):
                    parts.copy_button(lambda: actions_csv(self.thought))
            with parts.card("Open list", "States that are to be expanded, the next one first.") as self.open_card:
                self.open = parts.Table("The open list", _OPEN_COLUMNS, on_open=lambda key: self._open(int(key)))
                with ui.element("div").classes("row-of"):
                    parts.copy_button(lambda: open_csv(self.thought))
            self.acts.set_visibility(False)
            self.open_card.set_visibility(False)

    def _make_legend(self) -> None:
        with ui.element("div").classes("legend"):
            self.low = parts.text("")
            self.ramp = ui.element("span").classes("ramp")
            self.high = parts.text("")
            for mark, colour, told in (
                ("━", ORANGE, "what it expects"),
                ("◆", GREEN, "success"),
                ("▲", "inherit", "dead end"),
                ("■", "inherit", "end"),
                ("?", "inherit", "not known to its model"),
                ("┅", PURPLE, "loop: back to where one comes from"),
            ):
                with ui.element("span"):
                    parts.text(mark).style(f"color: {colour}; margin-right: .35rem").props("aria-hidden=true")
                    parts.text(told)

    async def begin(self, session: str, agent: str) -> None:
        """Shows the session that an address names, the newest one, or a new one."""
        try:
            if session:
                self.session = self.studio.sessions.find(session)
            elif not agent:
                self.session = self.studio.sessions.newest()
            if self.session is None:
                self.session = await self.studio.thinking(self.studio.sessions.begin, agent or DEFAULT)
        except BathysphereError as error:
            self.problem.set_text(str(error))
            return
        self.watch.props["href"] = f"/watch?session={self.session.name}"
        self.watch.update()
        parts.every(0.5, self._follow)

    async def _follow(self) -> None:
        """Looks whether the episode has gone on, in this window or another."""
        assert self.session is not None
        self.session = self.studio.sessions.find(self.session.name)
        if self.session.version != self._seen:
            self._seen = self.session.version
            self.budget, self.opened = None, None
            await self._show()

    async def _step(self) -> None:
        assert self.session is not None
        if self.session.watched.episode.over:
            raise BathysphereError("The episode is over: go back or restart on the page Watch.")
        await self.studio.thinking(self.session.watched.act)
        await self._follow()

    async def _slide(self, budget: float) -> None:
        self.budget = int(budget)
        await self._show()

    async def _show(self) -> None:
        session = self.session
        assert session is not None
        watched = session.watched
        parts.enabled(self.step, not watched.episode.over)
        if watched.episode.over:
            self.told.set_text("The episode is over. Go back or restart on the page Watch.")
            return
        self.thought = session.thought = await self.studio.thinking(watched.think, self.budget)
        thought = self.thought
        names = watched.agent.domain.action_names
        self.told.set_text(f"Step {watched.step}. {sentence(thought, names)}")
        unit = "Passes made" if thought.report is not None else "States expanded"
        self.slider._props["label"] = unit
        self.slider.set_visibility(thought.most > 0)
        if self.budget is None:
            self.slider.range(1, max(thought.most if thought.report is not None else thought.budget, 1), thought.budget)
        report = thought.report
        self.acts.set_visibility(report is not None)
        if report is not None:
            self.dots.style(f"height: {max(170, 44 * min(len(report.q), 24) + 50)}px")
            parts.draw(self.dots, actions_chart(report))
            self.actions.show(action_rows(thought))
        self.open_card.set_visibility(thought.open_states is not None)
        self.open.show(_open_rows(thought))
        self.view = await self.studio.thinking(view_graph, thought.graph, thought.path, watched.agent.domain)
        self._draw_graph()
        await self._show_node(self.opened if self.opened is not None else thought.graph.root)

    def _draw_graph(self) -> None:
        view = self.view
        if self.thought is None or self.session is None or view is None:
            return
        picture = f"/picture/{self.session.name}/{{}}?{self.session.watched.version}-{self.thought.budget}"
        parts.draw(self.graph, graph_chart(view, self.by.value, picture, self.opened))
        self.ramp.style(f"background: linear-gradient(90deg, {', '.join(RAMPS[self.by.value])})")
        told = [node.std if self.by.value == "std" else node.mean for node in view.nodes]
        self.low.set_text(f"{min(told):.3g}")
        self.high.set_text(f"{max(told):.3g}")
        hidden = f"; {view.num_hidden:,} less visited ones are not drawn" if view.num_hidden else ""
        self.counted.set_text(f"{view.num_states:,} states{hidden}.")

    async def _clicked(self, event: Any) -> None:
        told = event.args
        if told.get("dataType") == "node" and str(told.get("name")).isdigit():
            await self._open(int(told["name"]))

    async def _open(self, state: int) -> None:
        if self.thought is None or not 0 <= state < len(self.thought.graph.states):
            raise BathysphereError(f"There is no state {state} in this graph.")
        self.opened = state
        self._draw_graph()
        await self._show_node(state)

    async def _show_node(self, state: int) -> None:
        """Shows one state of the graph: its board, its numbers, where its actions lead."""
        assert self.thought is not None
        assert self.session is not None
        graph, domain = self.thought.graph, self.session.watched.agent.domain
        if state >= len(graph.states):
            state = graph.root
        board = await self.studio.thinking(text_of, domain, graph.states[state])
        self.node.clear()
        with self.node:
            parts.text(f"State {state}" + (" (now)" if state == graph.root else ""), "h2")
            image = ui.element("img").classes("board small")
            image.props["src"] = (
                f"/picture/{self.session.name}/{state}?{self.session.watched.version}-{self.thought.budget}"
            )
            image.props["alt"] = board[:2000]
            members = ", ".join(f"{value:.3g}" for value in graph.member_values[state][:12])
            with ui.element("div").classes("facts"):
                for name, value in (
                    ("Value", f"{graph.mean[state]:.4g}"),
                    ("Std", f"{graph.std[state]:.3g}"),
                    ("Visits", f"{graph.count[state]}"),
                    ("Steps away", str(graph.depth[state]) if graph.depth[state] >= 0 else "out of reach"),
                    ("Members", members + (" ..." if graph.member_values.shape[1] > 12 else "")),
                ):
                    parts.text(name)
                    parts.text(value)
            if graph.unknown is not None and graph.unknown[state]:
                told = "Its model does not know what comes here; the picture is of the state before."
                parts.text(told, "p", "muted")
            elif (graph.child[state] >= 0).any():
                with ui.element("div").classes("row-of middle"):
                    for label, child in told_ways(graph, state, domain.action_names)[:_MOST_WAYS]:
                        parts.button(label, partial(self._open, child))
            else:
                parts.text("Not expanded." if not graph.terminal[state] else "The episode ends here.", "p", "muted")

            async def opened() -> None:
                await self._open(_number(str(number.props["value"])))

            number = parts.entry("Open state number", str(state), on_enter=opened)
            parts.button("Open", opened)


def _number(told: str) -> int:
    if not told.strip().isdigit():
        raise BathysphereError(f"{told!r} is not the number of a state.")
    return int(told)


def _open_rows(thought: Thought) -> list[dict[str, Any]]:
    if thought.open_states is None:
        return []
    graph, rows = thought.graph, []
    told = zip(thought.open_states.states.tolist(), thought.open_states.priorities.tolist(), strict=True)
    for place, (state, priority) in enumerate(list(told)[:_MOST_OPEN], 1):
        rows.append(
            {
                "key": str(state),
                "place": str(place),
                "state": str(state),
                "priority": f"{priority:.4g}",
                "depth": str(graph.depth[state]),
                "mean": f"{graph.mean[state]:.4g}",
                "std": f"{graph.std[state]:.3g}",
            }
        )
    return rows
