"""A run as an object: it is what result.json holds, and everything can be done with it."""

import json
import sys
import time

import numpy as np
import pytest
from numba.core import event

import bathysphere
from bathysphere.errors import BathysphereError
from bathysphere.planning.graph import risk

SMALL = {"domain": {"size": 5}, "log_every": 100, "pictures": False}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    return bathysphere.train("deep-sea", run_dir=path, steps=3000, **SMALL)


def test_it_is_a_mapping_of_the_result(run):
    result = json.loads((run.path / "result.json").read_text())
    assert run == result
    assert result == run
    assert dict(run) == result
    assert json.loads(json.dumps(dict(run))) == result
    assert run["env_steps"] == 3000
    assert run.get("nothing") is None
    assert "solved_step" in run
    assert list(run) == list(result)
    assert {**run} == result


def test_curves_are_a_frame_of_the_metrics(run):
    curves = run.curves()
    assert curves["env_steps"].is_monotonic_increasing
    assert curves["env_steps"].iloc[-1] == 3000
    assert "win_rate_100" in curves


def test_a_run_without_rows_has_a_frame_of_one(run, tmp_path):
    short = bathysphere.train("deep-sea", run_dir=tmp_path / "run", steps=50, **SMALL)
    (short.path / "metrics.jsonl").unlink(missing_ok=True)
    curves = bathysphere.load_run(short).curves()
    assert len(curves) == 1
    assert curves["env_steps"][0] == short["env_steps"]


def test_without_pandas_a_sentence_says_so(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BathysphereError, match=r"pip install 'bathysphere\[pandas\]'"):
        run.curves()
    assert run.rows()[-1]["env_steps"] == 3000


def test_a_run_stands_for_its_directory(run):
    assert bathysphere.load_run(run) == run
    assert bathysphere.load_run(str(run.path)) == run
    by_run, by_path = (bathysphere.evaluate(agent, 5) for agent in (run, str(run.path)))
    assert by_run.agent == by_path.agent == str(run.path)
    assert by_run.solved_after == by_path.solved_after == run.evaluate(5).solved_after
    assert bathysphere.load_agent(run).values.num_members == run.agent.values.num_members


def test_an_unfinished_run_is_one_too(tmp_path):
    run = bathysphere.train("deep-sea", run_dir=tmp_path / "run", steps=300, **SMALL)
    (run.path / "result.json").unlink()
    unfinished = bathysphere.load_run(run.path)
    assert unfinished.state == "unfinished"
    assert unfinished["stopped_by"] is None
    assert unfinished["env_steps"] == 300
    assert "unfinished" in repr(unfinished)
    assert unfinished.resume(steps=400, pictures=False)["env_steps"] == 400


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(BathysphereError, match="not a run directory"):
        bathysphere.load_run(tmp_path)


def test_it_is_resumed_in_place(tmp_path):
    first = bathysphere.train("deep-sea", run_dir=tmp_path / "run", steps=100, **SMALL)
    second = first.resume(steps=200, pictures=False)
    assert (first["env_steps"], second["env_steps"]) == (100, 200)
    assert second.path == first.path


def test_watching_shows_text_or_writes_a_film(run, tmp_path, capsys):
    (episode,) = run.watch()
    shown = capsys.readouterr().out
    assert episode.domain.text(episode.state).splitlines()[0] in shown
    run.watch(tmp_path / "film.gif", episodes=2)
    assert (tmp_path / "film.gif").read_bytes().startswith(b"GIF")
    with pytest.raises(BathysphereError, match=r"ends in \.gif or \.mp4"):
        run.watch("film.webm")
    with pytest.raises(BathysphereError, match="episodes is 0"):
        run.watch(episodes=0)


def test_explaining_a_state(run):
    domain = run.agent.domain
    start = domain.initial(1, np.random.default_rng(0))[0]
    report = run.explain(start)
    assert report.state.tobytes() == start.tobytes()
    assert report.q.shape == (2, run.agent.values.num_members)
    assert report.chosen == bathysphere.load_agent(run).act(start)
    assert str(run.explain()) == str(report)
    with pytest.raises(BathysphereError, match="uint8"):
        run.explain(start[:1])


def test_export(run, tmp_path):
    file = run.export(tmp_path / "agent.safetensors")
    assert bathysphere.evaluate(file, 5).count == 5


def test_reprs_tell_what_there_is(run):
    assert repr(run).startswith(f"<Run {run.path}: deep-sea, seed 0, steps; 3,000 steps, ")
    assert repr(run.agent) == "<Agent in deep-sea: 20 members, plans by mcts, 10 passes a step>"
    (played,) = run.watch()
    assert repr(played) == "<PlayedEpisode in deep-sea: 4 steps, return 0.9925, solved>"
    assert repr(run.evaluate(4)).startswith(f"<Evaluation of {run.path}: Won ")


def test_seconds_leave_out_those_in_which_code_is_compiled(tmp_path):
    compiling = []

    def compile_slowly(episode, progress):
        if not compiling:
            with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):  # one inside the other
                compiling.append(time.sleep(1.0))

    began = time.perf_counter()
    run = bathysphere.train("deep-sea", run_dir=tmp_path / "run", steps=500, on_episode=compile_slowly, **SMALL)
    assert compiling
    assert run["wall_seconds"] < time.perf_counter() - began - 1.0


@bathysphere.separable
def forgotten(values, risk_coef):
    return values.mean()


def test_parts_of_ones_own_that_are_not_imported_do_not_make_a_run_damaged(tmp_path, monkeypatch):
    run = bathysphere.train("deep-sea", run_dir=tmp_path / "run", steps=200, search={"risk": "forgotten"}, **SMALL)
    monkeypatch.delitem(risk._MEASURES, "forgotten")
    (found,) = bathysphere.runs(tmp_path)
    assert (found["preset"], found.state, found["env_steps"]) == ("deep-sea", "steps", 200)
    with pytest.raises(BathysphereError, match="--import MODULE"):
        bathysphere.load_agent(run)
