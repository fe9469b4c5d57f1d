"""Episodes planned with the values of their beginning, whatever becomes of those meanwhile."""

import copy

import numpy as np
import pytest

from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, SearchConfig
from bathysphere.planning.episode_values import EpisodeValues
from tests.oracles.compiled_graph import CompiledGraph
from tests.oracles.random_graph import HashedValues, RandomGraph, TableValues

CONFIG = SearchConfig(passes=5, max_steps=8, risk_coef=1.0, final_ties="random")
NOISE = 10**6  # a seed of values that no step should be planned with


class ChangingValues(HashedValues):
    """Values that can be copied, saved and restored."""

    def snapshot(self):
        return copy.copy(self)

    def weights(self):
        return {"seed": np.array(self._seed)}

    def load_weights(self, weights):
        self._seed = int(weights["seed"])


class Beginnings:
    """Start states of a random graph. Each time some are taken, the values become those of the next generation."""

    def __init__(self, domain, values):
        self._domain, self._values = domain, values
        self.generation = 0

    def take(self, numbers, ahead):
        self.generation += 1
        self._values._seed = self.generation
        return self._domain.initial(len(numbers), np.random.default_rng(numbers[0]))


def told(episodes):
    return [(e.index, e.states.tobytes(), e.actions.tolist(), e.search_values.tolist()) for e in episodes]


def make(steady, domain_seed=0, batch=1):
    domain = RandomGraph.draw(np.random.default_rng(domain_seed))
    values = ChangingValues(3)
    search = MCTS(domain, values, CONFIG, batch=batch, starts=Beginnings(domain, values), steady=steady)
    return values, search


@pytest.mark.parametrize("domain_seed", [0, 1, 2, 4, 5])
def test_an_episode_does_not_notice_that_values_change(domain_seed):
    (values, search), (_, undisturbed) = make(True, domain_seed), make(False, domain_seed)
    episodes, expected = [], []
    for step in range(100):
        values._seed = NOISE + step
        episodes += search.step()
        expected += undisturbed.step()
    assert len(episodes) > 5
    assert told(episodes) == told(expected)
    # Without steady values it does notice.
    values, search = make(False, domain_seed)
    noticed = []
    for step in range(100):
        values._seed = NOISE + step
        noticed += search.step()
    assert told(noticed) != told(expected)


def test_each_slot_has_the_values_of_its_own_beginning():
    steady, observations = EpisodeValues(4, 3), np.arange(8, dtype=np.float32)[:, None]
    for seed, slots in ((7, [0, 1, 2, 3]), (8, [2]), (9, [0, 3])):
        steady.begin(np.array(slots), ChangingValues(3, seed))
    slots = np.array([3, 0, 1, 2, 2, 1, 0, 3])
    expected = [
        HashedValues(3, {0: 9, 1: 7, 2: 8, 3: 9}[slot]).evaluate(observations[[row]])[0]
        for row, slot in enumerate(slots.tolist())
    ]
    assert np.array_equal(steady.evaluate(observations, slots), expected)
    steady.begin(np.array([1]), ChangingValues(3, 10))
    assert sum(name.endswith("seed") for name in steady.state_dict()) == 3  # no slot needs the first any more


def test_a_resumed_planner_goes_on_with_the_values_of_its_episodes():
    (values, search), (other_values, other) = make(True, batch=4), make(True, batch=4)
    for step in range(21):
        values._seed = NOISE + step
        search.step()
    other.load_state_dict(search.state_dict())
    other._starts._starts.generation = search._starts._starts.generation
    for step in range(40):
        values._seed, other_values._seed = NOISE + step, NOISE - step
        assert told(search.step()) == told(other.step())


class CopiedTable(TableValues):
    def snapshot(self):
        return CopiedTable(self.table.copy())


def test_a_table_is_not_played_in_compiled_code_but_gives_the_same_episodes():
    rng = np.random.default_rng(3)
    domain = CompiledGraph.of(RandomGraph.draw(rng))
    values = CopiedTable(rng.normal(size=(len(domain.target), 2)).astype(np.float32))
    steady, compiled = (
        MCTS(domain, values, CONFIG, batch=3, num_episodes=30, steady=steady) for steady in (True, False)
    )
    assert told(steady.play()) == told(compiled.play())
    assert steady.work.seconds["model"] > 0 == compiled.work.seconds["model"]


def test_values_that_cannot_be_copied_are_refused():
    domain = RandomGraph.draw(np.random.default_rng(0))
    with pytest.raises(BathysphereError, match="snapshot method, and HashedValues has none"):
        MCTS(domain, HashedValues(2), CONFIG, steady=True)
