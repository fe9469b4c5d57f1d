"""Pictures and films of episodes, from RGB frames to files. Needs no display."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bathysphere.errors import BathysphereError

Frame = NDArray[np.uint8]  # uint8 [height, width, 3]

_LAST_FRAME_SECONDS = 2.0  # a film that loops needs a moment to show how it ended


def save_png(path: Path, picture: Frame) -> None:
    """Writes one picture."""
    _make_folder(path)
    try:
        Image.fromarray(picture).save(path, format="PNG")
    except OSError as error:
        raise _cannot_write(path, error) from error


def save_gif(path: Path, frames: Sequence[Frame], fps: float) -> None:
    """Writes `frames` as a GIF that loops forever and rests on its last frame."""
    _check(frames, fps)
    _make_folder(path)
    images = [Image.fromarray(frame).quantize(128, dither=Image.Dither.NONE) for frame in frames]
    durations = [round(1000 / fps)] * (len(images) - 1) + [round(1000 * _LAST_FRAME_SECONDS)]
    try:
        images[0].save(path, format="GIF", save_all=True, append_images=images[1:], duration=durations, loop=0)
    except OSError as error:
        raise _cannot_write(path, error) from error


def save_mp4(path: Path, frames: Sequence[Frame], fps: float) -> None:
    """Writes `frames` as an MP4 film (H.264). Needs the extra `video`."""
    _check(frames, fps)
    check_mp4()
    import imageio.v2 as imageio

    _make_folder(path)
    # Players want an even number of rows and columns; repeat the last ones where they are odd.
    height, width, _ = frames[0].shape
    padding = ((0, height % 2), (0, width % 2), (0, 0))
    rest = [frames[-1]] * round(_LAST_FRAME_SECONDS * fps)
    try:
        # The library's own annotation leaves out the writer's methods.
        film: Any = imageio.get_writer(path, format="FFMPEG", fps=fps, macro_block_size=2, quality=8)
        with film:
            for frame in [*frames, *rest]:
                film.append_data(np.pad(frame, padding, mode="edge"))
    except OSError as error:
        raise _cannot_write(path, error) from error


def check_mp4() -> None:
    """Refuses to write MP4 films where the programs that this needs are missing."""
    try:
        import imageio.v2  # noqa: F401
        from imageio_ffmpeg import get_ffmpeg_exe  # type: ignore[import-untyped]

        get_ffmpeg_exe()
    except (ImportError, RuntimeError) as error:
        raise BathysphereError(
            "MP4 films need imageio and ffmpeg. Install them with: pip install 'bathysphere[video]'. GIFs work without."
        ) from error


def _check(frames: Sequence[Frame], fps: float) -> None:
    if not frames:
        raise BathysphereError("A film needs at least one frame; got none.")
    if not 0.1 <= fps <= 100:
        raise BathysphereError(f"fps must be from 0.1 to 100 frames per second; got {fps}.")


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> BathysphereError:
    return BathysphereError(f"Cannot write {path}: {error.strerror or error}. Choose another place.")
