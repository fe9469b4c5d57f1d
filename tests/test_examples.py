"""Every example runs, and says what it promises."""

import json
import re
import shutil
import subprocess
import sys
from collections import deque
from pathlib import Path

import numpy as np

import bathysphere
from bathysphere.testing import check_domain

EXAMPLES = Path(__file__).parents[1] / "examples"


def _run(name: str, *arguments: str, cwd: Path) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_train_deep_sea(tmp_path):
    out = _run("train_deep_sea.py", cwd=tmp_path)
    assert out.startswith("solved at step ")
    assert "of 50 episodes" in out


def test_minimal_tells_the_same_story_twice(tmp_path):
    out = _run("minimal.py", "12", cwd=tmp_path)
    assert re.fullmatch(r"( +\d+ episodes, treasure in .*\n)+solved after \d+ episodes\n", out)
    assert _run("minimal.py", "12", cwd=tmp_path) == out
    assert _run("minimal.py", "12", "1", cwd=tmp_path) != out


def test_agent_in_gym(tmp_path):
    assert _run("agent_in_gym.py", cwd=tmp_path).startswith("solved: ")


def test_sliding_tiles(tmp_path):
    out = _run("sliding_tiles.py", "10000", cwd=tmp_path)
    assert "the fewest possible are 19.9 steps" in out
    [won] = re.findall(r"solves (\d+) of 100 new boards", out)
    assert int(won) > 50


def test_sliding_tiles_twice_is_one_puzzle(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    from sliding_tiles import FastTiles, SlidingTiles

    one_at_a_time, many = SlidingTiles(), FastTiles()
    check_domain(bathysphere.from_steps(one_at_a_time), np.random.default_rng(0))
    check_domain(many, np.random.default_rng(0))
    boards = many.initial(50, np.random.default_rng(1))
    out = many.successors(boards)
    for board, after, rewards, over in zip(
        boards.tolist(), out.states.tolist(), out.rewards, out.terminal, strict=True
    ):
        expected = [one_at_a_time.step(tuple(board), action) for action in one_at_a_time.actions]
        assert expected == list(zip(map(tuple, after), rewards, over, strict=True))
    code = (EXAMPLES / "sliding_tiles.py").read_text().partition("MOVES")[2].partition("class FastTiles")[0]
    lines = [line for line in code.splitlines() if line.strip() and '"""' not in line]
    assert len(lines) <= 25


def test_job_shop(tmp_path):
    out = _run("job_shop.py", "ft06", "3000", cwd=tmp_path)
    assert "SPT: 94\nMWKR: 58\n" in out
    ours = [int(end) for end in re.findall(r"ours: (\d+), after", out)]
    assert ours
    assert ours == sorted(set(ours), reverse=True)
    assert 55 <= ours[-1] < 58
    assert (tmp_path / "job_shop.png").stat().st_size > 1000


def test_gymnasium_worlds(tmp_path):
    out = _run("gymnasium_worlds.py", "--short", cwd=tmp_path)
    assert re.search(r"FrozenLake-v1: .* latest return 1.0; then 50 of 50 solved", out)
    assert re.search(r"CliffWalking-v1: .* latest return -13.0; then 0 of 50 solved in 13.0 steps", out)


def test_minigrid_worlds(tmp_path):
    out = _run("minigrid_worlds.py", "--short", cwd=tmp_path)
    assert re.search(
        r"KeyCorridorS3R3, learning, one level: first won after [\d,]+ simulator steps; 1 of 1 episodes", out
    )
    out = _run("minigrid_worlds.py", "--short", "--breadth-first", cwd=tmp_path)
    assert re.search(r"KeyCorridorS3R3, breadth-first: won in 17 actions after [\d,]+ simulator steps", out)


def test_my_measures(tmp_path, monkeypatch):
    out = _run("my_measures.py", cwd=tmp_path)
    assert len(re.findall(r": solved after \d+ episodes\n", out)) == 4
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLES / "my_measures.py", tmp_path)
    command = "train deep-sea --import my_measures --search.risk upper_half --domain.size 8 --steps 50 --json"
    done = subprocess.run(
        [sys.executable, "-m", "bathysphere", *command.split()], capture_output=True, text=True, check=False
    )
    assert json.loads(done.stdout)["env_steps"] >= 50, done.stderr


def test_demo(tmp_path):
    out = _run("demo.py", "here", cwd=tmp_path)
    assert "What happened" in out
    assert "What to try next" in out
    assert {"uncertainty.png", "learning.png", "dive.gif"} <= {file.name for file in (tmp_path / "here").iterdir()}


def test_the_short_example_is_short():
    lines = (EXAMPLES / "train_deep_sea.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 15


def test_minigrid_corridors_has_the_rules_of_minigrid(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    from minigrid_corridors import KeyCorridor, read

    world, rng, met = KeyCorridor(), np.random.default_rng(0), set()
    bathysphere.check_domain(bathysphere.from_steps(world), np.random.default_rng(0))
    for _ in range(12):
        state = world.start(rng)
        env = world.env
        for action in _way_to_the_ball(world, state, rng):
            state, reward, over = world.step(state, world.actions[action])
            _, theirs, terminated, _, _ = env.step(action)
            assert (theirs > 0, terminated) == (reward > 0, over)
            met.add((action, over))
            if not over:
                assert read(env) == state
    assert met >= {(action, False) for action in range(6)} | {(3, True)}


def _way_to_the_ball(world, start, rng):
    """Some random actions, and from where they lead a shortest way to the end."""
    wandered, state = rng.integers(6, size=20).tolist(), start
    for action in wandered:
        state = world.step(state, world.actions[action])[0]
    known, waiting = {state}, deque([(state, [])])
    while waiting:
        state, way = waiting.popleft()
        for action, name in enumerate(world.actions):
            after, _, over = world.step(state, name)
            if over:
                return [*wandered, *way, action]
            if after not in known:
                known.add(after)
                waiting.append((after, [*way, action]))
    raise AssertionError("no way to the ball")


def test_minigrid_corridors(tmp_path):
    out = _run("minigrid_corridors.py", "KeyCorridorS3R1", "3", cwd=tmp_path)
    assert re.search(r"trained: +Won \d+ of 200", out)
    assert re.search(r"breadth-first: Won \d+ of 200", out)
    assert re.search(r"in MiniGrid itself: \d+ of 50 episodes won", out)
