"""Whatever a user has becomes a domain, and a config from which it can be made again."""

import json
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from bathysphere.config.convert import config_hash, from_dict, to_dict
from bathysphere.config.run import RunConfig
from bathysphere.domains import DeepSea, DeepSeaConfig, make_domain, worlds
from bathysphere.domains.worlds import (
    GymnasiumConfig,
    ObjectConfig,
    PythonConfig,
    as_domain,
    describe,
    find_world,
    hand_over,
    load_world,
    settings_class,
)
from bathysphere.errors import BathysphereError
from tests.domains.chain import Chain, ChainConfig
from tests.domains.corridor import Corridor


class LongCorridor(Corridor):
    def __init__(self, goal: float = 1.0, tags: tuple[str, ...] = ()):
        self.goal, self.tags = goal, tags


@dataclass(frozen=True)
class Walk:
    """A walk along whole numbers, one state at a time."""

    length: int = 4
    actions = ("back", "on")
    max_steps = 20

    def start(self, rng):
        return 0

    def step(self, state, action):
        state = max(state + (1 if action else -1), 0)
        return state, float(state == self.length), state == self.length

    def observe(self, state):
        return [state]


class Secret(Corridor):
    def __init__(self, key: object):
        self._hidden = key


def make_corridor():
    return Corridor()


def test_domains_classes_functions_and_worlds_of_single_states_are_worlds():
    assert isinstance(as_domain(Corridor), Corridor)
    assert isinstance(as_domain(make_corridor), Corridor)
    corridor = Corridor()
    assert as_domain(corridor) is corridor
    assert as_domain(LongCorridor, goal=2.0).goal == 2.0


@pytest.mark.parametrize(
    ("world", "settings"),
    [
        (Corridor, {}),
        (Corridor(), {}),
        (make_corridor, {}),
        (LongCorridor(2.5, ("a",)), {"goal": 2.5, "tags": ["a"]}),
        (Chain(ChainConfig(length=3)), {"length": 3, "rewards": [1.0]}),
    ],
)
def test_what_can_be_imported_is_described_by_its_path_and_settings(world, settings):
    config, domain = describe(world)
    maker = world if callable(world) else type(world)
    assert config == PythonConfig(f"{maker.__module__}:{maker.__qualname__}", settings)
    assert len(config.source) == 64
    again = make_domain(from_dict(json.loads(json.dumps(to_dict(RunConfig(domain=config))))).domain)
    rng = np.random.default_rng
    assert (again.initial(5, rng(0)) == domain.initial(5, rng(0))).all()
    assert vars(again).keys() == vars(domain).keys()


def test_a_world_of_the_package_keeps_its_own_config():
    config = DeepSeaConfig(size=6)
    assert describe(DeepSea(config))[0] is config


def test_the_source_is_written_and_read_but_decides_nothing():
    one, other = (RunConfig(domain=PythonConfig("a:B", {"size": 3}, source)) for source in ("1", "2"))
    assert config_hash(one) == config_hash(other)
    assert from_dict(to_dict(one)).domain.source == "1"
    assert config_hash(one) != config_hash(RunConfig(domain=PythonConfig("a:B", {"size": 4})))


def test_an_object_without_a_name_is_known_in_this_process_only(monkeypatch):
    config, domain = describe(Secret(object()))
    assert isinstance(config, ObjectConfig)
    assert make_domain(config) is domain
    monkeypatch.setattr(worlds, "_handed", {})
    with pytest.raises(BathysphereError, match=r"corridor was handed to train as an object.*world=\.\.\."):
        make_domain(config)
    hand_over(config, Secret(object()))
    assert isinstance(make_domain(config), Secret)
    with pytest.raises(BathysphereError, match="is not the one of before, corridor"):
        hand_over(config, DeepSea)
    with pytest.raises(BathysphereError, match="leave out world="):
        hand_over(PythonConfig("a:B"), DeepSea)


def test_worlds_are_found_by_their_names():
    assert find_world("deep-sea") == DeepSeaConfig()
    assert find_world("gymnasium:CliffWalking-v1") == GymnasiumConfig("CliffWalking-v1")
    assert find_world("tests.domains.corridor:Corridor").world == "tests.domains.corridor:Corridor"
    assert isinstance(load_world("tests.domains.corridor:Corridor"), Corridor)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("deep-see", r"There is no world 'deep-see'.*Did you mean 'deep-sea'\?"),
        ("corridor.py:Corridor", "is a file. Name a world by its import path"),
        ("tests.domains.corridor:Corridr", "has no Corridr. Did you mean 'Corridor'"),
    ],
)
def test_unknown_names_are_explained(name, said):
    with pytest.raises(BathysphereError, match=said):
        find_world(name)


@dataclass
class Picky:
    size: int

    def __post_init__(self):
        raise ZeroDivisionError("no")


@pytest.mark.parametrize(
    ("world", "settings", "said"),
    [
        (3, {}, "int is no world. A world has start and step"),
        (dict, {}, "dict is no world"),
        (Picky, {}, "Picky needs size. Give it a default"),
        (Picky, {"size": 1}, r"Picky cannot be made: ZeroDivisionError: no \(.*test_worlds.py, line \d+\)"),
        (Walk, {"lenght": 3}, "Walk takes no lenght. Did you mean 'length'"),
    ],
)
def test_what_is_no_world_is_explained(world, settings, said):
    with pytest.raises(BathysphereError, match=said):
        as_domain(world, **settings)


def test_a_domain_that_lacks_something_is_told_what():
    class Half:
        name, state_size, action_names, max_steps = "half", 1, ("a",), 3
        initial = successors = staticmethod(lambda *_: None)

    with pytest.raises(BathysphereError, match="To be a Domain it lacks observation, observe"):
        as_domain(Half())


def test_settings_are_the_parameters_or_the_config():
    assert settings_class(Walk)().length == 4
    assert settings_class(LongCorridor)().goal == 1.0
    assert settings_class(Chain) is ChainConfig


def test_configs_of_strangers_are_read_without_importing(tmp_path):
    plain = to_dict(RunConfig(domain=PythonConfig("antigravity:geohash", {})))
    program = (
        "import json, sys\n"
        "from bathysphere.config.convert import from_dict\n"
        "from_dict(json.loads(sys.argv[1]))\n"
        "assert 'antigravity' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, json.dumps(plain)], check=True)
