"""Lets a machine fail while a run trains, reads what is said, and looks whether the run can go on as if it had not.

python benchmarks/failing_machines.py [--only disk,SIGHUP] [--out FILE.json]

Each case begins a small run in a process of its own and lets one thing fail: the disk is full or read-only (a real
tmpfs, for which one has to be root), the folder vanishes, calls of the system fail (replaced in the process: os.fsync,
os.rename, open), memory ends (RLIMIT_AS), the reader of a pipe goes, the clock jumps, signals come. Afterwards the
cause is taken away, the run is resumed, and must end as a run does that nothing happened to. Allowed is a sentence
without a traceback; never a damaged checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.kills import is_same

STEPS = 3000
FLAGS = ("--domain.size", "8", "--batch", "5", "--log-every", "50", "--no-pictures")
TRAIN = ("train", "deep-sea", *FLAGS, "--steps", str(STEPS))
OFTEN = ("--checkpoint.seconds", "0.02")
_MAIN = """
import os, sys, time
from pathlib import Path
from bathysphere.cli import main
{before}
sys.exit(main(sys.argv[1:]))
"""
# What a call of the system does from a moment on; `when` is counted in calls, so that a checkpoint or two come first.
_FAILING = """
import errno
real, calls = {module}.{name}, 0
def fails(*arguments, **more):
    global calls
    calls += 1
    if calls > {when}:
        raise OSError(errno.{error}, os.strerror(errno.{error}))
    return real(*arguments, **more)
{module}.{name} = fails
"""
_JUMPING = """
real, calls = time.time, 0
def jumps():
    global calls
    calls += 1
    return real() + (-1) ** calls * 1e9
time.time = jumps
time.time_ns = lambda: int(jumps() * 1e9)
"""
_LITTLE_MEMORY = """
import resource, tempfile
short = [*sys.argv[1:]]  # compiles everything first: machine code that finds no room ends a process (LLVM's own way)
short[short.index("--run-dir") + 1] = tempfile.mkdtemp()
assert main([*short, "--search.passes", "10"]) == 0
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 20_000_000, used + 20_000_000))
"""


class Outcome(NamedTuple):
    """What became of a case."""

    code: int  # that the process ended with; negative: by a signal
    told: str  # last line that it wrote to stderr, or else to stdout
    traceback: bool
    steps: int | None  # of the checkpoint that was left; None: none
    resumed: bool | None  # whether the resumed run ended as an uninterrupted one; None: there was nothing to resume


def begin(words: tuple[str, ...], before: str = "", **more: Any) -> subprocess.Popen[str]:
    """Begins the command line in a process of its own, after the statements `before`."""
    command = [sys.executable, "-c", _MAIN.format(before=before), *words]
    rest: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
    return subprocess.Popen(command, **rest)


def until_saved(run: Path, process: subprocess.Popen[str]) -> None:
    """Waits until a run has a checkpoint."""
    while process.poll() is None and not list(run.glob("checkpoints/step-*")):
        time.sleep(0.005)


@contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """Mounts a small disk."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def ending(process: subprocess.Popen[str], run: Path, whole: Path) -> Outcome:
    """Waits for the end of a process, resumes its run, and compares."""
    out, err = process.communicate(timeout=300)
    lines = [line for line in ((err or "") + "\n" + (out or "")).splitlines() if line.strip()]
    errors = [line for line in (err or "").splitlines() if line.strip()]
    told = (errors or lines or [""])[-1]
    return Outcome(process.returncode, told, "Traceback" in (err or ""), *resumed(run, whole))


def resumed(run: Path, whole: Path) -> tuple[int | None, bool | None]:
    """Resumes a run; returns the steps of the checkpoint it was left with, and whether it ended as `whole` did."""
    if not (run / "config.json").exists():
        return None, None
    saved = sorted((run / "checkpoints").glob("step-*"))
    done = begin(("train", "--resume", str(run), "--no-pictures", "--checkpoint.seconds", "1000", "--json"))
    _, err = done.communicate(timeout=300)
    if done.returncode != 0:
        print(err, flush=True)
    same = done.returncode == 0 and is_same(run, whole)
    return (int(saved[-1].name.removeprefix("step-")) if saved else None), same


def full_disk(folder: Path, whole: Path) -> Outcome:
    with disk(folder / "disk", "200k") as mounted:
        run = mounted / "run"
        process = begin((*TRAIN, *OFTEN, "--run-dir", str(run)))
        process.wait()
        subprocess.run(["mount", "-o", "remount,size=100m", str(mounted)], check=True)
        return ending(process, run, whole)


def read_only_disk(folder: Path, whole: Path) -> Outcome:
    with disk(folder / "disk", "100m") as mounted:
        run = mounted / "run"
        process = begin((*TRAIN, *OFTEN, "--run-dir", str(run)))
        until_saved(run, process)
        process.terminate()
        process.communicate()
        subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)  # refused while anybody writes
        process = begin(("train", "--resume", str(run)))
        process.wait()
        subprocess.run(["mount", "-o", "remount,rw", str(mounted)], check=True)
        return ending(process, run, whole)


def read_only_from_the_start(folder: Path, whole: Path) -> Outcome:
    with disk(folder / "disk", "100m") as mounted:
        subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)
        return ending(begin((*TRAIN, "--run-dir", str(mounted / "run"))), mounted / "run", whole)


def vanished_folder(folder: Path, whole: Path) -> Outcome:
    run = folder / "run"
    process = begin((*TRAIN, *OFTEN, "--run-dir", str(run)))
    until_saved(run, process)
    run.rename(folder / "elsewhere")
    process.wait()
    return ending(process, folder / "elsewhere", whole)


def failing(module: str, name: str, error: str, when: int) -> Callable[[Path, Path], Outcome]:
    def case(folder: Path, whole: Path) -> Outcome:
        run, before = folder / "run", _FAILING.format(module=module, name=name, error=error, when=when)
        return ending(begin((*TRAIN, *OFTEN, "--run-dir", str(run)), before), run, whole)

    return case


def jumping_clock(folder: Path, whole: Path) -> Outcome:
    run = folder / "run"
    return ending(begin((*TRAIN, *OFTEN, "--run-dir", str(run)), _JUMPING), run, whole)


def little_memory(folder: Path, whole: Path) -> Outcome:
    run = folder / "run"
    process = begin((*TRAIN, "--search.passes", "20000", "--run-dir", str(run)), _LITTLE_MEMORY)
    process.wait()
    shutil.rmtree(run, ignore_errors=True)  # another run than `whole`, which never came to a checkpoint
    return ending(process, run, whole)


def no_cache(folder: Path, whole: Path) -> Outcome:
    run = folder / "run"
    nowhere = {"NUMBA_CACHE_DIR": "/proc/nowhere"}
    return ending(begin((*TRAIN, "--run-dir", str(run)), env=os.environ | nowhere), run, whole)


def signals(*numbers: signal.Signals, ignored: bool = False) -> Callable[[Path, Path], Outcome]:
    def case(folder: Path, whole: Path) -> Outcome:
        run = folder / "run"
        before = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)" if ignored else ""
        process = begin((*TRAIN, *OFTEN, "--run-dir", str(run)), before)
        until_saved(run, process)
        for number in numbers:
            process.send_signal(number)
        return ending(process, run, whole)

    return case


def closed_pipe(*words: str) -> Callable[[Path, Path], Outcome]:
    """The reader of stdout goes before a word is written."""

    def case(folder: Path, whole: Path) -> Outcome:
        read, write = os.pipe()
        os.close(read)
        run = folder / "run"
        told = tuple(word.replace("RUN", str(run)).replace("WHOLE", str(whole)) for word in words)
        process = begin(told, stdout=write)
        os.close(write)
        return ending(process, run, whole)

    return case


def no_stdout(*words: str, to: str | None = None) -> Callable[[Path, Path], Outcome]:
    """Stdout is closed from the beginning, or is a full device."""

    def case(folder: Path, whole: Path) -> Outcome:
        run = folder / "run"
        told = tuple(word.replace("RUN", str(run)).replace("WHOLE", str(whole)) for word in words)
        if to is not None:
            with Path(to).open("w") as device:
                return ending(begin(told, stdout=device), run, whole)
        command = [sys.executable, "-c", _MAIN.format(before=""), *told]
        process = subprocess.Popen(
            ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True
        )
        return ending(process, run, whole)

    return case


RUN = (*TRAIN, *OFTEN, "--run-dir", "RUN")
CASES: dict[str, Callable[[Path, Path], Outcome]] = {
    "disk full": full_disk,
    "disk read-only, resumed": read_only_disk,
    "disk read-only": read_only_from_the_start,
    "folder vanishes": vanished_folder,
    "fsync fails (EIO)": failing("os", "fsync", "EIO", 40),
    "stale handle (fsync, ESTALE)": failing("os", "fsync", "ESTALE", 41),
    "rename fails (EIO)": failing("os", "rename", "EIO", 10),
    "replace fails (EACCES)": failing("os", "replace", "EACCES", 0),
    "mkdir fails (EDQUOT)": failing("os", "mkdir", "EDQUOT", 12),
    "clock jumps by 1e9 s": jumping_clock,
    "memory ends": little_memory,
    "no folder for compiled code": no_cache,
    "SIGTERM": signals(signal.SIGTERM),
    "SIGHUP": signals(signal.SIGHUP),
    "SIGHUP, ignored (nohup)": signals(signal.SIGHUP, ignored=True),
    "Ctrl-C": signals(signal.SIGINT),
    "Ctrl-C twice": signals(signal.SIGINT, signal.SIGINT),
    "Ctrl-C four times": signals(*[signal.SIGINT] * 4),
    "SIGTERM twice": signals(signal.SIGTERM, signal.SIGTERM),
    "train, pipe closed": closed_pipe(*RUN),
    "train --json, pipe closed": closed_pipe(*RUN, "--json"),
    "runs, pipe closed": closed_pipe("runs", "WHOLE"),
    "runs --json, pipe closed": closed_pipe("runs", "WHOLE", "--json"),
    "--help, pipe closed": closed_pipe("--help"),
    "train --help, pipe closed": closed_pipe("train", "--help"),
    "train, stdout closed": no_stdout(*RUN),
    "train --json, stdout closed": no_stdout(*RUN, "--json"),
    "runs, stdout closed": no_stdout("runs", "WHOLE"),
    "runs, stdout full": no_stdout("runs", "WHOLE", to="/dev/full"),
    "runs --json, stdout full": no_stdout("runs", "WHOLE", "--json", to="/dev/full"),
    "train, stdout full": no_stdout(*RUN, to="/dev/full"),
}


def main() -> int:
    """Runs all cases and prints what became of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose names contain one of these, with commas")
    parser.add_argument("--out", type=Path, help="write all outcomes to this JSON file")
    options = parser.parse_args()
    wanted = options.only.split(",")
    outcomes: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        process = begin((*TRAIN, "--run-dir", str(whole), "--json"))
        process.communicate()
        for number, (name, case) in enumerate(CASES.items()):
            if not any(word in name for word in wanted):
                continue
            folder = Path(place) / str(number)
            folder.mkdir()
            outcomes[name] = case(folder, whole)
            print(f"{name}: {json.dumps(outcomes[name]._asdict())}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    if options.out:
        options.out.write_text(json.dumps({name: outcome._asdict() for name, outcome in outcomes.items()}, indent=1))
    return int(any(outcome.traceback or outcome.resumed is False for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
