import pytest

from bathysphere.config.convert import override
from bathysphere.config.presets import PRESETS, describe_preset, find_preset, register_preset
from bathysphere.errors import BathysphereError
from bathysphere.runs.build import make_trainer


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_described_and_play(name):
    config = find_preset(name)
    assert config.preset == name
    assert describe_preset(name).endswith(".")
    trainer = make_trainer(override(config, {"batch": 2, "search": {"max_steps": 3}, "learning": {"min_episodes": 1}}))
    while trainer.progress.updates == 0:
        trainer.advance()
    assert trainer.last_update.loss >= 0


@pytest.mark.parametrize("world", ["deep-sea", "toy-montezuma", "sokoban-single"])
def test_no_ensemble_is_one_member_in_the_same_planner(world):
    whole, single = (find_preset(f"paper/{world}{end}") for end in ("", "-no-ensemble"))
    assert (whole.values.num_members, whole.search.num_subsampled) == (20, 10)
    assert (single.values.num_members, single.search.num_subsampled) == (1, None)
    changes = {"values": {"num_members": 20}, "search": {"num_subsampled": 10}, "preset": whole.preset}
    assert override(single, changes) == whole


@pytest.mark.parametrize("world", ["deep-sea", "toy-montezuma"])
def test_kappa_0_differs_in_kappa_only(world):
    whole, neutral = (find_preset(f"paper/{world}{end}") for end in ("", "-kappa-0"))
    assert neutral.search.risk_coef == 0
    coef = whole.search.risk_coef
    assert override(neutral, {"search": {"risk_coef": coef}, "preset": whole.preset}) == whole


def test_what_the_authors_code_sets():
    toy, sokoban = find_preset("paper/toy-montezuma"), find_preset("paper/sokoban-single")
    for config, penalty, limit in ((toy, 0.2, 300), (sokoban, 2.0, 100)):
        search, learning = config.search, config.learning
        assert (search.passes, search.risk_coef, search.discount, search.avoid_loops) == (10, 3.0, 0.99, True)
        assert (search.episode_penalty, search.path_penalty, search.dead_end_value) == (penalty, 0.0, -1.0)
        assert (search.max_steps or config.domain.max_steps) == limit
        assert (config.values.network, config.values.hidden, config.values.bias) == ("mlp", (50, 50), True)
        assert config.values.prior_scale == 0
        assert (config.optimiser.name, config.optimiser.learning_rate) == ("tf_rmsprop", 2.5e-4)
        assert (learning.target, learning.batch_size, learning.steps_per_update) == ("bootstrap", 32, 10)
        assert (learning.min_episodes, learning.replay.capacity, learning.replay.solved_share) == (100, 100, 0.5)
        assert learning.mask.per == "episode"
    assert toy.learning.mask.kind == "one_hot"
    assert (sokoban.learning.mask.kind, sokoban.learning.mask.probability) == ("bernoulli", 0.5)
    assert sokoban.domain.rewards.finished == 10
    assert sokoban.domain.num_boards == 1
    assert sokoban.stop.on_first_win


@pytest.mark.parametrize(
    ("world", "changes"),
    [
        ("deep-sea", {"domain": {"horizon": "paper"}, "values": {"prior_scale": 0.0}}),
        ("toy-montezuma", {}),
        ("sokoban-single", {"search": {"risk_coef": 9.0, "dead_end_value": -2.0}}),
        (
            "sokoban-single-no-ensemble",
            {"search": {"risk_coef": 9.0, "dead_end_value": -2.0}, "learning": {"mask": {"kind": "none"}}},
        ),
        ("sokoban", {"search": {"risk": "vote_once"}, "learning": {"batch_size": 32}}),
    ],
)
def test_as_written_differs_from_the_program_where_paper_and_program_differ(world, changes):
    program, written = find_preset(f"paper/{world}"), find_preset(f"paper-as-written/{world}")
    learning = {"steady_values": True, "replay": {"sampling": "length"}, **changes.get("learning", {})}
    expected = override(program, {**changes, "learning": learning, "preset": written.preset})
    # A mask that is off has no probability to speak of.
    if "mask" in learning:
        assert (expected.learning.mask.kind, written.learning.mask.kind) == ("none", "none")
        expected = override(expected, {"learning": {"mask": {"probability": written.learning.mask.probability}}})
    assert written == expected


def test_an_unknown_preset():
    with pytest.raises(BathysphereError, match="Did you mean 'sokoban-single'"):
        find_preset("sokoban-singel")


def test_a_preset_of_your_own():
    register_preset("tiny-sea", lambda: override(find_preset("deep-sea"), {"domain": {"size": 4}}))
    try:
        assert find_preset("tiny-sea").preset == "tiny-sea"
        assert find_preset("tiny-sea").domain.size == 4
        assert describe_preset("tiny-sea") == ""
        with pytest.raises(BathysphereError, match=r"no preset 'tiny-see'; .*Did you mean 'tiny-sea'.*--import MODULE"):
            find_preset("tiny-see")
        register_preset("tiny-sea", dict)  # again, as when a module is imported anew
        with pytest.raises(BathysphereError, match="returned a dict; expected a RunConfig"):
            find_preset("tiny-sea")
    finally:
        del PRESETS["tiny-sea"]
    with pytest.raises(BathysphereError, match="a preset 'deep-sea' already"):
        register_preset("deep-sea", lambda: find_preset("deep-sea"))
    with pytest.raises(BathysphereError, match="expected a function"):
        register_preset("mine", find_preset("deep-sea"))
