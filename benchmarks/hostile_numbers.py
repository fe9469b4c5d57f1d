"""Counts what becomes of settings at their limits and beyond: every number of a config, from Python and from the shell.

python benchmarks/hostile_numbers.py [--runs deep-sea,sokoban] [--ways python,shell] [--verbs] [--out FILE.json]

For some short runs of benchmarks/hostile_files.py every number of the config is replaced in turn by each of `FLOATS`
or `INTS`, and the run is begun in a process of its own with 4 GiB of memory. With --verbs the same is done to numbers
that other verbs take. Allowed are a sentence that names the setting, and a run that goes on. Not allowed: a signal, a
hang, a traceback, or a sentence that leaves open what to change.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.hostile_files import ALLOWED, RUNS, ended

import bathysphere
from bathysphere.cli import main as command_line
from bathysphere.config.convert import override, to_dict
from bathysphere.config.start import find_start
from bathysphere.storage.plain import flat, merge

GIB = 1 << 30
SECONDS = 20.0  # of processor time, after which it counts as hanging
FLOATS = (1e308, -1e308, 1e-308, float("inf"), float("-inf"), float("nan"), 0.0, 1.0, -1.0)
INTS = (0, -1, 1, 2**15, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30)
ENDS = {"stop": {"seconds": 1.0}}
FAMILIES = "deep-sea,toy-montezuma,sokoban,best-first,no-planner,memory,network,blocks"
# Words of other verbs; X is the number.
VERBS: tuple[str, ...] = (
    "evaluate deep-sea --episodes X",
    "evaluate deep-sea --episodes 1 --passes X",
    "evaluate deep-sea --episodes 1 --seed X",
    "evaluate deep-sea --episodes 1 --max-steps X",
    "evaluate deep-sea --episodes 2 --batch X",
    "evaluate deep-sea --episodes 2 --workers X",
    "watch deep-sea --seed X --fps 100",
    "watch deep-sea --fps X",
    "solve LEVELS --seconds X --out OUT",
    "solve LEVELS --seconds 1 --jobs X --out OUT",
    "solve LEVELS --seconds 1 --width X --out OUT",
    "solve LEVELS --seconds 1 --max-expansions X --out OUT",
    "levels generate --out OUT --count X",
    "levels generate --out OUT --count 1 --height X",
    "levels generate --out OUT --count 1 --width X",
    "levels generate --out OUT --count 1 --boxes X",
    "levels generate --out OUT --count 1 --seed X",
    "draw deep-sea --by random --out OUT --size X",
    "draw deep-sea --by random --out OUT --fps X",
    "draw deep-sea --by random --out OUT --seed X",
    "draw toy-montezuma --by random --out OUT --max-steps X",
    "play deep-sea --size X --json",
    "check deep-sea --seed X",
)


class _Busy(BaseException):
    """Much was asked for, and is being done; Ctrl-C would end it."""


class Case(NamedTuple):
    """One number in one place."""

    way: str  # python, shell, or a verb
    field: str
    number: float


def numbers_of(name: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yields the numbers of a run's config, by dotted name, with what they are replaced by."""
    preset, settings = RUNS[name]
    others = {key: value for key, value in settings.items() if key != "domain"}
    config = override(find_start(preset, settings.get("domain")).config, others)
    for field, value in flat(to_dict(config)).items():
        if isinstance(value, float):
            yield field, FLOATS
        elif isinstance(value, int) and not isinstance(value, bool):
            yield field, INTS


def from_python(name: str, case: Case, folder: Path) -> None:
    """Begins a run with one number changed."""
    preset, settings = RUNS[name]
    change: Any = case.number
    for part in reversed(case.field.split(".")):
        change = {part: change}
    bathysphere.train(preset, run_dir=folder / "run", pictures=False, **merge(merge(settings, ENDS), change))


def from_shell(name: str, case: Case, folder: Path) -> None:
    """Does the same with words of the command line; its sentence is raised again."""
    preset, settings = RUNS[name]
    changes = flat(merge(settings, ENDS)) | {case.field: case.number}
    planner = changes.pop("search.name", None)
    words = ["train", preset, *(["--planner", planner] if planner else []), "--no-pictures", "--json"]
    words += ["--run-dir", str(folder / "run")]
    for field, value in changes.items():
        words.append(f"--{field.replace('_', '-')}={value}")
    in_shell(words)


def verb(name: str, case: Case, folder: Path) -> None:
    """Runs a verb with the number in its place."""
    (folder / "levels.xsb").write_text("#####\n#@$.#\n#####\n")
    places = {"X": str(case.number), "OUT": str(folder / "out.sok"), "LEVELS": str(folder / "levels.xsb")}
    words = name.split()
    if words[0] == "draw":
        places["OUT"] = str(folder / "film")
    in_shell([places.get(word, word) for word in words])


def in_shell(words: list[str]) -> None:
    """Runs a command; what it complains about is raised."""
    told = io.StringIO()
    with redirect_stderr(told):
        try:
            code = command_line(words)
        except SystemExit as leaving:  # tyro's complaints
            code = leaving.code if isinstance(leaving.code, int) else 1
    if code == 2:
        raise bathysphere.BathysphereError(told.getvalue())


WAYS: dict[str, Callable[[str, Case, Path], None]] = {"python": from_python, "shell": from_shell, "verb": verb}


def judge(name: str, case: Case, folder: Path, limit: int | None = None) -> tuple[str, str]:
    """Tries a case in a process of its own; returns what became of it, and what was said."""

    def work() -> None:
        def stop(number: int, frame: object) -> None:
            raise _Busy

        signal.signal(signal.SIGPROF, stop)  # of compiled code that never returns, the parent process makes a hang
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = used + (4 * GIB if limit is None else limit)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        try:
            WAYS[case.way](name, case, folder)
        except _Busy:
            return  # it would have gone on

    outcome, told = ended(work, SECONDS)
    if outcome == "sentence" and not names(told, case):
        outcome = "unnamed"
    return outcome, told


def names(told: str, case: Case) -> bool:
    """Tells whether a sentence names the setting."""
    if "rewards." in case.field and "a reward of the world" in told:
        return True
    last = case.field.rpartition(".")[2].lstrip("-")
    return any(word in told for word in (last, last.replace("_", "-"), last.replace("-", "_"), last.replace("-", " ")))


def main() -> int:
    """Runs all cases, prints what is not allowed, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default=FAMILIES)
    parser.add_argument("--ways", default="python")
    parser.add_argument("--fields", default="", help="only fields whose names contain this")
    parser.add_argument("--verbs", action="store_true", help="numbers of other verbs instead")
    parser.add_argument("--out", type=Path, help="write all cases to this JSON file")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, way, cases in _all(options):
            for case in cases:
                if options.fields not in case.field:
                    continue
                shutil.rmtree("case", ignore_errors=True)
                Path("case").mkdir()
                outcome, told = judge(name, case, Path("case"))
                rows.append({"run": name, **case._asdict(), "outcome": outcome, "told": told})
                if outcome not in ALLOWED:
                    print(f"{name} {case.way} {case.field} {case.number}: {outcome} {told}", flush=True)
            counts = Counter(row["outcome"] for row in rows if (row["run"], row["way"]) == (name, way))
            print(f"{name} {way}: {sum(counts.values())} cases, {dict(counts)}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))
    return int(any(row["outcome"] not in ALLOWED for row in rows))


def _all(options: argparse.Namespace) -> Iterator[tuple[str, str, list[Case]]]:
    if options.verbs:
        for words in VERBS:
            field = words.split()[words.split().index("X") - 1]
            numbers = FLOATS + INTS if field in ("--seconds", "--fps") else (*INTS, float("nan"))
            yield words, "verb", [Case("verb", field, number) for number in numbers]
        return
    for name in options.runs.split(","):
        preset, settings = RUNS[name]
        warm = Path(f"warm-{name}")
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            bathysphere.train(preset, run_dir=warm, pictures=False, **settings)  # compiles what is needed
        for way in options.ways.split(","):
            yield name, way, [Case(way, field, number) for field, tries in numbers_of(name) for number in tries]


if __name__ == "__main__":
    sys.exit(main())
