"""Pictures of Sokoban boards, drawn without files or a display."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from bathysphere.domains.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    NUM_CODES,
    PLAYER,
    PLAYER_ON_TARGET,
    TARGET,
    WALL,
)

_SCALE = 8  # tiles are drawn this much larger, then shrunk, which smooths their edges
_UNIT = 32  # coordinates below are on a tile of 32 x 32

_MORTAR, _BRICK, _BRICK_LIGHT = "#4a3a36", "#a5563f", "#bf6e54"
_FLOOR, _FLOOR_EDGE = "#e9e1d0", "#ded4bf"
_DOT, _DOT_RING = "#d1342f", "#f3b9a9"
_WOOD, _WOOD_DARK, _WOOD_LIGHT = "#c98f3c", "#7d5220", "#e3b567"
_DONE, _DONE_DARK, _DONE_LIGHT = "#5a9f4b", "#2d5f27", "#8fcb7c"
_SKIN, _HAIR, _SHIRT, _TROUSERS, _SHOES = "#f2c9a1", "#4b2e1e", "#2f6db5", "#273449", "#16191f"


def draw_board(grid: NDArray[np.uint8], tile_size: int = 24) -> NDArray[np.uint8]:
    """Draws cell codes, uint8 [height, width], as RGB, uint8 [height * tile_size, width * tile_size, 3].

    Unknown codes, which only a learned model predicts, are drawn magenta.
    """
    height, width = grid.shape
    picture = _tiles(tile_size)[np.minimum(grid, NUM_CODES)]
    return picture.transpose(0, 2, 1, 3, 4).reshape(height * tile_size, width * tile_size, 3)


@cache
def _tiles(size: int) -> NDArray[np.uint8]:
    """Returns a picture of each cell code and one for unknown codes, uint8 [NUM_CODES + 1, size, size, 3]."""
    tiles = []
    for code in range(NUM_CODES + 1):
        image = Image.new("RGB", (_UNIT * _SCALE, _UNIT * _SCALE), "#ff00ff")
        if code < NUM_CODES:
            _draw_tile(_Pen(image), code)
        tiles.append(np.asarray(image.resize((size, size), Image.Resampling.BOX)))
    return np.stack(tiles)


class _Pen:
    """Draws filled shapes in tile units, from (left, top) to (right, bottom)."""

    def __init__(self, image: Image.Image) -> None:
        self._draw = ImageDraw.Draw(image)

    def box(self, left: float, top: float, right: float, bottom: float, colour: str, radius: float = 0) -> None:
        corners = [left * _SCALE, top * _SCALE, right * _SCALE - 1, bottom * _SCALE - 1]
        self._draw.rounded_rectangle(corners, radius * _SCALE, fill=colour)

    def disc(self, x: float, y: float, radius: float, colour: str) -> None:
        corners = [(c + sign * radius) * _SCALE for sign in (-1, 1) for c in (x, y)]
        self._draw.ellipse(corners, fill=colour)

    def polygon(self, points: list[tuple[float, float]], colour: str) -> None:
        self._draw.polygon([(x * _SCALE, y * _SCALE) for x, y in points], fill=colour)


def _draw_tile(pen: _Pen, code: int) -> None:
    if code == WALL:
        _draw_bricks(pen)
        return
    pen.box(0, 0, 32, 32, _FLOOR_EDGE)
    pen.box(0, 0, 31, 31, _FLOOR)
    if code == TARGET:
        pen.disc(16, 16, 8, _DOT_RING)
        pen.disc(16, 16, 5, _DOT)
    if code == PLAYER_ON_TARGET:  # the dot would hide behind the player
        pen.disc(16, 16, 15, _DOT)
        pen.disc(16, 16, 13, _DOT_RING)
    if code == BOX:
        _draw_crate(pen, _WOOD, _WOOD_DARK, _WOOD_LIGHT)
    if code == BOX_ON_TARGET:
        _draw_crate(pen, _DONE, _DONE_DARK, _DONE_LIGHT)
    if code in (PLAYER, PLAYER_ON_TARGET):
        _draw_player(pen)


def _draw_bricks(pen: _Pen) -> None:
    pen.box(0, 0, 32, 32, _MORTAR)
    for row, joints in enumerate(((-8, 8, 24), (0, 16), (-8, 8, 24), (0, 16))):
        top = row * 8
        for left in joints:
            pen.box(max(left, 0), top, min(left + 15, 32), top + 7, _BRICK)
            pen.box(max(left, 0), top, min(left + 15, 32), top + 2, _BRICK_LIGHT)


def _draw_crate(pen: _Pen, wood: str, dark: str, light: str) -> None:
    pen.box(2, 2, 30, 30, dark, radius=2)
    pen.box(3, 3, 29, 29, light, radius=1)
    pen.box(7, 7, 25, 25, dark)
    pen.box(8, 8, 24, 24, wood)
    for flip in (False, True):
        for colour, half in ((dark, 3.5), (light, 2.3)):
            band = [(8, 8 + half), (8, 8), (8 + half, 8), (24, 24 - half), (24, 24), (24 - half, 24)]
            pen.polygon([(32 - x if flip else x, y) for x, y in band], colour)


def _draw_player(pen: _Pen) -> None:
    pen.box(11, 25, 15, 30, _SHOES, radius=1)
    pen.box(17, 25, 21, 30, _SHOES, radius=1)
    pen.box(11, 20, 15, 28, _TROUSERS)
    pen.box(17, 20, 21, 28, _TROUSERS)
    pen.box(11, 19, 21, 22, _TROUSERS)
    pen.box(7, 13, 25, 17, _SHIRT, radius=2)
    pen.box(10, 13, 22, 21, _SHIRT, radius=1)
    pen.disc(8, 18, 2, _SKIN)
    pen.disc(24, 18, 2, _SKIN)
    pen.disc(16, 7.5, 5.5, _HAIR)
    pen.disc(16, 8.8, 4.6, _SKIN)
    pen.box(13.4, 7.6, 14.8, 9.6, _SHOES)
    pen.box(17.2, 7.6, 18.6, 9.6, _SHOES)
