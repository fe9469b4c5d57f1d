"""Where Sokoban levels come from on the page Watch: pasted, opened, generated, or drawn by mouse."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import ui
from nicegui.element import Element

from bathysphere.domains.sokoban import Level
from bathysphere.domains.sokoban.levels import grid_text
from bathysphere.errors import BathysphereError
from bathysphere.studio import levels
from bathysphere.studio.pages import parts
from bathysphere.studio.sessions import data_url
from bathysphere.studio.studio import Studio

_OPEN = f"""async (e) => {{
  const file = e.target.files[0];
  if (file) emit(file.size > {levels.MAX_CHARACTERS} ? null : await file.text());
  e.target.value = "";
}}"""


class Editor(Element, component=str(parts.STATIC / "editor.js")):
    """A Sokoban board to draw on."""


class LevelDesk:
    """Makes levels, and has them played.

    Args:
      studio: has threads for work that takes a while.
      play: begins an episode in a level; of a generated one the seed is given too.
    """

    def __init__(self, studio: Studio, play: Callable[[Level, int], Awaitable[None]]) -> None:
        self._studio, self._play = studio, play
        self._levels: list[Level] = []
        self.seed = 0  # of the level that was generated last
        with ui.element("details") as self.place:
            parts.text("Sokoban levels: paste, open, generate, or draw one", "summary")
            with ui.element("div").classes("stack"):
                self._pasted = parts.entry("Levels as text (XSB, Boxoban or .sok)", lines=True, classes="wide")
                with ui.element("div").classes("row-of middle"):
                    parts.button("Read the text", lambda: self._read(str(self._pasted.props["value"])))
                    with ui.element("label").classes("field"):
                        parts.text("Open a level file")
                        opened = ui.element("input")
                    opened.props.update({"type": "file", "accept": ".txt,.xsb,.sok"})
                    opened.on("change", parts.guarded(self._opened), js_handler=_OPEN)
                self._level = parts.Choice("Level", {"": "none read yet"}, "", self._choose)
                with ui.element("div").classes("row-of"):
                    self._boxes = parts.Slider("Boxes", 1, 6, 1, 2, None)
                    self._side = parts.Slider("Cells a side", 7, 13, 1, 8, None)
                    parts.button("Generate one", self._generate)
                self._editor = Editor()
                self._editor.props["tiles"] = [data_url(tile) for tile in levels.tile_pictures()]
                self._editor.props["tools"], self._editor.props["grid"] = levels.TOOLS, []
                self._editor.on("paint", parts.guarded(self._paint))
                with ui.element("div").classes("row-of middle"):
                    parts.button("Play the board as drawn", self._play_drawn, main=True)
                    self._wrong = parts.text("", "span", "muted")

    def show(self, grid: Any) -> None:
        """Shows a board to draw on, uint8 [height, width]."""
        self._grid = grid.copy()
        self._editor.props["grid"] = self._grid.tolist()
        self._editor.update()
        self._wrong.set_text("")

    def _read(self, content: str, source: str = "The text") -> None:
        self._levels = levels.read_text(content, source)
        names = {str(i): f"{i + 1}. {level.title or 'without title'}" for i, level in enumerate(self._levels)}
        self._level.offer({"": f"choose one of {len(names)}"} | names, "")
        ui.notify(f"{len(names)} levels read.")

    def _opened(self, event: Any) -> None:
        told = event.args
        if not isinstance(told, str):
            raise BathysphereError(f"This file is refused: level files may have {levels.MAX_CHARACTERS >> 20} MB here.")
        self._read(told, "The file")

    async def _choose(self, number: str) -> None:
        if number:
            await self._play(self._levels[int(number)], 0)

    async def _generate(self) -> None:
        self.seed += 1
        side, boxes = int(self._side.value), int(self._boxes.value)
        level = await self._studio.thinking(levels.generated, side, side, boxes, self.seed)
        await self._play(level, self.seed)

    def _paint(self, event: Any) -> None:
        told = event.args
        self._grid = levels.paint(self._grid, int(told["row"]), int(told["column"]), str(told["tool"]))
        self._editor.props["grid"] = self._grid.tolist()
        self._editor.update()
        self._pasted.props["value"] = grid_text(self._grid)
        self._pasted.update()
        try:
            levels.checked(self._grid)
            self._wrong.set_text("")
        except BathysphereError as error:
            self._wrong.set_text(str(error))

    async def _play_drawn(self) -> None:
        await self._play(levels.checked(self._grid), 0)
