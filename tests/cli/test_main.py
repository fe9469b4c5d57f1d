import os
import subprocess
import sys

import pytest

from bathysphere import cli
from bathysphere.errors import BathysphereError


def test_help_names_every_verb(capsys):
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {verb} " in out for verb in cli.VERBS)
    assert cli.main([]) == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_help_with_examples(verb, capsys):
    with pytest.raises(SystemExit) as leaving:
        cli.main([verb, "--help"])
    assert leaving.value.code == 0
    assert f"bathysphere {verb} " in capsys.readouterr().out.split("Examples:")[1]


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("bathysphere ")


def test_a_mistyped_verb_gets_a_suggestion(capsys):
    assert cli.main(["plya"]) == 2
    assert capsys.readouterr().err == (
        "error: There is no verb 'plya'. Did you mean 'play'? 'bathysphere --help' explains them.\n"
    )
    assert cli.main(["xyzzy"]) == 2
    assert "Choose one of: train, check, evaluate" in capsys.readouterr().err


def test_errors_are_sentences_and_debug_adds_the_traceback(capsys, monkeypatch):
    def fail(arguments):
        raise BathysphereError("The sea is closed. Come back tomorrow.")

    monkeypatch.setattr(cli, "_dispatch", fail)
    assert cli.main(["play"]) == 2
    assert capsys.readouterr().err == "error: The sea is closed. Come back tomorrow.\n"
    assert cli.main(["play", "--debug"]) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("error: The sea is closed. Come back tomorrow.\n")


def test_an_interrupt_is_quiet(capsys, monkeypatch):
    def interrupt(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_dispatch", interrupt)
    assert cli.main(["play"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "There is not enough memory. "),
        (RuntimeError("cannot cache function 'f': no locator available for file 'a.py'"), "NUMBA_CACHE_DIR=FOLDER"),
        (OSError(28, "No space left on device", "a/b"), "The system refuses to read or write a/b: No space left"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
            "not enough memory",
        ),
    ],
)
def test_what_the_machine_refuses_is_a_sentence(error, said, capsys, monkeypatch):
    def fail(arguments):
        raise error

    monkeypatch.setattr(cli, "_dispatch", fail)
    assert cli.main(["play"]) == 2
    assert said in capsys.readouterr().err


def test_faults_of_ours_keep_their_traceback(monkeypatch):
    def fail(arguments):
        raise RuntimeError("a fault")

    monkeypatch.setattr(cli, "_dispatch", fail)
    with pytest.raises(RuntimeError, match="a fault"):
        cli.main(["play"])


COMMAND = (sys.executable, "-m", "bathysphere")


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["train", "--list"], ["train", "--list", "--json"]])
def test_a_reader_that_goes_ends_it_quietly(words):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, *words], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_that_cannot_be_written_is_a_sentence():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([*COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "error: The system refuses to read or write: No space left on device.\n",
    )


def test_closed_output_is_no_reason_to_fail():
    words = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "train", "--list"]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_closed_input_is_no_keys():
    words = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, "play", "deep-sea"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: There is no terminal to play in and no keys came through the pipe.")


def test_output_whose_encoding_lacks_letters(tmp_path):
    levels = tmp_path / "levels.xsb"
    levels.write_text("#####\n#@$.#\n#####\nTitle: Käse κ\n", encoding="utf-8")
    words, ascii_only = [*COMMAND, "levels", "show", str(levels)], os.environ | {"PYTHONIOENCODING": "ascii:strict"}
    done = subprocess.run(words, env=ascii_only, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "K\\xe4se \\u03ba" in done.stdout


def test_names_of_files_that_are_no_text(tmp_path):
    words = [*map(os.fsencode, COMMAND), b"runs", os.fsencode(tmp_path) + b"/no\xff"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 2)
    assert "no\\udcff" in done.stdout + done.stderr


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from bathysphere.cli import main; main(['--help']); "
        "heavy = {'numba', 'numpy', 'torch', 'matplotlib', 'gymnasium', 'tyro'} & set(sys.modules); "
        "sys.exit(' '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_compilation_is_announced_when_there_is_some(tmp_path):
    command = [
        sys.executable,
        "-m",
        "bathysphere",
        "draw",
        "deep-sea",
        "--by",
        "random",
        "--out",
        str(tmp_path / "dive"),
    ]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stderr for _ in range(2)
    ]
    assert said[0].count("Compiling for this machine") == 1
    assert "Compiling" not in said[1]


def test_python_announces_too_and_once(tmp_path):
    code = """
import bathysphere
@bathysphere.separable
def mine(values, risk_coef):
    return values.max()
for number in range(2):
    small = {"domain": {"size": 4}, "steps": 50, "search": {"risk": "mine"}}
    bathysphere.train("deep-sea", run_dir=f"run{number}", pictures=False, **small)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.count("Compiling for this machine") == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["watch"], "'bathysphere watch' needs AGENT (Name of a shipped agent, agent file, or run directory)."),
        (["bench", "x"], "topic: 'x' is none of domains, planner, sokoban, planners."),
        (["levels", "generate"], "'bathysphere levels generate' needs --out PATH (File to write)."),
        (["play"], "One of these has to come next: deep-sea, toy-montezuma, sokoban."),
    ],
)
def test_what_is_missing_is_told_in_a_sentence(words, said, capsys):
    assert cli.main(words) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")


def test_help_flows_and_names_what_is_wanted(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit):
        cli.main(["train", "deep-sea", "--help"])
    assert (
        "or one that is learnt while acting: memory (what has happened" in capsys.readouterr().out
    )  # two lines of source
    with pytest.raises(SystemExit):
        cli.main(["evaluate", "--help"])
    assert "AGENT" in capsys.readouterr().out
