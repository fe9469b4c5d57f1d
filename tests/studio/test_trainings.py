"""Runs that are started, stopped and continued from the page are real ones."""

import shutil
import time

import pytest

from bathysphere.errors import BathysphereError
from bathysphere.studio.folder import RunsFolder
from bathysphere.studio.trainings import Trainings

PATIENCE = 120  # seconds: the process has to import PyTorch, and perhaps to compile


def wait_for(what):
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_training(folder, name, steps=0):
    return any(
        run.state == "running" and run.env_steps > steps for run in RunsFolder(folder).runs() if run.name == name
    )


def test_start_stop_and_resume(tmp_path):
    runs = RunsFolder(tmp_path)
    trainings = Trainings(runs)
    name = trainings.start("deep-sea", "--steps 100000000 --seed 3 --domain.size 5")
    assert name == "deep-sea-seed3-1"
    wait_for(lambda: is_training(tmp_path, name))
    with pytest.raises(BathysphereError, match="is running already"):
        trainings.resume(name)
    Trainings(RunsFolder(tmp_path)).stop(name)  # a studio that was started later
    wait_for(lambda: RunsFolder(tmp_path).find(name).state == "interrupted")
    wait_for(lambda: trainings.failures() == {} and not trainings._processes)
    with pytest.raises(BathysphereError, match="not running"):
        trainings.stop(name)
    before = RunsFolder(tmp_path).find(name).env_steps
    trainings.resume(name)
    wait_for(lambda: is_training(tmp_path, name, before))
    trainings.stop(name)
    wait_for(lambda: RunsFolder(tmp_path).find(name).state == "interrupted")
    wait_for(lambda: trainings.failures() == {} and not trainings._processes)


def test_a_run_that_cannot_begin_says_why(tmp_path):
    trainings = Trainings(RunsFolder(tmp_path))
    trainings.start("deep-sea", "--domain.size 1", "mine")
    failed = {}
    wait_for(lambda: failed.update(trainings.failures()) or failed)
    assert "size must be a whole number from 2" in failed["mine"]


@pytest.mark.parametrize(
    ("what", "options", "name", "said"),
    [
        ("deep-see", "", "", "no preset"),
        ("deep-sea; rm -rf /", "", "", "no preset"),
        ("deep-sea", "--run-dir /tmp/elsewhere", "", "cannot be set here"),
        ("deep-sea", "--resume x", "", "cannot be set here"),
        ("deep-sea", "--start-from x", "", "cannot be set here"),
        ("deep-sea", "elsewhere", "", "begin with --"),
        ("deep-sea", "'", "", "cannot be read"),
        ("deep-sea", "", "../mine", "cannot be called"),
        ("deep-sea", "", "taken", "already"),
    ],
)
def test_what_is_refused_starts_nothing(tmp_path, what, options, name, said):
    (tmp_path / "taken").mkdir()
    trainings = Trainings(RunsFolder(tmp_path))
    with pytest.raises(BathysphereError, match=said):
        trainings.start(what, options, name)
    assert not trainings._processes
    shutil.rmtree(tmp_path / "taken")
    assert not list(tmp_path.iterdir())
