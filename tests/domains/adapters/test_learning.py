"""Real environments are learnt without a line of glue, and everything works in them that works in worlds of ours."""

import json

import gymnasium
import minigrid  # noqa: F401  (makes its ids known)
import numpy as np
import pytest

import bathysphere
from bathysphere.cli import main
from bathysphere.domains import make_domain
from bathysphere.domains.worlds import GymnasiumConfig
from bathysphere.errors import BathysphereError, WorldError


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    world = bathysphere.from_gymnasium(lambda: gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=False))
    return bathysphere.train(
        world, run_dir=tmp_path_factory.mktemp("lake") / "run", steps=3000, stop={"on_solved": True}
    )


def test_frozen_lake_is_learnt(lake):
    assert lake["stopped_by"] == "solved"
    config = json.loads((lake.path / "config.json").read_text())["domain"]
    assert (config["name"], config["id"]) == ("gymnasium", "FrozenLake-v1")
    assert any((lake.path / "pictures").iterdir())


def test_its_agent_acts_in_other_copies_of_the_environment(lake):
    agent = bathysphere.load_agent(lake.path)
    env = gymnasium.wrappers.TimeLimit(gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=False), 50)
    env.reset(seed=0)
    reward, over = 0.0, False
    while not over:
        before = env.unwrapped.s
        action = agent.act(env)
        assert env.unwrapped.s == before
        _, reward, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    assert reward == 1.0


def test_evaluating_and_films_work(lake, tmp_path, capsys):
    assert main(["evaluate", str(lake.path), "--episodes", "3"]) == 0
    assert main(["watch", str(lake.path), "--gif", str(tmp_path / "film.gif")]) == 0
    assert (tmp_path / "film.gif").stat().st_size > 1000
    exported = lake.export(tmp_path / "lake.safetensors")
    assert bathysphere.load_agent(exported).domain.name == "FrozenLake-v1"


def test_cliff_walking_comes_to_its_best_return(tmp_path):
    run = bathysphere.train(
        "gymnasium:CliffWalking-v1", run_dir=tmp_path / "run", pictures=False, steps=20_000, stop={"mean_return": -13.0}
    )
    assert run["return_best"] == -13.0
    assert run["stopped_by"] == "mean_return"


def test_what_the_mask_of_taxi_excludes_changes_nothing():
    domain = make_domain(GymnasiumConfig("Taxi-v4"))
    env = gymnasium.make("Taxi-v4")
    _, info = env.reset(seed=int(np.random.default_rng(3).integers(2**31)))
    start = domain.initial(1, np.random.default_rng(3))
    out = domain.successors(start)
    changed = (out.states[0] != start).any(axis=1)
    assert changed.tolist() == info["action_mask"].astype(bool).tolist()
    assert not out.rewards[0][~changed].any()


def test_a_key_corridor_is_solved(tmp_path):
    run = bathysphere.train(
        "gymnasium:MiniGrid-KeyCorridorS3R1-v0",
        run_dir=tmp_path / "run",
        pictures=False,
        domain={"seeds": 1},
        steps=5000,
        stop={"on_first_win": True},
    )
    assert run["stopped_by"] == "first_win"


def test_fixed_seeds_are_so_many_starts():
    domain = make_domain(GymnasiumConfig("MiniGrid-DoorKey-5x5-v0", seeds=3))
    rows = domain.initial(40, np.random.default_rng(0))
    assert len(np.unique(rows, axis=0)) == 3


def test_ale_is_copied_by_its_own_states_and_sticky_actions_are_chance():
    settings = {"obs_type": "ram", "repeat_action_probability": 0}
    domain = make_domain(GymnasiumConfig("ALE/Freeway-v5", settings, max_steps=100))
    assert domain.findings[0].what == "copies by clone_state and restore_state"
    assert domain.action_names == ("noop", "up", "down")
    bathysphere.check_domain(domain, np.random.default_rng(0), 24)
    with pytest.raises(WorldError, match="repeat_action_probability=0") as raised:
        make_domain(GymnasiumConfig("ALE/Freeway-v5", {"obs_type": "ram"}))
    assert raised.value.name == "random-step"
    with pytest.raises(WorldError, match="obs_type=ram") as raised:
        make_domain(GymnasiumConfig("ALE/Freeway-v5", {"repeat_action_probability": 0}))
    assert raised.value.name == "observation-too-long"


def test_an_id_that_is_not_there_is_named():
    with pytest.raises(BathysphereError, match=r"gymnasium.make\('FrozenLaek-v1'\) failed: .*FrozenLake"):
        make_domain(GymnasiumConfig("FrozenLaek-v1"))
