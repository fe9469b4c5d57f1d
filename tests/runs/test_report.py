"""What a run says about itself at its end: each remark is shown by a small world in which it is true."""

import pytest

import bathysphere
from bathysphere.runs.metrics import read_rows
from bathysphere.runs.report import report_on
from tests.checking.broken_worlds import Ring

SHORT = {"pictures": False, "log_every": 200}


class Far(Ring):
    """The goal is out of reach."""

    max_steps = 10

    def step(self, state, action):
        return ((state[0] + (1 if action == "on" else -1)) % 12, 0), 0.0, False


class Paying(Ring):
    """Pays for steps on, and has no success."""

    max_steps = 8

    def step(self, state, action):
        after, _, _ = super().step(state, action)
        return after, 1.0 if action == "on" else -1.0, False


class AlwaysSolved(Ring):
    """Calls the end solved however dear the way was."""

    max_steps = 40

    def step(self, state, action):
        after, _, done = super().step(state, action)
        return after, -1.0 if action == "back" else -0.5, done, done


class Endless(Ring):
    """States are never the same twice, and nothing is earned."""

    max_steps = 10

    def start(self, rng):
        return (1, float(rng.random()))

    def step(self, state, action):
        return (state[0], 0.9 * state[1] if action == "on" else 0.7 * state[1] + 0.1), 0.0, False


class Dear(Ring):
    """What is earned far outweighs what random walks meet."""

    max_steps = 40

    def step(self, state, action):
        after, _, done = super().step(state, action)
        return after, -500.0 if done else 0.0, done


def train(world, tmp_path, **changes):
    return bathysphere.train(world, run_dir=tmp_path / "run", **(SHORT | {"steps": 1000} | changes))


def names(run):
    return {remark["name"] for remark in run["report"]}


def test_a_solved_run_has_nothing_to_remark(tmp_path):
    run = train(Ring, tmp_path, steps=3000)
    assert run["solved_step"] is not None
    assert names(run) == set()
    assert run.report() == f"Solved at step {run['solved_step']:,}."


def test_a_run_without_reward_says_so(tmp_path):
    run = train(Far, tmp_path)
    assert names(run) == {"no-reward"}
    assert run.report().startswith("Not solved.\nNo reward was ever met")
    assert "no-reward" in repr(run)
    assert bathysphere.load_run(run.path).report() == run.report()


@pytest.mark.parametrize(
    ("world", "name", "changes"),
    [
        (Paying, "never-solved", {}),
        (AlwaysSolved, "always-solved", {"steps": 2000}),
        (Endless, "states-never-repeat", {"search": {"passes": 3}}),
        (Dear, "values-too-large", {"values": {"scale": 1.0}}),
        (Far, "too-short", {"steps": 30}),
    ],
)
def test_what_looks_wrong_is_told_with_what_to_try(world, name, changes, tmp_path):
    run = train(world, tmp_path, **changes)
    assert name in names(run), run.report()
    (remark,) = (remark for remark in run["report"] if remark["name"] == name)
    assert remark["seen"] in run.report()
    assert remark["advice"] in run.report()


@pytest.mark.parametrize(
    ("steps", "said"), [(8, "No episode came to an end"), (10, "Only one episode came"), (30, "Only 3 episodes came")]
)
def test_few_episodes_are_counted_in_words(steps, said, tmp_path):
    run = train(Far, tmp_path, steps=steps, batch=1)
    assert run["report"][0]["seen"].startswith(said)


@pytest.mark.parametrize(("share", "is_slow"), [(0.59, False), (0.61, True)])
def test_a_world_that_takes_most_of_the_time_is_told(share, is_slow, tmp_path):
    """The share is put into the metrics of a real run: how long a world takes is a matter of the machine."""
    run = train(Ring, tmp_path, steps=600)
    rows = [row | {"share_model": share} for row in read_rows(tmp_path / "run/metrics.jsonl")]
    report = report_on(run, rows, run.config)
    assert ("slow-world" in {remark.name for remark in report}) == is_slow
    assert (f"{share:.0%} of the time" in " ".join(remark.seen for remark in report)) == is_slow


def test_the_command_line_shows_it(tmp_path, capsys):
    from bathysphere.cli import main

    arguments = ["--steps", "600", "--no-pictures", "--run-dir", str(tmp_path / "run")]
    assert main(["train", "tests.runs.test_report:Far", *arguments]) == 0
    assert "No reward was ever met" in capsys.readouterr().out


def test_where_actions_have_several_successors_none_is_counted_as_new(tmp_path):
    result = bathysphere.train("gymnasium:FrozenLake-v1", run_dir=tmp_path / "run", steps=40, batch=2, **SHORT)
    assert result["imagined_steps"] > 0
    assert [row["new_states"] for row in read_rows(tmp_path / "run" / "metrics.jsonl")] == [None]
