"""Solving in several processes: the same solutions, and what happens when one of them ends."""

import multiprocessing
import threading

import pytest

from bathysphere.domains.sokoban.levels import solves
from bathysphere.puzzles.jobs import work_here, work_in_processes
from bathysphere.puzzles.player import LevelPlayer
from bathysphere.puzzles.solving import Effort, Solving
from tests.puzzles.small import EASY, ENDLESS, HOPELESS, LARGE, TALL, TWO, write_agent

EFFORT = Effort(seconds=600.0, max_expansions=600, improve="moves")
LEVELS = [EASY, HOPELESS, ENDLESS, LARGE, TWO, TALL]


@pytest.fixture(scope="module")
def player(tmp_path_factory):
    return LevelPlayer(write_agent(tmp_path_factory.mktemp("jobs") / "board.safetensors"))


def _timeless(solving):
    return [{**result, "seconds": 0} for result in solving.summary()["results"]]


def test_two_processes_find_what_one_finds(player):
    one, two = Solving(player, LEVELS, EFFORT), Solving(player, LEVELS, EFFORT, shares=2)
    for _ in work_here(player, one):
        pass
    for _ in work_in_processes(player.agent, two, jobs=2):
        pass
    assert _timeless(one) == _timeless(two)
    assert one.solutions.keys() == {1, 4, 5, 6}
    assert two.num_finished == 6
    assert not multiprocessing.active_children()


def test_a_process_that_is_killed_is_a_sentence_and_the_other_goes_on(player):
    solving = Solving(player, LEVELS, EFFORT, shares=2)
    work = work_in_processes(player.agent, solving, jobs=2)
    killer = _kill_when_started(2, "solving-1")
    for _ in work:
        pass
    killer.join()
    assert solving.num_finished == 6
    assert solving.solutions.keys() == {4, 6}
    assert solves(LARGE, solving.solutions[4])
    what = "process ended unexpectedly (exit code -9)"
    assert [solving.records[number].reason for number in (1, 3, 5)] == [f"its {what}"] * 3
    assert solving.failures == [f"A {what}; its levels count as unsolved. If memory ran out, use fewer --jobs."]
    assert not multiprocessing.active_children()


def test_when_the_last_process_is_killed_the_work_is_over(player):
    solving = Solving(player, LEVELS, EFFORT, shares=3)
    killer = _kill_when_started(1, "solving-1")
    for _ in work_in_processes(player.agent, solving, jobs=1):
        pass
    killer.join()
    assert solving.num_finished == 6
    assert not solving.solutions
    assert {record.reason for record in solving.records.values()} == {
        "its process ended unexpectedly (exit code -9)",
        "all processes have ended",
    }


def test_whoever_stops_early_leaves_no_process_behind(player):
    solving = Solving(player, LEVELS, EFFORT, shares=2)
    work = work_in_processes(player.agent, solving, jobs=2)
    next(work)
    assert len(multiprocessing.active_children()) == 2
    work.close()
    assert not multiprocessing.active_children()


def _kill_when_started(count, name):
    """Kills a process once `count` of them are there. They import PyTorch first, so its task is not done by then."""

    def kill():
        children = []
        while len(children) < count:
            children = multiprocessing.active_children()
        next(child for child in children if child.name == name).kill()

    thread = threading.Thread(target=kill)
    thread.start()
    return thread
