from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bathysphere.cli.levels import run
from bathysphere.domains.sokoban import GeneratorConfig
from bathysphere.domains.sokoban.board_cache import cache_folder
from bathysphere.domains.sokoban.board_stream import BoardStream
from bathysphere.domains.sokoban.formats import read_levels
from bathysphere.errors import BathysphereError

SMALL = ["--size", "7", "--boxes", "2"]


def run_json(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, object]:
    assert run([*argv, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert isinstance(result, dict)
    return result


def test_generate_is_reproducible(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, c = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.txt"
    result = run_json(capsys, "generate", *SMALL, "--count", "4", "--seed", "5", "--out", str(a))
    assert result["levels"] == 4
    assert result["format"] == "boxoban"
    assert run(["generate", *SMALL, "--count", "6", "--seed", "5", "--out", str(b)]) == 0
    assert run(["generate", *SMALL, "--count", "4", "--seed", "6", "--out", str(c)]) == 0
    assert b.read_text().startswith(a.read_text())
    assert a.read_text() != c.read_text()
    assert a.read_text().startswith("; 0\n#######\n")
    assert "6 levels in" in capsys.readouterr().out


def test_generate_solutions_then_check_convert_and_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sok, txt, png = tmp_path / "a.sok", tmp_path / "a.txt", tmp_path / "a.png"
    options = ["--height", "6", "--width", "8", "--boxes", "2", "--count", "3", "--solutions", "--run-length"]
    run_json(capsys, "generate", *options, "--out", str(sok))
    checked = run_json(capsys, "check", str(sok))
    assert checked == {
        "levels": 3,
        "files": [{"path": str(sok), "levels": 3, "sizes": {"6x8": 3}, "boxes": {"2": 3}, "solutions": 3}],
    }
    converted = run_json(capsys, "convert", str(sok), str(txt))
    assert converted["dropped_solutions"] == 3
    assert [level.grid.tolist() for level in read_levels(txt)] == [level.grid.tolist() for level in read_levels(sok)]

    assert run(["show", str(sok), "--first", "2", "--count", "2", "--image", str(png)]) == 0
    shown = capsys.readouterr().out
    assert "2: 1 (6x8, 2 boxes)" in shown
    assert "solution, " in shown
    with Image.open(png) as image:
        assert image.size == ((8 + 1 + 8) * 24, 6 * 24)
    board = run_json(capsys, "show", str(txt))["levels"][0]["board"]  # type: ignore[index]
    assert len(board) == 6
    assert run(["check", str(sok), str(txt)]) == 0
    assert "3 with a solution that works" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["generate", "--count", "0", "--out", "a.txt"], "--count must be a whole number from 1"),
        (["generate", "--count", str(10**30), "--out", "a.txt"], "--count must be a whole number from 1 to 1,000,000"),
        (["generate", "--size", "2", "--out", "a.txt"], "height must be a whole number from 3"),
        (["generate", "--size", "-4", "--out", "a.txt"], "height must be a whole number from 3"),
        (["generate", "--out", "a.dat"], "does not say which format"),
        (["generate", "--solutions", "--out", "a.txt"], "Only .sok files hold solutions"),
        (["generate", "--out", "nowhere/a.txt"], "no folder nowhere"),
        (["convert", "good.sok", "a.dat"], "does not say which format"),
        (["convert", "missing.sok", "a.txt"], "Cannot read missing.sok"),
        (["check", "wrong.sok"], "wrong.sok: the solution of level 1 .'Dud'. does not solve it"),
        (["check", "bad.txt"], "bad.txt, line 2: unknown tile"),
        (["check", "done.xsb"], "level 1 .''. is already solved"),
        (["check"], "at least one level file"),
        (["show", "good.sok", "--first", "2"], "has levels 1 to 1"),
        (["show", "good.sok", "--image", "nowhere/a.png"], "Cannot write nowhere"),
    ],
)
def test_bad_input_gets_a_sentence(
    argv: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.sok").write_text("#####\n#@$.#\n#####\n")
    Path("wrong.sok").write_text("#####\n#@$.#\n#####\nTitle: Dud\nSolution\nlll\n")
    Path("done.xsb").write_text("#####\n#@ *#\n#####\n")
    Path("bad.txt").write_text("#####\n#@?.#\n#####\n")
    with pytest.raises(BathysphereError, match=words):
        run(argv)
    assert not Path("a.txt").exists()


def test_the_cache_is_told_and_cleared(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATHYSPHERE_CACHE", str(tmp_path))
    config = GeneratorConfig(height=6, width=7, num_boxes=1, max_states=50)
    BoardStream(config, 3, cache_folder()).take(np.arange(20), np.arange(0))
    for thread in threading.enumerate():
        if thread.name == "sokoban-boards":
            thread.join()  # it may still be writing
    told = run_json(capsys, "cache")
    assert told["folder"] == str(tmp_path / "levels")
    assert told["files"] == 1
    assert told["bytes"] == sum(file.stat().st_size for file in tmp_path.rglob("*.npz")) > 100
    assert run_json(capsys, "cache", "--clear") == {**told, "cleared": True}
    assert run(["cache"]) == 0
    assert "levels: 0 files, 0.0 MB" in capsys.readouterr().out
    monkeypatch.delenv("BATHYSPHERE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(BathysphereError, match="set BATHYSPHERE_CACHE"):
        run(["cache"])


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_a_size_that_is_no_number_is_refused() -> None:
    with pytest.raises(BathysphereError, match="--size: 'ten' is not a whole number"):
        run(["generate", "--size", "ten", "--out", "a.txt"])


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run(["--help"])
    assert stop.value.code == 0
    assert "bathysphere levels generate --count 100" in capsys.readouterr().out
