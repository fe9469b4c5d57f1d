"""`watch` with a planner that makes whole plans."""

import json

from bathysphere import cli


def _json(capsys, *argv):
    assert cli.main(["watch", *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_watch_a_whole_plan(capsys):
    (episode,) = _json(capsys, "deep-sea", "--planner", "best-first")["episodes"]
    assert episode["solved"]
    assert episode["steps"] == len(episode["actions"])


def test_mistakes_are_sentences(capsys):
    assert cli.main(["watch", "deep-sea", "--planner", "best-first", "--passes", "3"]) == 2
    assert "The planner best-first has no setting 'passes'" in capsys.readouterr().err
    assert cli.main(["watch", "deep-sea", "--planner", "bestfirst"]) == 2
    assert "Did you mean 'best-first'?" in capsys.readouterr().err
