"""Named configurations. `paper/...` have the settings of the authors' program, or say where they do not;
`paper-as-written/...` those of the paper's text, where the two differ; the plain ones are ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bathysphere.config.run import MEMORY, RELEVANCE, RunConfig, StopConfig
from bathysphere.domains import DeepSeaConfig, SokobanConfig, ToyMontezumaConfig
from bathysphere.domains.sokoban import GeneratorConfig
from bathysphere.errors import BathysphereError, unknown_name
from bathysphere.learning.config import LearningConfig
from bathysphere.learning.masks import MaskConfig
from bathysphere.learning.replay import ReplayConfig
from bathysphere.planning import NoPlannerConfig, PlannerSettings, ReplanConfig, SearchConfig
from bathysphere.values.config import OptimiserConfig, ValuesConfig


def _deep_sea() -> RunConfig:
    """Deep-sea with a target of its own for every member and plain steps towards it: 3 to 6 N episodes."""
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
            min_episodes=5,
            mask=MaskConfig(kind="none"),
            replay=ReplayConfig(capacity=10),
        ),
    )


def _deep_sea_large() -> RunConfig:
    """Deep-sea of a hundred rows and more: every member looks one step ahead, through whole episodes backward."""
    config = _deep_sea()
    return _backward(
        replace(
            config,
            batch=1,
            domain=DeepSeaConfig(size=200),
            search=_search(config, passes=3, risk_coef=5.0),
            learning=replace(config.learning, target="lookahead"),
        )
    )


def _deep_sea_no_planner() -> RunConfig:
    """Deep-sea without a planner and without its rules: members learn values of actions, each from its own."""
    config = replace(_deep_sea(), batch=1, search=NoPlannerConfig(risk_coef=5.0, num_subsampled=10))
    return _backward(config)


def _deep_sea_memory() -> RunConfig:
    """Deep-sea without its rules: every plan is made of what has happened so far, and leads to what never did."""
    config = _deep_sea()
    learning = replace(config.learning, target="lookahead")
    search = ReplanConfig(discount=config.search.discount, risk_coef=5.0)
    return _backward(replace(config, batch=1, model=MEMORY, search=search, learning=learning))


def _paper_deep_sea() -> RunConfig:
    """Deep-sea as in the paper: 20 linear members, 10 drawn an episode, mean + 50 std, one-hot masks, RMSProp.

    The authors' episodes keep the values of their beginning; here 64 at once are planned with the newest.
    """
    return RunConfig(
        steps=1_400_000,
        batch=64,
        log_every=10_000,
        domain=DeepSeaConfig(size=40),
        search=SearchConfig(risk_coef=50.0, num_subsampled=10, avoid_loops=False),
        values=ValuesConfig(network="linear", num_members=20, bias=False, prior_scale=1.0),
        optimiser=OptimiserConfig(name="tf_rmsprop"),
        learning=LearningConfig(mask=MaskConfig(kind="one_hot")),
    )


def _paper_deep_sea_no_ensemble() -> RunConfig:
    """The paper's Deep-sea with a single value function."""
    return _single(_paper_deep_sea())


def _paper_deep_sea_kappa_0() -> RunConfig:
    """The paper's Deep-sea with the ensemble but without the bonus for its disagreement."""
    return _risk_neutral(_paper_deep_sea())


def _toy_montezuma() -> RunConfig:
    """Toy Montezuma with more weight on disagreement, more episodes at once, passes that always find a new state."""
    config = _paper_toy_montezuma()
    search = _search(config, risk_coef=5.0, final_ties="random", merge_nodes=True, dead_end_value=0.0)
    return replace(config, batch=64, search=search)


def _toy_montezuma_unknown() -> RunConfig:
    """Toy Montezuma without its rules: every plan leads to what a memory that generalises does not know yet."""
    return RunConfig(
        steps=1_200_000,
        batch=1,
        domain=ToyMontezumaConfig(max_steps=300),
        model=RELEVANCE,
        search=ReplanConfig(risk_coef=5.0, discount=0.9),
        values=ValuesConfig(network="mlp", num_members=10, hidden=(16,)),
        optimiser=OptimiserConfig(name="adam"),
        learning=LearningConfig(target="lookahead", steps_per_update=100.0, batch_size=8, mask=MaskConfig(kind="none")),
    )


def _paper_toy_montezuma() -> RunConfig:
    """Toy Montezuma as in the paper: 20 networks 15-50-50-1, 10 drawn an episode, mean + 3 std, one-hot masks."""
    return RunConfig(
        steps=1_200_000,
        batch=23,  # episodes at once: the authors had 23 workers
        domain=ToyMontezumaConfig(max_steps=300),
        search=SearchConfig(risk_coef=3.0, num_subsampled=10, episode_penalty=0.2, dead_end_value=-1.0),
        values=ValuesConfig(network="mlp", num_members=20, hidden=(50, 50)),
        optimiser=OptimiserConfig(name="tf_rmsprop"),
        learning=LearningConfig(mask=MaskConfig(kind="one_hot"), steady_values=True),
    )


def _paper_toy_montezuma_no_ensemble() -> RunConfig:
    """The paper's Toy Montezuma with a single value function."""
    return _single(_paper_toy_montezuma())


def _paper_toy_montezuma_kappa_0() -> RunConfig:
    """The paper's Toy Montezuma with the ensemble but without the bonus for its disagreement."""
    return _risk_neutral(_paper_toy_montezuma())


def _sokoban_single() -> RunConfig:
    """One Sokoban board, over and over until it is solved: deep search, and failures learn what they did reach."""
    config = _paper_sokoban_single()
    return replace(
        config,
        search=_search(config, passes=30, final_ties="random"),
        learning=replace(
            config.learning,
            target="bootstrap_best",
            hindsight=0.5,
            hindsight_as="solved",
            min_episodes=20,
            replay=ReplayConfig(capacity=500),
        ),
    )


def _paper_sokoban_single() -> RunConfig:
    """One Sokoban board as in the authors' code: 20 networks 700-50-50-1, 10 drawn an episode, mean + 3 std.

    The paper says 9 std and a dead end of -2; the code's effective values, used here, are 3 and -1. The authors'
    episodes keep the values of their beginning; here they are planned with the newest.
    """
    return RunConfig(
        steps=2_300_000,  # the authors' 23 workers make 100,000 each
        batch=23,
        domain=SokobanConfig(num_boards=1, max_steps=100),
        search=SearchConfig(risk_coef=3.0, num_subsampled=10, episode_penalty=2.0, dead_end_value=-1.0),
        values=ValuesConfig(network="mlp", num_members=20, hidden=(50, 50)),
        optimiser=OptimiserConfig(name="tf_rmsprop"),
        learning=LearningConfig(mask=MaskConfig(kind="bernoulli", probability=0.5)),
        stop=StopConfig(on_first_win=True),
    )


def _paper_sokoban_single_no_ensemble() -> RunConfig:
    """The paper's single board with a single value function, which learns from half of its episodes."""
    return _single(_paper_sokoban_single())


def _sokoban() -> RunConfig:
    """Sokoban with a new board every episode: deep search, a network for boards of any size, hindsight, symmetries."""
    return RunConfig(
        steps=4_000_000,
        batch=64,
        log_every=10_000,
        domain=SokobanConfig(show_border=False),
        search=SearchConfig(
            passes=40,
            final_ties="random",
            episode_penalty=0.05,
            dead_end_value=0.0,
            merge_nodes=True,
            patience=0.5,
        ),
        values=ValuesConfig(
            network="board",
            num_members=3,
            policy=True,
            conv_layers=9,
            conv_channels=32,
            dense=64,
            precision="int8",
        ),
        optimiser=OptimiserConfig(
            name="adam",
            learning_rate=2e-3,
            half_life=4000,
            weight_decay=0.3,
            eps=1e-8,
            averaging=0.999,
            normalise="member",
        ),
        learning=LearningConfig(
            max_steps=100,
            target="bootstrap",
            hindsight=0.2,
            symmetries=True,
            batch_size=96,
            steps_per_update=20.0,
            min_episodes=20,
            mask=MaskConfig(kind="split"),
            replay=ReplayConfig(capacity=4000),
        ),
    )


def _sokoban_any_size() -> RunConfig:
    """Sokoban with boards of mixed sizes, boxes and rooms: what the agent that comes with the package ends with."""
    config = _sokoban()
    generator = GeneratorConfig(
        height=12,
        width=12,
        smallest=8,
        num_boxes=6,
        fewest_boxes=3,
        rooms=("walk", "walk", "walk", "hall", "corridors"),
        grouped=0.3,
        shallowest=150,
        max_states=100_000,
    )
    return replace(
        config,
        domain=SokobanConfig(show_border=False, generator=generator),
        learning=replace(config.learning, max_steps=120),
    )


def _paper_sokoban() -> RunConfig:
    """Sokoban with a new board every episode, as in the paper: three convolutional networks that vote.

    The authors have 23 workers whose episodes keep the values of their beginning; here 64 episodes at once are planned
    with the newest.
    """
    return RunConfig(
        steps=11_500_000,  # the authors' 23 workers make 500,000 each
        batch=64,
        log_every=10_000,
        domain=SokobanConfig(),
        search=SearchConfig(risk="vote", final_ties="random", episode_penalty=2.0, dead_end_value=-2.0),
        values=ValuesConfig(network="cnn", num_members=3),
        optimiser=OptimiserConfig(name="tf_rmsprop", normalise="active"),
        learning=LearningConfig(
            batch_size=96,  # 32 for each member
            steps_per_update=100.0,
            min_episodes=1000,
            mask=MaskConfig(kind="split"),
            replay=ReplayConfig(capacity=1000),
        ),
    )


def _paper_sokoban_no_ensemble() -> RunConfig:
    """The paper's Sokoban with a single value function and batches of 32."""
    config = _single(_paper_sokoban())
    return replace(
        config,
        search=_search(config, risk="mean_std", final_ties="highest"),
        learning=replace(config.learning, batch_size=32, mask=MaskConfig(kind="none")),
    )


def _sokoban_learned_model() -> RunConfig:
    """Sokoban with a new board every episode, planned with this package's learned model instead of the rules."""
    return replace(_sokoban(), model="sokoban")


def _paper_sokoban_learned_model() -> RunConfig:
    """The paper's Sokoban planned with this package's learned model; `model train paper` makes the paper's own."""
    return replace(_paper_sokoban(), model="sokoban")


def _paper_sokoban_tower() -> RunConfig:
    """One value function for ten boards, with hindsight, until it wins 90%: how the paper's transfer begins.

    The paper says ten boards, the authors' file has one. Their average of wins starts at 0 and is not corrected for
    it, so that theirs play some 2,300 episodes at least, ours 1,000. Here episodes are planned with the newest values,
    there with those of their beginning.
    """
    config = _paper_sokoban_no_ensemble()
    return replace(
        config,
        steps=2_300_000,  # the authors' 23 workers make 100,000 each
        batch=23,
        domain=SokobanConfig(num_boards=10, max_steps=100),
        search=_search(config, dead_end_value=-1.0),
        optimiser=replace(config.optimiser, l2=0.01),
        learning=LearningConfig(
            target="factual_rewards",
            hindsight=0.2,
            steps_per_update=100.0,
            mask=MaskConfig(kind="none"),
            replay=ReplayConfig(capacity=100_000),
        ),
        stop=StopConfig(win_rate=0.9),
    )


def _written_deep_sea() -> RunConfig:
    """Deep-sea as the paper's text has it: N steps a dive, no randomised prior, and what all of these share."""
    config = _as_written(_paper_deep_sea())
    return replace(
        config, domain=DeepSeaConfig(size=40, horizon="paper"), values=replace(config.values, prior_scale=0.0)
    )


def _written_toy_montezuma() -> RunConfig:
    """Toy Montezuma as the paper's text has it: all stored states are drawn alike."""
    return _as_written(_paper_toy_montezuma())


def _written_sokoban_single() -> RunConfig:
    """One Sokoban board as the paper's text has it: mean + 9 std, dead ends worth -2, and what all of these share."""
    config = _as_written(_paper_sokoban_single())
    return replace(config, search=_search(config, risk_coef=9.0, dead_end_value=-2.0))


def _written_sokoban_single_no_ensemble() -> RunConfig:
    """One Sokoban board as the paper's text has it, with a single value function, which learns from every episode."""
    config = _single(_written_sokoban_single())
    return replace(config, learning=replace(config.learning, mask=MaskConfig(kind="none")))


def _written_sokoban() -> RunConfig:
    """Sokoban with a new board every episode as the paper's text has it: one vote a member, batches of 32 in all."""
    config = _as_written(_paper_sokoban())
    return replace(
        config,
        search=_search(config, risk="vote_once"),
        learning=replace(config.learning, batch_size=32),
    )


def _as_written(config: RunConfig) -> RunConfig:
    """What the text says of all experiments and the program does otherwise: every stored state is as likely as any.

    Episodes keep the values of their beginning: the text plays an episode, then learns.
    """
    learning = config.learning
    return replace(
        config,
        learning=replace(learning, steady_values=True, replay=replace(learning.replay, sampling="length")),
    )


def _backward(config: RunConfig) -> RunConfig:
    """A table that learns from whole episodes backward: each entry becomes what the newest values say it should be."""
    learning = replace(
        config.learning,
        steps_per_update=0.25,
        renew_every=1,
        replay=ReplayConfig(capacity=1000, sampling="backward"),
    )
    return replace(config, optimiser=OptimiserConfig(name="delta", learning_rate=1.0), learning=learning)


def _search(config: RunConfig, **changes: Any) -> PlannerSettings:
    return replace(config.search, **changes)


def _single(config: RunConfig) -> RunConfig:
    """The authors' "no ensemble": one member in the same planner."""
    return replace(
        config,
        search=_search(config, num_subsampled=None),
        values=replace(config.values, num_members=1),
    )


def _risk_neutral(config: RunConfig) -> RunConfig:
    return replace(config, search=_search(config, risk_coef=0.0))


PRESETS: dict[str, Callable[[], RunConfig]] = {
    "deep-sea": _deep_sea,
    "deep-sea-large": _deep_sea_large,
    "deep-sea-no-planner": _deep_sea_no_planner,
    "deep-sea-memory": _deep_sea_memory,
    "paper/deep-sea": _paper_deep_sea,
    "paper/deep-sea-no-ensemble": _paper_deep_sea_no_ensemble,
    "paper/deep-sea-kappa-0": _paper_deep_sea_kappa_0,
    "toy-montezuma": _toy_montezuma,
    "toy-montezuma-unknown": _toy_montezuma_unknown,
    "paper/toy-montezuma": _paper_toy_montezuma,
    "paper/toy-montezuma-no-ensemble": _paper_toy_montezuma_no_ensemble,
    "paper/toy-montezuma-kappa-0": _paper_toy_montezuma_kappa_0,
    "sokoban-single": _sokoban_single,
    "paper/sokoban-single": _paper_sokoban_single,
    "paper/sokoban-single-no-ensemble": _paper_sokoban_single_no_ensemble,
    "sokoban": _sokoban,
    "sokoban-any-size": _sokoban_any_size,
    "paper/sokoban": _paper_sokoban,
    "paper/sokoban-no-ensemble": _paper_sokoban_no_ensemble,
    "sokoban-learned-model": _sokoban_learned_model,
    "paper/sokoban-learned-model": _paper_sokoban_learned_model,
    "paper/sokoban-tower": _paper_sokoban_tower,
    "paper-as-written/deep-sea": _written_deep_sea,
    "paper-as-written/toy-montezuma": _written_toy_montezuma,
    "paper-as-written/sokoban-single": _written_sokoban_single,
    "paper-as-written/sokoban-single-no-ensemble": _written_sokoban_single_no_ensemble,
    "paper-as-written/sokoban": _written_sokoban,
}


_BUILT_IN = frozenset(PRESETS)


def register_preset(name: str, function: Callable[[], RunConfig]) -> None:
    """Makes a preset of yours known, as the first word of `bathysphere train` and to `bathysphere.train`.

    Args:
      name: of the preset; it names runs too.
      function: returns the config; the first line of its docstring is what `bathysphere train --list` says of it.
    """
    if name in _BUILT_IN:
        raise BathysphereError(f"There is a preset {name!r} already. Choose another name for yours.")
    if not callable(function):
        raise BathysphereError(f"The preset {name!r} is {function!r}; expected a function that returns a RunConfig.")
    PRESETS[name] = function


def find_preset(name: str) -> RunConfig:
    """Returns the config called `name`."""
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    config = PRESETS[name]()
    if not isinstance(config, RunConfig):
        raise BathysphereError(f"The preset {name!r} returned a {type(config).__name__}; expected a RunConfig.")
    return replace(config, preset=name)


def describe_preset(name: str) -> str:
    """Returns one sentence about a preset."""
    return next(iter((PRESETS[name].__doc__ or "").strip().splitlines()), "")
