import numpy as np
import pytest

from bathysphere.domains.sokoban.rules import BOX, BOX_ON_TARGET, is_solved
from bathysphere.errors import BathysphereError
from bathysphere.models.config import DataConfig
from bathysphere.models.data import make_boards, play_randomly
from bathysphere.models.trainer import make_domain
from tests.models.small import DATA


def draw(seed=0, config=DATA):
    boards = np.repeat(make_boards(config, held_out=False), 3, axis=0)
    return play_randomly(make_domain(config), boards, config.max_steps, np.random.default_rng(seed))


def test_same_seed_same_data():
    one, two, other = draw(), draw(), draw(seed=1)
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert one.actions.shape != other.actions.shape or (one.actions != other.actions).any()


def test_every_transition_is_a_step():
    episodes, domain = draw(), make_domain(DATA)
    out = domain.successors(episodes.frames[episodes.before])
    rows = np.arange(len(episodes.before))
    assert (out.states[rows, episodes.actions] == episodes.frames[episodes.before + 1]).all()
    assert (out.terminal[rows, episodes.actions] == episodes.done).all()


def test_episodes_stop_when_solved_or_after_the_last_step():
    episodes = draw()
    starts = np.flatnonzero(~np.isin(np.arange(len(episodes.frames)), episodes.before + 1))
    lengths = np.diff([*starts, len(episodes.frames)]) - 1
    assert len(lengths) == 3 * DATA.boards
    last = np.cumsum(lengths) - 1  # the last transition of each episode
    assert (lengths[~episodes.done[last]] == DATA.max_steps).all()
    assert episodes.done.sum() == episodes.done[last].sum() > 0  # only a last one is done
    assert (is_solved(episodes.frames[episodes.before + 1]) == episodes.done).all()
    assert not is_solved(episodes.frames[episodes.before]).any()


def test_actions_are_uniform():
    counts = np.bincount(draw().actions, minlength=4)
    assert (abs(counts / counts.sum() - 0.25) < 0.03).all()


def test_solved_transitions_are_copied():
    episodes = draw()
    order = episodes.order(100)
    times = np.bincount(order, minlength=len(episodes.done))
    assert (times[episodes.done] == 101).all()
    assert (times[~episodes.done] == 1).all()


def test_boards_have_every_number_of_boxes_and_held_out_ones_are_others():
    config = DataConfig(height=7, width=7, max_boxes=3, boards=90, held_out=60)
    boards, held_out = make_boards(config, held_out=False), make_boards(config, held_out=True)
    counts = np.bincount(np.isin(boards, (BOX, BOX_ON_TARGET)).sum(axis=1), minlength=4)
    assert counts[0] == 0
    assert (counts[1:] > 15).all()
    assert not {row.tobytes() for row in boards} & {row.tobytes() for row in held_out}
    more = make_boards(DataConfig(height=7, width=7, max_boxes=3, boards=100), held_out=False)
    assert (more[:90] == boards).all()  # board i depends on the seed and i only


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"boards": 0}, "boards is 0"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"height": 4, "width": 4, "max_boxes": 4}, "4 boxes do not fit a 4x4 board"),
    ],
)
def test_bad_settings_are_a_sentence(options, complaint):
    with pytest.raises(BathysphereError, match=complaint):
        DataConfig(**options)
