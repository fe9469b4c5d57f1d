"""Counts what happens to checkpoints and agents whose fingerprints are right and whose content is not.

python benchmarks/hostile_files.py [--runs deep-sea,agent:deep-sea] [--damages "a million,noise"] [--out FILE.json]

For a few short runs, every array of the newest checkpoint is replaced in turn by each of `DAMAGES`, fingerprints are
computed anew, and the run is continued in a process of its own. Allowed are a sentence, and a run that goes on with
what it was given because it is possible. Not allowed: a signal, a hang, a traceback.

The same is done to the arrays of agents and models that come with the package; an agent then plays an episode, and a
model predicts some steps.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load, save

import bathysphere
from bathysphere.agents.loading import shipped_agents
from bathysphere.domains import Sokoban, SokobanConfig
from bathysphere.domains.sokoban.generator import GeneratorConfig
from bathysphere.models.learned import load_model
from bathysphere.models.model_file import read_model, shipped_models
from bathysphere.runs.directory import RunDirectory
from bathysphere.storage.checkpoint import META, STATE, WEIGHTS
from bathysphere.storage.tensors import fingerprint, header_fingerprint, write_arrays

MORE_MOVES = 40  # of every episode, that a run with a damaged checkpoint is to go on for
SECONDS = 20.0  # of processor time, after which it counts as hanging
LOOK = 0.01  # seconds between two looks at whether it has ended
TOGETHER = 20  # cases that are tried in one process, as long as nothing goes wrong
OUTCOMES = ("went on", "sentence", "traceback")
ALLOWED = ("sentence", "went on")

SMALL_SOKOBAN = {
    "domain": {"generator": {"height": 7, "width": 7, "num_boxes": 2}, "max_steps": 40},
    "values": {"conv_layers": 5, "conv_channels": 8, "dense": 16},
    "batch": 8,
    "learning": {"min_episodes": 5, "steps_per_update": 50.0},
}
SLIPPERY = "gymnasium:FrozenLake-v1"  # a world with chance; what is measured by the clock for it is said here
SLIPPERY_SETTINGS: dict[str, Any] = {
    "batch": 4,
    "steps": 400,
    "search": {"passes": 5, "num_subsampled": None},
    "values": {"num_members": 3},
    "learning": {"min_episodes": 5},
}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "deep-sea": ("deep-sea", {"domain": {"size": 8}, "steps": 400}),
    "paper-deep-sea": ("paper/deep-sea", {"domain": {"size": 8}, "steps": 600, "learning": {"min_episodes": 5}}),
    "toy-montezuma": ("toy-montezuma", {"steps": 1200, "batch": 8, "learning": {"min_episodes": 2}}),
    "paper-toy-montezuma": ("paper/toy-montezuma", {"steps": 1200, "batch": 4, "learning": {"min_episodes": 2}}),
    "sokoban": ("sokoban", SMALL_SOKOBAN | {"steps": 900, "search": {"passes": 10}}),
    "best-first": (
        "sokoban",
        SMALL_SOKOBAN
        | {
            "steps": 300,
            "search": {"name": "best-first", "discount": 0.99, "max_expansions": 60, "width": 4},
            "learning": {"min_episodes": 5, "steps_per_update": 50.0, "target": "bootstrap"},
        },
    ),
    "paper-sokoban": (
        "paper/sokoban",
        {
            "domain": SMALL_SOKOBAN["domain"],
            "values": {"conv_channels": 8, "dense": 16},
            "batch": 4,
            "steps": 400,
            "learning": {"min_episodes": 2, "steps_per_update": 50.0},
        },
    ),
    "learned-model": (  # it predicts boards of 10x10 cells
        "sokoban-learned-model",
        SMALL_SOKOBAN | {"domain": {"max_steps": 40}, "steps": 400, "search": {"passes": 5}},
    ),
    "no-planner": ("deep-sea-no-planner", {"domain": {"size": 8}, "steps": 400}),
    "memory": ("deep-sea-memory", {"domain": {"size": 8}, "steps": 400}),
    "relevance": ("toy-montezuma", {"domain": {"map": "one-room"}, "steps": 600, "batch": 4, "model": "relevance"}),
    "network": ("deep-sea", {"domain": {"size": 5}, "steps": 300, "batch": 4, "model": "network"}),
    "ensemble": ("deep-sea", {"domain": {"size": 5}, "steps": 300, "batch": 4, "model": "ensemble"}),
    "replan": (
        "toy-montezuma-unknown",
        {"domain": {"map": "one-room", "max_steps": 60}, "steps": 800, "values": {"num_members": 3}},
    ),
    "expectimax": (SLIPPERY, SLIPPERY_SETTINGS),
    "expectimax-memory": (SLIPPERY, SLIPPERY_SETTINGS | {"model": "memory"}),
    "expectimax-network": (SLIPPERY, SLIPPERY_SETTINGS | {"model": "network"}),
    "gymnasium": ("gymnasium:Taxi-v4", SLIPPERY_SETTINGS | {"domain": {"max_steps": 40}}),
    "own-world": (
        "examples.sliding_tiles:SlidingTiles",
        SLIPPERY_SETTINGS | {"search": {"passes": 5, "num_subsampled": None, "max_steps": 40}},
    ),
    "blocks": ("deep-sea", {"domain": {"size": 8}, "steps": 400, "scale": {"block": 4, "distance": 2}}),
    "sokoban-blocks": (
        "sokoban",
        SMALL_SOKOBAN | {"steps": 600, "search": {"passes": 10}, "scale": {"block": 8, "distance": 2}},
    ),
}


FILES = {f"agent:{name}": path for name, path in shipped_agents().items()}
FILES |= {f"model:{name}": path for name, path in shipped_models().items()}


def _constant(number: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def fill(array: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            return np.full(array.shape, number).astype(array.dtype)

    return fill


def _extreme(name: str) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def fill(array: NDArray[Any]) -> NDArray[Any]:
        if array.dtype == bool:
            return np.full_like(array, name == "max")
        info: Any = np.iinfo(array.dtype) if array.dtype.kind in "iu" else np.finfo(array.dtype)
        return np.full_like(array, getattr(info, name))

    return fill


def _noise(array: NDArray[Any]) -> NDArray[Any]:
    bytes_ = np.random.default_rng(0).integers(256, size=array.nbytes, dtype=np.uint8)
    return (bytes_ % 2 if array.dtype == bool else bytes_).view(array.dtype).reshape(array.shape)


def _one_entry(array: NDArray[Any]) -> NDArray[Any]:
    """Changes the last number only."""
    changed = array.copy()
    if changed.size:
        changed.flat[-1] = ~changed.flat[-1] if changed.dtype == bool else changed.flat[-1] + 1
    return changed


DAMAGES: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "zeros": _constant(0),
    "ones": _constant(1),
    "minus one": _constant(-1),
    "a million": _constant(1_000_000),
    "largest": _extreme("max"),
    "smallest": _extreme("min"),
    "not a number": _constant(np.nan),
    "noise": _noise,
    "one entry": _one_entry,
    "shorter": lambda array: array[:-1] if array.ndim else np.zeros(2, array.dtype),
    "another axis": lambda array: array[None],
    "another type": lambda array: array.astype(np.float64 if array.dtype != np.float64 else np.int64),
}


class Case(NamedTuple):
    """One damage to one array."""

    file: str
    array: str
    damage: str


def cases_of(checkpoint: Path) -> Iterator[Case]:
    """Yields everything that is done to a checkpoint."""
    for file in (WEIGHTS, STATE):
        yield from cases_of_file(checkpoint / file)


def cases_of_file(path: Path) -> Iterator[Case]:
    """Yields everything that is done to one file."""
    for array in sorted(load(path.read_bytes())):
        for damage in DAMAGES:
            yield Case(path.name, array, damage)


def damaged(path: Path, case: Case) -> dict[str, NDArray[Any]] | None:
    """Returns the arrays of a file, one of them damaged; None if that changes nothing."""
    arrays = load(path.read_bytes())
    before = arrays[case.array]
    with np.errstate(all="ignore"):
        after = np.asarray(DAMAGES[case.damage](before), order="C")  # a single number stays one
    same = after.dtype == before.dtype and after.shape == before.shape
    return None if same and after.tobytes() == before.tobytes() else {**arrays, case.array: after}


def damage_checkpoint(checkpoint: Path, case: Case) -> bool:
    """Damages an array and makes the fingerprints right again; returns whether anything changed."""
    path = checkpoint / case.file
    if (arrays := damaged(path, case)) is None:
        return False
    content = save(arrays)
    path.write_bytes(content)
    meta = json.loads((checkpoint / META).read_text())
    meta["files"][case.file] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (checkpoint / META).write_text(json.dumps(meta | {"sha256": header_fingerprint(meta)}))
    return True


def ended(work: Callable[[], Any], seconds: float) -> tuple[str, str]:
    """Does something in a process of its own; returns what became of it, and what it said."""
    return outcomes([work], seconds)[0]


def outcomes(works: list[Callable[[], Any]], seconds: float = SECONDS) -> list[tuple[str, str]]:
    """Does one thing after another in a process of its own, up to the first that goes wrong.

    A process for each would take longer than most of them. Memory that one has damaged shows in the next at the latest.

    Returns:
      What became of each that was tried, and what it said; at least one.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        for work in works:
            signal.setitimer(signal.ITIMER_PROF, seconds)  # of the processor: the machine may be busy
            code, told = _attempt(work)
            os.write(write, json.dumps((OUTCOMES[code], told[:2000])).encode() + b"\n")
            if OUTCOMES[code] == "traceback":
                break
        os._exit(0)
    os.close(write)
    looks, status = int(30 * seconds / LOOK), None
    while status is None and looks:  # not by the clock: where both processes are paused, that goes on
        pid, ended = os.waitpid(child, os.WNOHANG)
        status = ended if pid else time.sleep(LOOK)
        looks -= 1
    if status is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        told = [tuple(json.loads(line)) for line in pipe]
    if status is None or os.WIFSIGNALED(status):
        is_hang = status is None or os.WTERMSIG(status) == signal.SIGPROF
        told.append(("hang" if is_hang else f"signal {os.WTERMSIG(status)}", ""))
    return told


def each(cases: list[Case], work: Callable[[Case], Any]) -> Iterator[tuple[Case, str, str]]:
    """Tries all cases; yields each with what became of it and what was said."""
    while cases:
        told = outcomes([partial(work, case) for case in cases[:TOGETHER]])
        yield from ((case, *what) for case, what in zip(cases, told, strict=False))
        cases = cases[len(told) :]


def _attempt(work: Callable[[], Any]) -> tuple[int, str]:
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        try:
            work()
        except bathysphere.BathysphereError as error:
            return 1, str(error)
        except BaseException as error:
            return 2, f"{type(error).__name__}: {error}"
    return 0, ""


def _continue(run_dir: Path) -> None:
    config = RunDirectory.open(run_dir).load_config()
    bathysphere.resume(run_dir, steps=config.steps + MORE_MOVES * config.batch, pictures=False)


def prepare(name: str, folder: Path) -> Path:
    """Makes a short run; returns its directory."""
    preset, settings = RUNS[name]
    run_dir = folder / name
    bathysphere.train(preset, run_dir=run_dir, pictures=False, **settings)
    whole = folder / f"{name}-whole"
    shutil.copytree(run_dir, whole)
    outcome, told = ended(partial(_continue, whole), 600.0)  # also compiles what is needed
    if outcome != "went on":
        raise SystemExit(f"{name} cannot be continued even without damage: {outcome} {told}")
    return run_dir


def attack(run_dir: Path, folder: Path, wanted: Callable[[Case], bool] = lambda case: True) -> Iterator[Any]:
    """Yields each case with what became of it and what was said."""
    newest = sorted((run_dir / "checkpoints").glob("step-*"))[-1]
    stays_away = {path.name for path in (run_dir / "checkpoints").iterdir()} - {newest.name}

    def go_on(case: Case) -> None:
        copy = folder / "case"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(run_dir, copy, ignore=lambda path, names: stays_away.intersection(names))
        damage_checkpoint(copy / "checkpoints" / newest.name, case)
        _continue(copy)

    changing = (case for case in cases_of(newest) if wanted(case) and damaged(newest / case.file, case) is not None)
    yield from each(list(changing), go_on)


def attack_file(path: Path, folder: Path, wanted: Callable[[Case], bool] = lambda case: True) -> Iterator[Any]:
    """Yields each case of an agent or a model with what became of it and what was said."""
    with safe_open(path, framework="numpy") as file:
        headers = {key: json.loads(text) for key, text in file.metadata().items()}
    use = play_episode if len(headers) == 1 else predict
    outcome, told = ended(partial(use, path), 600.0)  # also compiles what is needed
    if outcome != "went on":
        raise SystemExit(f"{path} cannot be used even without damage: {outcome} {told}")

    def use_damaged(case: Case) -> None:
        arrays = damaged(path, case)
        assert arrays is not None
        for header in headers.values():
            if "weights" in header:
                header["weights"] = fingerprint(arrays)
            if "sha256" in header:
                header["sha256"] = header_fingerprint(header)
        write_arrays(folder / path.name, arrays, headers)
        use(folder / path.name)

    changing = (case for case in cases_of_file(path) if wanted(case) and damaged(path, case) is not None)
    yield from each(list(changing), use_damaged)


def play_episode(path: Path) -> None:
    """Lets an agent play."""
    bathysphere.evaluate(path, 1, max_steps=20)


def predict(path: Path) -> None:
    """Lets a model predict steps of boards of its size."""
    world = read_model(path).world
    domain = Sokoban(SokobanConfig(generator=GeneratorConfig(height=world.height, width=world.width, num_boxes=2)))
    load_model(path, domain).successors(domain.initial(8, np.random.default_rng(0)))


def main() -> int:
    """Runs all cases, prints what is not allowed, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default=",".join([*RUNS, *FILES]), help="which runs, agents and models to damage")
    parser.add_argument("--array", default="", help="only arrays whose names contain this")
    parser.add_argument("--damages", default=",".join(DAMAGES), help="which damages")
    parser.add_argument("--out", type=Path, help="write all cases to this JSON file")
    options = parser.parse_args()

    def wanted(case: Case) -> bool:
        return options.array in case.array and case.damage in options.damages.split(",")

    rows = []
    for name in options.runs.split(","):
        with tempfile.TemporaryDirectory() as folder:
            if name in RUNS:
                cases = attack(prepare(name, Path(folder)), Path(folder), wanted)
            else:
                cases = attack_file(FILES[name], Path(folder), wanted)
            for case, outcome, told in cases:
                rows.append({"run": name, **case._asdict(), "outcome": outcome, "told": told})
                if outcome not in ALLOWED:
                    print(f"{name} {case.array} {case.damage}: {outcome} {told}", flush=True)
        counts = Counter(row["outcome"] for row in rows if row["run"] == name)
        print(f"{name}: {sum(counts.values())} cases, {dict(counts)}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))
    return int(any(row["outcome"] not in ALLOWED for row in rows))


if __name__ == "__main__":
    sys.exit(main())
