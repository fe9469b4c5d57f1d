"""Counts what readers make of texts that are made to break them: levels, maps, configs, metas, studies, metrics, cards.

python benchmarks/hostile_texts.py [--levels 100000] [--json 20000] [--seed 0]

Every case is a good file after seeded damage (benchmarks/_mutations.py). Allowed are a BathysphereError and a correct
load, each within a second of processor time and with at most 500 MB more memory than before. A load of levels is
correct if what was read, written and read again is the same; other loads are used as their verbs use them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._mutations import mutated_bytes, mutated_data, mutated_json, mutated_text

import bathysphere
from bathysphere.agents.loading import shipped_agents
from bathysphere.cli.agents import run as show_agents
from bathysphere.cli.runs import run as list_runs
from bathysphere.config.convert import config_hash
from bathysphere.config.saved import load_config, open_checkpoints
from bathysphere.domains.sokoban.formats import format_levels, parse_levels, read_levels
from bathysphere.domains.toy_montezuma.maps import load_map
from bathysphere.runs.collection import runs as collect_runs
from bathysphere.runs.metrics import MetricsWriter, read_rows
from bathysphere.storage.tensors import header_fingerprint
from bathysphere.studies.folder import StudyFolder

SECONDS, MEGABYTES = 1.0, 500
BATCH = 1000  # cases of one process
ALLOWED = ("loaded", "sentence")
ROOT = Path(__file__).parents[1]
MAPS = ROOT / "src" / "bathysphere" / "domains" / "toy_montezuma" / "maps"
_SOK = "####\n#@.#\n#$-#\n####\nTitle: one\nSolution\n2dR\n\n6#|#@2-.#|#2-$-#|6#\nTitle: two\n"


class Kind(NamedTuple):
    """One kind of file: how a case is made in a folder, and how it is read."""

    make: Callable[[Path, random.Random], None]
    read: Callable[[Path], Any]


class Slow(Exception):
    """A case took longer than a second."""


def kinds(run_dir: Path, study_dir: Path) -> dict[str, Kind]:
    """Returns all kinds; `run_dir` is a short run and `study_dir` a folder with a small study, both good."""
    return {
        "levels": Kind(_texts("case.sok", (_SOK, (ROOT / "examples" / "levels.xsb").read_text())), _read_levels),
        "maps": Kind(_texts("case.map", tuple(f.read_text() for f in sorted(MAPS.glob("*.map")))), _read_map),
        "config": Kind(_of_run(run_dir, "config.json"), _read_config),
        "meta": Kind(_metas(run_dir), _read_meta),
        "result": Kind(_of_run(run_dir, "result.json"), _list),
        "metrics": Kind(_metrics(run_dir), _read_metrics),
        "study": Kind(_studies(study_dir), lambda folder: StudyFolder(folder).load()),
        "card": Kind(_cards(), lambda folder: show_agents([str(folder / "case.safetensors")])),
    }


def _texts(name: str, good: tuple[str, ...]) -> Callable[[Path, random.Random], None]:
    def make(folder: Path, rng: random.Random) -> None:
        text = mutated_text(rng.choice(good)[:4000], good, rng)
        (folder / name).write_bytes(mutated_bytes(text, rng))

    return make


def _read_levels(folder: Path) -> None:
    levels = read_levels(folder / "case.sok")
    again = parse_levels(format_levels(levels, "sok", run_length=True))
    assert [level.grid.tolist() for level in levels] == [level.grid.tolist() for level in again]
    assert all(level.title.isprintable() for level in levels)


def _read_map(folder: Path) -> None:
    world = load_map(str(folder / "case.map"))
    x, y = world.start
    assert world.tiles[y, x] == 2
    assert len(world.rooms()) > 1


def _of_run(run_dir: Path, name: str) -> Callable[[Path, random.Random], None]:
    """Damages one JSON file of a run of which the folder holds a copy."""
    files = {file: (run_dir / file).read_bytes() for file in ("config.json", "result.json", "metrics.jsonl")}
    data = json.loads(files[name])

    def make(folder: Path, rng: random.Random) -> None:
        for file, content in files.items():
            (folder / file).write_bytes(content)
        (folder / name).write_bytes(mutated_json(data, rng))

    return make


def _read_config(folder: Path) -> None:
    config_hash(load_config(folder))
    _list(folder)


def _list(folder: Path) -> None:
    list_runs([str(folder)])
    collect_runs(folder)


def _metrics(run_dir: Path) -> Callable[[Path, random.Random], None]:
    rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_bytes().splitlines()][:6]
    config = (run_dir / "config.json").read_bytes()

    def make(folder: Path, rng: random.Random) -> None:
        lines = [json.dumps(row).encode() for row in rows]
        for _ in range(rng.randrange(1, 3)):
            lines[rng.randrange(len(lines))] = mutated_json(rng.choice(rows), rng)
        (folder / "config.json").write_bytes(config)
        (folder / "result.json").unlink(missing_ok=True)
        (folder / "metrics.jsonl").write_bytes(b"\n".join(lines) + b"\n" * rng.randrange(2))

    return make


def _read_metrics(folder: Path) -> None:
    read_rows(folder / "metrics.jsonl")
    _list(folder)
    MetricsWriter(folder / "metrics.jsonl", folder / "tensorboard", 300).close()  # as a resumed run cuts them


def _metas(run_dir: Path) -> Callable[[Path, random.Random], None]:
    newest = sorted((run_dir / "checkpoints").glob("step-*"))[-1]
    files = {file.name: file.read_bytes() for file in newest.iterdir()}
    data, config = json.loads(files["meta.json"]), (run_dir / "config.json").read_bytes()

    def make(folder: Path, rng: random.Random) -> None:
        copy = folder / "checkpoints" / newest.name
        copy.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_bytes(config)
        for name, content in files.items():
            (copy / name).write_bytes(content)
        meta = mutated_data(data, rng)
        if isinstance(meta, dict) and rng.randrange(4):
            meta["sha256"] = header_fingerprint(meta)
            (copy / "meta.json").write_text(json.dumps(meta))
        else:
            (copy / "meta.json").write_bytes(mutated_json(data, rng))

    return make


def _read_meta(folder: Path) -> None:
    checkpoint = open_checkpoints(folder).load()
    assert checkpoint is not None
    f"{checkpoint.env_steps:,} {checkpoint.seconds:.1f}"


def _studies(study_dir: Path) -> Callable[[Path, random.Random], None]:
    about = json.loads((study_dir / "summary.json").read_bytes())
    tables = {name: (study_dir / name).read_text() for name in ("results.csv", "curves.csv")}

    def make(folder: Path, rng: random.Random) -> None:
        name = rng.choice(("summary.json", "study.json"))
        (folder / "summary.json").unlink(missing_ok=True)
        (folder / name).write_bytes(mutated_json(about, rng))
        for table, text in tables.items():
            is_damaged = rng.randrange(3) == 0
            content = mutated_bytes(mutated_text(text, (text,), rng), rng) if is_damaged else text.encode()
            (folder / table).write_bytes(content)

    return make


def _cards() -> Callable[[Path, random.Random], None]:
    content = shipped_agents()["deep-sea"].read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    whole = json.loads(content[8 : 8 + length])
    (key,) = whole["__metadata__"]
    header = json.loads(whole["__metadata__"][key])

    def make(folder: Path, rng: random.Random) -> None:
        changed = mutated_data(header, rng)
        if isinstance(changed, dict) and rng.randrange(4):
            changed["sha256"] = header_fingerprint(changed)
        plain = whole | {"__metadata__": {key: json.dumps(changed)}}
        text = json.dumps(plain).encode() if rng.randrange(5) else mutated_json(plain, rng)
        (folder / "case.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])

    return make


def judge(kind: Kind, folder: Path) -> tuple[str, str]:
    """Reads a case; returns what became of it, and what was said."""

    def too_slow(number: int, frame: Any) -> None:
        raise Slow

    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, 5 * SECONDS)
    outcome, told = "loaded", ""
    try:
        kind.read(folder)
    except bathysphere.BathysphereError as error:
        outcome, told = "sentence", str(error)
    except (Slow, MemoryError) as error:
        outcome = type(error).__name__.lower()
    except BaseException:
        outcome, told = "traceback", traceback.format_exc(limit=-3)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if time.process_time() - began > SECONDS:
        outcome = "slow"
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before > MEGABYTES * 1024:
        outcome = "memory"
    return outcome, told


def seed_of(kind: str, seed: int, number: int) -> int:
    """Returns the seed of one case, so that it can be made again alone."""
    return int.from_bytes(hashlib.sha256(f"{kind} {seed} {number}".encode()).digest()[:8])


def attack(name: str, kind: Kind, numbers: range, seed: int) -> Iterator[tuple[int, str, str]]:
    """Yields number, outcome and sentence of cases, read in this process."""
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            kind.make(Path(folder), random.Random(seed_of(name, seed, number)))
            yield number, *judge(kind, Path(folder))


def count(name: str, kind: Kind, cases: int, seed: int) -> Counter[str]:
    """Reads cases in processes of their own, prints what is not allowed, and returns the counts."""
    counts: Counter[str] = Counter()
    for first in range(0, cases, BATCH):
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what verbs print
            part: Counter[str] = Counter()
            for number, outcome, told in attack(name, kind, range(first, min(first + BATCH, cases)), seed):
                part[outcome] += 1
                if outcome not in ALLOWED:
                    sys.stderr.write(f"{name} {number} (seed {seed}): {outcome}\n{told}\n")
            os.write(write, json.dumps(part).encode())
            os._exit(0)
        os.close(write)
        _, status = os.waitpid(child, 0)
        told = os.read(read, 10_000)
        os.close(read)
        counts.update(json.loads(told) if status == 0 else {f"signal {status}": 1})
    return counts


def prepare(folder: Path) -> dict[str, Kind]:
    """Makes a short run and finds a small study; returns the kinds of cases that are made of them."""
    settings = {"domain": {"size": 6}, "steps": 600, "log_every": 100}
    run = bathysphere.train("deep-sea", run_dir=folder / "run", pictures=False, **settings)  # type: ignore[arg-type]
    studies = sorted(file.parent for file in (ROOT / "results").rglob("summary.json"))
    study = next(path for path in studies if (path / "curves.csv").is_file() and (path / "results.csv").is_file())
    return kinds(run.path, study)


def main() -> int:
    """Runs all cases and prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", type=int, default=100_000, help="cases of level texts and maps together")
    parser.add_argument("--json", type=int, default=20_000, help="cases of all other kinds together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="", help="only these")
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        known = prepare(Path(folder))
        for name, kind in known.items():
            if options.kinds and name not in options.kinds.split(","):
                continue
            share = {"levels": 0.8, "maps": 0.2}.get(name)
            cases = options.json // (len(known) - 2) + 1 if share is None else int(options.levels * share)
            counts = count(name, kind, cases, options.seed)
            bad += sum(number for outcome, number in counts.items() if outcome not in ALLOWED)
            print(f"{name}: {sum(counts.values()):,} cases, {dict(counts)}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
