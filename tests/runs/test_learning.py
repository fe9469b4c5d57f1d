"""Learning itself: fixed seeds, and margins that only broken learning exceeds."""

import pytest

import bathysphere


@pytest.mark.parametrize("seed", [0, 1])
def test_deep_sea_10_is_solved_within_200_episodes(seed, tmp_path):
    # Luck alone wins one of 512 episodes; random play would need thousands to win more than half of 50.
    result = bathysphere.train(
        "deep-sea",
        run_dir=tmp_path / "run",
        pictures=False,
        seed=seed,
        domain={"size": 10},
        stop={"on_solved": True, "episodes": 200},
    )
    assert result["stopped_by"] == "solved"


@pytest.mark.parametrize("seed", [0, 1])
def test_deep_sea_10_is_solved_without_a_planner_and_without_rules(seed, tmp_path):
    result = bathysphere.train(
        "deep-sea-no-planner",
        run_dir=tmp_path / "run",
        pictures=False,
        seed=seed,
        domain={"size": 10},
        stop={"on_solved": True, "episodes": 120},
    )
    assert result["stopped_by"] == "solved"
    # The file has what the values need to act by themselves, and any planner can use them too.
    file = tmp_path / "diver.safetensors"
    bathysphere.load_run(tmp_path / "run").export(file)
    for planner in ("none", "mcts"):
        assert bathysphere.evaluate(file, episodes=5, planner=planner, risk_coef=0.0).to_dict()["win_rate"] == 1.0


@pytest.mark.parametrize("seed", [0, 1])
def test_deep_sea_10_is_solved_by_memory_without_rules(seed, tmp_path):
    run = bathysphere.train(
        "deep-sea-memory",
        run_dir=tmp_path / "run",
        pictures=False,
        seed=seed,
        domain={"size": 10},
        stop={"on_solved": True, "episodes": 100},
    )
    assert run["stopped_by"] == "solved"
    assert run["imagined_steps"] > run["env_steps"]
    assert 45 <= run["model_unknown"] <= 90  # of the 90 things that can be done in that sea
    assert (
        run["model_wrong_state"] == run["model_wrong_reward"] == run["model_false_end"] == run["model_missed_end"] == 0
    )
    assert bathysphere.evaluate(run, episodes=5, risk_coef=0.0).to_dict()["win_rate"] == 1.0


def test_without_curiosity_deep_sea_20_is_not_won(tmp_path):
    result = bathysphere.train(
        "deep-sea",
        run_dir=tmp_path / "run",
        pictures=False,
        domain={"size": 20},
        search={"risk_coef": 0.0},
        stop={"episodes": 300},
    )
    assert result["wins"] == 0


def test_the_ensemble_agrees_on_what_it_has_learnt(tmp_path):
    bathysphere.train(
        "deep-sea", run_dir=tmp_path / "run", pictures=False, domain={"size": 8}, steps=4000, log_every=50
    )
    from bathysphere.runs.metrics import read_rows

    rows = [row for row in read_rows(tmp_path / "run" / "metrics.jsonl") if row["ensemble_std"] is not None]
    assert rows[-1]["ensemble_std"] < rows[0]["ensemble_std"] / 3
    assert rows[-1]["win_rate_100"] > 0.8
