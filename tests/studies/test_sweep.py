"""Sweeps: what is run, what bad input is told, that a killed one goes on, and what the report says."""

import json
import os
import signal
import subprocess
import sys

import pandas as pd
import pytest

import bathysphere
from bathysphere.cli import main
from bathysphere.config.presets import find_preset
from bathysphere.config.start import Start
from bathysphere.errors import BathysphereError
from bathysphere.studies.statistics import estimate
from bathysphere.studies.sweep import Chosen, make_sweep, parse_vary
from bathysphere.studies.sweep_figure import recent_wins

SMALL = ["--domain.size", "5", "--steps", "300", "--log-every", "50"]
TWO = ["--vary", "search.risk_coef=0,10", "--seeds", "2", "--jobs", "2"]
TIMES = ["wall_seconds", "env_steps_per_second", "report"]  # a remark may be about time
WORLD = '''
class Cliff:
    """A way along a cliff. Nothing counts as solved: every step costs 1, and a fall ends it with -20."""

    actions = ("on", "down")
    max_steps = 12

    def __init__(self, length: int = 4):
        self.length = length

    def start(self, rng):
        return 0

    def step(self, place, action):
        if action == "down":
            return place, -20.0, True
        return place + 1, -1.0, place + 1 == self.length
'''


def make(domain):
    assert domain == {}
    return find_preset("deep-sea")


def test_every_combination_is_a_setting_with_its_values():
    study = make_sweep("deep-sea", make, {"search.risk_coef": [0, 2], "values.num_members": [10, 20]}, 3)
    trials = study.trials("sweep")
    assert len(trials) == 12
    assert [setting.name for setting in study.settings][:2] == [
        "risk_coef=0,num_members=10",
        "risk_coef=0,num_members=20",
    ]
    last = trials[-1]
    assert (last.config.search.risk_coef, last.config.values.num_members, last.config.seed) == (2.0, 20, 2)
    assert last.identity()["search.risk_coef"] == 2


def test_planners_and_worlds_can_be_varied():
    seen = []

    def make_sized(domain):
        seen.append(domain)
        return find_preset("deep-sea")

    vary = {"planner": ["mcts", "best-first"], "domain.size": [5, 6]}
    study = make_sweep("deep-sea", make_sized, vary, 1)
    assert seen == [{"size": 5}, {"size": 6}]
    kinds = [type(setting.preset.search).__name__ for setting in study.settings]
    assert kinds == ["SearchConfig"] * 2 + ["BestFirstConfig"] * 2


def test_what_vary_says_is_read():
    texts = ["search.risk-coef=0, 1.5", "values.hidden=[50],[50,50]", "stop.on_solved=true,False", "model=none,mine"]
    assert parse_vary(texts) == {
        "search.risk_coef": [0, 1.5],
        "values.hidden": [[50], [50, 50]],
        "stop.on_solved": [True, False],
        "model": [None, "mine"],
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["deep-sea"], "A sweep needs something to vary"),
        (["deep-sea", "--vary", "search.risk_coef"], "expected a field and its values"),
        (["deep-sea", "--vary", "search.risk_coef="], "expected a field and its values"),
        (["deep-sea", "--vary", "search.risk_coef=1,,2"], "has an empty value"),
        (["deep-sea", "--vary", "search.risk_coeff=1"], "Did you mean 'search.risk_coef'?"),
        (["deep-sea", "--vary", "search.risk_coef=a"], "search.risk_coef should be a number; got 'a'"),
        (["deep-sea", "--vary", "search.passes=0"], "search.passes is 0"),
        (["deep-sea", "--vary", "domain.sise=5"], "Did you mean 'domain.size'?"),
        (["deep-sea", "--vary", "seed=1,2"], "say how many with --seeds"),
        (["deep-sea", "--vary", "batch=2,2"], "the same value twice"),
        (["deep-sea", "--vary", "batch=2", "--vary", "batch=4"], "names batch twice"),
        (["deep-sea", "--vary", "batch=2", "--seeds", "0"], "--seeds is 0; expected at least 1"),
        (["deep-sea", "--vary", "batch=2", "--jobs", "0"], "--jobs is 0; expected at least 1"),
        (["deep-sea", "--vary", "batch=2", "--seed", "3"], "leave out --seed"),
        (["deep-see", "--vary", "batch=2"], "Did you mean 'deep-sea'?"),
        (["--vary", "batch=2"], "'bathysphere sweep' needs a preset or a world first"),
    ],
)
def test_mistakes_are_sentences_and_leave_nothing(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def frame(out):
    return pd.read_csv(out / "results.csv").drop(columns=TIMES)


def command(out, *rest):
    return ["sweep", "deep-sea", *SMALL, *TWO, "--out", str(out), *rest]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "out"
    assert main(command(out, "--json")) == 0
    return out


def test_it_leaves_tables_with_win_rate_and_return(swept):
    summary = json.loads((swept / "summary.json").read_text())
    assert {row["metric"] for row in summary["rows"]} == {"solved", "steps", "win-rate", "return"}
    table = frame(swept)
    assert table["search.risk_coef"].tolist() == [0, 10, 0, 10]
    assert table["seed"].tolist() == [0, 0, 1, 1]
    row = next(r for r in summary["rows"] if (r["setting"], r["metric"]) == ("risk_coef=10", "return"))
    expected = estimate(table[table["search.risk_coef"] == 10]["return_mean_50"].tolist(), "return")
    assert (row["n"], row["value"], row["low"], row["high"]) == (2, expected.value, expected.low, expected.high)
    text = (swept / "table.md").read_text()
    assert text.startswith("| | setting | here | 95% interval | runs |")
    assert "paper" not in text
    page = (swept / "report.html").read_text()
    assert "The paper" not in page
    assert "return at the end" in page
    assert "bathysphere sweep deep-sea" in page
    assert (swept / "figure.png").is_file()
    assert len(pd.read_csv(swept / "curves.csv")) >= 4 * 6


def test_repeated_it_runs_nothing_and_more_seeds_go_on(swept, capsys):
    before = {file: file.stat().st_mtime_ns for file in swept.glob("runs/*/*/result.json")}
    assert main(command(swept)) == 0
    assert "[4/4]" in capsys.readouterr().err
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert main(["sweep", "deep-sea", *SMALL, "--search.passes", "3", *TWO, "--out", str(swept)]) == 2
    assert "holds a run with other settings (search.passes)" in capsys.readouterr().err


_STOPPED = """
import os, signal, sys
from bathysphere.cli import main
from bathysphere.studies.display import StudyDisplay
update = StudyDisplay.update

def update_and_stop(display, jobs):
    update(display, jobs)
    if any(job.state == "finished" for job in jobs):
        os.kill(os.getpid(), {number})

StudyDisplay.update = update_and_stop
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_killed_and_started_again_it_goes_on_and_ends_alike(number, swept, tmp_path):
    out = tmp_path / "out"
    code = _STOPPED.format(number=int(number))
    done = subprocess.run([sys.executable, "-c", code, *command(out)], capture_output=True, text=True, check=False)
    assert done.returncode == (130 if number == signal.SIGINT else -number), done.stderr
    results = {p: p.stat().st_mtime_ns for p in out.glob("runs/*/*/result.json") if "interrupted" not in p.read_text()}
    assert 0 < len(results) < 4
    assert main(command(out)) == 0
    assert all(path.stat().st_mtime_ns == moment for path, moment in results.items())
    pd.testing.assert_frame_equal(frame(out).drop(columns="commit"), frame(swept).drop(columns="commit"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my_world.py").write_text(WORLD)
    return tmp_path


def run_in(folder, *arguments):
    command = [sys.executable, "-P", "-m", "bathysphere", "sweep", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_world_of_the_users_own_without_a_solved(folder):
    flags = ["--steps", "400", "--seeds", "1", "--jobs", "2", "--json"]
    done = run_in(folder, "my_world:Cliff", "--vary", "domain.length=3,6", *flags)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    returns = {row["setting"]: row["value"] for row in summary["rows"] if row["metric"] == "return"}
    assert returns.keys() == {"length=3", "length=6"}
    assert -20 < returns["length=6"] < returns["length=3"] <= -3
    (out,) = (folder / "sweeps").iterdir()
    assert out.name == "cliff-length"
    config = json.loads((out / "runs/length=6/seed0/config.json").read_text())
    assert config["domain"]["settings"] == {"length": 6}


def test_a_gymnasium_environment(folder):
    flags = ["--steps", "200", "--seeds", "1", "--jobs", "1", "--json"]
    vary = "domain.arguments.is_slippery=false"
    done = run_in(folder, "gymnasium:FrozenLake-v1", "--vary", vary, "--vary", "search.passes=3,4", *flags)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["rows"]) == 8


def test_from_python(tmp_path):
    vary = {"search.risk_coef": [0, 10]}
    done = bathysphere.sweep(
        "deep-sea", vary, seeds=1, jobs=2, out=tmp_path / "out", domain={"size": 5}, steps=200, log_every=50
    )
    assert "| runs solved | risk_coef = 10 |" in repr(done)
    assert done.frame()["search.risk_coef"].tolist() == [0, 10]
    assert {run["seed"] for run in done.runs} == {0}
    assert done.summary["rows"][0]["n"] == 1
    with pytest.raises(BathysphereError, match="something to vary"):
        bathysphere.sweep("deep-sea", {})
    with pytest.raises(BathysphereError, match="expected a list"):
        bathysphere.sweep("deep-sea", {"search.risk": "vote"}, out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_what_was_chosen_for_a_world_is_chosen_again(tmp_path):
    config = find_preset("deep-sea")
    chosen = Chosen(tmp_path / "sweep")
    first = Start(config, [("a setting", "a reason")])
    assert chosen.settle(first) == first
    chosen.save()
    other = Start(find_preset("toy-montezuma"), [("a setting", "a reason")])
    measured = other._replace(config=bathysphere.RunConfig(domain=config.domain, batch=7))
    again = Chosen(tmp_path / "sweep")
    assert again.settle(measured).config == config
    assert again.settle(other) == other


def test_win_rates_are_of_the_latest_episodes():
    curve = {"env_steps": [10, 20, 30], "episodes": [5, 60, 110], "wins": [0, 5, 55]}
    steps, rates = recent_wins({"curve": curve})
    assert steps.tolist() == [20, 30]
    assert rates.tolist() == [5 / 55, 1.0]


def test_modules_that_the_user_names_are_known_in_every_run(folder):
    (folder / "measures.py").write_text(
        "import bathysphere\n\n@bathysphere.separable\ndef best_case(values, risk_coef):\n    return values.max()\n"
    )
    flags = [*SMALL, "--seeds", "1", "--jobs", "2", "--json"]
    done = run_in(folder, "deep-sea", "--import", "measures", "--vary", "search.risk=mean_std,best_case", *flags)
    assert done.returncode == 0, done.stderr
    assert {row["n"] for row in json.loads(done.stdout)["rows"] if row["metric"] == "solved"} == {1}
    assert os.listdir(folder / "sweeps") == ["deep-sea-risk"]
