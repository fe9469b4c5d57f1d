"""What users hand to the planner is checked where it enters, and refused with a sentence."""

import numpy as np
import pytest

from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, SearchConfig
from tests.oracles.random_graph import TableValues
from tests.planning.small_worlds import make_domain

DOMAIN = make_domain({0: [1, 2], 1: [2, 0], 2: [2, 1]})
VALUES = TableValues(np.zeros((3, 2), np.float32))


class Answers:
    """Values or model whose answer is spoilt by `spoil`."""

    num_members = 2

    def __init__(self, spoil):
        self.spoil = spoil

    def evaluate(self, observations):
        return self.spoil(VALUES.evaluate(observations))

    def successors(self, states):
        return self.spoil(DOMAIN.successors(states))


@pytest.mark.parametrize(
    ("starts", "complaint"),
    [
        (np.zeros((0, 11), np.uint8), r"starts.*\(0, 11\)"),
        (np.zeros((2, 5), np.uint8), r"starts.*\(2, 5\)"),
        (np.zeros(11, np.uint8), r"starts.*\(11,\)"),
        (np.zeros((2, 11), np.int64), r"starts.*int64"),
    ],
)
def test_starts(starts, complaint):
    with pytest.raises(BathysphereError, match=complaint):
        MCTS(DOMAIN, VALUES, starts=starts)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda values: values * np.nan, r"values\.evaluate.*finite"),
        (lambda values: values.ravel(), r"values\.evaluate returned shape"),
    ],
)
def test_values(spoil, complaint):
    with pytest.raises(BathysphereError, match=complaint):
        MCTS(DOMAIN, Answers(spoil))


def test_the_number_of_actions():
    model = Answers(lambda answer: type(answer)(*(part[:, :1] for part in answer)))
    with pytest.raises(BathysphereError, match=r"successors.*\(1, 1, 11\).*\(1, 2, 11\)"):
        MCTS(DOMAIN, VALUES, model=model).step()


def test_the_size_of_states():
    model = Answers(lambda answer: answer._replace(states=answer.states[..., :5]))
    with pytest.raises(BathysphereError, match=r"successors.*\(1, 2, 5\).*\(1, 2, 11\)"):
        MCTS(DOMAIN, VALUES, model=model).step()


def test_a_saved_planner_of_another_size():
    saved = MCTS(DOMAIN, VALUES, SearchConfig(), batch=2).state_dict()
    with pytest.raises(BathysphereError, match="batch"):
        MCTS(DOMAIN, VALUES, SearchConfig(), batch=3).load_state_dict(saved)
