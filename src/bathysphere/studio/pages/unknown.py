"""The page of what an agent does not know: maps over training and now, and the states its members dispute."""

from __future__ import annotations

from typing import Any

import numpy as np
from nicegui import ui
from PIL import Image

from bathysphere.domains.observing import TrainingMap
from bathysphere.domains.presentation import picture_of, text_of
from bathysphere.errors import BathysphereError
from bathysphere.studio.agents import Known, agent_in, start_states
from bathysphere.studio.charts import RAMPS, map_chart, training_map_chart
from bathysphere.studio.pages import parts
from bathysphere.studio.pages.watch import DEFAULT
from bathysphere.studio.sessions import Session, data_url
from bathysphere.studio.studio import Studio
from bathysphere.studio.unknown import (
    Disputed,
    JudgedMap,
    disputed_csv,
    judged_maps,
    map_csv,
    most_disputed,
    training_csv,
    training_maps,
)
from bathysphere.studio.watched import Watched

_SIDE = 430  # pixels of a map
_TILE = 200  # pixels of a small picture
_LOOK_SECONDS = 3.0


def register(studio: Studio) -> None:
    """Makes the page known."""

    @ui.page("/unknown")
    def unknown(session: str = "", agent: str = "") -> None:
        page = UnknownPage(studio)
        parts.every(0.01, lambda: page.begin(session, agent), once=True)


class UnknownPage:
    """What one browser sees of an agent's ignorance."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.session: Session | None = None
        self.known: Known | None = None
        self.maps: dict[str, list[TrainingMap]] = {}
        self.judged: list[JudgedMap] = []
        self.disputed: list[Disputed] = []
        with parts.frame(
            "What it does not know", "Where the members of the ensemble differ, they have not learned yet."
        ) as beside:
            with beside:
                self.agent = parts.Choice("Agent", studio.agents.names(), DEFAULT, self._choose)
                self.seed = parts.entry("Seed of the start", "0", on_enter=self._new_start)
                parts.button("New start", self._new_start)
            self.problem = parts.text("", "p", "bad")
            self.waiting = parts.text("Loading the agent ...", "p", "muted")
            with parts.card(
                "Over training", "One scale for all moments. Move the slider, or use the arrow keys on it."
            ) as self.over:
                with ui.element("div").classes("row-of"):
                    self.which = parts.Choice("Map", {"": ""}, "", lambda _: self._draw_training())
                    self.moment = parts.Slider("Moment", 0, 0, 1, 0, lambda _: self._draw_training())
                    self.moment.classes("grow")
                    parts.copy_button(lambda: training_csv(self.maps.get(self.which.value, [])))
                self.unvisited = parts.text("Nothing yet: no episode has ended.", "p", "muted")
                self.training = parts.chart("The map as it was then", {}, height=_SIDE, renderer="canvas")
                self.training.style(f"max-width: {_SIDE}px; margin: 0 auto")
                self._legend("std", "training_legend")
            with parts.card(
                "Now", "All states that differ in one thing from the one at the start, or from the one being watched."
            ) as self.now:
                with ui.element("div").classes("row-of"):
                    self.kind = parts.Choice("Map", {"": ""}, "", lambda _: self._draw_now())
                    parts.copy_button(lambda: map_csv(self._chosen()))
                with ui.element("div").classes("columns even"):
                    with ui.element("div").classes("stack"):
                        parts.text("How far members differ", "h2")
                        self.std = parts.chart("Standard deviation of the members", {}, height=_SIDE, renderer="canvas")
                        self._legend("std", "std_legend")
                    with ui.element("div").classes("stack"):
                        parts.text("What it is worth", "h2")
                        self.value = parts.chart("Mean value of the members", {}, height=_SIDE, renderer="canvas")
                        self._legend("value", "value_legend")
            note = "Of the states on the maps, and those that random walks and the latest search came through."
            with parts.card("Most disputed states", note) as self.most:
                self.tiles = ui.element("div").classes("tiles")
                with ui.element("div").classes("row-of"):
                    parts.copy_button(lambda: disputed_csv(self.disputed))
        for part in (self.over, self.now, self.most):
            part.set_visibility(False)

    def _legend(self, ramp: str, name: str) -> None:
        with ui.element("div").classes("legend"):
            setattr(self, f"{name}_low", parts.text(""))
            ui.element("span").classes("ramp").style(f"background: linear-gradient(90deg, {', '.join(RAMPS[ramp])})")
            setattr(self, f"{name}_high", parts.text(""))

    async def begin(self, session: str, agent: str) -> None:
        """Shows the agent of a session with the state it is in, or an agent at a start."""
        if session:
            try:
                self.session = self.studio.sessions.find(session)
            except BathysphereError as error:
                self.problem.set_text(str(error))
        name = self.session.known.name if self.session is not None else agent or DEFAULT
        self.agent.offer(self.studio.agents.names(name), name)
        await self._load()
        parts.every(_LOOK_SECONDS, self._look)

    async def _choose(self, _: str) -> None:
        self.session = None
        await self._load()

    async def _new_start(self) -> None:
        self.session = None
        await self._load()

    async def _look(self) -> None:
        """Looks whether the run has a newer checkpoint."""
        if self.known is None:
            return
        try:
            newest = await self.studio.thinking(self.studio.agents.load, self.known.name)
        except BathysphereError as error:  # deleted meanwhile: what was seen of it stays
            self.known = None
            self.problem.set_text(str(error))
            return
        if newest is not self.known:
            await self._load()

    async def _load(self) -> None:
        """Loads the chosen agent and judges its states."""
        self.problem.set_text("")
        self.waiting.set_visibility(True)
        told = str(self.seed.props["value"]).strip()
        try:
            if not told.isdigit():
                raise BathysphereError(f"The seed is {told!r}; expected a whole number from 0.")
            await self.studio.thinking(self._compute, self.agent.value, int(told))
        except BathysphereError as error:
            self.known = None
            for part in (self.over, self.now, self.most):
                part.set_visibility(False)
            self.problem.set_text(str(error))
            return
        finally:
            self.waiting.set_visibility(False)
        self._show()

    def _compute(self, name: str, seed: int) -> None:
        known = self.studio.agents.load(name)
        if self.session is not None:
            domain, state = self.session.watched.agent.domain, self.session.watched.episode.state
            watched = self.session.watched
        else:
            domain, state = start_states(known, seed)
            watched = Watched(agent_in(known, domain), state, seed)
        seen = [watched.episode.states]
        if not watched.episode.over:
            graph = watched.think().graph
            seen.append(graph.states[~graph.terminal])
        self.maps = training_maps(known)
        self.judged = judged_maps(known, domain, state)
        seen += [each.map.states for each in self.judged]
        self.disputed = most_disputed(known, domain, seen)
        pictures = [_small(picture_of(domain, each.state)) for each in self.disputed]
        self.pictures = [
            (data_url(picture), text_of(domain, each.state))
            for picture, each in zip(pictures, self.disputed, strict=True)
        ]
        self.known = known

    def _show(self) -> None:
        self.over.set_visibility(bool(self.maps))
        if self.maps:
            self.which.offer({name: name for name in self.maps})
            self._offer_moments()
            self._draw_training()
        self.now.set_visibility(bool(self.judged))
        if self.judged:
            self.kind.offer({each.map.name: each.map.name for each in self.judged})
            self._draw_now()
        self.most.set_visibility(True)
        self.tiles.clear()
        with self.tiles:
            for each, (picture, told) in zip(self.disputed, self.pictures, strict=True):
                with ui.element("figure"):
                    image = ui.element("img").classes("board small")
                    image.props["src"], image.props["alt"] = picture, told[:2000]
                    parts.text(f"std {each.std:.3g}, mean {each.mean:.3g}", "figcaption")

    def _offer_moments(self) -> None:
        maps = self.maps[self.which.value]
        names = ["all of training" if each.env_steps is None else f"step {each.env_steps:,}" for each in maps]
        self.moment.range(0, len(maps) - 1, len(maps) - 1, names)

    def _draw_training(self) -> None:
        maps = self.maps.get(self.which.value)
        if not maps:
            return
        if self.moment._props["high"] != len(maps) - 1:
            self._offer_moments()
        top = max(float(np.nanmax(each.values, initial=0.0)) for each in maps)
        self.unvisited.set_visibility(top == 0)
        shown = maps[int(self.moment.value)]
        height, width = shown.values.shape
        self.moment.set_visibility(len(maps) > 1)
        side = f"width: min(100%, {_SIDE if width <= height else 2 * _SIDE}px); max-width: none; height: auto"
        self.training.style(f"{side}; aspect-ratio: {width} / {height}; background: var(--soft); margin: 0 auto")
        parts.draw(self.training, training_map_chart(shown.values, top))
        self._tell("training_legend", 0.0, top)

    def _chosen(self) -> JudgedMap | None:
        return next((each for each in self.judged if each.map.name == self.kind.value), None)

    def _draw_now(self) -> None:
        judged = self._chosen()
        if judged is None:
            return
        height, width = judged.map.shape
        picture = judged.map.picture
        below = "none" if picture is None else f"url({data_url(_small(picture, 2 * _SIDE))})"
        for made, values, ramp, legend in (
            (self.std, judged.std, "std", "std_legend"),
            (self.value, judged.mean, "value", "value_legend"),
        ):
            side = _SIDE if width <= height else 2 * _SIDE
            made.style(f"width: min(100%, {side}px); height: auto; aspect-ratio: {width} / {height}; margin: 0 auto")
            made.style["background"] = f"var(--soft) {below} 0 0 / 100% 100%"
            made.update()
            parts.draw(made, map_chart(judged.map, values, ramp))
            self._tell(legend, float(values.min(initial=np.inf)), float(values.max(initial=-np.inf)))

    def _tell(self, legend: str, low: float, high: float) -> None:
        for end, value in (("low", low), ("high", high)):
            label: Any = getattr(self, f"{legend}_{end}")
            label.set_text(f"{value:.3g}" if np.isfinite(value) else "")


def _small(picture: Any, side: int = _TILE) -> Any:
    """Returns a picture that is at most `side` pixels wide and high."""
    image = Image.fromarray(picture)
    image.thumbnail((side, side))
    return np.asarray(image)
