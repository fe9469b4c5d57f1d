"""Return beside the win rate, in a world in which nothing counts as solved, and in runs that end between two rows."""

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import bathysphere
from bathysphere.config.convert import config_hash, override
from bathysphere.config.run import RunConfig
from bathysphere.domains import register_domain, registry
from bathysphere.errors import BathysphereError
from bathysphere.learning.progress import Progress
from bathysphere.planning import Episode
from bathysphere.runs.metrics import read_rows
from bathysphere.storage.files import read_json
from tests.domains.toll import Toll, TollConfig
from tests.runs.small import small_config
from tests.runs.subprocesses import assert_same, board_steps, contents


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """Makes the road known for the length of a test."""
    monkeypatch.setattr(registry, "_CLASSES", dict(registry._CLASSES))
    register_domain(Toll)


def config(**changes) -> RunConfig:
    """A road that planning finds the end of."""
    base = {"preset": "toll", "steps": 2000, "batch": 4, "log_every": 200, "search": {"passes": 4}}
    return override(override(RunConfig(domain=TollConfig()), base), changes)


def test_a_run_is_told_by_its_return(tmp_path):
    result = bathysphere.train(config(), run_dir=tmp_path / "run")
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert result["wins"] == 0
    assert result["return_best"] == -4.0
    assert -20.0 <= result["return_mean_50"] <= -4.0
    for row in rows[1:]:
        assert -20.0 <= row["return_min"] <= row["return_mean"] <= row["return_max"] <= row["return_best"] <= -4.0
    assert rows[-1]["return_mean_50"] == result["return_mean_50"]
    board = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    board.Reload()
    assert [event.value for event in board.Scalars("play/return_best")] == [row["return_best"] for row in rows]


def test_the_mean_return_of_50_episodes_ends_a_run(tmp_path):
    result = bathysphere.train(config(), run_dir=tmp_path / "run", stop={"mean_return": -4.5}, steps=50_000)
    assert result["stopped_by"] == "mean_return"
    assert result["episodes"] >= 50
    assert result["return_mean_50"] >= -4.5
    with pytest.raises(BathysphereError, match=r"stop\.mean_return is nan"):
        config(stop={"mean_return": float("nan")})


def test_progress_counts_returns_of_the_latest_50_episodes():
    progress = Progress()
    assert (progress.mean_return, progress.best_return) == (None, None)
    empty = np.zeros((2, 1))
    for number in range(70):
        rewards = np.array([number, -1.0])
        progress.env_steps += len(rewards)
        progress.record(Episode(empty, empty[:, 0], rewards, empty, False, True, number, 1, 0.0))
        assert progress.has_return(-100.0) == (number >= 49)
    assert progress.mean_return == np.mean(range(20, 70)) - 1
    assert (progress.best_return, progress.worst_return) == (68.0, -1.0)
    again = Progress()
    again.load_state_dict(progress.state_dict())
    assert again.state_dict().keys() == progress.state_dict().keys()
    for name, array in progress.state_dict().items():
        assert array.tobytes() == again.state_dict()[name].tobytes(), name


def test_a_checkpoint_without_returns_is_read():
    old = {name: array for name, array in Progress().state_dict().items() if "returns" not in name}
    progress = Progress()
    progress.load_state_dict(old)
    assert (progress.mean_return, progress.best_return, progress.worst_return) == (None, None, None)


def test_a_new_way_to_stop_leaves_the_hash_of_a_config():
    assert config_hash(config(stop={"mean_return": 1.0})) == config_hash(config())


@pytest.mark.parametrize("episodes", [1, 7, 400])
def test_win_rates_never_pass_1(episodes):
    progress = Progress()
    empty = np.zeros((1, 1))
    for number in range(episodes):
        progress.record(Episode(empty, empty[:, 0], empty[:, 0], empty, True, False, number, 1, 0.0))
        assert all(progress.win_rate(window) <= 1.0 for window in (100, 1000, 10000))


def test_a_short_run_has_a_row_and_a_picture(tmp_path):
    result = bathysphere.train(small_config(steps=64, log_every=1000), run_dir=tmp_path / "run")
    (row,) = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert row["env_steps"] == result["env_steps"] == 64
    assert (tmp_path / "run" / "pictures" / "learning.png").is_file()


def test_the_beginning_has_more_rows_than_the_rest(tmp_path):
    run = bathysphere.train(small_config(steps=2200, log_every=1000), run_dir=tmp_path / "run", pictures=False)
    moments = [row["env_steps"] for row in run.rows()]
    assert [moment // 100 for moment in moments] == [*range(1, 11), 20, 22]


def test_the_row_at_the_end_is_cut_off_when_the_run_goes_on(tmp_path):
    small = small_config(log_every=70)
    bathysphere.train(small, run_dir=tmp_path / "whole", steps=2500, pictures=False)
    for number, steps in enumerate((930, 930, 1700, 2500)):
        if number == 0:
            bathysphere.train(small, run_dir=tmp_path / "parts", steps=steps, pictures=False)
        else:
            bathysphere.resume(tmp_path / "parts", steps=steps, pictures=False)
        rows = read_rows(tmp_path / "parts" / "metrics.jsonl")
        assert rows[-1]["env_steps"] == read_json(tmp_path / "parts" / "result.json")["env_steps"]
    assert_same(tmp_path / "whole", tmp_path / "parts")


def test_other_rows_may_follow_a_row_at_the_end(tmp_path):
    """The number of steps between rows may change; which rows were due does not follow from it."""
    for log_every, steps in ((100, 400), (1000, 640), (50, 768)):
        if steps == 400:
            bathysphere.train(small_config(log_every=log_every, steps=steps), run_dir=tmp_path / "run", pictures=False)
        else:
            bathysphere.resume(tmp_path / "run", log_every=log_every, steps=steps, pictures=False)
    _, rows = contents(tmp_path / "run")
    moments = [row["env_steps"] for row in rows]
    assert moments == board_steps(tmp_path / "run") == [100, 200, 300, 400, 500, 600, 652, 700, 752, 768]
