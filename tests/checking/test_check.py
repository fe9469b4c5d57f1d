"""Worlds broken on purpose are told what is wrong, each in its own words; sound worlds pass."""

import json

import pytest

import bathysphere
from bathysphere.cli import main
from bathysphere.domains.worlds import GymnasiumConfig
from tests.checking import broken_environments as environments
from tests.checking import broken_worlds as worlds
from tests.domains import per_state_worlds as sound
from tests.domains.corridor import Corridor, DrawnCorridor

# world, name of the finding, part of what is said, whether it is wrong
BROKEN = [
    (worlds.GlobalChance, "random-step", "draws from Python's or NumPy's global generator", True),
    (worlds.OwnChance, "random-step", "draws from self.dice", True),
    (worlds.Clockwork, "random-step", "chance, the clock or a global variable", True),
    (worlds.Fuel, "hidden-state", "The state is not all of the state", True),
    (worlds.Prize, "reward-depends-on-history", "A step changes self.visits", True),
    (worlds.FirstVisit, "reward-depends-on-history", "A step changes self.seen", True),
    (worlds.EmptyTank, "hidden-state", "A step changes self.fuel", True),
    (worlds.LaterGoal, "keeps-to-itself", "The start of an episode changes self.goal", False),
    (worlds.HalfAction, "actions", "actions is 2.5", True),
    (worlds.Goal, "start-changes-the-world", "The start of an episode changes self.goal", True),
    (worlds.Walls, "made-differently", "A resumed run would go on in another one", True),
    (worlds.Timed, "time-limit-in-the-state", "counts steps and changes nothing else", False),
    (worlds.Dust, "states-never-repeat", "as many different states", False),
    (worlds.Blind, "observation-aliases", "look the same to networks", False),
    (worlds.Stuck, "stuck-at-the-start", "No action changes the start state (", True),
    (worlds.Unseeded, "start-not-from-rng", "initial must give the same states", True),
    (worlds.Lists, "unhashable-state", "A state holds a list", True),
    (worlds.Crash, "exception", "raised KeyError: 'back'", True),
    (worlds.TwoThings, "step-returns", "step((3, 0), 'back') returned", True),
    (worlds.Infinite, "reward-not-finite", "returned the reward -inf", True),
    (worlds.Unfinished, "solved-without-done", "returned solved without done", True),
    (worlds.Forgets, "pack", "which pack makes other bytes of", True),
    (worlds.SlowToPack, "slow-copying", "Packing and unpacking states takes", False),
    (worlds.Slow, "slow", "a step planned with 20 passes takes", False),
    (worlds.Half, "refused", "is no world", True),
    (worlds.SingleFloats, "array", "rewards must be float64 [8, 2]; it is float32", True),
    (worlds.Overwriting, "changes-its-argument", "successors must not change its argument", True),
    (worlds.Neighbours, "looks-at-neighbours", "successors of a batch must equal", True),
    (worlds.Undead, "terminal-state", "a terminal state must earn reward 0", True),
    (worlds.TooFewKinds, "category-out-of-range", "observations must be in 0..2", True),
    (worlds.GrowingPicture, "pictures", "render must draw all states in one size", True),
    (environments.Continuous, "action-space", "The action space is Box(-1.0", True),
    (environments.CopyResets, "copy-resets", "goes on as if it had just been reset", True),
    (environments.Outside, "category-out-of-range", "observations must be in 0..4", True),
    (environments.NoNumber, "reward-not-finite", "returned the reward nan", True),
    (environments.Hides, "observation-aliases", "their steps earn different rewards", False),
    (environments.hides_in_observation, "observation-aliases", "would merge states that differ", True),
    (environments.Crashes, "exception", "fell off the left end", True),
    (worlds.OneNameForTwo, "description", "action_names must be distinct and at least one", True),
]


@pytest.mark.parametrize(("world", "name", "said", "is_wrong"), BROKEN, ids=lambda each: getattr(each, "__name__", ""))
def test_a_broken_world_is_told_what_is_wrong(world, name, said, is_wrong):
    found = bathysphere.check(world)
    by_name = {finding.name: finding for finding in found.findings}
    assert name in by_name, str(found)
    finding = by_name[name]
    assert said in finding.seen
    assert finding.fix.endswith(".")
    assert finding.is_wrong == is_wrong
    assert found.is_fine != is_wrong
    assert {other.name for other in found.findings if other.is_wrong} <= {name, "exception"}
    for sentence in (finding.name, finding.seen, finding.fix):
        assert sentence in str(found)


def test_each_mistake_has_its_own_message():
    assert len({(name, said) for _, name, said, _ in BROKEN}) == len(BROKEN) >= 20


@pytest.mark.parametrize(
    "world",
    [
        "deep-sea",
        "toy-montezuma",
        "sokoban",
        sound.Stairs,
        sound.Lamps,
        sound.Keys,
        sound.Drops,
        Corridor,
        DrawnCorridor(),
        environments.Walk,
        GymnasiumConfig("FrozenLake-v1", {"is_slippery": False}),
        "gymnasium:CliffWalking-v1",
        "gymnasium:Taxi-v4",
    ],
    ids=lambda world: getattr(world, "__name__", None) or str(getattr(world, "name", world)).partition("(")[0],
)
def test_a_sound_world_passes_without_findings(world):
    found = bathysphere.check(world)
    slow = ("slow", "slow-copying")  # that depends on the machine
    assert [finding for finding in found.findings if finding.name not in slow] == []
    assert found.is_fine
    assert "nothing is wrong" in str(found)


def test_all_mistakes_are_found_in_one_go():
    names = {finding.name for finding in bathysphere.check(worlds.ManyFaults).findings}
    assert {"description", "terminal-state", "category-out-of-range"} <= names
    found = bathysphere.check(worlds.TwoThings)  # cannot even be made
    assert {finding.name for finding in found.findings} == {"step-returns", "exception"}
    assert "text((" in str(found)


def test_facts_say_what_a_world_is():
    facts = bathysphere.check(sound.Lamps).to_dict()
    assert facts["actions"] == ["0", "1", "2", "3", "4", "5"]
    assert facts["rewards"] == [0.0, 1.0]
    assert (facts["max_steps"], facts["looked_at"]) == (200, 200)
    assert facts["solved"] > 0
    assert 0.5 < facts["repeats"] < 1
    assert facts["seconds_per_state"] > 0
    assert "none but 0 within reach of random walks" in str(bathysphere.check("sokoban"))


def test_a_world_with_chance_is_told_how_much_of_it_is_chance():
    found = bathysphere.check("gymnasium:FrozenLake-v1")
    assert found.is_fine
    assert 0.8 < found.to_dict()["chance"] <= 1.0
    assert "up to 3; plan with --planner expectimax" in str(found)
    assert "chance" not in bathysphere.check("deep-sea").to_dict()


def test_settings_reach_the_world():
    found = bathysphere.check(worlds.Ring)
    assert found.to_dict()["state_size"] == bathysphere.check(worlds.Ring()).to_dict()["state_size"]
    with pytest.raises(bathysphere.BathysphereError, match="There is no world 'deep-see'"):
        bathysphere.check("deep-see")


def test_the_verb_says_it_and_its_exit_code_too(capsys):
    assert main(["check", "tests.checking.broken_worlds:Goal"]) == 1
    said = capsys.readouterr().out
    assert "tests.checking.broken_worlds:Goal" not in said
    assert "goal: one thing is wrong." in said
    assert "start-changes-the-world" in said
    assert main(["check", "tests.checking.broken_worlds:Blind", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["is_fine"]
    assert [finding["name"] for finding in said["findings"]] == ["observation-aliases"]
    assert main(["check", "deep-sea", "--domain.size", "5", "--seed", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["max_steps"] == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "needs a world first"),
        (["deep-see"], "There is no world 'deep-see'"),
        (["no_such_module:World"], "There is no module no_such_module"),
        (["deep-sea", "--seed", "-1"], "--seed must be a whole number"),
    ],
)
def test_bad_input_is_a_sentence(arguments, said, capsys):
    assert main(["check", *arguments]) == 2
    assert said in capsys.readouterr().err
