"""Blocks in processes of this machine: the same run as in one process, whatever dies."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import bathysphere
from bathysphere import BathysphereError
from bathysphere.agents.evaluation import evaluate
from bathysphere.agents.loading import load_trained
from bathysphere.config.convert import override, with_planner
from bathysphere.domains import make_domain
from bathysphere.learning.block_processes import _Order, _Process
from bathysphere.learning.blocks import BlockPlayer, Knowledge
from bathysphere.planning.transport import packed, pickled
from bathysphere.runs import runner
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.metrics import read_rows
from bathysphere.runs.workers import Workers, chosen_workers
from bathysphere.values import Ensemble
from tests.domains.adapters.broken_environments import Corridor
from tests.domains.per_state_worlds import Stairs
from tests.runs.small import small_config
from tests.runs.subprocesses import bathysphere as command
from tests.runs.subprocesses import finish, killed
from tests.scale.small import WORLDS, assert_equal, in_blocks


@pytest.mark.parametrize("world", WORLDS)
def test_two_processes_play_the_run_of_one(world, here, tmp_path):
    result = runner.run(in_blocks(world), tmp_path / "run", pictures=False, workers=Workers(2))
    assert_equal(tmp_path / "run", here / world)
    assert (result["workers"], result["worker_restarts"]) == (2, 0)
    assert all(speed > 0 for speed in result["worker_steps_per_second"].values())
    assert result["staleness"] > 0


def test_what_a_model_has_learnt_travels_to_the_workers(tmp_path):
    config = in_blocks("deep-sea", model="memory")
    runner.run(config, tmp_path / "here", pictures=False)
    runner.run(override(config, {"steps": config.steps // 2}), tmp_path / "two", pictures=False)
    bathysphere.resume(tmp_path / "two", steps=config.steps, pictures=False, workers=2)
    assert_equal(tmp_path / "two", tmp_path / "here")


@pytest.mark.parametrize("planner", ["replan", "best-first", "none"])
def test_other_planners_play_blocks_too(planner, tmp_path):
    config = with_planner(in_blocks("deep-sea", steps=900, domain={"size": 6}, log_every=50), planner)
    for name, workers in (("here", None), ("two", Workers(2))):
        runner.run(config, tmp_path / name, pictures=False, workers=workers)
    assert_equal(tmp_path / "two", tmp_path / "here")


def test_worlds_with_chance_are_played_in_blocks_too(tmp_path):
    settings = {"search": {"passes": 3}, "batch": 4, "scale": {"block": 2}, "steps": 1200, "log_every": 50}
    for name, workers in (("here", None), ("two", 2)):
        bathysphere.train("gymnasium:FrozenLake-v1", run_dir=tmp_path / name, workers=workers, **settings)
    assert_equal(tmp_path / "two", tmp_path / "here")


def test_a_worker_that_is_killed_is_replaced(here, tmp_path):
    kills = []

    def kill(episode, progress):
        if progress.episodes // 50 > len(kills):
            kills.append(multiprocessing.active_children()[-1].pid)
            os.kill(kills[-1], signal.SIGKILL)

    runner.run(in_blocks("deep-sea"), tmp_path / "run", pictures=False, workers=Workers(2), on_episode=kill)
    assert_equal(tmp_path / "run", here / "deep-sea")
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert len(set(kills)) >= 2  # one may have been hit twice
    assert rows[-1]["worker_restarts"] >= len(set(kills)) - 1  # the last may not have been noticed
    assert not multiprocessing.active_children()


class NotingPlayer(BlockPlayer):
    """Notes in a folder which blocks it has played."""

    folder: Path

    def play(self, number, knowledge):
        played = super().play(number, knowledge)
        (self.folder / str(number)).touch()
        return played


def test_a_worker_plays_on_before_the_learner_has_taken_a_block(tmp_path):
    config = small_config(domain={"size": 20}, values={"num_members": 20})
    domain = make_domain(config.domain)
    values = Ensemble(config.values, config.optimiser, domain.observation, 0)
    search = config.search.for_training(domain.max_steps)
    player = NotingPlayer(domain, values, search, batch=64, size=512, seed=np.random.SeedSequence(0), all_members=True)
    player.folder = tmp_path
    process = _Process(packed(search, player))
    try:
        for number in (0, 1):
            assert process.give(_Order(number, pickled(Knowledge(values.weights()))))
        deadline = time.monotonic() + 600
        while not (tmp_path / "1").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (tmp_path / "1").exists()
        first = process.pipe.recv()
        assert first.number == 0
        assert len(pickled(first)) > 1_000_000  # more than fits into a pipe
    finally:
        process.end()


def test_a_run_is_resumed_by_other_workers(here, tmp_path):
    run, steps = tmp_path / "run", in_blocks("sokoban").steps
    runner.run(in_blocks("sokoban", steps=steps // 4), run, pictures=False, workers=Workers(1))
    bathysphere.resume(run, steps=steps // 2, pictures=False)
    bathysphere.resume(run, steps=steps, pictures=False, workers=3)
    assert_equal(run, here / "sokoban")


@pytest.mark.parametrize("world", WORLDS)
def test_a_learner_that_is_killed_ten_times_is_resumed_by_others_each_time(world, tmp_path):
    config = in_blocks(world, checkpoint={"seconds": 0.02})
    steps = config.steps * 2  # enough for ten deaths
    runner.run(override(config, {"steps": steps}), tmp_path / "whole", pictures=False)
    run = tmp_path / "run"
    runner.run(override(config, {"steps": steps // 20}), run, pictures=False)
    rng = np.random.default_rng(0)
    words = ["train", "--resume", str(run), "--steps", str(steps), "--no-pictures"]
    for kill in range(10):
        others = ["--workers", str(kill % 4)] if kill % 4 else []
        assert killed(float(rng.uniform(0, 0.02)), *words, *others) == -signal.SIGPROF
    finish(command(*words, "--json"))
    assert_equal(run, tmp_path / "whole")


def test_workers_without_blocks_get_some(tmp_path):
    run = bathysphere.train(small_config(batch=32, steps=200), run_dir=tmp_path / "run", workers=2, pictures=False)
    config = RunDirectory.open(tmp_path / "run").load_config()
    assert (config.scale.block, config.scale.distance, config.workers) == (8, 4, 1)
    assert run["stopped_by"] == "steps"


def test_workers_that_could_not_help_are_refused(tmp_path):
    run = tmp_path / "run"
    with pytest.raises(BathysphereError, match=r"workers is 5, but scale\.distance lets 4 blocks"):
        bathysphere.train(small_config(), run_dir=run, workers=5)
    with pytest.raises(BathysphereError, match="workers is 0; expected at least 1"):
        bathysphere.train(small_config(), run_dir=run, workers=0)
    with pytest.raises(BathysphereError, match="workers is 257; expected at most 256 processes on one machine"):
        bathysphere.train(small_config(), run_dir=run, workers=257)
    with pytest.raises(BathysphereError, match="workers on Ray only; add --ray"):
        bathysphere.train(small_config(), run_dir=run, workers=2, worker_gpus=0.5)
    assert not run.exists()
    bathysphere.train(small_config(steps=100), run_dir=run, pictures=False)
    with pytest.raises(BathysphereError, match="does not play in blocks"):
        bathysphere.resume(run, steps=200, workers=2)


def test_a_measure_of_the_users_own_is_known_to_workers(tmp_path):
    from tests.planning import own_measure

    config = override(in_blocks("deep-sea"), {"search": {"risk": own_measure.best_member.__name__}})
    for name, workers in (("here", None), ("two", Workers(2))):
        runner.run(config, tmp_path / name, pictures=False, workers=workers)
    assert_equal(tmp_path / "here", tmp_path / "two")


PROGRAM = """
import bathysphere
from tests.domains.adapters.broken_environments import Corridor
from tests.domains.per_state_worlds import Stairs

{world}
{guard}bathysphere.train({name}, run_dir="run", workers=2, steps=200, scale={{"block": 6}}, pictures=False)
"""
OWN = "class Mine(Stairs):\n    pass\n"
GUARD = "if __name__ == '__main__':\n    "


def program(folder, **parts):
    (folder / "program.py").write_text(PROGRAM.format(**parts))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "program.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("world", "name", "guard"), [("", "Stairs()", ""), (OWN, "Mine()", GUARD)])
def test_a_program_trains_with_workers(world, name, guard, tmp_path):
    done = program(tmp_path, world=world, name=name, guard=guard)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "result.json").exists()


def test_a_program_that_defines_a_world_and_would_train_in_every_process_is_told_how_not_to(tmp_path):
    done = program(tmp_path, world=OWN, name="Mine()", guard="")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "put what it does, but not what it defines, under: if __name__ == '__main__':"
    )


class ColdStairs(Stairs):
    """A world that fails in workers."""

    def step(self, state, action):
        if multiprocessing.parent_process() is not None:
            raise RuntimeError("the stairs are frozen")
        return super().step(state, action)


def test_what_a_world_raises_in_a_worker_is_told(tmp_path):
    with pytest.raises(BathysphereError, match="the stairs are frozen"):
        bathysphere.train(ColdStairs(), run_dir=tmp_path / "run", workers=1, pictures=False)


def test_a_world_of_the_users_own_is_played_by_workers(tmp_path):
    settings = {"scale": {"block": 6}, "steps": 300, "log_every": 10, "pictures": False}
    for name, workers in (("here", None), ("two", 2)):
        bathysphere.train(Stairs(), run_dir=tmp_path / name, workers=workers, **settings)
    assert_equal(tmp_path / "here", tmp_path / "two")


def test_a_gymnasium_environment_is_played_by_workers(tmp_path):
    """Each worker knows only those of its states that it has met."""
    lake = bathysphere.from_gymnasium(lambda: gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=False))
    chosen = {"search": {"passes": 5}, "batch": 4}  # which otherwise depend on how fast the machine is
    settings = {**chosen, "scale": {"block": 4}, "steps": 900, "log_every": 50}
    for name, workers in (("here", None), ("two", 2)):
        bathysphere.train(lake, run_dir=tmp_path / name, workers=workers, **settings)
    assert_equal(tmp_path / "here", tmp_path / "two")
    one, two = (evaluate(tmp_path / "two", 12, players=Workers(number).make_players) for number in (1, 2))
    assert replace(one, seconds=0.0) == replace(two, seconds=0.0)


def test_a_world_that_cannot_be_sent_to_others_is_refused(tmp_path):
    world = bathysphere.from_gymnasium(lambda: Corridor())
    with pytest.raises(BathysphereError, match=r"cannot be sent to another process: .*lambda.* Leave out the workers"):
        bathysphere.train(world, run_dir=tmp_path / "run", workers=2)


def test_workers_are_counted_from_one():
    for ray in (False, True):
        with pytest.raises(BathysphereError, match="workers is 0; expected at least 1"):
            chosen_workers(0, ray)


def test_no_more_processes_are_started_than_there_are_blocks(here):
    """Four episodes more than the agent was trained with at once are two blocks."""
    seen = set()
    options = {"passes": 2, "on_progress": lambda played: seen.add(len(multiprocessing.active_children()))}
    trained = load_trained(here / "deep-sea")
    before = len(multiprocessing.active_children())
    evaluate(here / "deep-sea", trained.config.batch + 4, players=Workers(9).make_players, **options)
    assert max(seen) == before + 2


def test_a_number_of_episodes_that_nobody_can_play_is_refused(here):
    with pytest.raises(BathysphereError, match=f"episodes is {2**63} .*expected 1 to 1,000,000,000,000"):
        evaluate(here / "deep-sea", 2**63)
