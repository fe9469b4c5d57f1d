"""Models that vote, against a plain count."""

import numpy as np
import pytest

from bathysphere.domains.base import PartialModel, Successors
from bathysphere.errors import BathysphereError
from bathysphere.models.unknown import UnknownValues
from bathysphere.models.voting import VotingModel
from bathysphere.planning import MCTS, SearchConfig
from tests.oracles.random_graph import HashedValues, RandomGraph
from tests.planning.small_worlds import make_domain as make_world


class Wrong:
    """The rules, but for some rewards, ends and states."""

    def __init__(self, world, seed):
        self.world, self.rng = world, np.random.default_rng(seed)
        states = world.encode(np.arange(len(world.target)))
        self.answer = Successors(*(part.copy() for part in world.successors(states)))
        self.states = {state.tobytes(): number for number, state in enumerate(states)}
        shape = self.answer.rewards.shape
        self.answer.rewards[self.rng.random(shape) < 0.2] = 7.0
        self.answer.terminal[self.rng.random(shape) < 0.2] ^= True
        self.answer.states[self.rng.random(shape) < 0.2] = states[0]

    def successors(self, states):
        rows = [self.states[state.tobytes()] for state in states]
        return Successors(*(part[rows] for part in self.answer))


@pytest.mark.parametrize("quorum", [None, 3, 4, 5])
def test_what_enough_models_say_is_known_and_nothing_else_is(quorum):
    world = RandomGraph.draw(np.random.default_rng(3))
    models = [Wrong(world, seed) for seed in range(5)]
    unknown = UnknownValues(world.target.shape[1], 4, 2.0, 0)
    model = VotingModel(models, unknown, quorum)
    assert isinstance(model, PartialModel)
    states = world.encode(np.arange(len(world.target)))
    imagined, answers = model.imagine(states), [each.successors(states) for each in models]
    for i, action in np.ndindex(*world.target.shape):
        said = [tuple(part[i, action].tobytes() for part in answer) for answer in answers]
        likeliest = max(said, key=said.count)
        is_known = said.count(likeliest) >= (quorum or 3)
        assert imagined.is_known[i, action] == is_known
        told = tuple(part[i, action].tobytes() for part in imagined.successors)
        assert told == (likeliest if is_known else (states[i].tobytes(), *(bytes(n) for n in (8, 1, 1))))
        assert (imagined.values[i, action] == (0 if is_known else unknown.of(states[[i]])[0, action])).all()
    assert 0 < imagined.is_known.sum() < imagined.is_known.size


@pytest.mark.parametrize("quorum", [0, 2, 6])
def test_a_quorum_that_two_answers_could_reach_or_none_is_refused(quorum):
    world = make_world({0: [1]}, ends=(1,))
    with pytest.raises(BathysphereError, match="more than half of the 5 models"):
        VotingModel([world] * 5, UnknownValues(1, 2, 1.0, 0), quorum)


def test_models_that_agree_plan_like_the_rules():
    world, values = RandomGraph.draw(np.random.default_rng(5)), HashedValues(3)
    voting = VotingModel([world] * 3, UnknownValues(world.target.shape[1], 3, 1.0, 0))
    played = [
        MCTS(world, values, SearchConfig(passes=4), model=model, num_episodes=4).play() for model in (None, voting)
    ]
    for one, other in zip(*played, strict=True):
        assert one.actions.tolist() == other.actions.tolist()
