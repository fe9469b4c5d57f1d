"""The picture of a Deep-sea dive: darkening water, rock no dive can reach, a diver, a treasure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

_SURFACE = np.array([126, 205, 222])
_ABYSS = np.array([12, 38, 84])
_ROCK = np.array([58, 52, 60])
_SAND = (214, 186, 128)
_TRAIL = (255, 243, 176)
_PICTURE = 560  # pixels on each side, whatever the size of the sea
_SMOOTHING = 3  # shapes are drawn this many times larger and shrunk, which rounds their edges
_SPRITE = 20  # pixels: diver and chest are never smaller, so they are found in a sea of 50 x 50 too


def draw_dive(side: int, y: NDArray[np.int32], x: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Draws a sea of `side` x `side` cells and a dive through the cells (y[t], x[t]), int32 [T] each.

    Returns:
      uint8 [560, 560, 3].
    """
    canvas = _PICTURE * _SMOOTHING
    scale = canvas / side
    sprite = max(scale, _SPRITE * _SMOOTHING)
    image = Image.fromarray(_water(min(side, _PICTURE)))
    image = image.resize((canvas, canvas), Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, canvas - sprite / 6, canvas, canvas), fill=_SAND)
    centres = [((int(col) + 0.5) * scale, (int(row) + 0.5) * scale) for row, col in zip(y, x, strict=True)]
    if len(centres) > 1:
        draw.line(centres, fill=_TRAIL, width=round(sprite / 7), joint="curve")
    _chest(draw, canvas - sprite, canvas - sprite, sprite)
    _diver(draw, *centres[-1], sprite)
    return np.asarray(image.resize((_PICTURE, _PICTURE), Image.Resampling.LANCZOS)).copy()


def _water(side: int) -> NDArray[np.uint8]:
    """Colours the cells, one pixel each: uint8 [side, side, 3]."""
    depth = np.linspace(0, 1, side)[:, None, None]
    rows, columns = np.indices((side, side))
    water = _SURFACE * (1 - depth) + _ABYSS * depth + np.where((rows + columns) % 2, 4, -4)[:, :, None]
    rock = _ROCK + np.array([0, 5, -4, 2, -3])[(rows * 3 + columns * 7) % 5][:, :, None]
    cells = np.where((columns > rows)[:, :, None], rock, water)
    return np.clip(cells, 0, 255).astype(np.uint8)


def _chest(draw: ImageDraw.ImageDraw, left: float, top: float, cell: float) -> None:
    """Draws the treasure chest into the cell whose corner is given."""
    glow = (255, 214, 92)
    frame = (left, top, left + cell - 1, top + cell - 1)
    draw.rectangle(frame, fill=(34, 66, 110), outline=glow, width=round(cell / 14))
    box = (left + 0.16 * cell, top + 0.42 * cell, left + 0.84 * cell, top + 0.86 * cell)
    lid = (left + 0.16 * cell, top + 0.22 * cell, left + 0.84 * cell, top + 0.66 * cell)
    draw.pieslice(lid, 180, 360, fill=(150, 92, 44))
    draw.rectangle(box, fill=(124, 72, 34))
    draw.rectangle((box[0], box[1], box[2], box[1] + 0.09 * cell), fill=glow)
    draw.rectangle((left + 0.44 * cell, box[1], left + 0.56 * cell, box[1] + 0.24 * cell), fill=glow)


def _diver(draw: ImageDraw.ImageDraw, cx: float, cy: float, cell: float) -> None:
    """Draws a diver's brass helmet around (cx, cy)."""

    def disc(radius: float, colour: tuple[int, int, int], dx: float = 0.0, dy: float = 0.0) -> None:
        x, y, r = cx + dx * cell, cy + dy * cell, radius * cell
        draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)

    disc(0.44, (92, 58, 18))
    disc(0.39, (240, 170, 48))
    disc(0.25, (92, 58, 18), dy=-0.02)
    disc(0.20, (196, 238, 246), dy=-0.02)
    disc(0.07, (255, 255, 255), dx=-0.08, dy=-0.10)
