"""Polishing: learning once more from the games of a run."""

import numpy as np
import pytest

from bathysphere import cli
from bathysphere.domains import make_domain
from bathysphere.errors import BathysphereError
from bathysphere.learning.trainer import draw_batches, make_replay
from bathysphere.runs import agent_file, polish
from bathysphere.runs.agent import load_trained
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.polish import PolishConfig
from bathysphere.runs.runner import resume, run
from bathysphere.saved_state import section
from tests.runs.small import small_config, small_sokoban

SHORT = PolishConfig(updates=60, batch_size=24)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run"
    run(small_sokoban(), path, pictures=False)
    return path


def nobody(done, loss):
    pass


def contents(path):
    return {file.relative_to(path): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def error_of(agent, games):
    """Mean squared error on the games that a run remembers."""
    trained, directory = load_trained(agent), RunDirectory.open(games)
    config, domain = trained.config, make_domain(trained.config.domain)
    replay = make_replay(domain, config.search, config.learning, config.values.num_members)
    replay.load_state_dict(section(directory.checkpoint_store().load().arrays, "replay."))
    batch = draw_batches(replay, domain, config.learning, 20, np.random.default_rng(0))
    values = trained.values.evaluate(batch.observations.reshape(-1, *batch.observations.shape[2:]))
    return np.mean((values.reshape(batch.mask.shape) - batch.targets) ** 2)


def test_a_polished_run_knows_its_games_better_and_can_be_trained_further(trained, tmp_path):
    before, out = contents(trained), tmp_path / "polished"
    seen = []
    told = polish.polish(trained, out, SHORT, lambda done, loss: seen.append(done))
    assert seen == [20, 40, 60]
    assert error_of(out, trained) < 0.95 * error_of(trained, trained)
    assert contents(trained) == before
    assert told["env_steps"] == 400
    assert not (out / "polishing.safetensors").exists()
    more = RunDirectory.open(out).load_config()
    result = resume(out, config=type(more)(**{**vars(more), "steps": 480}), pictures=False)
    assert result["env_steps"] == 480


def test_interrupted_and_repeated_gives_the_same(trained, tmp_path, monkeypatch):
    polish.polish(trained, tmp_path / "whole", SHORT, nobody)
    monkeypatch.setattr(polish, "_SAVE_SECONDS", 0.0)

    def interrupt(done, loss):
        if done == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        polish.polish(trained, tmp_path / "parts", SHORT, interrupt)
    with pytest.raises(BathysphereError, match="not a run directory"):
        RunDirectory.open(tmp_path / "parts")
    with pytest.raises(BathysphereError, match="other settings"):
        polish.polish(trained, tmp_path / "parts", PolishConfig(updates=80, batch_size=24), nobody)
    seen = []
    polish.polish(trained, tmp_path / "parts", SHORT, lambda done, loss: seen.append(done))
    assert seen == [40, 60]  # it was interrupted before 40 was saved
    assert load_trained(tmp_path / "parts").fingerprint == load_trained(tmp_path / "whole").fingerprint


def test_what_cannot_be_polished(trained, tmp_path):
    run(small_config(steps=200), tmp_path / "table", pictures=False)
    with pytest.raises(BathysphereError, match="expected an mlp or a cnn"):
        polish.polish(tmp_path / "table", tmp_path / "out", SHORT, nobody)
    with pytest.raises(BathysphereError, match="not an empty folder"):
        polish.polish(trained, tmp_path / "table", SHORT, nobody)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "polishing.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(BathysphereError, match="is damaged"):
        polish.polish(trained, tmp_path / "out", SHORT, nobody)
    with RunDirectory.open(trained).lock(), pytest.raises(BathysphereError, match="being trained right now"):
        polish.polish(trained, tmp_path / "new", SHORT, nobody)
    with pytest.raises(BathysphereError, match="expected at least 1"):
        PolishConfig(updates=0)


def test_the_verb_and_the_card(trained, tmp_path, capsys):
    out = tmp_path / "polished"
    assert cli.main(["polish", str(trained), "--out", str(out), "--updates", "20", "--batch-size", "24"]) == 0
    assert "20 updates in 0:0" in capsys.readouterr().out
    file = tmp_path / "mine.safetensors"
    assert cli.main(["agents", "export", str(out), str(file)]) == 0
    card = agent_file.read(file).card
    assert card.command.startswith("bathysphere train sokoban ")
    assert card.command.endswith(", then bathysphere polish RUN --updates 20 --batch-size 24")
    assert cli.main(["evaluate", str(file), "--episodes", "4"]) == 0
