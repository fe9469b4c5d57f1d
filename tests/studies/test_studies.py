import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from bathysphere.cli import main
from bathysphere.config.convert import config_hash
from bathysphere.errors import BathysphereError
from bathysphere.storage.versions import describe_machine
from bathysphere.studies import STUDIES
from bathysphere.studies.cost import measure_speed, measured_before
from bathysphere.studies.display import study_table, time_left
from bathysphere.studies.folder import StudyFolder
from bathysphere.studies.report import render
from bathysphere.studies.running import Reporter
from bathysphere.studies.scheduler import Job, plan, run_all
from bathysphere.terminal import Terminal
from tests.studies.tiny import OURS, SIZES, STEPS, TINY, TINY_BROKEN, make_study

TIMES = ["wall_seconds", "env_steps_per_second", "report"]  # a remark may be about time


class Nobody:
    def update(self, jobs):
        pass


def command(out):
    return [sys.executable, "-m", "tests.studies.tiny", str(out), "--jobs", "2", "--seeds", "1", "--json"]


def frame(out):
    return pd.read_csv(out / "results.csv").drop(columns=TIMES)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The tiny study, run by the command from beginning to end."""
    out = tmp_path_factory.mktemp("finished") / "out"
    done = subprocess.run(command(out), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out, json.loads(done.stdout)


def test_the_summary(finished):
    out, summary = finished
    assert json.loads((out / "summary.json").read_text()) == summary
    assert {"study", "command", "commit", "budget", "rows"} <= summary.keys()
    assert summary["command"] == "bathysphere reproduce tiny --budget small --seeds 1"
    assert [summary["rows"][0][name] for name in ("setting", "metric", "n")] == ["ours", "solved", 2]
    assert {frozenset(row) for row in summary["rows"]} == {
        frozenset(["setting", "metric", "n", "value", "low", "high", "paper"])
    }
    assert summary["rows"][0]["value"] == 1.0
    assert summary["rows"][0]["paper"] == 0.81


def test_the_return_is_in_every_table_whose_runs_counted_it(finished):
    out, summary = finished
    assert [row["setting"] for row in summary["rows"] if row["metric"] == "return"] == [s.name for s in TINY.settings]
    assert "| return at the end, mean of the last 50 | preset deep-sea |" in (out / "table.md").read_text()
    assert "return at the end" in (out / "report.html").read_text()
    records = StudyFolder(out).load()[1]
    of_version_0_1 = [{k: v for k, v in record.items() if k != "return_mean_50"} for record in records]
    assert "return" not in {row.metric.name for row in TINY.summarise(of_version_0_1)}


def test_dataframes_read_the_raw_results(finished):
    out, _ = finished
    table = frame(out)
    assert table[["setting", "size", "seed"]].value_counts().eq(1).all()
    assert len(table) == 4
    assert (table["state"] == "finished").all()
    # They are all that a result.json holds.
    _, records = StudyFolder(out).load()
    result = json.loads((out / "runs/ours/N4-seed0/result.json").read_text())
    del result["run_dir"]
    result["report"] = json.dumps(result["report"])  # a cell of a table is no list
    assert records[0].items() >= result.items()


def test_the_report_stands_alone_and_says_everything(finished):
    out, summary = finished
    page = (out / "report.html").read_text()
    assert not re.search(r'(src|href)="(?!data:|#)', page.replace("xlink:href", "href"))
    assert "Small seas &lt;and&gt; nothing else." in page
    for text in (
        "30/37",
        "34% to 100%",
        summary["command"],
        summary["machine"],
        summary["processor"],
        "A picture.",
        "<svg",
    ):
        assert text in page
    table = (out / "table.md").read_text()
    assert "| solved | preset deep-sea | 30/37 | 100% | 34% to 100% | 2 |" in table
    assert {"figure.png", "figure.svg", "ours-uncertainty.png"} <= {file.name for file in out.iterdir()}


def test_rendering_again_runs_nothing_and_changes_nothing(finished, tmp_path, monkeypatch, capsys):
    out, summary = finished
    kept = tmp_path / "kept"
    kept.mkdir()
    raw = {"summary.json", "results.csv", "ours-uncertainty.png"}
    for name in raw:
        (kept / name).write_bytes((out / name).read_bytes())
    monkeypatch.setitem(STUDIES, "tiny", TINY)
    assert main(["reproduce", "tiny", "--out", str(kept), "--render", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == summary
    for name in ("report.html", "table.md", "figure.svg", "summary.json"):
        assert (kept / name).read_text() == (out / name).read_text()
    assert not (kept / "runs").exists()


def test_the_table_grows_while_a_study_goes_on(finished, tmp_path):
    out, _ = finished
    folder = StudyFolder(shutil.copytree(out, tmp_path / "out"))
    trials = TINY.trials("small", 1)
    jobs = folder.begin(TINY, "small", "again", trials)
    assert "rows" not in json.loads(folder.summary_file.read_text())
    for job in jobs[1:]:
        job.state = "running"
    Reporter(TINY, folder, Nobody()).update(jobs)
    told = json.loads(folder.summary_file.read_text())
    assert told["num_runs"] == len(trials)
    assert sum(row["n"] for row in told["rows"] if row["metric"] == "solved") == 1
    jobs[1].state = "finished"
    Reporter(TINY, folder, Nobody()).update(jobs)
    told = json.loads(folder.summary_file.read_text())
    assert sum(row["n"] for row in told["rows"] if row["metric"] == "solved") == 2


def test_a_folder_of_an_earlier_version_is_read(finished, tmp_path, monkeypatch, capsys):
    out, summary = finished
    kept = shutil.copytree(out, tmp_path / "kept")
    (kept / "summary.json").unlink()  # an interrupted study had none, and always this:
    about = {name: summary[name] for name in ("study", "budget", "command")}
    (kept / "study.json").write_text(json.dumps(about))
    monkeypatch.setitem(STUDIES, "tiny", TINY)
    assert main(["reproduce", "tiny", "--out", str(kept), "--render", "--json"]) == 0
    expected = {name: told for name, told in summary.items() if name != "num_runs"}
    assert json.loads(capsys.readouterr().out) == expected


def test_runs_without_a_processor_are_rendered(finished, tmp_path, monkeypatch, capsys):
    out, summary = finished
    assert summary["processor"]
    kept = tmp_path / "kept"
    kept.mkdir()
    pd.read_csv(out / "results.csv").drop(columns="processor").to_csv(kept / "results.csv", index=False)
    (kept / "summary.json").write_text(json.dumps({n: summary[n] for n in ("study", "budget", "command")}))
    monkeypatch.setitem(STUDIES, "tiny", TINY)
    assert main(["reproduce", "tiny", "--out", str(kept), "--render", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == summary["rows"]


@pytest.mark.parametrize("changed", [True, False])
def test_no_result_is_lost(changed, finished, tmp_path):
    """A command that leaves out a run, or has other settings for one that is gone, changes nothing."""
    folder = StudyFolder(shutil.copytree(finished[0], tmp_path / "kept"))
    trials = TINY.trials("small", 1)
    if changed:
        shutil.rmtree(folder.runs / "ours/N8-seed0")
        trials = [
            t if t.folder != Path("ours/N8-seed0") else replace(t, config=replace(t.config, seed=7)) for t in trials
        ]
    else:
        trials = [trial for trial in trials if trial.case is SIZES[0]]
    before = {file: file.read_bytes() for file in folder.path.iterdir() if file.is_file()}
    with pytest.raises(BathysphereError, match=r"would lose, such as ours.N8-seed0"):
        folder.begin(TINY, "small", "a command", trials)
    assert {file: file.read_bytes() for file in folder.path.iterdir() if file.is_file()} == before


def test_results_whose_runs_are_gone_are_kept_beside_more_seeds(finished, tmp_path):
    """As in `results/` of the repository, where no runs are: what is there is not run again."""
    folder = StudyFolder(shutil.copytree(finished[0], tmp_path / "kept"))
    rows = folder.load()[1]
    shutil.rmtree(folder.runs)
    jobs = folder.begin(TINY, "small", "a command", TINY.trials("small", 2))
    assert sorted(job.state for job in jobs) == ["finished"] * 4 + ["waiting"] * 4
    folder.save(TINY, jobs)
    assert folder.load()[1] == rows


def test_what_others_are_built_on_is_run_again_if_it_is_gone(tmp_path):
    trials = STUDIES["sokoban-transfer"].trials("small", 1)
    rows = {trial.folder: {"config_hash": config_hash(trial.config)} for trial in trials}
    states = {job.trial.setting: job.state for job in plan(trials, tmp_path, rows=rows)}
    assert (states["tower-5"], states["linear-1-5"], states["random-5"]) == ("waiting", "waiting", "finished")


def test_more_seeds_go_on_in_the_same_folder(finished, tmp_path):
    folder = StudyFolder(shutil.copytree(finished[0], tmp_path / "kept"))
    folder.begin(TINY, "small", "a command", TINY.trials("small", 2))
    about, records = folder.load()
    assert (about["command"], len(records)) == ("a command", 4)


def test_a_finished_study_is_not_run_again(finished, tmp_path):
    out, _ = finished
    jobs = plan(TINY.trials("small", 1), out / "runs")
    assert [job.state for job in jobs] == ["finished"] * 4
    more = plan(TINY.trials("small", 2), out / "runs")
    assert [job.state for job in more].count("waiting") == 4


def stopped(arguments, number):
    """Runs a study that stops itself in between, with a signal."""
    environment = {**os.environ, "STOP_WITH": str(int(number))}
    return subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_and_continued_gives_the_same_numbers(number, finished, tmp_path):
    out = tmp_path / "out"
    process = stopped(command(out), number)
    runs = out / "runs"
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    results = {p: p.stat().st_mtime_ns for p in runs.glob("*/*/result.json") if "interrupted" not in p.read_text()}
    assert 0 < len(results) < 4
    if number == signal.SIGINT:
        assert len(frame(out)) == len(results)
    done = subprocess.run(command(out), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # What was finished was left alone; only a run that ended by itself after the kill may be new.
    assert all(path.stat().st_mtime_ns == moment for path, moment in results.items())
    one, other = (frame(path).drop(columns="commit") for path in (out, finished[0]))
    pd.testing.assert_frame_equal(one, other)


def test_a_failing_run_does_not_stop_the_rest(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(STUDIES, "tiny", TINY_BROKEN)
    out = tmp_path / "out"
    assert main(["reproduce", "tiny", "--out", str(out), "--jobs", "2", "--seeds", "1", "--json"]) == 1
    said = capsys.readouterr()
    table = frame(out)
    assert table.groupby("setting")["state"].unique().map(list).to_dict() == {
        "broken": ["failed"],
        "ours": ["finished"],
    }
    assert table[table["setting"] == "broken"]["error"].str.contains("tables only").all()
    assert "tables only" in said.err
    assert "tables only" in (out / "report.html").read_text()
    rows = json.loads(said.out)["rows"]
    assert [(row["setting"], row["n"]) for row in rows if row["metric"] == "solved"] == [("ours", 2), ("broken", 0)]
    # The next time it is tried again, and only it.
    states = [job.state for job in plan(TINY_BROKEN.trials("small", 1), out / "runs")]
    assert states == ["finished", "waiting"] * 2


def test_a_crash_is_told_by_its_signal_or_last_words(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hooks"))
    (tmp_path / "hooks").mkdir()
    hook = tmp_path / "hooks" / "sitecustomize.py"
    jobs = plan(make_study(OURS).trials("small", 1), tmp_path / "runs")
    hook.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    run_all(jobs, 2, Nobody())
    assert [(job.state, job.error) for job in jobs] == [("failed", "killed by signal 9")] * 2
    hook.write_text("import sys\nsys.stderr.write('out of luck\\n')\nsys.stderr.flush()\nimport os\nos._exit(3)\n")
    jobs = plan(make_study(OURS).trials("small", 1), tmp_path / "runs")
    run_all(jobs, 2, Nobody())
    assert [(job.state, job.error) for job in jobs] == [("failed", "out of luck")] * 2


class TestBudgets:
    def trial(self, **changes):
        changes = {"checkpoint": {"seconds": 60.0}, **changes}
        study = make_study(type(OURS)("ours", "ours", "deep-sea", changes))
        return [t for t in study.trials("small", 1) if t.case is SIZES[0]]

    def test_more_steps_continue_a_finished_run(self, tmp_path):
        short = self.trial()
        object.__setattr__(short[0].config, "steps", 600)
        jobs = plan(short, tmp_path)
        run_all(jobs, 1, Nobody())
        assert jobs[0].result["env_steps"] == 600
        jobs = plan(self.trial(), tmp_path)
        assert jobs[0].state == "waiting"
        run_all(jobs, 1, Nobody())
        assert jobs[0].result["env_steps"] == STEPS
        with pytest.raises(BathysphereError, match="the budget"):
            plan(short, tmp_path)

    def test_other_settings_are_refused(self, tmp_path):
        run_all(plan(self.trial(), tmp_path), 1, Nobody())
        with pytest.raises(BathysphereError, match=r"other settings \(search.passes\)"):
            plan(self.trial(search={"passes": 3}), tmp_path)

    def test_a_folder_without_a_run_is_begun_anew(self, tmp_path):
        (trial,) = self.trial()
        (tmp_path / trial.folder / "checkpoints").mkdir(parents=True)
        jobs = plan([trial], tmp_path)
        run_all(jobs, 1, Nobody())
        assert jobs[0].state == "finished"


def test_the_table_shows_states_results_and_errors(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 104.0)
    jobs = [Job(trial, tmp_path) for trial in TINY_BROKEN.trials("small", 2)]
    assert time_left(jobs, 2) is None
    result = {"wall_seconds": 10.0, "solved_step": 500}
    jobs[0].state, jobs[0].result = "finished", result
    jobs[1].state, jobs[1].error = "failed", "[red]no luck\x9b"
    jobs[2].state, jobs[2].began = "running", 100.0
    assert time_left(jobs, 2) == (6 + 5 * 10) / 2
    console = Terminal(file=io.StringIO(), width=120, force_terminal=False)
    console.print(study_table(TINY_BROKEN, jobs, 2))
    text = console.file.getvalue()
    assert re.search(r"preset deep-sea +2 +1 +1 +0 +100% \(21% to 100%\) +500 \(–\)", text)
    assert re.search(r"broken +3 +0 +0 +1 +– +–", text)
    assert "about 0:28" in text
    assert "broken/N4-seed0: [red]no luck\\x9b" in text


class TestRefusals:
    def test_unknown_study(self, capsys):
        assert main(["reproduce", "deep-see"]) == 2
        assert "Did you mean 'deep-sea'?" in capsys.readouterr().err
        assert main(["reproduce"]) == 2
        assert "needs a study" in capsys.readouterr().err

    @pytest.mark.parametrize("option", ["--seeds", "--jobs"])
    def test_numbers(self, option, tmp_path, capsys):
        assert main(["reproduce", "deep-sea", option, "0", "--out", str(tmp_path)]) == 2
        assert "at least 1" in capsys.readouterr().err

    def test_rendering_nothing(self, tmp_path, capsys):
        assert main(["reproduce", "deep-sea", "--render", "--out", str(tmp_path)]) == 2
        assert "holds no results" in capsys.readouterr().err

    def test_the_folder_of_another_study(self, tmp_path, capsys):
        folder = StudyFolder(tmp_path)
        folder.begin(TINY, "small", "a command", [])
        folder.save(TINY, [])
        with pytest.raises(BathysphereError, match="holds the study tiny"):
            folder.begin(TINY, "paper", "a command", [])
        with pytest.raises(BathysphereError, match="holds the study tiny"):
            render(STUDIES["deep-sea"], folder)


class TestTheList:
    def test_costs_are_those_measured_before(self, monkeypatch, capsys):
        monkeypatch.setattr("bathysphere.studies.cost.measure_speed", None)  # nothing is measured
        assert main(["reproduce", "--list", "--json", "--jobs", "2"]) == 0
        listed = json.loads(capsys.readouterr().out)
        studies = {entry["study"]: entry for entry in listed["studies"]}
        assert studies.keys() == STUDIES.keys()
        assert "ensemble, std: 30/37 runs that found a solution" in studies["toy-montezuma"]["paper"]
        small = studies["toy-montezuma"]["budgets"]["small"]
        assert small["seconds"] == pytest.approx(4 * 5 * 400_000 / small["env_steps_per_second"] / 2)
        assert (listed["measured_now"], listed["machine"]) == (False, measured_before()["machine"])
        assert main(["reproduce", "toy-montezuma", "--list", "--json", "--jobs", "2"]) == 0
        assert json.loads(capsys.readouterr().out)["studies"] == [studies["toy-montezuma"]]

    def test_this_machine_is_measured_on_request(self, monkeypatch, capsys):
        monkeypatch.setattr("bathysphere.studies.cost.measure_speed", lambda config: 1000.0)
        assert main(["reproduce", "toy-montezuma", "--list", "--measure", "--json", "--jobs", "2"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert (listed["measured_now"], listed["machine"]) == (True, describe_machine())
        assert listed["studies"][0]["budgets"]["small"]["seconds"] == pytest.approx(4 * 5 * 400_000 / 1000 / 2)
        assert main(["reproduce", "toy-montezuma", "--measure"]) == 2
        assert "goes with --list" in capsys.readouterr().err

    def test_it_says_which_of_the_two_it_is(self, monkeypatch, capsys):
        monkeypatch.setattr("bathysphere.studies.cost.measure_speed", lambda config: 1000.0)
        monkeypatch.setattr("bathysphere.cli.reproduce.STUDIES", {"tiny": TINY})
        assert main(["reproduce", "--list"]) == 0
        text = capsys.readouterr().out
        assert "8 runs, time not measured yet." in text  # a study without an entry is listed nevertheless
        assert f"of earlier runs ({measured_before()['machine']})" in text
        assert main(["reproduce", "--list", "--measure", "--jobs", "1"]) == 0
        text = capsys.readouterr().out
        assert "small: 8 runs, at most 0:24 with 1 jobs" in text
        assert f"this machine ({describe_machine()}), measured now" in text

    def test_a_speed_is_measured(self):
        assert measure_speed(TINY.trials("small", 1)[0].config) > 0
