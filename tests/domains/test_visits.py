import json

import numpy as np
import pytest
from PIL import Image

from bathysphere.config.convert import override
from bathysphere.config.presets import find_preset
from bathysphere.domains import ToyMontezuma, ToyMontezumaConfig
from bathysphere.domains.toy_montezuma.maps import DOOR, FLOOR, KEY
from bathysphere.domains.toy_montezuma.visits import Visits
from bathysphere.planning import Episode
from bathysphere.runs.metrics import read_rows
from bathysphere.runs.runner import resume, run
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig
from tests.runs.subprocesses import assert_same


def small_config(**changes):
    """Four rooms, small networks."""
    base = {
        "domain": {"map": "four-rooms", "max_steps": 60},
        "steps": 900,
        "batch": 4,
        "log_every": 30,
        "values": {"num_members": 3, "hidden": [8]},
        "search": {"num_subsampled": 2},
        "learning": {"min_episodes": 2, "steps_per_update": 30},
    }
    return override(override(find_preset("paper/toy-montezuma"), base), changes)


def walk(domain, actions):
    """Plays actions from the start; returns the episode and the state it ended in."""
    states = [domain.initial(1, np.random.default_rng(0))[0]]
    solved = False
    for action in actions:
        after = domain.successors(states[-1][None])
        states.append(after.states[0, action])
        solved = bool(after.solved[0, action])
    rows = np.array(states[:-1])
    zeros = np.zeros((len(rows), 2))
    return Episode(rows, np.array(actions, np.int32), zeros[:, 0], zeros, solved, not solved, 0, 1, 0.0), states[-1]


def solution(domain):
    """A shortest solution, by breadth-first search over states."""
    start = domain.initial(1, np.random.default_rng(0))[0]
    reached, border = {start.tobytes(): []}, [start]
    while True:
        after = domain.successors(np.array(border))
        found = []
        for i, state in enumerate(border):
            for action in range(4):
                actions = [*reached[state.tobytes()], action]
                if after.solved[i, action]:
                    return actions
                new = after.states[i, action]
                if not after.terminal[i, action] and new.tobytes() not in reached:
                    reached[new.tobytes()] = actions
                    found.append(new)
        border = found


@pytest.fixture(scope="module")
def domain():
    return ToyMontezuma(ToyMontezumaConfig(map="one-room"))


def unused(states):
    """Counting needs no values."""
    raise AssertionError("not asked for")


def test_the_goal_room_counts_although_its_state_is_not_stored(domain):
    visits = Visits(domain, unused)
    episode, last = walk(domain, solution(domain))
    assert episode.solved
    assert len(np.unique(domain.room_index(episode.states))) == 1
    visits.record([episode], 0)
    assert visits.totals() == {"rooms_per_episode": 2.0, "rooms_visited": 2}
    (x,), (y,) = domain.positions(last[None])
    assert visits.cells[y, x] == 1
    assert visits.cells.sum() == len(episode) + 1


def test_rooms_are_counted_by_episode_by_row_and_over_the_run(domain):
    visits = Visits(domain, unused)
    assert visits.columns() == {"rooms_per_episode": None, "rooms_visited": 0}
    short, long = walk(domain, [0])[0], walk(domain, solution(domain))[0]
    visits.record([short, long], 0)
    assert visits.columns() == {"rooms_per_episode": 1.5, "rooms_visited": 2}
    visits.record([short], 0)
    assert visits.columns() == {"rooms_per_episode": 1.0, "rooms_visited": 2}
    assert visits.totals() == {"rooms_per_episode": pytest.approx(4 / 3), "rooms_visited": 2}
    copy = Visits(domain, unused)
    copy.load_state_dict(visits.state_dict())
    visits.record([long], 0)
    copy.record([long], 0)
    assert copy.columns() == visits.columns()
    assert copy.totals() == visits.totals()
    np.testing.assert_array_equal(copy.states, visits.states)


def test_every_cell_has_a_state_of_its_own(domain):
    values = Ensemble(ValuesConfig("mlp", 3, hidden=(4,)), OptimiserConfig(), domain.observation, 0)
    (visits,) = domain.observers(lambda states: values.evaluate(domain.observe(states)))
    height, width = domain.world.tiles.shape
    x, y = domain.positions(visits.states.reshape(-1, domain.state_size))
    np.testing.assert_array_equal(x.reshape(height, width), np.indices((height, width))[1])
    np.testing.assert_array_equal(y.reshape(height, width), np.indices((height, width))[0])
    episode, _ = walk(domain, solution(domain))
    visits.record([episode], 0)
    (x,), (y,) = domain.positions(episode.states[-1:])
    np.testing.assert_array_equal(visits.states[y, x], episode.states[-1])
    std = visits.std_map()
    np.testing.assert_array_equal(np.isnan(std), ~np.isin(domain.world.tiles, (FLOOR, KEY, DOOR)))
    assert std[y, x] == pytest.approx(values.evaluate(domain.observe(episode.states[-1:])).std())


def test_a_run_counts_draws_and_resumes(tmp_path):
    result = run(small_config(), tmp_path / "whole")
    assert 1 <= result["rooms_per_episode"] <= result["rooms_visited"] <= 4
    assert json.loads((tmp_path / "whole" / "result.json").read_text()) == result
    rows = read_rows(tmp_path / "whole" / "metrics.jsonl")
    assert rows[-1]["rooms_visited"] == result["rooms_visited"]
    assert any(row["rooms_per_episode"] is not None for row in rows)
    with Image.open(tmp_path / "whole" / "pictures" / "rooms.png") as picture:
        assert len(picture.convert("RGB").getcolors(10**6)) > 50
    run(small_config(steps=400), tmp_path / "parts", pictures=False)
    resume(tmp_path / "parts", config=small_config(), pictures=False)
    assert_same(tmp_path / "whole", tmp_path / "parts")
