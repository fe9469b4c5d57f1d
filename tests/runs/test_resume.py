import signal

import numpy as np
import pytest

from tests.runs.subprocesses import (
    FLAGS,
    SAVE_OFTEN,
    STEPS,
    assert_same,
    bathysphere,
    finish,
    killed,
    signalled,
)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """A run that nothing happened to, and its result."""
    run = tmp_path_factory.mktemp("whole") / "run"
    return run, finish(bathysphere("train", "deep-sea", *FLAGS, "--run-dir", str(run), "--json"))


def test_killed_again_and_again_and_resumed_equals_uninterrupted(uninterrupted, tmp_path):
    run = tmp_path / "run"
    rng = np.random.default_rng(0)
    command = ["train", "deep-sea", *FLAGS, *SAVE_OFTEN, "--run-dir", str(run)]
    for _ in range(3):
        # A random moment: between checkpoints, or in the middle of one.
        assert killed(float(rng.uniform(0, 0.05)), *command) == -signal.SIGPROF
        command = ["train", "--resume", str(run)]
    result = finish(bathysphere(*command, "--json"))
    assert_same(run, uninterrupted[0])
    times = ("wall_seconds", "env_steps_per_second", "run_dir")
    assert {k: v for k, v in result.items() if k not in times} == {
        k: v for k, v in uninterrupted[1].items() if k not in times
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_saves_and_ends_cleanly(number, uninterrupted, tmp_path):
    run = tmp_path / "run"
    process = signalled(number, "train", "deep-sea", *FLAGS, *SAVE_OFTEN, "--run-dir", str(run), "--json")
    result = finish(process, code=130)
    assert result["stopped_by"] == "interrupted"
    assert 0 < result["env_steps"] < STEPS
    assert (run / "checkpoints" / f"step-{result['env_steps']:012d}").is_dir()
    finish(bathysphere("train", "--resume", str(run), "--json"))
    assert_same(run, uninterrupted[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_impatient_person_loses_nothing_that_was_saved(number, uninterrupted, tmp_path):
    run = tmp_path / "run"
    more = (number, signal.SIGINT)
    process = signalled(number, "train", "deep-sea", *FLAGS, *SAVE_OFTEN, "--run-dir", str(run), "--json", more=more)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "Traceback" not in err
    finish(bathysphere("train", "--resume", str(run), "--json"))
    assert_same(run, uninterrupted[0])
