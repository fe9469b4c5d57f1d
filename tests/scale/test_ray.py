"""Blocks on a real Ray, of several nodes: the same run as in one process, whatever dies."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import suppress
from textwrap import dedent
from threading import Thread

import numpy as np
import pytest

import bathysphere
from bathysphere import BathysphereError
from bathysphere.puzzles.jobs import work_here, work_on_cluster
from bathysphere.puzzles.player import LevelPlayer
from bathysphere.puzzles.solving import Effort, Solving
from bathysphere.runs import runner
from bathysphere.runs.metrics import read_rows
from bathysphere.runs.workers import Workers
from bathysphere.scale import block_players
from bathysphere.scale.cluster import Cluster as RayCluster
from bathysphere.studies import processes
from tests.domains.adapters.broken_environments import Corridor
from tests.puzzles.small import EASY, TALL, TWO, write_agent
from tests.runs.subprocesses import bathysphere as command
from tests.runs.subprocesses import finish, killed, signalled, told
from tests.scale.small import WORLDS, assert_equal, in_blocks


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two nodes with two CPUs each, on this machine."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 2, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    alike = {"worker_niceness": 0}  # or workers would wait until nothing else runs on this machine
    cluster = Cluster(initialize_head=True, head_node_args={**node, "_system_config": alike})
    try:
        cluster.add_node(wait=False, num_cpus=2, object_store_memory=80 * 2**20)
        cluster.wait_for_nodes(timeout=600)
        ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("world", WORLDS)
def test_any_number_of_workers_plays_the_run_of_one_process(world, workers, here, cluster, tmp_path):
    runner.run(in_blocks(world), tmp_path / "run", pictures=False, workers=Workers(workers, cluster.address))
    assert_equal(tmp_path / "run", here / world)
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert rows[0]["workers"] == workers


def test_what_ends_before_anybody_listens_is_told(cluster):
    """Short blocks can be over before their end is asked for; it is then told by the thread that asks."""
    import ray

    ours, answer = RayCluster(cluster.address, 1), Future()

    class Over:
        def future(self):
            over = ray.remote(dedent).remote("  over").future()
            over.result()
            return over

    ours._waiting.append((answer, Over))
    later = []
    Thread(target=lambda: later.append(ours.run(dedent, "  later")), daemon=True).start()
    assert answer.result(600) == "over"
    while not later:
        time.sleep(0.01)
    assert later[0].result(600) == "later"


@pytest.mark.parametrize("world", WORLDS)
def test_a_worker_that_is_killed_again_and_again(world, here, cluster, tmp_path):
    kills, metrics = [], tmp_path / "run" / "metrics.jsonl"

    def kill(episode, progress):
        rows = read_rows(metrics)
        if rows and len(rows) > len(kills):
            worker = next(iter(rows[-1]["worker_steps_per_second"]), None)
            pid = int(worker.split(":")[1])
            if pid not in kills:
                with suppress(ProcessLookupError):  # Ray may have ended it by now
                    os.kill(pid, signal.SIGKILL)
            kills.append(pid)

    workers = Workers(2, cluster.address)
    runner.run(in_blocks(world), tmp_path / "run", pictures=False, workers=workers, on_episode=kill)
    assert_equal(tmp_path / "run", here / world)
    assert len(set(kills)) >= 2


@pytest.mark.parametrize("world", WORLDS)
def test_a_node_dies_and_another_comes(world, here, cluster, tmp_path):
    nodes, changes = [node for node in cluster.list_all_nodes() if not node.is_head()], []

    def replace(episode, progress):
        if progress.episodes >= 12 and len(changes) == 0:
            changes.append("one less")
            cluster.remove_node(nodes.pop(), allow_graceful=False)
        if progress.episodes >= 36 and len(changes) == 1:
            changes.append("one more")
            cluster.add_node(wait=False, num_cpus=2, object_store_memory=80 * 2**20)

    workers = Workers(4, cluster.address)
    runner.run(in_blocks(world), tmp_path / "run", pictures=False, workers=workers, on_episode=replace)
    assert_equal(tmp_path / "run", here / world)
    assert len(changes) == 2


def test_a_learner_that_is_killed_is_resumed_here_and_there(here, cluster, tmp_path):
    run, whole = tmp_path / "run", here / "deep-sea"
    rng = np.random.default_rng(0)
    config = in_blocks("deep-sea")
    words = ["deep-sea", "--domain.size", "8", "--batch", "5", "--steps", str(config.steps), "--log-every", "100"]
    words += ["--scale.block", "6", "--no-pictures", "--checkpoint.seconds", "0.02", "--run-dir", str(run)]
    for flags in (
        ["--ray", cluster.address, "--workers", "2"],
        ["--workers", "1"],
        ["--ray", "auto", "--workers", "3"],
    ):
        assert killed(float(rng.uniform(0, 0.01)), "train", *words, *flags) == -signal.SIGPROF
        words = ["--resume", str(run), "--no-pictures"]
    result = finish(command("train", *words, "--ray", cluster.address, "--workers", "1", "--json"))
    assert result["stopped_by"] == "steps"
    assert_equal(run, whole)


@pytest.mark.parametrize("world", WORLDS)
def test_a_learner_that_is_interrupted_is_resumed_by_others(world, here, cluster, tmp_path):
    config, run = in_blocks(world), tmp_path / "run"
    runner.run(in_blocks(world, steps=config.steps // 4, checkpoint={"seconds": 0.02}), run, pictures=False)
    words = ["train", "--resume", str(run), "--steps", str(config.steps), "--no-pictures"]
    process = signalled(signal.SIGINT, *words, "--ray", cluster.address, "--workers", "2")
    told(process)
    assert process.returncode == 130
    assert read_rows(run / "metrics.jsonl")[-1]["env_steps"] < config.steps
    finish(command(*words, "--workers", "3", "--json"))
    assert_equal(run, here / world)


def test_levels_are_solved_as_in_one_process(cluster, tmp_path):
    player = LevelPlayer(write_agent(tmp_path / "board.safetensors"))
    effort = Effort(seconds=600.0, max_expansions=600, improve="moves")
    one, three = (Solving(player, [EASY, TWO, TALL], effort, shares) for shares in (1, 3))
    for _ in work_here(player, one):
        pass
    for _ in work_on_cluster(player.agent, three, RayCluster(cluster.address, 3)):
        pass
    assert one.solutions == three.solutions
    assert one.solutions.keys() == {1, 2, 3}
    assert three.num_finished == 3


def test_an_evaluation_counts_the_same_whoever_plays(cluster, here):
    def count(*flags):
        words = ["evaluate", str(here / "deep-sea"), "--episodes", "23", "--passes", "2", "--json", *flags]
        counted = finish(command(*words))
        return {name: value for name, value in counted.items() if name not in ("seconds", "command")}

    one = count("--workers", "1")
    assert one["episodes"] == 23
    assert count("--workers", "2") == one
    assert count("--ray", cluster.address, "--workers", "3") == one


def test_a_sweep_is_the_same_on_a_cluster_and_goes_on_there(cluster, tmp_path):
    def go(out, steps, **options):
        vary = {"search.risk_coef": [0, 1]}
        settings = {"domain": {"size": 6}, "steps": steps, "batch": 4, "log_every": 100}
        return bathysphere.sweep("deep-sea", vary, seeds=1, jobs=2, out=tmp_path / out, **settings, **options)

    here = go("here", 600)
    go("there", 300, ray=cluster.address)
    there = go("there", 600, ray=cluster.address)  # from where the runs were
    times = {"wall_seconds", "env_steps_per_second"}
    assert [r.keys() for r in here.records] == [r.keys() for r in there.records]
    for mine, theirs in zip(here.records, there.records, strict=True):
        assert {k: v for k, v in mine.items() if k not in times} == {k: v for k, v in theirs.items() if k not in times}
        assert theirs["state"] == "finished"
    assert not list((tmp_path / "there").rglob("stop"))


def test_a_study_is_interrupted_on_a_cluster_and_goes_on(cluster, tmp_path):
    out = tmp_path / "out"
    words = ["deep-sea", "--vary", "search.risk_coef=0,1", "--seeds", "1", "--jobs", "2", "--out", str(out)]
    words += ["--domain.size", "6", "--log-every", "100", "--checkpoint.seconds", "0.1", "--ray", cluster.address]
    process = command("sweep", *words, "--steps", "100000000", "--json")
    try:
        while len({path.parent for path in out.rglob("step-*")}) < 2:
            assert process.poll() is None
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGINT)
    _, said = told(process)
    assert process.returncode == 130
    assert "Everything is saved; repeat the command to go on." in said
    saved = {path: path.stat().st_size for path in out.rglob("metrics.jsonl")}
    assert len(saved) == 2
    assert not list(out.rglob("stop"))
    assert all(path.stat().st_size == size for path, size in saved.items())  # nothing goes on in secret


def test_a_machine_that_does_not_see_the_results_says_so():
    with pytest.raises(BathysphereError, match=r"does not see /nowhere/run\. Put the results on a disk that all"):
        processes._run("/nowhere/run", [])


def test_workers_of_a_ray_of_our_own_do_not_give_way_to_other_work():
    code = """
        import os
        from bathysphere.scale.cluster import Cluster
        def niceness():
            return os.nice(0)
        cluster = Cluster("local", 1)
        print(cluster.wait(cluster.run(niceness), None) - niceness())
        cluster.close()
        """
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "0"


def test_ray_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BathysphereError, match=r"Ray is not installed. Install it: pip install 'bathysphere\[ray\]'"):
        bathysphere.train(in_blocks("deep-sea"), run_dir=tmp_path / "run", ray=True, workers=1)


def test_nobody_answers(tmp_path):
    for address, reason in (("127.0.0.1:1", "Connection refused"), ("nonsense", "Invalid address format")):
        process = command("train", "deep-sea", "--ray", address, "--workers", "1", "--run-dir", str(tmp_path / address))
        _, said = told(process)
        assert process.returncode == 2
        assert f"error: There is no Ray cluster at {address}: {reason}" in said
        assert "ray start --head" in said
        assert "Traceback" not in said


def test_a_cluster_that_asks_for_a_token(tmp_path):
    code = """
        import sys, ray
        ray.init("local", num_cpus=1, include_dashboard=False, object_store_memory=80 * 2**20, log_to_driver=False)
        print(ray.get_runtime_context().gcs_address, flush=True)
        sys.stdin.read()
        """
    names = ("RAY_AUTH_MODE", "RAY_ADDRESS")
    plain = {name: value for name, value in os.environ.items() if name not in names} | {"HOME": str(tmp_path / "other")}
    with_token = {**plain, "HOME": str(tmp_path), "RAY_AUTH_MODE": "token"}  # Ray keeps its token there
    command = [sys.executable, "-c", dedent(code)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=with_token, **pipes) as head:
        address = head.stdout.readline().strip()
        words = ["train", "deep-sea", "--domain.size", "6", "--steps", "200", "--no-pictures", "--workers", "1"]
        command = [sys.executable, "-m", "bathysphere", *words, "--ray", address, "--run-dir", str(tmp_path / "run")]
        refused, joined = (
            subprocess.run(command, capture_output=True, text=True, check=False, env=env) for env in (plain, with_token)
        )
        head.stdin.close()
    assert refused.returncode == 2
    assert "oken is missing or incorrect. Name the address" in refused.stderr
    assert "set RAY_AUTH_MODE=token here" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1  # nothing of what Ray says twenty times
    assert joined.returncode == 0, joined.stderr


def test_another_version_of_ray(cluster, tmp_path):
    code = """
        import sys, ray
        ray.__version__ = "0.1"
        from bathysphere.cli import main
        sys.exit(main(sys.argv[1:]))
        """
    words = ["train", "deep-sea", "--ray", cluster.address, "--workers", "1", "--run-dir", str(tmp_path / "run")]
    done = subprocess.run([sys.executable, "-c", dedent(code), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "has another version of Ray or Python than this process. Install the same ones everywhere" in done.stderr
    assert "Traceback" not in done.stderr


def test_other_versions_of_what_computes(cluster, monkeypatch, tmp_path):
    versions = block_players.collect_versions() | {"numpy": "1.0"}
    monkeypatch.setattr(block_players, "collect_versions", lambda: versions)
    with pytest.raises(BathysphereError, match=r"worker of the cluster has numpy .*, and the learner 1\.0"):
        bathysphere.train(in_blocks("deep-sea"), run_dir=tmp_path / "run", ray=cluster.address, workers=1)


def test_too_few_resources(cluster, tmp_path):
    with pytest.raises(BathysphereError, match=r"The cluster has 0 GPUs, and a worker needs 0\.5"):
        bathysphere.train(
            in_blocks("deep-sea"), run_dir=tmp_path / "run", ray=cluster.address, workers=1, worker_gpus=0.5
        )


def test_a_world_that_workers_cannot_import(cluster, monkeypatch, tmp_path):
    (tmp_path / "far_away.py").write_text(
        "from tests.domains.per_state_worlds import Stairs\n\nclass Mine(Stairs):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)  # of this process only: the cluster began before
    import far_away

    run = tmp_path / "run"
    with pytest.raises(BathysphereError, match=r"cannot import the world .*far_away.*ray job submit --working-dir"):
        bathysphere.train(far_away.Mine(), run_dir=run, ray=cluster.address, workers=1, steps=500)


def test_an_environment_that_a_lambda_makes_is_played_there(cluster, tmp_path):
    world = bathysphere.from_gymnasium(lambda: Corridor())
    chosen = {"search": {"passes": 2, "max_steps": 20}, "batch": 4}  # which else depend on the machine, or on luck
    settings = {**chosen, "scale": {"block": 4}, "steps": 600, "log_every": 50, "pictures": False}
    bathysphere.train(world, run_dir=tmp_path / "here", **settings)
    bathysphere.train(world, run_dir=tmp_path / "there", ray=cluster.address, workers=2, **settings)
    assert_equal(tmp_path / "there", tmp_path / "here")


def test_a_full_object_store():
    code = """
        import numpy as np
        from bathysphere.errors import BathysphereError
        from bathysphere.scale.cluster import Cluster
        cluster = Cluster("local", 1)
        try:
            cluster.put(np.zeros(400 * 2**20, np.uint8))
        except BathysphereError as error:
            print(error)
        cluster.close()
        """
    # As if the disk that the store spills to were full.
    environment = {**os.environ, "RAY_local_fs_capacity_threshold": "0.000001"}
    done = subprocess.run(
        [sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=True, env=environment
    )
    assert "The cluster's object store is full" in done.stdout
    assert "--object-store-memory" in done.stdout
