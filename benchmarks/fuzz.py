"""Lets a fuzzer that is led by coverage look for texts on which readers fail: levels, maps, configs, metrics, studies.

Cards and metas have fingerprints, which stop a fuzzer at once; benchmarks/hostile_texts.py makes them right again.

python benchmarks/fuzz.py --kind levels [--seconds 300] [--corpus FOLDER]

Needs atheris (`pip install atheris`), which is no dependency of the package. Good files are what it begins with; a case
is read as benchmarks/hostile_texts.py reads it, and ends the search if it raises anything but a BathysphereError or
takes a second. What it finds becomes a test in tests/storage/test_hostile_texts.py.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from random import Random
from types import FunctionType

SECONDS = 1.0
# Readers. None of them has code that Numba compiles.
INSTRUMENTED = (
    *(
        "bathysphere.domains.sokoban.formats",
        "bathysphere.domains.sokoban.levels",
        "bathysphere.domains.toy_montezuma.maps",
    ),
    *(
        "bathysphere.storage.plain",
        "bathysphere.storage.files",
        "bathysphere.storage.checkpoint",
        "bathysphere.storage.tensors",
    ),
    *(
        "bathysphere.config.convert",
        "bathysphere.config.saved",
        "bathysphere.config.old_names",
        "bathysphere.config.run",
    ),
    *(
        "bathysphere.runs.metrics",
        "bathysphere.runs.collection",
        "bathysphere.runs.listing",
        "bathysphere.studies.folder",
    ),
)
FILES = {
    **{"levels": "case.sok", "maps": "case.map", "config": "config.json", "result": "result.json"},
    **{"metrics": "metrics.jsonl", "study": "summary.json"},
}


def functions_of(modules: tuple[str, ...]) -> Iterator[FunctionType]:
    """Yields the functions and methods of some modules; of whole packages, compiled code would be among them."""
    for name in modules:
        module = importlib.import_module(name)
        mine = [thing for thing in vars(module).values() if getattr(thing, "__module__", "") == name]
        for thing in [*mine, *(part for each in mine if isinstance(each, type) for part in vars(each).values())]:
            if isinstance(thing, FunctionType):
                yield thing


def target(file: Path, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """Returns what the fuzzer calls with the content of a file."""
    from bathysphere.errors import BathysphereError

    def attempt(content: bytes) -> None:
        file.write_bytes(content)
        began = time.process_time()
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), suppress(BathysphereError):
            read(file.parent)
        if time.process_time() - began > SECONDS:
            raise RuntimeError(f"reading took {time.process_time() - began:.1f} s")

    return attempt


def main() -> None:
    """Looks for cases until time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=FILES, default="levels")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--corpus", type=Path, help="keep what was found interesting in this folder")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    import atheris
    from benchmarks.hostile_texts import prepare

    for function in functions_of(INSTRUMENTED):
        atheris.instrument_func(function)
    folder = Path(tempfile.mkdtemp())
    kind = prepare(folder / "good")[options.kind]
    case, corpus = folder / "case", options.corpus or folder / "corpus"
    case.mkdir()
    corpus.mkdir(exist_ok=True)
    for number in range(200):
        kind.make(case, Random(number))
        if (made := case / FILES[options.kind]).is_file():  # of a study, another file may be the damaged one
            shutil.copyfile(made, corpus / f"{options.kind}-{number}")
    words = [sys.argv[0], f"-max_total_time={options.seconds}", f"-seed={options.seed}", "-max_len=4000"]
    words += ["-rss_limit_mb=0", f"-artifact_prefix={corpus.parent}/found-", str(corpus)]
    atheris.Setup(words, target(case / FILES[options.kind], kind.read))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
