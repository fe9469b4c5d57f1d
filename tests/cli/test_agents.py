"""`agents`, and the agents that come with the package."""

import json

import pytest

from bathysphere import cli
from bathysphere.agents import agent_file
from bathysphere.agents.evaluation import evaluate
from bathysphere.agents.loading import shipped_agents
from bathysphere.statistics import wilson_interval


def _json(capsys, *argv):
    assert cli.main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_shipped_agents_are_listed_with_their_cards(capsys):
    agents = _json(capsys, "agents")["agents"]
    assert [agent["name"] for agent in agents] == list(shipped_agents())
    assert {"deep-sea", "toy-montezuma"} <= shipped_agents().keys()
    assert cli.main(["agents"]) == 0
    out = capsys.readouterr().out
    for agent in agents:
        assert f"{agent['name']}  (" in out
        assert f"trained for {agent['card']['env_steps']:,} steps" in out


def test_one_card_in_full(capsys):
    about = _json(capsys, "agents", "deep-sea")
    assert about["config"]["domain"]["name"] == "deep-sea"
    assert cli.main(["agents", "deep-sea"]) == 0
    out = capsys.readouterr().out
    card = about["card"]
    assert all(text in out for text in (card["command"], card["commit"], card["machine"]))
    assert all(result["command"] in out for result in card["results"])


@pytest.mark.parametrize("name", shipped_agents())
def test_cards_say_everything_and_name_no_folders(name):
    agent = agent_file.read(shipped_agents()[name])
    card = agent.card
    assert card.command.startswith("bathysphere train ")
    assert f"bathysphere train {agent.config.preset} " in f"{card.command} "
    assert card.seed == agent.config.seed
    assert len(card.commit) >= 40
    assert card.env_steps > 0
    assert card.seconds > 0
    assert card.results
    for result in card.results:
        assert result.command.startswith(f"bathysphere evaluate {name}")
        assert result.low <= result.value <= result.high
    assert shipped_agents()[name].stat().st_size < 8 << 20
    commands = [card.command, *(result.command for result in card.results)]
    assert not any(word.startswith("/") for command in commands for word in command.split())
    assert agent.config.start_from is None
    assert agent.config.towers == ()


@pytest.mark.parametrize("name", ["deep-sea", "toy-montezuma"])
def test_the_numbers_on_the_cards_can_be_measured_again(name, capsys):
    """On fewer episodes, so the two intervals have to overlap."""
    result = agent_file.read(shipped_agents()[name]).card.results[0]
    program, *arguments = result.command.split()
    assert program == "bathysphere"
    where = arguments.index("--episodes") + 1
    arguments[where] = str(min(int(arguments[where]), 30))
    again = _json(capsys, *arguments)
    low, high = wilson_interval(again["wins"], again["episodes"])
    assert low <= result.high
    assert high >= result.low


def test_the_deep_sea_agent_finds_the_treasure():
    assert evaluate("deep-sea", episodes=20).solved == 20


def test_watch_takes_names(capsys):
    result = _json(capsys, "watch", "deep-sea")
    assert result["agent"] == "deep-sea"
    assert result["episodes"][0]["solved"]
    result = _json(capsys, "watch", "deep-sea", "--passes", "1")  # too short-sighted for this sea
    assert not result["episodes"][0]["solved"]


def test_export_and_back(sokoban_run, tmp_path, capsys):
    file, measured = tmp_path / "mine.safetensors", tmp_path / "measured.json"
    about = _json(capsys, "agents", "export", str(sokoban_run), str(file))
    assert about["card"]["command"].startswith("bathysphere train sokoban --steps 400 ")
    levels = tmp_path / "levels.xsb"
    levels.write_text("######\n#@ $.#\n######\n")
    measured.write_text(json.dumps(_json(capsys, "evaluate", str(file), "--levels", str(levels), "--passes", "5,9")))
    assert cli.main(["agents", "export", str(sokoban_run), str(file), "--results", str(measured)]) == 0
    assert f"The agent is in {file}." in capsys.readouterr().out
    about = _json(capsys, "agents", str(file))
    assert [result["what"] for result in about["card"]["results"]] == [
        f"levels solved, {passes} passes a step, at most 40 steps" for passes in (5, 9)
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["deep-see"], "There is no agent 'deep-see'"),
        (["RUN"], "is a run directory and has no card"),
        (["export", "nowhere", "a.safetensors"], "nowhere is not a run directory"),
        (["export", "RUN", "a.pt"], "called something.safetensors"),
        (["export", "RUN", "a.safetensors", "--results", "nowhere.json"], "Cannot read nowhere.json"),
    ],
)
def test_mistakes_are_sentences(arguments, sentence, sokoban_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = [str(sokoban_run) if word == "RUN" else word for word in arguments]
    assert cli.main(["agents", *given]) == 2
    assert sentence in capsys.readouterr().err


def test_export_has_help_with_examples(capsys):
    with pytest.raises(SystemExit) as leaving:
        cli.main(["agents", "export", "--help"])
    assert leaving.value.code == 0
    assert "--results measured.json" in capsys.readouterr().out.split("Examples:")[1]
