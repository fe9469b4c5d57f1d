"""Following a run from a program: functions and callbacks, the early end, and what happens when they fail."""

import numpy as np
import pytest

import bathysphere
from bathysphere.errors import BathysphereError
from bathysphere.runs.metrics import TIME_COLUMNS

SMALL = {"domain": {"size": 5}, "log_every": 50, "pictures": False}


def train(path, **settings):
    return bathysphere.train("deep-sea", run_dir=path, **{"steps": 400, **SMALL, **settings})


def rows(run):
    return [{k: v for k, v in row.items() if k not in TIME_COLUMNS and k != "seen"} for row in run.rows()]


def test_a_function_sees_every_episode_and_the_progress(tmp_path):
    seen = []
    run = train(tmp_path / "run", on_episode=lambda episode, progress: seen.append((len(episode), progress.env_steps)))
    assert len(seen) == run["episodes"] > 10
    assert all(length == 4 for length, _ in seen)
    assert seen[-1][1] <= run["env_steps"]
    assert run["stopped_by"] == "steps"


@pytest.mark.parametrize("yes", [True, np.True_])
def test_true_ends_the_run(tmp_path, yes):
    run = train(tmp_path / "run", on_episode=lambda episode, progress: yes if progress.episodes >= 20 else None)
    assert run["stopped_by"] == "callback"
    assert 20 <= run["episodes"] < 100
    assert run.resume(pictures=False)["stopped_by"] == "steps"


def test_other_answers_do_not_end_it(tmp_path):
    assert train(tmp_path / "run", on_episode=lambda episode, progress: "go on")["stopped_by"] == "steps"


class Longest(bathysphere.Callback):
    steps = 0

    def record(self, episodes, env_steps):
        self.steps = max([self.steps, *(len(episode.actions) for episode in episodes)])
        return env_steps >= 200

    def columns(self):
        return {"longest": self.steps}


def test_a_callback_overrides_what_it_needs(tmp_path):
    run = train(tmp_path / "run", observers=[Longest()])
    assert run["stopped_by"] == "callback"
    assert run["env_steps"] < 300
    assert run.rows()[-1]["longest"] == 4


def test_two_callbacks_of_one_name_are_refused(tmp_path):
    with pytest.raises(BathysphereError, match="called 'Longest'"):
        train(tmp_path / "run", observers=[Longest(), Longest()])


def test_a_failing_function_leaves_a_run_that_goes_on_as_if_nothing_had_happened(tmp_path):
    def breaks_at_20(episode, progress):
        if progress.episodes >= 20:
            raise ValueError("no more")

    with pytest.raises(BathysphereError, match=r"breaks_at_20.*ValueError: no more") as caught:
        train(tmp_path / "run", on_episode=breaks_at_20)
    assert isinstance(caught.value.__cause__, ValueError)
    broken = bathysphere.load_run(tmp_path / "run")
    assert broken.state == "unfinished"
    assert any((broken.path / "checkpoints").iterdir())
    assert rows(broken.resume(pictures=False)) == rows(train(tmp_path / "whole"))


@pytest.mark.parametrize("method", ["record", "columns", "totals", "pictures"])
def test_a_failing_callback_is_named_wherever_it_fails(tmp_path, method):
    class Broken(bathysphere.Callback):
        pass

    def fail(self, *arguments):
        raise RuntimeError

    setattr(Broken, method, fail)
    with pytest.raises(BathysphereError, match=r"fail .*raised RuntimeError\. The run was saved"):
        train(tmp_path / "run", observers=[Broken()], pictures=True)
    assert bathysphere.load_run(tmp_path / "run").resume(pictures=False)["env_steps"] >= 400
