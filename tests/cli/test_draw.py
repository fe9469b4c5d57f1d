import json

import pytest
from PIL import Image

from bathysphere import cli


def test_a_drawn_episode(tmp_path, capsys):
    out = tmp_path / "films" / "dive.10"
    argv = ["draw", "deep-sea", "--size", "10", "--actions", "001001010", "--out", str(out), "--json"]
    assert cli.main(argv) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["world"], result["steps"], result["terminal"], result["solved"]) == (
        "deep-sea",
        9,
        True,
        True,
    )
    assert result["reward"] == pytest.approx(1 - 0.01 * 8 / 9)
    assert result["files"] == [f"{out}.gif", f"{out}.png"]
    with Image.open(f"{out}.gif") as film, Image.open(f"{out}.png") as poster:
        assert film.n_frames == 10
        assert poster.size == (560, 560)


def test_a_film_has_an_end(tmp_path, capsys):
    argv = ["draw", "toy-montezuma", "--by", "random", "--max-steps", str(10**30), "--out", str(tmp_path / "film")]
    assert cli.main(argv) == 2
    assert "at most 100,000 steps, and max-steps is 1000" in capsys.readouterr().err


def test_random_play_is_reproducible(tmp_path, capsys):
    argv = [
        "draw",
        "sokoban",
        "--num-boards",
        "1",
        "--max-steps",
        "5",
        "--out",
        str(tmp_path / "x"),
        "--json",
    ]
    results = []
    for seed in ("1", "1", "2"):
        assert cli.main([*argv, "--seed", seed]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0] == results[1] != results[2]


def test_the_sentence(tmp_path, capsys):
    argv = [
        "draw",
        "toy-montezuma",
        "--map",
        "one-room",
        "--by",
        "breadth-first",
        "--out",
        str(tmp_path / "x"),
    ]
    assert cli.main(argv) == 0
    assert capsys.readouterr().out.startswith("toy-montezuma: solved after 17 steps, reward 1.")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--actions", "02"], "deep-sea has no action '2'"),
        (["--seed", "-1"], "--seed must be"),
        (["--fps", "0"], "fps must be"),
        (["--size", "1"], "whole number from 2"),
    ],
)
def test_bad_options_get_a_sentence(options, sentence, tmp_path, capsys):
    assert cli.main(["draw", "deep-sea", *options, "--out", str(tmp_path / "x")]) == 2
    assert sentence in capsys.readouterr().err
