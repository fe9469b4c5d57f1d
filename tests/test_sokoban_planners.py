"""The comparison of planners, with few boards and a small agent: it plays, and renders again from its raw results."""

import json
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "sokoban_planners.py"


@pytest.fixture
def script():
    return runpy.run_path(str(SCRIPT))


def record(script, setting, board, solved, expansions):
    counted = {"solved": solved, "expansions": expansions, "model_calls": expansions, "states": 9, "moves": 9}
    return script["record"](setting, "sokoban", board, counted, 0.0)


def rows_of(script, records):
    return {(row.setting.name, row.metric.name): row.ours for row in script["STUDY"].summarise(records)}


def test_a_board_counts_from_the_expansions_it_took(script):
    records = [record(script, "mcts", 1, True, 300), record(script, "mcts", 2, True, 301)]
    records += [record(script, "mcts", 3, True, 3001), record(script, "mcts", 4, False, 50)]
    rows = rows_of(script, records)
    shares = [rows["mcts", f"solved-{budget}"].value for budget in (100, 300, 1000, 3000)]
    assert shares == [0.0, 0.25, 0.5, 0.5]
    assert rows["mcts", "expansions"].value == pytest.approx(300.5)
    assert rows["levin", "solved-100"].n == 0


def test_boards_that_all_solve_stand_by_themselves(script):
    records = [record(script, "mcts", 1, True, 10), record(script, "mcts", 2, True, 1000)]
    records += [record(script, "best-first", 1, True, 20), record(script, "best-first", 2, False, 3000)]
    script["mark_common"](records)
    rows = rows_of(script, records)
    assert rows["mcts", "expansions"].value == 505
    assert (rows["mcts", "expansions-all"].value, rows["best-first", "expansions-all"].value) == (10, 20)


def test_it_plays_and_renders_again(script, monkeypatch, tmp_path, capsys):
    small = script["GeneratorConfig"](height=7, width=7, num_boxes=1)
    monkeypatch.setitem(script["main"].__globals__, "GeneratorConfig", lambda: small)
    script["main"](["--agent", "sokoban", "--boards", "2", "--dives", "1", "--out", str(tmp_path)])
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["study"] == "sokoban-planners"
    assert "--boards 2" in summary["command"]
    calls = {row["setting"]: row["value"] for row in summary["rows"] if row["metric"] == "calls-toy-montezuma"}
    assert calls["best-first"] < calls["breadth-first"]
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.suffix in (".csv", ".json", ".md")}
    (tmp_path / "table.md").unlink()
    script["main"](["--out", str(tmp_path), "--render"])
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert (tmp_path / "figure.svg").is_file()
