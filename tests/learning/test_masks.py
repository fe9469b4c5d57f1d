import numpy as np
import pytest

from bathysphere.errors import BathysphereError
from bathysphere.learning import MaskConfig, draw_mask, split_mask


def draw_many(config, count, length=3, num_members=5):
    rng = np.random.default_rng(0)
    return np.stack([draw_mask(config, length, num_members, rng) for _ in range(count)])


@pytest.mark.parametrize("kind", ["none", "split"])
def test_all_members_learn(kind):
    assert draw_many(MaskConfig(kind), 3).all()


@pytest.mark.parametrize("per", ["episode", "transition"])
def test_one_hot(per):
    masks = draw_many(MaskConfig("one_hot", per), 2000)
    assert (masks.sum(-1) == 1).all()
    assert (masks == masks[:, :1]).all() == (per == "episode")
    # Each member is chosen a fifth of the time, to five standard deviations.
    np.testing.assert_allclose(masks[:, 0].mean(0), 0.2, atol=5 * (0.2 * 0.8 / 2000) ** 0.5)


@pytest.mark.parametrize("per", ["episode", "transition"])
def test_bernoulli(per):
    masks = draw_many(MaskConfig("bernoulli", per, 0.3), 2000)
    assert (masks == masks[:, :1]).all() == (per == "episode")
    np.testing.assert_allclose(masks[:, 0].mean(0), 0.3, atol=5 * (0.3 * 0.7 / 2000) ** 0.5)
    together = (masks[:, 0, 0] & masks[:, 0, 1]).mean()
    assert together == pytest.approx(0.09, abs=5 * (0.09 * 0.91 / 2000) ** 0.5)


def test_one_member():
    assert draw_many(MaskConfig("one_hot"), 5, num_members=1).all()
    # The authors' single-member baseline with this mask loses half of its episodes.
    assert draw_many(MaskConfig("bernoulli"), 2000, num_members=1).mean() == pytest.approx(0.5, abs=0.06)


def test_split_gives_each_member_its_share_of_both_halves():
    mask = split_mask(48, 48, 3)
    assert mask.shape == (96, 3)
    assert (mask.sum(1) == 1).all()
    assert mask[:48].sum(0).tolist() == mask[48:].sum(0).tolist() == [16, 16, 16]
    assert mask[:16, 0].all()
    assert mask[48:64, 0].all()


def test_split_with_an_empty_half_or_a_remainder():
    assert split_mask(0, 6, 3).sum(0).tolist() == [2, 2, 2]
    assert split_mask(6, 0, 3).sum(0).tolist() == [2, 2, 2]
    counts = split_mask(7, 0, 3).sum(0)
    assert counts.sum() == 7
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("probability", [0.0, 1.5, float("nan")])
def test_bad_probability_is_refused(probability):
    with pytest.raises(BathysphereError, match="probability"):
        MaskConfig("bernoulli", probability=probability)
