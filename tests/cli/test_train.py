import json
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

from bathysphere import cli
from bathysphere.cli.run_flags import shortened
from bathysphere.cli.train import summary
from bathysphere.config.convert import to_dict
from bathysphere.config.presets import PRESETS
from bathysphere.runs.directory import RunDirectory
from bathysphere.storage.plain import flat

SMALL = ["--domain.size", "6", "--steps", "600", "--no-pictures"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = tmp_path_factory.mktemp("cli") / "run"
    assert cli.main(["train", "deep-sea", *SMALL, "--seed", "3", "--run-dir", str(run), "--json"]) == 0
    return run


def test_json_is_the_result_and_nothing_else(tmp_path, capsys):
    run = tmp_path / "run"
    assert cli.main(["train", "deep-sea", *SMALL, "--run-dir", str(run), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads((run / "result.json").read_text())


def test_flags_change_the_config_and_keep_the_rest(trained):
    config, preset = RunDirectory.open(trained).load_config(), PRESETS["deep-sea"]()
    assert (config.domain.size, config.steps, config.seed) == (6, 600, 3)
    assert (config.search, config.values, config.learning) == (preset.search, preset.values, preset.learning)


def test_booleans_can_be_set_either_way(tmp_path):
    run = tmp_path / "run"
    flags = ["--search.avoid-loops", "--stop.on-solved", "--values.no-bias", "--search.no-final-bonus"]
    assert cli.main(["train", "deep-sea", *SMALL, *flags, "--run-dir", str(run), "--json"]) == 0
    config = RunDirectory.open(run).load_config()
    assert (config.search.avoid_loops, config.stop.on_solved) == (True, True)
    assert (config.values.bias, config.search.final_bonus) == (False, False)


def test_old_flags_go_on_working(tmp_path):
    run = tmp_path / "run"
    flags = ["--lanes", "2", "--learning.min-games=7", "--learning.mask.per", "game"]
    assert cli.main(["train", "deep-sea", *SMALL, *flags, "--run-dir", str(run), "--json"]) == 0
    config = RunDirectory.open(run).load_config()
    assert (config.learning.min_episodes, config.learning.mask.per) == (7, "episode")
    assert (config.workers, config.scale.block) == (1, max(config.batch // 4, 1))  # --lanes is --workers: blocks


def test_without_json_there_are_sentences_and_the_default_directory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", "deep-sea", *SMALL]) == 0
    out = capsys.readouterr().out
    assert "steps/s); stopped by steps." in out
    assert "runs/deep-sea-seed0-1" in out
    assert (tmp_path / "runs" / "deep-sea-seed0-1" / "result.json").is_file()


def test_resume_goes_on_with_more_steps_only(trained, capsys):
    assert cli.main(["train", "--resume", str(trained), "--steps", "800", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["env_steps"] >= 800
    assert cli.main(["train", "--resume", str(trained), "--seed", "4", "--json"]) == 2
    assert "A resumed run keeps its settings, and seed would change." in capsys.readouterr().err
    assert cli.main(["train", "deep-sea", "--resume", str(trained)]) == 2
    assert "leave out 'deep-sea'" in capsys.readouterr().err
    assert cli.main(["train", "--resume", str(trained), "--run-dir", "x", "--json"]) == 2
    assert "leave out --run-dir" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["depsea"], "error: There is no preset 'depsea'"),
        ([], "error: 'bathysphere train' needs a preset or a world first"),
        (["--seed", "3"], "needs a preset or a world first"),
        (["--resume", "nowhere"], "error: nowhere is not a run directory"),
    ],
)
def test_mistakes_are_sentences(arguments, sentence, capsys):
    assert cli.main(["train", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_an_existing_directory_is_refused(trained, capsys):
    assert cli.main(["train", "deep-sea", "--run-dir", str(trained)]) == 2
    assert f"continue the run in it with: bathysphere train --resume {trained}" in capsys.readouterr().err


def test_unknown_flags_suggest_the_nearest(capsys):
    assert cli.main(["train", "deep-sea", "--domain.sise", "5"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: There is no option --domain.sise here. Did you mean --domain.size?")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["train", "deep-sea", "--steps", "0"], "steps is 0; expected "),
        (["train", "deep-sea", "--search.passes", "0"], "search.passes is 0; expected "),
        (["model", "train", "--updates", "0"], "updates is 0; expected "),
    ],
)
def test_bad_values_are_refused_with_the_reason_and_no_name_of_a_class(arguments, reason, capsys):
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"error: {reason}")


def shown_flags(capsys, *arguments):
    """Returns the flags in the boxes of a help text."""
    with pytest.raises(SystemExit) as leaving:
        cli.main(["train", *arguments])
    assert leaving.value.code == 0
    out = capsys.readouterr().out
    return set(re.findall(r"^[^\w-]{1,4}(--[a-z][a-z0-9.-]+)", out, re.MULTILINE)), out


@pytest.mark.parametrize("preset", ["deep-sea", "toy-montezuma", "sokoban"])
def test_help_shows_what_is_used_most_and_how_to_see_the_rest(preset, capsys):
    flags, out = shown_flags(capsys, preset, "--help")
    assert "--help-expert all of them" in " ".join(out.split())
    expected = {"--steps", "--seed", "--run-dir", "--resume", "--stop.on-solved", "--search.passes", "--help-expert"}
    assert expected <= flags
    assert 15 < len(flags) <= 32
    assert any(flag.startswith("--domain.") for flag in flags)
    assert not any(flag.startswith(("--values.", "--learning.", "--optimiser.")) for flag in flags)


def test_expert_help_shows_every_field_of_the_config(capsys):
    flags, _ = shown_flags(capsys, "sokoban", "--help-expert")
    names = [name.replace("_", "-") for name in flat(to_dict(PRESETS["sokoban"]()))]
    settings = {f"--{name}" for name in names if name not in ("preset", "domain.name")}
    assert len(settings) > 80
    assert settings <= flags
    few, _ = shown_flags(capsys, "sokoban", "--help")
    assert few < flags


def test_fields_without_default_do_not_break_the_help():
    @dataclass(frozen=True)
    class Section:
        depth: int = 3

    @dataclass(frozen=True)
    class Settings:
        section: Section
        size: int

    short = shortened(Settings(Section(), 4), ["*"])
    assert (short.section, short.size) == (Section(), 4)


def test_presets_are_listed(capsys):
    assert cli.main(["train", "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["presets"].keys() == PRESETS.keys()
    assert cli.main(["train", "--list"]) == 0
    assert all(name in capsys.readouterr().out for name in ["deep-sea"])


def test_a_damaged_checkpoint_is_refused_and_fallback_helps(tmp_path, capsys):
    run = tmp_path / "run"
    assert cli.main(["train", "deep-sea", *SMALL, "--run-dir", str(run), "--json"]) == 0
    assert cli.main(["train", "--resume", str(run), "--steps", "700", "--json"]) == 0
    newest = sorted((run / "checkpoints").iterdir())[-1] / "state.safetensors"
    newest.write_bytes(newest.read_bytes()[:100])
    capsys.readouterr()
    assert cli.main(["train", "--resume", str(run), "--json"]) == 2
    err = capsys.readouterr().err
    assert "is damaged" in err
    assert "--fallback" in err
    assert cli.main(["train", "--resume", str(run), "--fallback", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["env_steps"] >= 700


def test_evaluate(trained, capsys):
    assert cli.main(["evaluate", str(trained), "--episodes", "20", "--risk-coef", "0", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == 20
    assert result["changed"] == {"risk_coef": 0.0}
    assert cli.main(["evaluate", str(trained), "--episodes", "20"]) == 0
    assert "of 20 episodes" in capsys.readouterr().out
    assert cli.main(["evaluate", str(trained), "--episodes", "0"]) == 2
    assert "episodes is 0" in capsys.readouterr().err
    assert cli.main(["evaluate", str(trained), "--risk", "mean_sdt"]) == 2
    assert "mean_std" in capsys.readouterr().err


def test_watch(trained, tmp_path, capsys):
    assert cli.main(["watch", str(trained), "--episodes", "2"]) == 0
    assert "row 5 of 5" in capsys.readouterr().out
    film = tmp_path / "dive.gif"
    assert cli.main(["watch", str(trained), "--gif", str(film), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["file"] == str(film)
    assert result["episodes"][0]["steps"] == len(result["episodes"][0]["actions"]) == 5
    assert film.read_bytes()[:3] == b"GIF"
    assert cli.main(["watch", str(trained), "--gif", "dive.avi"]) == 2
    assert "ends in .gif or .mp4" in capsys.readouterr().err


def test_runs(trained, tmp_path, capsys):
    assert cli.main(["runs", str(trained.parent)]) == 0
    out = capsys.readouterr().out
    assert "deep-sea" in out
    assert "steps" in out
    assert cli.main(["runs", str(trained.parent), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["runs"]
    assert entry["run_dir"] == str(trained)
    assert cli.main(["runs", str(tmp_path)]) == 0
    assert "There are no runs" in capsys.readouterr().out
    assert cli.main(["runs", str(tmp_path / "nowhere")]) == 2
    assert "There is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import bathysphere", "numba numpy torch matplotlib gymnasium tyro rich"),
        ("import bathysphere.cli.train", "torch matplotlib gymnasium tensorboard safetensors"),
        (
            "from importlib import import_module; from bathysphere.cli import VERBS; "
            "[import_module(module) for module, _ in VERBS.values()]",
            "torch ray matplotlib gymnasium nicegui",
        ),
    ],
)
def test_imports_stay_light(code, heavy):
    check = f"import sys; {code}; sys.exit(' '.join(set({heavy.split()!r}) & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_table_trains_without_torch(tmp_path):
    flags = ["train", "deep-sea", "--domain.size", "4", "--steps", "100", "--json", "--no-pictures"]
    arguments = [*flags, "--run-dir", str(tmp_path / "run")]
    check = f"import sys; from bathysphere.cli import main; main({arguments!r}); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("episodes", "said"), [(72, "Won 33 of 72 episodes."), (900, "Won 33 of 900 episodes, lately 97%.")]
)
def test_the_summary_counts_wins_and_tells_a_recent_rate_only_of_many_episodes(episodes, said):
    result = {"solved_step": 5, "first_solved_step": 3, "wins": 33, "episodes": episodes, "env_steps": 9, "updates": 1}
    result |= {
        "imagined_steps": 1234,
        "wall_seconds": 1.0,
        "env_steps_per_second": 9.0,
        "stopped_by": "solved",
        "win_rate_100": 0.97,
    }
    told = summary({**result, "run_dir": "here"})
    assert said in told
    assert "9 steps (1,234 more imagined) and 1 updates" in told


@pytest.mark.parametrize(("wins", "said"), [(1, "Won once, at step 30,"), (2, "Won 2 times, first at step 30,")])
def test_the_summary_of_a_run_that_won_but_did_not_solve(wins, said):
    result = {"solved_step": None, "first_solved_step": 30, "wins": wins, "episodes": 9, "env_steps": 90, "updates": 1}
    result |= {"imagined_steps": 0, "wall_seconds": 1.0, "env_steps_per_second": 9.0, "stopped_by": "steps"}
    assert summary({**result, "win_rate_100": 0.1, "run_dir": "here"}).startswith(said)


@pytest.mark.parametrize("text", ["3e2", "300", "0_300", "300.0"])
def test_whole_numbers_as_people_write_them(text, tmp_path):
    run = tmp_path / "run"
    assert cli.main(["train", "deep-sea", *SMALL, "--steps", text, "--run-dir", str(run), "--json"]) == 0
    assert RunDirectory.open(run).load_config().steps == 300


def test_parts_of_steps_are_refused(capsys):
    assert cli.main(["train", "deep-sea", "--steps", "1.5"]) == 2
    assert "'1.5' is not a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("mean", "best", "said"),
    [
        (-13.0, -13.0, "No episode counts as won. Mean return of the latest episodes -13, best -13."),
        (0.0, 0.0, "Not one episode was won."),
        (None, None, "Not one episode was won."),
    ],
)
def test_the_summary_of_a_run_that_never_won(mean, best, said):
    result = {"solved_step": None, "first_solved_step": None, "wins": 0, "episodes": 9, "env_steps": 9, "updates": 1}
    result |= {
        "imagined_steps": 0,
        "wall_seconds": 1.0,
        "env_steps_per_second": 9.0,
        "stopped_by": "steps",
        "win_rate_100": 0.0,
    }
    text = summary({**result, "return_mean_50": mean, "return_best": best, "run_dir": "here"})
    assert text.startswith(said + "\n")
    assert "Won 0" not in text


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize("columns", ["50", "80"])
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--search.passes", "abc"], "--search.passes: 'abc' is not a whole number."),
        (["--search.risk-coef", "high"], "--search.risk-coef: 'high' is not a number."),
        (["--search.passes", "-3"], "search.passes is -3; expected 1 to 1,000,000,000."),
        (["--search.risk", "nope"], "There is no risk measure 'nope'; choose one of "),
        (["--domain.size", "1"], "Deep-sea's size must be a whole number from 2 to 10000; got 1. Try 10."),
        (["--search.final-ties", "first"], "--search.final-ties: 'first' is none of highest, random."),
        (["--stop.episodes", "ten"], "--stop.episodes: 'ten' is not a whole number."),
        (["--values.hidden", "5", "a"], "--values.hidden: 5, a cannot be read."),
        (["--steps"], "--steps needs a value after it."),
        (["--steps", "5", "6"], "'6' is one word too many."),
        (["--search.pases", "5"], "There is no option --search.pases here. Did you mean --search.passes?"),
        (["--xyz=5"], "There is no option --xyz=5 here."),
    ],
)
def test_wrong_values_are_told_in_a_sentence(arguments, sentence, columns, is_terminal, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    assert cli.main(["train", "deep-sea", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {sentence}")
    assert said.endswith("'bathysphere train deep-sea --help' explains it.\n")
    assert "\x1b" not in said
