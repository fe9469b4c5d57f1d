import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bathysphere.errors import BathysphereError
from bathysphere.runs.watching import find_saver
from bathysphere.storage import pictures

FRAMES = [np.full((31, 45, 3), shade, np.uint8) for shade in (0, 120, 250)]


def test_a_png_comes_back_as_it_was(tmp_path):
    path = tmp_path / "new" / "picture.png"
    pictures.save_png(path, FRAMES[1])
    with Image.open(path) as picture:
        assert (np.asarray(picture) == FRAMES[1]).all()


def test_a_gif_holds_every_frame_and_rests_on_the_last(tmp_path):
    path = tmp_path / "film.gif"
    pictures.save_gif(path, FRAMES, fps=10)
    with Image.open(path) as film:
        assert (film.n_frames, film.size, film.info["loop"]) == (3, (45, 31), 0)
        shades, durations = [], []
        for number in range(3):
            film.seek(number)
            shades.append(int(np.asarray(film.convert("RGB"))[0, 0, 0]))
            durations.append(film.info["duration"])
    assert shades == pytest.approx([0, 120, 250], abs=3)
    assert durations == [100, 100, 2000]


def test_an_mp4_of_odd_size_can_be_read(tmp_path):
    import imageio.v2 as imageio

    path = tmp_path / "film.mp4"
    pictures.save_mp4(path, FRAMES, fps=10)
    with imageio.get_reader(path) as film:
        frames = [film.get_data(number) for number in range(film.count_frames())]
    assert frames[0].shape == (32, 46, 3)
    assert len(frames) == 3 + 20
    assert frames[-1].mean() == pytest.approx(250, abs=5)


def test_without_the_extra_an_mp4_gets_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio.v2", None)
    with pytest.raises(BathysphereError, match=r"pip install 'bathysphere\[video\]'"):
        pictures.save_mp4(tmp_path / "film.mp4", FRAMES, fps=10)


def test_mistakes_get_a_sentence(tmp_path):
    with pytest.raises(BathysphereError, match="at least one frame"):
        pictures.save_gif(tmp_path / "film.gif", [], fps=10)
    with pytest.raises(BathysphereError, match="fps must be"):
        pictures.save_gif(tmp_path / "film.gif", FRAMES, fps=0)
    file = tmp_path / "file"
    file.write_text("in the way")
    with pytest.raises(BathysphereError, match="Cannot write"):
        pictures.save_png(file / "picture.png", FRAMES[0])
    with pytest.raises(BathysphereError, match="Cannot write"):
        pictures.save_png(tmp_path, FRAMES[0])


def test_without_ffmpeg_an_mp4_gets_a_sentence(tmp_path, monkeypatch):
    import imageio_ffmpeg  # of the extra for development: without it this test must fail

    def missing():
        raise RuntimeError("No ffmpeg exe could be found.")

    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", missing)
    with pytest.raises(BathysphereError, match=r"MP4 films need imageio and ffmpeg.*GIFs work without"):
        pictures.save_mp4(tmp_path / "film.mp4", FRAMES, fps=10)
    with pytest.raises(BathysphereError, match="MP4 films need"):
        find_saver(tmp_path / "film.mp4")  # before anything is played


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux has a folder in which nobody can write")
def test_where_nobody_can_write_no_option_is_advised(tmp_path):
    with pytest.raises(BathysphereError, match=r"Cannot write /proc/x\.gif: .*\. Choose another place\.$"):
        pictures.save_gif(Path("/proc/x.gif"), FRAMES, fps=10)
