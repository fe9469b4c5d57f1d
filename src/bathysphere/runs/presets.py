"""Named configurations. `paper/...` do what the authors' code did; the plain ones are ours."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace

from bathysphere.domains import DeepSeaConfig
from bathysphere.errors import BathysphereError
from bathysphere.learning.config import LearningConfig
from bathysphere.learning.masks import MaskConfig
from bathysphere.learning.replay import ReplayConfig
from bathysphere.planning import SearchConfig
from bathysphere.runs.config import RunConfig
from bathysphere.values.config import OptimiserConfig, ValuesConfig


def _deep_sea() -> RunConfig:
    """Deep-sea with a target of its own for every member and plain steps towards it: about 4 N episodes."""
    return RunConfig(
        steps=1_000_000,
        batch=4,
        domain=DeepSeaConfig(size=20),
        search=SearchConfig(risk_coef=10.0, num_subsampled=10, avoid_loops=False, final_ties="random"),
        values=ValuesConfig(network="linear", num_members=20, bias=False, init_scale=4.0),
        optimiser=OptimiserConfig(name="delta", learning_rate=0.1),
        learning=LearningConfig(
            target="bootstrap_members",
            steps_per_update=0.5,
            min_games=5,
            mask=MaskConfig(kind="none"),
            replay=ReplayConfig(capacity=10),
        ),
    )


def _paper_deep_sea() -> RunConfig:
    """Deep-sea as in the paper: 20 linear members, 10 drawn a game, mean + 50 std, one-hot masks, RMSProp."""
    return RunConfig(
        steps=1_400_000,
        batch=64,
        domain=DeepSeaConfig(size=40),
        search=SearchConfig(risk_coef=50.0, num_subsampled=10, avoid_loops=False),
        values=ValuesConfig(network="linear", num_members=20, bias=False, prior_scale=1.0),
        optimiser=OptimiserConfig(name="tf_rmsprop"),
        learning=LearningConfig(mask=MaskConfig(kind="one_hot")),
    )


def _paper_deep_sea_no_ensemble() -> RunConfig:
    """The paper's Deep-sea with a single value function."""
    config = _paper_deep_sea()
    return replace(
        config,
        search=replace(config.search, num_subsampled=None),
        values=replace(config.values, num_members=1),
    )


def _paper_deep_sea_kappa_0() -> RunConfig:
    """The paper's Deep-sea with the ensemble but without the bonus for its disagreement."""
    config = _paper_deep_sea()
    return replace(config, search=replace(config.search, risk_coef=0.0))


PRESETS: dict[str, Callable[[], RunConfig]] = {
    "deep-sea": _deep_sea,
    "paper/deep-sea": _paper_deep_sea,
    "paper/deep-sea-no-ensemble": _paper_deep_sea_no_ensemble,
    "paper/deep-sea-kappa-0": _paper_deep_sea_kappa_0,
}


def find_preset(name: str) -> RunConfig:
    """Returns the config called `name`."""
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise BathysphereError(f"There is no preset {name!r}; choose one of {', '.join(PRESETS)}.{hint}")
    return replace(PRESETS[name](), preset=name)


def describe_preset(name: str) -> str:
    """Returns one sentence about a preset."""
    return (PRESETS[name].__doc__ or "").strip()
