import json
import math
from dataclasses import make_dataclass, replace

import pytest

from bathysphere.config.convert import config_hash, differences, from_dict, override, to_dict
from bathysphere.config.presets import PRESETS, find_preset
from bathysphere.config.run import RunConfig, StopConfig
from bathysphere.domains import SokobanConfig, ToyMontezumaConfig
from bathysphere.errors import BathysphereError
from bathysphere.planning import BestFirstConfig
from bathysphere.storage.plain import flat

CONFIGS = [
    *(find_preset(name) for name in PRESETS),
    RunConfig(domain=SokobanConfig(num_boards=3), stop=StopConfig(seconds=1.5, win_rate=0.1)),
    RunConfig(domain=ToyMontezumaConfig(map="hallway"), seed=2**63 - 1),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.preset} {config.domain}"[:60])
def test_configs_survive_json_exactly(config):
    assert from_dict(json.loads(json.dumps(to_dict(config)))) == config


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sede": 3}, "There is no field 'sede'. Did you mean 'seed'?"),
        ({"domain": {"sise": 3}}, "There is no field 'domain.sise'. Did you mean 'domain.size'?"),
        ({"learning": {"mask": {"qqq": 1}}}, "There is no field 'learning.mask.qqq'. Known are: kind, per,"),
        ({"seed": "3"}, "seed should be a whole number; got '3'."),
        ({"seed": True}, "seed should be a whole number; got True."),
        ({"search": {"risk_coef": "high"}}, "search.risk_coef should be a number; got 'high'."),
        ({"learning": {"target": "luck"}}, "learning.target should be one of bootstrap,"),
        ({"values": {"hidden": 5}}, "values.hidden should be a list; got 5."),
        ({"values": {"hidden": [5, "x"]}}, "values.hidden[1] should be a whole number; got 'x'."),
        ({"stop": 3}, "stop should be an object with fields; got 3."),
        (
            {"domain": {"name": "moon"}},
            "There is no domain 'moon'; choose one of deep-sea, toy-montezuma, sokoban.",
        ),
        ({"domain": 7}, "domain should be an object with a name; got 7"),
        ({"steps": 0}, "steps is 0; expected at least 1."),
        ({"batch": 0}, "batch is 0; expected at least 1."),
        ({"preset": "a\0b"}, "preset is 'a\\x00b'; expected text without NUL"),
        ({"domain": {"name": "toy-montezuma", "map": "\ud800"}}, "domain.map is '\\ud800'; expected text without NUL"),
    ],
)
def test_mistakes_are_named(changes, sentence):
    with pytest.raises(BathysphereError) as error:
        override(find_preset("deep-sea"), changes)
    assert sentence in str(error.value)


def test_overrides_reach_nested_fields_and_leave_the_rest():
    base = find_preset("deep-sea")
    changed = override(base, {"domain": {"size": 7}, "search": {"risk_coef": 3}, "stop": StopConfig(episodes=9)})
    assert (changed.domain.size, changed.search.risk_coef, changed.stop.episodes) == (7, 3.0, 9)
    assert isinstance(changed.search.risk_coef, float)
    assert differences(base, changed) == ["domain.size", "search.risk_coef"]
    assert override(base, {"domain": ToyMontezumaConfig(map="hallway")}).domain.map == "hallway"


def test_only_what_decides_the_run_is_in_its_fingerprint():
    base = find_preset("deep-sea")
    free = {"steps": 5, "stop": {"episodes": 1}, "checkpoint": {"keep": 9}, "preset": "mine", "log_every": 7}
    assert config_hash(override(base, free)) == config_hash(base)
    assert differences(base, override(base, free)) == []
    assert config_hash(override(base, {"seed": 1})) != config_hash(base)
    assert config_hash(override(base, {"domain": {"mask_seed": 1}})) != config_hash(base)


def test_a_field_that_comes_later_leaves_fingerprints_as_they_were():
    base = find_preset("sokoban")
    later = make_dataclass("Later", [("speed", float, 1.0)], bases=(type(base.search),), frozen=True)
    same, other = (replace(base, search=later(**vars(base.search), **more)) for more in ({}, {"speed": 2.0}))
    assert config_hash(same) == config_hash(base)
    assert config_hash(other) != config_hash(base)


@pytest.mark.parametrize("name", [name for name, value in flat(to_dict(RunConfig())).items() if type(value) is float])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_by_name(name, number):
    if number == math.inf and name.endswith("seconds"):
        assert changed(name, number)
        return
    with pytest.raises(BathysphereError, match=name.rpartition(".")[2]):
        changed(name, number)


@pytest.mark.parametrize("name", [name for name, value in flat(to_dict(RunConfig())).items() if type(value) is int])
@pytest.mark.parametrize("number", [2**63, -(10**30)])
def test_a_whole_number_that_machine_code_cannot_hold_is_refused_by_name(name, number):
    with pytest.raises(BathysphereError, match=name.rpartition(".")[2]):
        changed(name, number)


def changed(name, value):
    for part in reversed(name.split(".")):
        value = {part: value}
    return override(RunConfig(), value)


def test_another_planner_has_settings_of_its_own_and_keeps_what_belongs_to_the_values():
    base = find_preset("deep-sea")
    changed = override(base, {"planner": "best-first", "search": {"max_expansions": 7}})
    assert isinstance(changed.search, BestFirstConfig)
    assert (changed.search.max_expansions, changed.search.discount) == (7, base.search.discount)
    assert override(base, {"planner": "mcts", "search": {"passes": 3}}) == override(base, {"search": {"passes": 3}})
    with pytest.raises(BathysphereError, match="Did you mean 'best-first'"):
        override(base, {"planner": "bestfirst"})
