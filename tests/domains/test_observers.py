"""What follows a training run: the observers that domains offer, and one that a user hands in."""

import json
from typing import NamedTuple

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from bathysphere.domains import DeepSea, DeepSeaConfig, Sokoban, ToyMontezuma, ToyMontezumaConfig
from bathysphere.domains.base import Observed
from bathysphere.domains.deep_sea.uncertainty import MAX_SIDE, UncertaintyMaps
from bathysphere.errors import BathysphereError
from bathysphere.runs.metrics import read_rows
from bathysphere.runs.runner import resume, run
from tests.runs.small import small_config


class Played(NamedTuple):
    """An episode as observers see it."""

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    solved: bool


def played(domain, num_steps, rng):
    """Plays at random; returns the episode."""
    states, actions = domain.initial(1, rng), rng.integers(len(domain.action_names), size=num_steps).astype(np.int32)
    for action in actions:
        states = np.concatenate([states, domain.successors(states[-1:]).states[0, action][None]])
    return Played(states[:-1], actions, np.zeros(num_steps), False)


def values_of(states):
    """Three members whose disagreement depends on the state."""
    return np.outer(states.sum(axis=1), [0.0, 0.5, 2.0]).astype(np.float32)


WORLDS = {
    "snapshots": (DeepSea(DeepSeaConfig(5)), "uncertainty.png", set()),
    "visits": (ToyMontezuma(ToyMontezumaConfig("one-room")), "rooms.png", {"rooms_per_episode", "rooms_visited"}),
}


@pytest.mark.parametrize("name", WORLDS)
def test_what_a_domain_offers(name):
    domain, picture, columns = WORLDS[name]
    assert isinstance(domain, Observed)
    (observer,) = domain.observers(values_of)
    assert observer.name == name
    observer.record([], 0)
    assert observer.columns().keys() == columns  # before the first episode too
    rng = np.random.default_rng(0)
    for step in range(1, 30):
        observer.record([played(domain, 4, rng)] if step % 4 == 0 else [], 4 * step)
    assert observer.columns().keys() == observer.totals().keys() == columns
    figures = observer.pictures(120, None)
    assert list(figures) == [picture]
    assert isinstance(figures[picture], Figure)


@pytest.mark.parametrize("name", WORLDS)
def test_a_restored_observer_goes_on_as_if_nothing_had_happened(name):
    domain, _, _ = WORLDS[name]
    (whole,), (first,), (second,) = (domain.observers(values_of) for _ in range(3))
    rng = np.random.default_rng(1)
    episodes = [played(domain, 4, rng) for _ in range(20)]
    for step, episode in enumerate(episodes):
        if step == 7:
            second.load_state_dict({key: array.copy() for key, array in first.state_dict().items()})
        for observer in (whole, first if step < 7 else second):
            observer.record([episode], 9 * step)
            if step in (3, 12):
                observer.columns()
    assert whole.columns() == second.columns()
    assert whole.totals() == second.totals()
    one, other = whole.state_dict(), second.state_dict()
    assert one.keys() == other.keys()
    for key, array in one.items():
        np.testing.assert_array_equal(array, other[key])
        assert array.dtype == other[key].dtype


def test_a_domain_may_offer_none():
    assert not isinstance(Sokoban(), Observed)


def test_maps_are_made_at_moments_that_lie_ever_further_apart():
    asked = []

    def evaluate(states):
        asked.append(len(states))
        return values_of(states)

    maps = UncertaintyMaps(3, evaluate)
    for env_steps in range(0, 101, 5):
        maps.record([], env_steps)
    assert maps.steps == [0, 15, 30, 45, 60, 75, 95]  # 4 sides apart at least, and growing by a quarter at least
    assert asked == [9] * 7  # nothing is computed in between
    assert maps.maps[0].shape == (3, 3)
    assert len(maps.state_dict()["maps"]) == 7
    maps.pictures(100, 45)
    assert maps.steps[-1] == 100
    maps.pictures(100, 45)
    assert maps.steps.count(100) == 1


def test_a_sea_too_large_is_not_mapped():
    def evaluate(states):
        raise AssertionError("not asked for")

    maps = UncertaintyMaps(MAX_SIDE + 1, evaluate)
    maps.record([], 0)
    assert maps.pictures(10, None) == {}
    assert maps.state_dict()["maps"].shape == (0, MAX_SIDE + 1, MAX_SIDE + 1)


class Diary:
    """A user's own observer: remembers every episode."""

    name = "diary"

    def __init__(self):
        self.episodes = np.zeros((0, 3))  # when, how long, how much
        self.calls = 0

    def record(self, episodes, env_steps):
        self.calls += 1
        rows = [(env_steps, len(episode.actions), episode.rewards.sum()) for episode in episodes]
        self.episodes = np.concatenate([self.episodes, np.reshape(rows, (-1, 3))])

    def columns(self):
        return {"diary_episodes": len(self.episodes)}

    def totals(self):
        return {"diary_steps": int(self.episodes[:, 1].sum())}

    def pictures(self, env_steps, solved_step):
        figure = Figure(figsize=(1, 1))
        figure.subplots().plot(self.episodes[:, 2])
        return {"diary.png": figure}

    def state_dict(self):
        return {"episodes": self.episodes}

    def load_state_dict(self, state):
        self.episodes = state["episodes"]


def test_an_observer_of_ones_own_sees_every_episode_once_also_across_a_resume(tmp_path):
    whole, first, second = Diary(), Diary(), Diary()
    result = run(small_config(), tmp_path / "whole", observers=[whole])
    assert len(whole.episodes) == result["episodes"]
    assert whole.episodes[:, 1].sum() == result["diary_steps"] <= result["env_steps"]
    assert (whole.episodes[:, 2] > 0.5).sum() == result["wins"]
    assert json.loads((tmp_path / "whole" / "result.json").read_text()) == result
    rows = read_rows(tmp_path / "whole" / "metrics.jsonl")
    assert [row["diary_episodes"] for row in rows] == [row["episodes"] for row in rows]
    with Image.open(tmp_path / "whole" / "pictures" / "diary.png") as picture:
        assert picture.size[0] > 10
    assert (tmp_path / "whole" / "pictures" / "uncertainty.png").is_file()  # the domain's own goes on

    part = run(small_config(steps=500), tmp_path / "parts", pictures=False, observers=[first])
    rest = resume(tmp_path / "parts", config=small_config(), pictures=False, observers=[second])
    assert 0 < part["diary_steps"] < rest["diary_steps"] == result["diary_steps"]
    np.testing.assert_array_equal(second.episodes, whole.episodes)
    assert whole.calls == first.calls + second.calls  # called once before the first step, not after a resume
    resumed = read_rows(tmp_path / "parts" / "metrics.jsonl")
    assert [row["diary_episodes"] for row in resumed] == [row["diary_episodes"] for row in rows]


def test_an_observer_that_comes_late_is_refused_with_a_sentence(tmp_path):
    run(small_config(steps=300), tmp_path / "run", pictures=False)
    with pytest.raises(BathysphereError, match="holds nothing of the observer 'diary'"):
        resume(tmp_path / "run", config=small_config(), pictures=False, observers=[Diary()])


@pytest.mark.parametrize("name", ["diary", "replay", "snapshots"])
def test_observers_that_checkpoints_could_not_tell_apart_are_refused(name, tmp_path):
    other = Diary()
    other.name = name
    with pytest.raises(BathysphereError, match=f"are called '{name}' in its checkpoints"):
        run(small_config(), tmp_path / "run", pictures=False, observers=[Diary(), other])
