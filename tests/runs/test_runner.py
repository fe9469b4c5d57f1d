import json
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import bathysphere
from bathysphere.config.convert import override
from bathysphere.errors import BathysphereError
from bathysphere.runs.directory import RunDirectory, next_directory
from bathysphere.runs.listing import find_runs
from bathysphere.runs.metrics import TIME_COLUMNS, WORKER_COLUMNS, read_rows
from bathysphere.runs.runner import resume, run
from bathysphere.signals import listening
from tests.runs.small import small_config
from tests.runs.subprocesses import assert_same


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run with everything, and its result."""
    path = tmp_path_factory.mktemp("finished") / "run"
    return path, run(small_config(), path)


def test_the_result_says_how_it_went(finished):
    path, result = finished
    assert json.loads((path / "result.json").read_text()) == result
    assert result["preset"] == "deep-sea"
    assert result["seed"] == 0
    assert result["stopped_by"] == "steps"
    assert 1200 <= result["env_steps"] < 1200 + small_config().batch
    assert 0 < result["first_solved_step"] <= result["solved_step"] <= 1200
    assert 0 < result["wins"] <= result["episodes"]
    assert 0 < result["win_rate_1000"] <= result["win_rate_100"] <= 1
    assert result["updates"] > 0
    assert result["wall_seconds"] > 0
    assert {"env_steps_per_second", "commit", "machine", "processor"} <= result.keys()


def test_the_directory_holds_everything_and_no_code(finished):
    path, _ = finished
    names = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}
    top = {"config.json", "versions.json", "metrics.jsonl", "result.json"}
    assert top <= names
    assert {"pictures/uncertainty.png", "pictures/learning.png"} <= names
    assert {name.rsplit(".", 1)[-1] for name in names if "tfevents" not in name} == {
        "json",
        "jsonl",
        "safetensors",
        "png",
    }
    versions = json.loads((path / "versions.json").read_text())
    assert {"python", "bathysphere", "numpy", "numba", "torch", "commit", "machine", "processor"} == versions.keys()
    assert RunDirectory.open(path).load_config() == small_config()


def test_pandas_reads_the_metrics(finished):
    frame = pd.read_json(finished[0] / "metrics.jsonl", lines=True)
    assert frame["env_steps"].is_monotonic_increasing
    assert (frame["env_steps"] // 100).tolist() == list(range(1, 13))
    assert frame["win_rate_100"].between(0, 1).all()
    shares = frame[[name for name in frame if name.startswith("share_")]]
    assert shares.sum(axis=1).round(6).eq(1).all()
    last = frame.iloc[-1]
    assert len(last["member_losses"]) == small_config().values.num_members
    assert last["episode_length"] == last["solution_length"] == 5
    assert (frame[["graph_size", "ensemble_std", "loss", "gradient_norm"]].iloc[-1] > 0).all()
    assert last["replay_solved"] > 0
    assert last["replay_unsolved"] > 0
    assert set(TIME_COLUMNS) - set(WORKER_COLUMNS) <= set(frame)
    assert not set(WORKER_COLUMNS) & set(frame)  # those are of runs in blocks


def test_tensorboard_reads_the_metrics(finished):
    path, _ = finished
    board = EventAccumulator(str(path / "tensorboard"))
    board.Reload()
    rows = read_rows(path / "metrics.jsonl")
    curve = board.Scalars("play/win_rate_100")
    assert [(event.step, pytest.approx(event.value)) for event in curve] == [
        (row["env_steps"], row["win_rate_100"]) for row in rows
    ]
    assert {"learning/loss", "planning/ensemble_std", "time/env_steps_per_second", "member_losses/00"} <= set(
        board.Tags()["scalars"]
    )


@pytest.mark.parametrize("name", ["uncertainty", "learning"])
def test_smoke_pictures_are_pictures(finished, name):
    with Image.open(finished[0] / "pictures" / f"{name}.png") as picture:
        assert min(picture.size) > 300
        assert len(picture.convert("RGB").getcolors(10**6)) > 50


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ({"on_first_win": True}, "first_win"),
        ({"on_solved": True}, "solved"),
        ({"episodes": 7}, "episodes"),
        ({"seconds": 1e-6}, "seconds"),
        ({"win_rate": 0.01}, "win_rate"),
    ],
)
def test_stop_rules(stop, reason, tmp_path):
    result = run(small_config(stop=stop, steps=50_000), tmp_path / "run", pictures=False)
    assert result["stopped_by"] == reason
    assert result["env_steps"] < 50_000
    if reason == "first_win":
        assert result["wins"] >= 1
        assert result["env_steps"] == result["first_solved_step"]
    if reason == "solved":
        assert result["env_steps"] == result["solved_step"]
    if reason == "win_rate":
        assert result["episodes"] >= 1000


def test_a_longer_run_is_the_shorter_one_resumed(finished, tmp_path):
    whole = tmp_path / "whole"
    run(small_config(steps=2500), whole, pictures=False)
    run(small_config(steps=900), tmp_path / "parts", pictures=False)
    for steps in (900, 1300, 2500):
        result = resume(tmp_path / "parts", config=small_config(steps=steps), pictures=False)
        assert result["stopped_by"] == "steps"
    assert_same(whole, tmp_path / "parts")


def test_resume_without_any_checkpoint_begins_at_the_beginning(finished, tmp_path):
    directory = RunDirectory.create(tmp_path / "run", small_config())
    directory.metrics_file.write_text('{"env_steps": 100, "half a ro')
    resume(tmp_path / "run", pictures=False)
    rows, expected = read_rows(directory.metrics_file), read_rows(finished[0] / "metrics.jsonl")
    assert [row["loss"] for row in rows] == [row["loss"] for row in expected]


def test_networks_resume_exactly_too(tmp_path):
    changes = {
        "domain": {"size": 5},
        "batch": 5,
        "log_every": 10,
        "values": {"network": "mlp", "hidden": [8], "num_members": 3, "prior_scale": 1.0, "bias": True},
        "search": {"num_subsampled": 2},
        "optimiser": {"name": "adam", "learning_rate": 0.01},
        "learning": {"min_episodes": 2},
    }
    run(small_config(**changes, steps=400), tmp_path / "whole", pictures=False)
    run(small_config(**changes, steps=170), tmp_path / "parts", pictures=False)
    resume(tmp_path / "parts", config=small_config(**changes, steps=400), pictures=False)
    assert_same(tmp_path / "whole", tmp_path / "parts")


def test_one_process_at_a_time(tmp_path):
    directory = RunDirectory.create(tmp_path / "run", small_config())
    with directory.lock():
        assert directory.is_running()
        with pytest.raises(BathysphereError, match="Another process is running"):
            resume(tmp_path / "run")
    assert not directory.is_running()


def test_directories_are_not_overwritten(finished, tmp_path):
    with pytest.raises(BathysphereError, match="exists and is not an empty folder"):
        run(small_config(), finished[0])
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BathysphereError, match="exists and is not an empty folder"):
        run(small_config(), tmp_path / "file")
    with pytest.raises(BathysphereError, match="is not a run directory"):
        resume(tmp_path)


def test_a_run_needs_its_own_config(finished, tmp_path):
    other = override(small_config(), {"seed": 5})
    with pytest.raises(BathysphereError, match="belongs to a run with other settings"):
        resume(finished[0], config=other)


def test_names_of_runs(tmp_path):
    config = small_config(preset="paper/deep-sea", seed=3)
    assert next_directory(tmp_path, config) == tmp_path / "paper-deep-sea-seed3-1"
    assert next_directory(tmp_path, config) == tmp_path / "paper-deep-sea-seed3-2"


def test_no_two_of_many_get_the_same_folder(tmp_path):
    """Eight at once ask for folders: each gets others. Of those that ask for one folder, one gets it."""
    config = small_config()
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: next_directory(tmp_path / "runs", config), range(40)))
        assert len(set(folders)) == 40

        def create(_):
            try:
                return RunDirectory.create(tmp_path / "one", config)
            except BathysphereError as error:
                return str(error)

        made = list(pool.map(create, range(16)))
    assert sum(isinstance(one, RunDirectory) for one in made) == 1
    assert all("exists and is not an empty folder" in one for one in made if isinstance(one, str))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"device": "nowhere", "values": {"network": "mlp"}, "optimiser": {"name": "adam"}}, "device 'nowhere'"),
        ({"start_from": "nobody"}, "nobody"),
        ({"model": "nothing"}, "nothing"),
    ],
)
@pytest.mark.parametrize("exists", [True, False])
def test_a_run_that_cannot_begin_leaves_nothing(changes, said, exists, tmp_path):
    path = tmp_path / "run"
    if exists:
        path.mkdir()
    with pytest.raises(BathysphereError, match=said):
        run(small_config(**changes), path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"batch": 2**40}, "batch"),
        ({"search": {"passes": 10**9}}, "search.passes"),
        ({"values": {"num_members": 2**40}}, "values.num_members"),
        ({"learning": {"batch_size": 2**40, "min_episodes": 1}}, "learning.batch_size"),
        ({"learning": {"replay": {"capacity": 2**50}}}, "learning.replay.capacity"),
    ],
)
def test_what_no_memory_has_room_for_is_a_sentence_that_names_the_setting(changes, named, tmp_path):
    with pytest.raises(BathysphereError, match=rf"(?s)(memory|MB).*{re.escape(named)}"):
        run(small_config(**changes), tmp_path / "run")


def test_a_run_whose_folder_is_moved_says_so_and_goes_on_where_it_is(tmp_path):
    path, other = tmp_path / "run", tmp_path / "elsewhere"

    def move(episode, progress):
        if progress.episodes >= 30 and not other.exists():
            path.rename(other)

    saves = small_config(checkpoint={"seconds": 1e-6})
    with pytest.raises(BathysphereError, match="is gone: it was moved or deleted"):
        run(saves, path, on_episode=move)
    assert not path.exists()
    assert resume(other)["stopped_by"] == "steps"


def test_listing_tells_finished_unfinished_running_and_damaged(finished, tmp_path):
    unfinished = RunDirectory.create(tmp_path / "a", small_config())
    running = RunDirectory.create(tmp_path / "deep" / "b", small_config())
    damaged = RunDirectory.create(tmp_path / "c", small_config())
    damaged.config_file.write_text("{")
    with running.lock():
        states = {entry["run_dir"]: entry["state"] for entry in find_runs(tmp_path)}
    assert states == {
        str(unfinished.path): "unfinished",
        str(damaged.path): "damaged",
        str(running.path): "running",
    }
    (entry,) = find_runs(finished[0])
    assert entry["state"] == "steps"
    assert entry["solved_step"] == finished[1]["solved_step"]


def test_a_signal_that_comes_before_training_begins_ends_the_run_and_keeps_it(tmp_path):
    class Signalled(bathysphere.Callback):
        def record(self, episodes, env_steps):
            if env_steps == 0:
                signal.raise_signal(signal.SIGTERM)

    with listening(signal.SIG_IGN, (signal.SIGTERM,)):
        result = run(small_config(), tmp_path / "run", pictures=False, observers=[Signalled()])
    assert (result["stopped_by"], result["env_steps"]) == ("interrupted", 0)
    assert resume(tmp_path / "run", pictures=False, observers=[Signalled()])["stopped_by"] == "steps"
