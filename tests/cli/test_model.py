import json

import pytest

from bathysphere import cli

SMALL = ["--height", "6", "--width", "6", "--max-boxes", "1", "--boards", "12", "--episodes", "4", "--held-out", "4"]
TRAIN = ["model", "train", *SMALL, "--channels", "4", "--report-every", "20"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "small.safetensors"
    assert cli.main([*TRAIN, "--updates", "40", "--out", str(path), "--json"]) == 0
    return path


def test_train_prints_the_card_or_sentences(trained, tmp_path, capsys):
    out = tmp_path / "a.safetensors"
    capsys.readouterr()
    assert cli.main([*TRAIN, "--updates", "20", "--out", str(out), "--json"]) == 0
    captured = capsys.readouterr()
    card = json.loads(captured.out)
    assert (card["out"], card["updates"], card["training"]["model"]["channels"]) == (str(out), 20, 4)
    assert "20 updates" in captured.err
    assert cli.main(["model", "train", "--out", str(out), "--resume", "--updates", "30"]) == 0
    text = capsys.readouterr().out
    assert "30 updates in " in text
    assert "boards predicted right" in text


def test_old_flags_go_on_working(tmp_path, capsys):
    old = [word if word != "--episodes" else "--games" for word in TRAIN]
    assert cli.main([*old, "--moves=7", "--updates", "2", "--out", str(tmp_path / "a.safetensors"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["training"]["data"]
    assert (data["episodes"], data["max_steps"]) == (4, 7)


def test_resume_keeps_settings(trained, capsys):
    capsys.readouterr()
    assert cli.main(["model", "train", "--out", str(trained), "--resume", "--channels", "5"]) == 2
    assert "keeps its settings, and model would change" in capsys.readouterr().err
    assert cli.main(["model", "train", "paper", "--out", str(trained), "--resume"]) == 2
    assert "leave out 'paper'" in capsys.readouterr().err


def test_the_papers_recipe(tmp_path, capsys):
    out = tmp_path / "paper.safetensors"
    flags = [*SMALL, "--channels", "4", "--updates", "2", "--learning-rate", "0.001"]
    assert cli.main(["model", "train", "paper", *flags, "--out", str(out), "--json"]) == 0
    training = json.loads(capsys.readouterr().out)["training"]
    assert (training["model"]["kind"], training["model"]["cells"], training["batch_size"]) == ("paper", "sigmoid", 50)


def test_evaluate(trained, tmp_path, capsys):
    capsys.readouterr()
    assert cli.main(["model", "evaluate", str(trained), "--boards", "3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["random"]["transitions"] > 100
    assert result["trees"] is None
    assert cli.main(["model", "evaluate", str(trained), "--boards", "3"]) == 0
    assert "random episodes" in capsys.readouterr().out


def test_evaluate_with_an_agent(trained, tmp_path, capsys):
    run = tmp_path / "run"
    size = ["--domain.generator.height", "6", "--domain.generator.width", "6", "--domain.generator.num-boxes", "1"]
    play = ["--steps", "40", "--batch", "4", "--search.max-steps", "10", "--values.conv-channels", "4"]
    flags = [*size, *play, "--model", str(trained), "--no-pictures", "--json"]
    assert cli.main(["train", "sokoban", *flags, "--run-dir", str(run)]) == 0
    assert json.loads(capsys.readouterr().out)["model_wrong_state"] >= 0
    options = ["--agent", str(run), "--episodes", "4", "--boards", "2"]
    assert cli.main(["model", "evaluate", str(trained), *options, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["trees"]["transitions"] > result["moves"]["transitions"] > 4
    assert result["episodes"] == 4
    assert cli.main(["model", "evaluate", str(trained), *options]) == 0
    assert "its search trees" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Say what to do"),
        (["train", "large"], "There is no way to train called 'large'"),
        (["evaluate", "nowhere"], "There is no model nowhere"),
        (["train", "--resume", "--out", "nowhere.safetensors"], "to go on from"),
    ],
)
def test_mistakes_are_sentences(arguments, sentence, capsys):
    assert cli.main(["model", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_an_agent_of_another_size_is_refused(trained, capsys):
    assert cli.main(["train", "sokoban", "--model", str(trained), "--run-dir", str(trained.parent / "run")]) == 2
    assert "predicts boards of 6x6 cells, but this world's have 10x10" in capsys.readouterr().err
