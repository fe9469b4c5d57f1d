"""Maps over training and of states, and what members dispute most."""

import numpy as np
import pytest

from bathysphere.domains.base import WithMaps
from bathysphere.domains.deep_sea import DeepSea, DeepSeaConfig
from bathysphere.domains.sokoban import Sokoban, SokobanConfig, parse_levels
from bathysphere.domains.toy_montezuma import ToyMontezuma, ToyMontezumaConfig
from bathysphere.studio.agents import SHIPPED, Agents
from bathysphere.studio.charts import map_chart, training_map_chart
from bathysphere.studio.folder import RunsFolder
from bathysphere.studio.unknown import (
    disputed_csv,
    judge_states,
    judged_maps,
    map_csv,
    most_disputed,
    training_csv,
    training_maps,
)


@pytest.fixture(scope="module")
def sea(folder):
    return Agents(RunsFolder(folder)).load("sea-0")


def test_a_run_in_deep_sea_has_maps_of_every_moment(sea):
    (maps,) = training_maps(sea).values()
    steps = [each.env_steps for each in maps]
    assert steps == sorted(steps)
    assert steps[0] == 0
    assert len(maps) > 3
    side = sea.agent.domain.max_steps + 1
    reachable = np.tri(side, dtype=bool)
    reachable[-1] = False
    for each in maps:
        assert np.array_equal(np.isfinite(each.values), reachable)
    assert np.nanmean(maps[-1].values) < np.nanmean(maps[0].values)  # it has learned something
    drawn = training_map_chart(maps[0].values, 1.0)["series"][0]["data"]
    assert len(drawn) == reachable.sum()
    assert len(training_csv(maps).splitlines()) == 1 + len(maps) * reachable.sum()


def test_agents_without_a_run_have_no_training(folder):
    assert training_maps(Agents(RunsFolder(folder)).load(f"{SHIPPED}deep-sea")) == {}


def test_states_of_a_map_are_judged(sea):
    domain = sea.agent.domain
    (judged,) = judged_maps(sea, domain, domain.initial(1, np.random.default_rng(0))[0])
    values = judge_states(sea, domain, judged.map.states)
    assert np.allclose(judged.std, values.std(axis=1))
    y, x = domain.cells(judged.map.states)
    assert np.array_equal(judged.map.cells, np.stack([y, x], axis=1))
    assert len(map_chart(judged.map, judged.std, "std")["series"][0]["data"]) == len(values)
    assert len(map_csv(judged).splitlines()) == 1 + len(values)


def test_the_most_disputed_states_come_first(sea):
    found = most_disputed(sea, sea.agent.domain, [], most=5)
    assert [each.std for each in found] == sorted((each.std for each in found), reverse=True)
    everywhere = judged_maps(sea, sea.agent.domain, found[0].state)[0]
    assert found[0].std <= everywhere.std.max() + 1e-9
    assert len(disputed_csv(found).splitlines()) == 6


def test_large_seas_have_no_map():
    large = DeepSea(DeepSeaConfig(size=300))
    assert large.state_maps(large.initial(1, np.random.default_rng(0))[0]) == []


def test_the_explorers_map_has_every_floor():
    domain = ToyMontezuma(ToyMontezumaConfig(map="one-room"))
    start = domain.initial(1, np.random.default_rng(0))[0]
    (shown,) = domain.state_maps(start)
    x, y = domain.positions(shown.states)
    assert np.array_equal(shown.cells, np.stack([y, x], axis=1))
    here = [i for i, state in enumerate(shown.states) if state.tobytes() == start.tobytes()]
    assert len(here) == 1


BOARD = """
#######
#@ $ .#
#  #  #
#  $ .#
#######
"""


def test_sokobans_maps_are_positions_and_pushes():
    domain = Sokoban(SokobanConfig(), levels=parse_levels(BOARD))
    assert isinstance(domain, WithMaps)
    start = domain.initial(1, np.random.default_rng(0))[0]
    positions, pushes = domain.state_maps(start)
    board = start.reshape(domain.shape)
    assert len(positions.states) == np.isin(board, (1, 2, 5, 6)).sum()
    assert (np.isin(positions.states, (5, 6)).sum(axis=1) == 1).all()
    # Every push is a step of the rules from one of the positions.
    after = domain.successors(positions.states).states.reshape(-1, domain.state_size)
    possible = {state.tobytes() for state in after}
    assert {state.tobytes() for state in pushes.states} <= possible
    assert sorted(zip(map(tuple, pushes.cells.tolist()), pushes.arrows.tolist(), strict=True)) == [
        ((1.0, 3.7), 90.0),
        ((3.0, 3.7), 90.0),
    ]
