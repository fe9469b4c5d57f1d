"""States as people look at them: pictures, films and text of any domain, whatever it offers itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from bathysphere.domains.base import Domain, EpisodeRenderer, Renderer, States, StyledText, TextRenderer
from bathysphere.errors import NO_PICTURES, WorldError

if TYPE_CHECKING:
    from rich.text import Text

_BYTES_PER_LINE = 16
_CHARACTER = (16, 32)  # pixels, width and height
_MARGIN = 16  # pixels


def text_of(domain: Domain, state: States) -> str:
    """Returns one state, uint8 [S], as characters: the domain's own text, otherwise its bytes in hexadecimal."""
    if isinstance(domain, TextRenderer):
        return domain.text(state)
    lines = range(0, len(state), _BYTES_PER_LINE)
    return "\n".join(state[first : first + _BYTES_PER_LINE].tobytes().hex(" ") for first in lines)


def styled_text_of(domain: Domain, state: States) -> Text:
    """Returns one state, uint8 [S], as `text_of` does, with the colours that the domain has for it."""
    from rich.text import Text

    text = Text(text_of(domain, state))
    if isinstance(domain, StyledText):
        for pattern, style in domain.text_styles.items():
            text.highlight_regex(pattern, style)
    return text


def picture_of(domain: Domain, state: States) -> NDArray[np.uint8]:
    """Returns one state, uint8 [S], as uint8 [height, width, 3]: the domain's own picture, otherwise its text.

    An environment draws nothing where a package for that is missing; if it has a text, that serves.
    """
    if isinstance(domain, Renderer):
        try:
            return domain.render(state)
        except WorldError as error:
            if error.name != NO_PICTURES or not isinstance(domain, TextRenderer):
                raise
    return _drawn(text_of(domain, state))


def film_of(domain: Domain, states: States) -> list[NDArray[np.uint8]]:
    """Returns a picture of each state, uint8 [T, S], all of one size: smaller ones get a white edge."""
    frames = [picture_of(domain, state) for state in states]
    height, width = np.max([frame.shape[:2] for frame in frames], axis=0)
    missing = [((0, height - frame.shape[0]), (0, width - frame.shape[1]), (0, 0)) for frame in frames]
    return [np.pad(frame, edge, constant_values=255) for frame, edge in zip(frames, missing, strict=True)]


def poster_of(domain: Domain, states: States) -> NDArray[np.uint8]:
    """Returns an episode, uint8 [T, S], as uint8 [height, width, 3]: all of it if the domain can, or its end."""
    return domain.render_episode(states) if isinstance(domain, EpisodeRenderer) else picture_of(domain, states[-1])


def _drawn(text: str) -> NDArray[np.uint8]:
    """Draws black characters on white, each in the middle of a box, so that columns stay columns in any font."""
    lines = text.splitlines() or [""]
    (wide, high), columns = _CHARACTER, max(map(len, lines))
    image = Image.new("RGB", (2 * _MARGIN + wide * columns, 2 * _MARGIN + high * len(lines)), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(_CHARACTER[1] - 8)
    for row, line in enumerate(lines):
        for column, character in enumerate(line):
            where = (_MARGIN + wide * (column + 0.5), _MARGIN + high * row)
            draw.text(where, character, fill="black", font=font, anchor="ma")
    return np.asarray(image).copy()
