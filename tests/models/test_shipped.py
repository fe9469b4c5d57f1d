"""The models that come with the package are what their cards say."""

import pytest

from bathysphere.domains import Sokoban, SokobanConfig
from bathysphere.models.config import DataConfig
from bathysphere.models.evaluation import in_search, on_random_episodes
from bathysphere.models.learned import load_model
from bathysphere.models.model_file import read_model, shipped_models
from bathysphere.planning import SearchConfig
from tests.oracles.random_graph import HashedValues

UNSEEN = DataConfig(held_out=40, episodes=1, seed=7)


@pytest.mark.parametrize("name", shipped_models())
def test_a_model_is_as_good_as_its_card(name):
    card, domain = read_model(name).card, Sokoban(SokobanConfig())
    tally = on_random_episodes(load_model(name, domain), domain, UNSEEN)
    assert tally.transitions > 5000
    assert tally.frames_right == pytest.approx(card["held_out"]["frames_right"], abs=0.01)
    assert card["held_out"]["transitions"] > 100_000
    assert card["machine"]


def test_ours_knows_the_rules():
    domain = Sokoban(SokobanConfig())
    model = load_model("sokoban", domain)
    report = in_search(model, domain, HashedValues(3), SearchConfig(max_steps=20), episodes=8, batch=8, seed=0)
    for tally in (on_random_episodes(model, domain, UNSEEN), report.steps, report.trees):
        assert tally.frames_right > 0.999
        assert (tally.false_rewards, tally.missed_rewards) == (0, 0)
    card = read_model("sokoban").card
    assert (card["parameters"], card["held_out"]["false_rewards"]) == (3001, 0)
    assert card["held_out"]["frames_right"] >= 0.9999


def test_they_are_small():
    assert all(path.stat().st_size < 300_000 for path in shipped_models().values())
