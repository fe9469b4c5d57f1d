import json

import pytest
import torch

from bathysphere import cli
from bathysphere.bench import planners


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name, number in (("SECONDS", 0.02), ("BOARDS", 3), ("IN_FLIGHT", 2), ("SEA_SIZE", 6), ("SEA_SEARCHES", 1)):
        monkeypatch.setattr(planners, name, number)


def test_the_benchmark_prints_its_rows(sokoban_run, capsys):
    threads = torch.get_num_threads()
    assert cli.main(["bench", "planners", "--agent", str(sokoban_run), "--json"]) == 0
    *rows, sea = json.loads(capsys.readouterr().out)["rows"]
    assert [row["planner"] for row in rows] == ["mcts", "best-first", "levin", "phs"]
    for row in rows:
        assert row["batch"] == 2
        assert row["expansions_per_second"] > 0
        assert row["bytes_per_state"] > 8
        assert "starts" not in row["share"]
        assert row["share"]["network"] > 0
        assert sum(row["share"].values()) == pytest.approx(1.0)
        assert row["outside_network"] == pytest.approx(1 - row["share"]["network"])
    assert (sea["work"], sea["planner"], sea["outside_network"]) == ("deep-sea", "best-first", None)
    assert sea["expansions_per_second"] > 0
    assert torch.get_num_threads() == threads


def test_without_a_policy_what_needs_one_is_left_out(sokoban_run, monkeypatch, capsys):
    trained = planners.load_trained(sokoban_run)
    trained.values.has_policy = False
    monkeypatch.setattr(planners, "load_trained", lambda agent: trained)
    assert cli.main(["bench", "planners", "--seconds", "0.01"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["sokoban", "mcts"],
        ["sokoban", "best-first"],
        ["deep-sea", "best-first"],
    ]
    assert lines[-1] == "Not measured, because this agent has no policy: levin, phs."


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--agent", "deep-sea"], "deep-sea does not play Sokoban"), (["--seconds", "0"], "expected more than 0")],
)
def test_bad_options_are_refused(options, said, capsys):
    assert cli.main(["bench", "planners", *options]) == 2
    assert said in capsys.readouterr().err
