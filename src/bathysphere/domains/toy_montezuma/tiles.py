"""Pictures of Toy Montezuma's tiles: stone, floor, keys, doors, traps, the goal's gold and the explorer."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from bathysphere.domains.toy_montezuma.maps import DOOR, FLOOR, GOAL, KEY, NO_ROOM, TRAP, WALL

Picture = NDArray[np.uint8]  # uint8 [height, width, 3]

_SMOOTHING = 4  # tiles are drawn this many times larger and shrunk, which rounds their edges
_FLOOR = (222, 205, 170)
_BACKGROUND = (24, 22, 30)
_GOLD = (250, 200, 62)
_STONE = (96, 78, 86)
_COLD, _WARM = np.array([70, 60, 190]), np.array([255, 120, 40])


def draw_tiles(
    tiles: NDArray[np.uint8],
    size: int,
    explorer: tuple[int, int] | None = None,
    heat: NDArray[np.float64] | None = None,
) -> Picture:
    """Draws a grid of tile codes, uint8 [height, width], `size` pixels each.

    Args:
      tiles: the codes of `maps`.
      size: pixels per tile.
      explorer: x, y of the explorer, drawn over the tile there.
      heat: float64 [height, width]: tiles are tinted from cold (0) to warm (1), or left alone where NaN.
    """
    atlas = np.stack([tile(code, size) for code in range(GOAL + 1)])
    cells = atlas[tiles].astype(np.float64)  # [height, width, size, size, 3]
    if heat is not None:
        tint = _COLD + np.clip(heat, 0, 1)[..., None] * (_WARM - _COLD)
        blended = 0.3 * cells + 0.7 * tint[:, :, None, None, :]
        cells = np.where(np.isnan(heat)[:, :, None, None, None], cells, blended)
    if explorer is not None:
        x, y = explorer
        figure, cover = _figure(size)
        cells[y, x] = cells[y, x] * (1 - cover) + figure * cover
    height, width = tiles.shape
    return cells.transpose(0, 2, 1, 3, 4).reshape(height * size, width * size, 3).astype(np.uint8)


def room_tile(width: int, height: int) -> int:
    """Returns the side of a tile in the picture of a room of `width` x `height` tiles, in pixels."""
    return max(8, 440 // max(width, height))


def room_share(width: int, height: int) -> float:
    """Returns the height of that picture with the strip below it, as a share of the height of the room."""
    room = height * room_tile(width, height)
    return (room + _strip(room)) / room


def _strip(height: int) -> int:
    return max(24, height // 11)


def add_status(picture: Picture, label: str, held: int, lives: int) -> Picture:
    """Adds a strip below `picture` with a label, one small key per key held and one heart per life."""
    height, width, _ = picture.shape
    strip = _strip(height)
    image = Image.new("RGB", (width, height + strip), _BACKGROUND)
    image.paste(Image.fromarray(picture), (0, 0))
    draw = ImageDraw.Draw(image)
    middle = height + strip // 2
    font = ImageFont.load_default(size=strip // 2)
    draw.text((strip // 3, middle), label, fill=(236, 228, 210), anchor="lm", font=font)
    draw.text((width - strip // 3, middle), f"keys {held}   lives {lives}", fill=_GOLD, anchor="rm", font=font)
    return np.asarray(image).copy()


@lru_cache(maxsize=64)
def tile(code: int, size: int) -> Picture:
    """Draws one tile, uint8 [size, size, 3]."""
    big = size * _SMOOTHING
    image = Image.new("RGB", (big, big), _BACKGROUND)
    draw = ImageDraw.Draw(image)
    if code == WALL:
        _stones(draw, big)
    elif code == GOAL:
        _gold(draw, big)
    elif code != NO_ROOM:
        draw.rectangle((0, 0, big, big), fill=(206, 188, 152))
        draw.rectangle((0, 0, 0.96 * big, 0.96 * big), fill=_FLOOR)
        if code != FLOOR:
            {KEY: _key, DOOR: _door, TRAP: _trap}[code](draw, big)
    return np.asarray(image.resize((size, size), Image.Resampling.LANCZOS)).copy()


@lru_cache(maxsize=16)
def _figure(size: int) -> tuple[Picture, NDArray[np.float64]]:
    """Draws the explorer: colours, uint8 [size, size, 3], and how far they cover, 0..1 [size, size, 1]."""
    big = size * _SMOOTHING
    image = Image.new("RGBA", (big, big), (178, 42, 46, 0))
    draw = ImageDraw.Draw(image)
    red, skin, hat = (178, 42, 46, 255), (238, 190, 146, 255), (92, 58, 34, 255)
    draw.rounded_rectangle((0.28 * big, 0.5 * big, 0.72 * big, 0.84 * big), 0.1 * big, fill=red)
    draw.rectangle((0.32 * big, 0.8 * big, 0.45 * big, 0.97 * big), fill=hat)
    draw.rectangle((0.55 * big, 0.8 * big, 0.68 * big, 0.97 * big), fill=hat)
    draw.ellipse((0.3 * big, 0.14 * big, 0.7 * big, 0.54 * big), fill=skin)
    draw.ellipse((0.14 * big, 0.2 * big, 0.86 * big, 0.32 * big), fill=hat)
    draw.pieslice((0.3 * big, 0.02 * big, 0.7 * big, 0.46 * big), 180, 360, fill=hat)
    small = np.asarray(image.resize((size, size), Image.Resampling.LANCZOS))
    return small[:, :, :3].copy(), small[:, :, 3:] / 255.0


def _stones(draw: ImageDraw.ImageDraw, big: int) -> None:
    """Two courses of bricks; edges of neighbouring tiles join."""
    draw.rectangle((0, 0, big, big), fill=(62, 50, 58))
    gap = 0.05 * big
    for x0, y0, x1, y1 in (
        (0, 0, 0.5, 0.5),
        (0.5, 0, 1, 0.5),
        (-0.25, 0.5, 0.25, 1),
        (0.25, 0.5, 0.75, 1),
        (0.75, 0.5, 1.25, 1),
    ):
        draw.rectangle((x0 * big + gap, y0 * big + gap, x1 * big - gap, y1 * big - gap), fill=_STONE)


def _gold(draw: ImageDraw.ImageDraw, big: int) -> None:
    """A floor of gold coins."""
    draw.rectangle((0, 0, big, big), fill=(150, 104, 22))
    draw.ellipse((0.08 * big, 0.08 * big, 0.92 * big, 0.92 * big), fill=_GOLD)
    draw.ellipse((0.24 * big, 0.24 * big, 0.76 * big, 0.76 * big), outline=(186, 136, 30), width=max(1, big // 14))


def _key(draw: ImageDraw.ImageDraw, big: int) -> None:
    dark = (148, 100, 8)
    line = max(1, round(0.1 * big))
    draw.ellipse((0.1 * big, 0.32 * big, 0.46 * big, 0.68 * big), outline=dark, width=line)
    draw.line((0.44 * big, 0.5 * big, 0.9 * big, 0.5 * big), fill=dark, width=line)
    draw.line((0.84 * big, 0.5 * big, 0.84 * big, 0.7 * big), fill=dark, width=line)
    draw.line((0.68 * big, 0.5 * big, 0.68 * big, 0.64 * big), fill=dark, width=line)


def _door(draw: ImageDraw.ImageDraw, big: int) -> None:
    draw.rectangle((0.02 * big, 0.02 * big, 0.94 * big, 0.94 * big), fill=(112, 66, 34))
    for x in (0.25, 0.48, 0.71):
        draw.line((x * big, 0.04 * big, x * big, 0.92 * big), fill=(80, 44, 20), width=max(1, big // 24))
    draw.ellipse((0.38 * big, 0.36 * big, 0.58 * big, 0.56 * big), fill=_GOLD)
    draw.polygon([(0.48 * big, 0.44 * big), (0.4 * big, 0.72 * big), (0.56 * big, 0.72 * big)], fill=_GOLD)


def _trap(draw: ImageDraw.ImageDraw, big: int) -> None:
    """A pit of spikes."""
    draw.rectangle((0.06 * big, 0.06 * big, 0.9 * big, 0.9 * big), fill=(66, 20, 26))
    for left in (0.1, 0.36, 0.62):
        points = [
            (left * big, 0.86 * big),
            ((left + 0.12) * big, 0.22 * big),
            ((left + 0.24) * big, 0.86 * big),
        ]
        draw.polygon(points, fill=(226, 80, 64))
