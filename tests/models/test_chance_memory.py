"""A memory of a world with chance: what it counts, what it leaves unknown, and how it is saved."""

import numpy as np
import pytest

from bathysphere.domains.base import Chance, LearningModel, Model, PartialChance, PartialModel, Successors
from bathysphere.errors import BathysphereError
from bathysphere.models.chance_memory import ChanceMemory


def steps(*told):
    """Returns steps from states of one byte: (state, action, after, reward, terminal, solved)."""
    before, actions, after, rewards, terminal, solved = (np.array(column) for column in zip(*told, strict=True))
    rows = before.astype(np.uint8)[:, None], after.astype(np.uint8)[:, None]
    return rows[0], actions, Successors(rows[1], rewards.astype(float), terminal.astype(bool), solved.astype(bool))


SEEN = [(0, 1, 1, 0.5, 0, 0)] * 3 + [(0, 1, 2, 1.0, 1, 1), (0, 1, 2, 2.0, 1, 1)] + [(1, 0, 1, 0.0, 0, 0)]


def memory(**settings):
    made = ChanceMemory(1, 2, 3, 1.0, 0, **settings)
    made.learn(*steps(*SEEN))
    return made


def test_shares_are_counted_and_the_rest_is_unknown():
    known = memory(num_outcomes=4)
    told, unknown, values = known.imagine_outcomes(np.array([[0], [1], [9]], np.uint8))
    assert told.probabilities[0, 1].tolist() == pytest.approx([3 / 6, 2 / 6, 0, 0])
    assert unknown.tolist() == [[1.0, pytest.approx(1 / 6)], [0.5, 1.0], [1.0, 1.0]]
    assert (told.probabilities.sum(axis=2) + unknown).ravel().tolist() == pytest.approx([1.0] * 6)
    assert told.states[0, 1, :2, 0].tolist() == [1, 2]
    assert told.rewards[0, 1, :2].tolist() == [0.5, 1.5]
    assert told.terminal[0, 1].tolist() == told.solved[0, 1].tolist() == [False, True, False, False]
    assert values.shape == (3, 2, 3)
    assert len(np.unique(values)) == values.size
    assert known.num_known == 2


def test_as_a_model_of_chance_it_tells_what_it_knows():
    told = memory().outcomes(np.array([[0], [9]], np.uint8))
    assert told.probabilities.sum(axis=2).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert told.probabilities[0, 1, :2].tolist() == pytest.approx([0.6, 0.4])
    assert told.states[1, :, 0, 0].tolist() == [9, 9]
    likeliest = memory().successors(np.array([[0]], np.uint8))
    assert likeliest.states[0, 1].tolist() == [1]


def test_of_too_many_outcomes_the_most_frequent_are_told():
    told, unknown, _ = memory(num_outcomes=1).imagine_outcomes(np.array([[0]], np.uint8))
    assert told.states[0, 1, 0].tolist() == [1]
    assert told.probabilities[0, 1].tolist() == pytest.approx([5 / 6])
    assert unknown[0, 1] == pytest.approx(1 / 6)


def test_it_is_saved_whole_and_what_cannot_be_is_refused():
    known, loaded = memory(), ChanceMemory(1, 2, 3, 0.0, 0)
    loaded.load_state_dict(known.state_dict())
    states = np.arange(4, dtype=np.uint8)[:, None]
    for mine, theirs in zip(known.imagine_outcomes(states)[1:], loaded.imagine_outcomes(states)[1:], strict=True):
        assert (mine == theirs).all()
    for mine, theirs in zip(known.outcomes(states), loaded.outcomes(states), strict=True):
        assert (mine == theirs).all()
    saved = known.state_dict()
    assert all((saved[name] == array).all() for name, array in loaded.state_dict().items())
    empty = ChanceMemory(1, 2, 3, 1.0, 0).state_dict()
    loaded.load_state_dict(empty)
    assert loaded.num_known == 0
    for name, wrong in (
        ("actions", saved["actions"] + 2),
        ("times", saved["times"] * 0),
        ("rewards", saved["rewards"] * np.nan),
        ("seen", saved["seen"][:1]),
        ("spread", np.array(np.inf)),
        ("states", saved["states"] * 0),
    ):
        broken = {**saved, name: wrong}
        if name == "states":
            broken["terminal"] = broken["solved"] = np.zeros(len(wrong), bool)
        with pytest.raises(BathysphereError):
            ChanceMemory(1, 2, 3, 1.0, 0).load_state_dict(broken)


def test_what_planners_and_training_ask_of_it():
    for protocol in (Model, Chance, PartialChance, LearningModel):
        assert isinstance(memory(), protocol)
    assert not isinstance(memory(), PartialModel)
