"""The stream of boards: always what the generator makes, whatever is on the disk and in whatever order."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import json
import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bathysphere.domains.sokoban import GeneratorConfig, board_cache, board_stream, generate, generator
from bathysphere.domains.sokoban.board_cache import CHUNK, cache_folder, cache_size, clear_cache
from bathysphere.domains.sokoban.board_stream import BoardStream
from bathysphere.errors import BathysphereError

QUICK = GeneratorConfig(height=6, width=7, num_boxes=1, max_depth=20, max_states=50)
STREAM = 2**62 + 5


def made(count: int, stream: int = STREAM, config: GeneratorConfig = QUICK) -> np.ndarray:
    return np.array([level.grid.ravel() for level in generate(count, config, stream)])


NONE = np.zeros(0, np.int64)


def take(boards: BoardStream, numbers: Iterable[int], ahead: Iterable[int] = ()) -> np.ndarray:
    return boards.take(np.array(list(numbers), np.int64), np.array(list(ahead), np.int64))


def first(count: int, folder: Path | None = None, stream: int = STREAM) -> np.ndarray:
    """Returns the first boards of a new stream."""
    return take(BoardStream(QUICK, stream, folder), range(count))


def fill(folder: Path, count: int = CHUNK) -> Path:
    """Lets a stream put boards on disk; returns the first file."""
    first(count, folder)
    wait_until(lambda: not at_work())
    (file,) = folder.glob(f"*/{STREAM}/000000.npz")
    return file


def wait_until(is_so) -> None:
    deadline = time.monotonic() + 600
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def at_work() -> bool:
    return any(thread.name == "sokoban-boards" for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def no_thread_at_work():
    """Tests count threads and files, so no thread of an earlier test may still run."""
    gc.collect()
    wait_until(lambda: not at_work())


def test_boards_are_the_generators_in_any_order() -> None:
    boards = made(30)
    assert np.array_equal(first(30), boards)
    assert np.array_equal(take(BoardStream(QUICK, STREAM), [7, 29, 0, 7]), boards[[7, 29, 0, 7]])
    assert take(BoardStream(QUICK, STREAM), []).shape == (0, 42)
    assert not np.array_equal(first(30, stream=STREAM + 1), boards)


def test_each_board_is_made_once_and_only_those_asked_for(monkeypatch) -> None:
    numbers = []

    def counted(config, seed, number):
        numbers.append(number)
        return generator.generate_level(config, seed, number)

    monkeypatch.setattr(board_stream, "generate_level", counted)
    boards = BoardStream(QUICK, STREAM)
    take(boards, [1_000_000, 4], range(50, 90, 2))
    wait_until(lambda: not at_work())
    assert sorted(numbers) == [4, *range(50, 90, 2), 1_000_000]
    monkeypatch.setattr(board_stream, "generate_level", None)
    assert np.array_equal(take(boards, range(50, 90, 2)), made(90)[50::2])


def test_many_threads_get_the_same_boards() -> None:
    boards, expected = BoardStream(QUICK, STREAM), made(120)
    orders = [np.random.default_rng(seed).permutation(120) for seed in range(6)]
    with ThreadPoolExecutor(6) as threads:
        for order, got in zip(orders, threads.map(boards.take, orders, [NONE] * 6), strict=True):
            assert np.array_equal(got, expected[order])


def test_few_chunks_in_memory_change_nothing(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(board_stream, "_MAX_CHUNKS", 1)
    order = CHUNK - 10 + np.random.default_rng(0).permutation(20)  # in two chunks
    for folder in (None, tmp_path):
        assert np.array_equal(take(BoardStream(QUICK, STREAM, folder), order), made(CHUNK + 10)[order])


def test_a_pickled_stream_is_the_same(tmp_path) -> None:
    boards = BoardStream(QUICK, STREAM, tmp_path)
    take(boards, range(3))
    again = pickle.loads(pickle.dumps(boards))
    assert np.array_equal(take(again, range(20)), made(20))
    wait_until(lambda: not at_work())
    assert cache_size(tmp_path)[0] == 1


def test_a_second_stream_object_reads_the_disk(tmp_path, monkeypatch) -> None:
    file = fill(tmp_path)
    assert cache_size(tmp_path) == (1, file.stat().st_size)
    monkeypatch.setattr(board_stream, "generate_level", None)
    assert np.array_equal(first(CHUNK, tmp_path), made(CHUNK))


def test_stream_objects_that_make_every_other_board_fill_the_file_together(tmp_path, monkeypatch) -> None:
    for begin in range(2):
        take(BoardStream(QUICK, STREAM, tmp_path), range(begin, CHUNK, 2))
        wait_until(lambda: not at_work())  # of two that write at the same moment, one wins
    monkeypatch.setattr(board_stream, "generate_level", None)
    assert np.array_equal(first(CHUNK, tmp_path), made(CHUNK))


def rewrite(file: Path, **changes) -> None:
    with np.load(file) as old:
        np.savez(file, **{**old, **changes})


DAMAGES = {
    "empty": lambda file: file.write_bytes(b""),
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:-100]),
    "flipped": lambda file: file.write_bytes(file.read_bytes().replace(file.read_bytes()[200:210], b"0123456789")),
    "text": lambda file: file.write_text("boards"),
    "pickle": lambda file: rewrite(file, boards=np.array([{}], object)),
    "folder": lambda file: (file.unlink(), file.mkdir()),
    "short": lambda file: rewrite(file, boards=np.zeros((3, 42), np.uint8)),
    "other type": lambda file: rewrite(file, boards=np.zeros((CHUNK, 42), np.int64)),
    "other boards": lambda file: rewrite(file, boards=np.zeros((CHUNK, 42), np.uint8)),
    "no seal": lambda file: np.savez(file, boards=made(CHUNK), is_made=np.ones(CHUNK, bool)),
    "others marked as made": lambda file: rewrite(file, is_made=np.zeros(CHUNK, bool)),
    "of another number": lambda file: shutil.copy(file, file.with_name("000000.npz")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_made_again(damage, tmp_path, caplog) -> None:
    file = fill(tmp_path, 2 * CHUNK).with_name("000001.npz" if damage == "of another number" else "000000.npz")
    DAMAGES[damage](file)
    with caplog.at_level(logging.INFO):
        assert np.array_equal(first(CHUNK, tmp_path), made(CHUNK))
    wait_until(lambda: not at_work())
    assert "000000.npz is no good" in caplog.text
    if damage != "folder":
        with np.load(file.with_name("000000.npz")) as again:
            assert again["is_made"].all()
            assert np.array_equal(again["boards"], made(CHUNK))
    assert not list(tmp_path.rglob("*.tmp"))


def test_files_of_other_settings_streams_and_versions_are_not_used(tmp_path, monkeypatch) -> None:
    file = fill(tmp_path)
    for name, value in (("VERSION", 99), ("np.__version__", "9.9")):
        with monkeypatch.context() as patch:
            patch.setattr(
                f"bathysphere.domains.sokoban.{'generator' if name == 'VERSION' else 'board_cache'}.{name}", value
            )
            assert board_cache.BoardCache(QUICK, STREAM, tmp_path).read(0) is None
    assert board_cache.BoardCache(GeneratorConfig(height=6, width=7), STREAM, tmp_path).read(0) is None
    assert board_cache.BoardCache(QUICK, STREAM + 1, tmp_path).read(0) is None
    copied = tmp_path / file.parent.parent.name / str(STREAM + 1) / file.name
    copied.parent.mkdir()
    shutil.copy(file, copied)
    assert board_cache.BoardCache(QUICK, STREAM + 1, tmp_path).read(0) is None
    assert board_cache.BoardCache(QUICK, STREAM, tmp_path).read(0) is not None


def test_fields_that_came_later_count_only_when_they_are_set(tmp_path) -> None:
    """Boards that were kept before the generator had these fields are still found."""
    first_fields = ("height", "width", "num_boxes", "walk_length", "turn_probability", "brushes")
    first_fields += ("max_depth", "max_states", "max_tries", "max_calls")
    settings = {name: getattr(QUICK, name) for name in first_fields}
    settings |= {"version": generator.VERSION, "numpy": np.__version__}
    name = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    assert fill(tmp_path, 16).parent.parent.name == name
    for later in ({"smallest": 6}, {"fewest_boxes": 1}, {"rooms": ("hall",)}, {"grouped": 0.5}, {"shallowest": 9}):
        config = dataclasses.replace(QUICK, **later)
        assert board_cache.BoardCache(config, STREAM, tmp_path).read(0) is None


def test_mixed_boards_come_as_the_generator_makes_them(tmp_path) -> None:
    mixed = dataclasses.replace(
        QUICK, height=9, width=8, num_boxes=2, smallest=6, fewest_boxes=1, rooms=("walk", "hall"), grouped=0.5
    )
    for _ in range(2):  # made, then read
        assert np.array_equal(take(BoardStream(mixed, STREAM, tmp_path), range(20)), made(20, config=mixed))


@pytest.mark.parametrize("place", ["a file", "/proc/nowhere"])
def test_without_a_place_to_write_there_is_one_warning(place, tmp_path, caplog) -> None:
    folder = Path(place) if place.startswith("/") else tmp_path / place
    if not place.startswith("/"):
        folder.write_text("")
    assert np.array_equal(first(60, folder), made(60))
    wait_until(lambda: not at_work())
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "Cannot keep generated Sokoban boards" in warnings[0].getMessage()


def test_impossible_settings_are_the_callers_problem_not_the_threads() -> None:
    never = GeneratorConfig(height=4, width=4, num_boxes=2, max_calls=2)
    boards = BoardStream(never, 0)
    for _ in range(2):
        with pytest.raises(BathysphereError, match="No playable level"):
            take(boards, [0], [1, 2])


def test_the_thread_goes_when_the_stream_is_deleted() -> None:
    slow = GeneratorConfig(height=20, width=20, num_boxes=4, max_states=200_000)
    boards = BoardStream(slow, 3)
    take(boards, [0], range(1000))
    assert at_work()
    del boards
    wait_until(lambda: not at_work())  # long before it has made all it was asked for


def test_where_boards_are_kept(monkeypatch, tmp_path) -> None:
    for name in ("BATHYSPHERE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "bathysphere" / "levels"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_folder() == Path("/x/bathysphere/levels")
    monkeypatch.setenv("BATHYSPHERE_CACHE", "/y")
    assert cache_folder() == Path("/y/levels")


def test_clearing_deletes_the_boards_and_nothing_else(tmp_path) -> None:
    file = fill(tmp_path)
    file.with_name(".x.tmp").write_text("cut off")
    other = file.parent.parent / "mine" / "notes.npz"
    other.parent.mkdir()
    other.write_text("")
    assert cache_size(tmp_path) == (2, file.stat().st_size + 7)
    clear_cache(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [other]
    assert not file.parent.exists()
    assert cache_size(tmp_path) == (0, 0)
    clear_cache(tmp_path)
    clear_cache(tmp_path / "nowhere")


SCRIPT = """
import sys, numpy as np
from pathlib import Path
from bathysphere.domains.sokoban import GeneratorConfig
from bathysphere.domains.sokoban.board_stream import BoardStream
config = GeneratorConfig(height=6, width=7, num_boxes=1, max_depth=20, max_states=50)
boards = BoardStream(config, int(sys.argv[2]), Path(sys.argv[1])).take(np.arange(600), np.arange(0))
sys.stdout.write(str(hash(boards.tobytes())))
"""


def script(text: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments], stdout=pipe, stderr=pipe, text=True, env=environment
    )


def test_two_processes_share_a_folder(tmp_path) -> None:
    processes = [script(SCRIPT, str(tmp_path), str(STREAM)) for _ in range(2)]
    answers = {process.communicate(timeout=600) for process in processes}
    assert len(answers) == 1
    assert answers.pop()[1] == ""
    assert not list(tmp_path.rglob("*.tmp"))
    assert np.array_equal(first(600, tmp_path), made(600))


AT_WORK = """
import signal, sys, threading, time, numpy as np
from bathysphere.domains.sokoban import GeneratorConfig
from bathysphere.domains.sokoban.board_stream import BoardStream
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell starts without it
boards = BoardStream(GeneratorConfig(height=20, width=20, max_states=100_000), 1)
boards.take(np.arange(2), np.arange(1000))
assert any(thread.name == "sokoban-boards" for thread in threading.enumerate())
sys.stdout.write("at work\\n")
sys.stdout.flush()
"""


def test_the_program_ends_while_the_thread_is_at_work() -> None:
    process = script(AT_WORK)
    out, err = process.communicate(timeout=600)
    assert (out, err, process.returncode) == ("at work\n", "", 0)


def test_ctrl_c_ends_the_program_while_the_thread_is_at_work() -> None:
    process = script(AT_WORK + "boards.take(np.arange(100_000), np.arange(0))")
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode != 0
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert err.count("Traceback") == 1
