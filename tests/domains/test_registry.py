"""Domains by name, and those that users register."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from bathysphere.config.convert import from_dict, override, to_dict
from bathysphere.config.run import RunConfig
from bathysphere.domains import (
    DeepSea,
    DomainConfig,
    domain_names,
    find_domain,
    make_domain,
    register_domain,
    registry,
)
from bathysphere.errors import BathysphereError
from bathysphere.testing import check_domain
from tests.domains.chain import Chain, ChainConfig


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """Makes the chain known for the length of a test."""
    monkeypatch.setattr(registry, "_CLASSES", dict(registry._CLASSES))
    assert register_domain(Chain) is Chain


def test_a_registered_domain_is_found_and_made():
    assert domain_names() == ("deep-sea", "toy-montezuma", "sokoban", "chain")
    assert find_domain("chain") is Chain
    assert find_domain("deep-sea") is DeepSea
    domain = make_domain(ChainConfig(length=3))
    assert isinstance(domain, Chain)
    assert domain.config.length == 3
    check_domain(domain, np.random.default_rng(0))


def test_its_config_becomes_plain_data_and_back():
    config = RunConfig(domain=ChainConfig(length=5, rewards=(1.0, 0.5)))
    plain = json.loads(json.dumps(to_dict(config)))
    assert plain["domain"] == {"name": "chain", "length": 5, "rewards": [1.0, 0.5]}
    assert from_dict(plain) == config
    assert override(config, {"domain": {"length": 6}}).domain == ChainConfig(6, (1.0, 0.5))
    assert override(RunConfig(), {"domain": {"name": "chain"}}).domain == ChainConfig()
    with pytest.raises(BathysphereError, match=r"There is no field 'domain.lenght'. Did you mean 'domain.length'\?"):
        override(config, {"domain": {"lenght": 6}})


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(BathysphereError, match=r"no domain 'chian'; choose one of .*, chain\..*chain"):
        find_domain("chian")
    with pytest.raises(BathysphereError, match="no domain 'elsewhere'; choose one of deep-sea"):
        from_dict({"domain": {"name": "elsewhere"}})


@dataclass(frozen=True)
class StrangeConfig(DomainConfig):
    size: int = 3


def test_the_config_of_no_registered_domain_is_refused():
    with pytest.raises(BathysphereError, match=r"StrangeConfig is not the Config of a registered domain[.] Put @reg"):
        make_domain(StrangeConfig())
    with pytest.raises(BathysphereError, match="StrangeConfig is not the Config of a registered domain"):
        to_dict(RunConfig(domain=StrangeConfig()))


class NotADataclass(DomainConfig):
    pass


@pytest.mark.parametrize(
    "lacking",
    [{"Config": StrangeConfig}, {"name": "x"}, {"name": "x", "Config": dict}, {"name": "x", "Config": NotADataclass}],
)
def test_a_class_that_lacks_something_is_refused(lacking):
    with pytest.raises(BathysphereError, match=r"Half cannot be registered: .* a name .* Config, a dataclass"):
        register_domain(type("Half", (), lacking))


def test_a_name_of_the_package_is_not_taken_but_an_own_one_may_be_defined_again():
    with pytest.raises(BathysphereError, match=r"There is a deep-sea already[.] Choose another name for Impostor"):
        register_domain(type("Impostor", (), {"name": "deep-sea", "Config": StrangeConfig}))
    assert find_domain("deep-sea") is DeepSea
    again = register_domain(type("Chain", (Chain,), {}))  # as a notebook does that runs a cell twice
    assert find_domain("chain") is again
