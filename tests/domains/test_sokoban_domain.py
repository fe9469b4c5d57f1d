from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tyro

from bathysphere.domains.base import Categories, Domain, WithGoal
from bathysphere.domains.sokoban import GeneratorConfig, Level, Rewards, Sokoban, SokobanConfig, parse_levels
from bathysphere.domains.sokoban.domain import TURNED_ACTIONS, symmetries
from bathysphere.domains.sokoban.rules import WALL, is_solved
from bathysphere.domains.sokoban.tiles import draw_board
from bathysphere.errors import BathysphereError
from tests.domains.sokoban_boards import random_board

SMALL = GeneratorConfig(height=7, width=8, num_boxes=2, max_states=2000)
TWO = "; a\n#####\n#@$.#\n#####\n\n; b\n######\n#    #\n#@$ .#\n######\n"


def test_it_is_a_domain() -> None:
    domain = Sokoban(SokobanConfig(generator=SMALL))
    assert isinstance(domain, Domain)
    assert domain.state_size == 56
    assert domain.action_names == ("up", "right", "down", "left")
    assert domain.max_steps == 200
    assert domain.observation == Categories((7, 8), 7)


def test_fresh_boards_come_from_the_generator_of_the_caller() -> None:
    domain = Sokoban(SokobanConfig(generator=SMALL))
    boards = domain.initial(4, np.random.default_rng(5))
    assert boards.shape == (4, 56)
    assert boards.dtype == np.uint8
    assert np.array_equal(boards, domain.initial(4, np.random.default_rng(5)))
    assert len(np.unique(boards, axis=0)) == 4
    assert domain.initial(0, np.random.default_rng(5)).shape == (0, 56)


def test_a_fixed_set_of_boards() -> None:
    config = SokobanConfig(generator=SMALL, num_boards=3, board_seed=9)
    boards = Sokoban(config).initial(200, np.random.default_rng(0))
    assert len(np.unique(boards, axis=0)) == 3
    one = SokobanConfig(generator=SMALL, num_boards=1, board_seed=9)
    first = Sokoban(one).initial(2, np.random.default_rng(1))
    assert (first == first[0]).all()
    assert (boards == first[0]).all(axis=1).any()


def test_levels_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    path.write_text(TWO)
    with pytest.raises(BathysphereError, match=r"2 different sizes \(3x5, 4x6\).*pad_levels"):
        Sokoban(SokobanConfig(level_file=str(path)))
    domain = Sokoban(SokobanConfig(level_file=str(path), pad_levels=True))
    texts = {domain.text(state) for state in domain.initial(50, np.random.default_rng(0))}
    assert texts == {"######\n#@$.##\n######\n######", "######\n#    #\n#@$ .#\n######"}


def test_levels_from_a_list() -> None:
    first, _ = parse_levels(TWO)
    domain = Sokoban(levels=[first])
    state = domain.initial(1, np.random.default_rng(0))
    out = domain.successors(state)
    assert out.rewards.tolist() == [[0, 10, 0, 0]]
    assert out.solved.tolist() == [[False, True, False, False]]
    assert domain.observe(state).tolist() == first.grid[None].tolist()
    assert domain.render(state[0]).shape == (72, 120, 3)
    with pytest.raises(BathysphereError, match="at least one level"):
        Sokoban(levels=[])
    with pytest.raises(BathysphereError, match=r"Level 2 \('done'\) is already solved"):
        Sokoban(levels=[first, Level("done", out.states[0, 1].reshape(3, 5))])


def test_rewards_reach_the_rules_and_hindsight() -> None:
    first, _ = parse_levels(TWO)
    domain = Sokoban(SokobanConfig(rewards=Rewards(step=-1, finished=3)), levels=[first])
    state = domain.initial(1, np.random.default_rng(0))
    assert domain.successors(state).rewards.tolist() == [[-1, 2, -1, -1]]
    pushed = np.concatenate([state, domain.successors(state).states[:, 1]])
    kept, paid = domain.relabel(pushed, np.random.default_rng(0))
    assert kept.tolist() == state.tolist()
    assert paid.tolist() == [2]


def test_wrong_rows_are_refused() -> None:
    domain = Sokoban(SokobanConfig(generator=SMALL))
    with pytest.raises(BathysphereError, match=r"uint8 \[n, 56\]"):
        domain.successors(np.zeros((2, 55), np.uint8))


@pytest.mark.parametrize(
    "settings",
    [{"max_steps": 0}, {"num_boards": 0}, {"board_seed": -1}, {"level_file": "x.txt", "num_boards": 1}],
)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(BathysphereError, match=next(iter(settings))):
        SokobanConfig(**settings)  # type: ignore[arg-type]


def test_the_config_is_usable_from_a_command_line() -> None:
    argv = ["--generator.num-boxes", "3", "--num-boards", "1", "--rewards.step", "-0.1"]
    config = tyro.cli(SokobanConfig, args=argv)
    assert config == SokobanConfig(generator=GeneratorConfig(num_boxes=3), num_boards=1, rewards=Rewards(step=-0.1))


def test_every_tile_looks_different() -> None:
    for size in (16, 24, 32):
        strip = draw_board(np.arange(8, dtype=np.uint8)[None], size)
        assert strip.shape == (size, 8 * size, 3)
        assert strip.dtype == np.uint8
        tiles = strip.reshape(size, 8, size, 3).transpose(1, 0, 2, 3).astype(int)
        for i in range(8):
            for j in range(i):
                assert np.abs(tiles[i] - tiles[j]).mean() > 4, (size, i, j)
    tall = draw_board(np.array([[0], [1]], np.uint8), 16)
    assert np.array_equal(tall[:16], draw_board(np.zeros((1, 1), np.uint8), 16))


def test_networks_need_not_see_the_outer_wall() -> None:
    shown, hidden = (Sokoban(SokobanConfig(generator=SMALL, show_border=border)) for border in (True, False))
    boards = shown.initial(3, np.random.default_rng(5))
    whole = shown.observe(boards)
    assert (whole[:, [0, -1]] == 0).all()
    assert (whole[:, :, [0, -1]] == 0).all()
    assert hidden.observation == Categories((5, 6), 7)
    assert np.array_equal(hidden.observe(boards), whole[:, 1:-1, 1:-1])


@pytest.mark.parametrize(("shape", "count"), [((7, 8), 4), ((7, 7), 8)])
def test_a_turned_board_is_as_hard(shape: tuple[int, int], count: int) -> None:
    domain = Sokoban(SokobanConfig(generator=GeneratorConfig(*shape, num_boxes=2, max_states=2000)))
    rng = np.random.default_rng(0)
    board = domain.initial(1, rng)
    images = np.unique(domain.transform(np.repeat(board, 200, axis=0), rng)[0], axis=0)
    assert len(images) == count
    assert (images == board).all(axis=1).any()
    # Played two moves deep, every image has as many distinct positions, boxes pushed and wins as the board itself.
    ahead = [_two_moves(domain, image) for image in images]
    assert ahead == [ahead[0]] * count


def _two_moves(domain: Sokoban, board: np.ndarray) -> tuple[int, int, int]:
    first = domain.successors(board[None]).states[0]
    second = domain.successors(first)
    positions = second.states.reshape(-1, domain.state_size)
    return len(np.unique(positions, axis=0)), int((positions == 4).sum()), int(second.solved.sum())


def test_transformed_boards_mix_with_transformed_play() -> None:
    domain = Sokoban(SokobanConfig(generator=GeneratorConfig(7, 7, num_boxes=2, max_states=2000)))
    board = domain.initial(1, np.random.default_rng(1))
    played = domain.successors(board).states[0]
    both = np.concatenate([board, played])
    for table in domain._symmetries:
        image = both[:, table]
        reached = {row.tobytes() for row in domain.successors(image[:1]).states[0]}
        assert reached == {row.tobytes() for row in image[1:]}


@pytest.mark.parametrize(("shape", "count"), [((7, 8), 4), ((9, 5), 4), ((6, 6), 8)])
def test_actions_turn_with_the_board(shape: tuple[int, int], count: int) -> None:
    """Action a on the image leads to the image of where action actions[i, a] leads on the board."""
    rng = np.random.default_rng(3)
    boards = np.stack([random_board(rng, *shape, num_boxes=4).ravel() for _ in range(40)])
    domain = Sokoban(levels=[Level("", boards[~is_solved(boards)][0].reshape(shape))])
    boards = np.repeat(boards, 12, axis=0)
    images, actions = domain.transform(boards, rng)
    assert (images.dtype, images.shape) == (np.uint8, boards.shape)
    assert (actions.dtype, actions.shape) == (np.intp, (len(boards), 4))
    assert len(np.unique(actions, axis=0)) == count
    # Which symmetry it was is told by the actions; seen from there, everything that follows is turned as well.
    tables = {row.tobytes(): table for row, table in zip(TURNED_ACTIONS, symmetries(shape), strict=False)}
    there, here = domain.successors(images), domain.successors(boards)
    for i, row in enumerate(actions):
        table = tables[row.tobytes()]
        assert np.array_equal(images[i], boards[i, table])
        assert np.array_equal(there.states[i], here.states[i, row][:, table])
        for told, expected in zip(there[1:], here[1:], strict=True):
            assert np.array_equal(told[i], expected[i, row])


def test_what_a_win_pays_is_told() -> None:
    assert Sokoban(SokobanConfig(generator=SMALL)).goal_reward == 10
    assert Sokoban(SokobanConfig(generator=SMALL, rewards=Rewards(finished=3))).goal_reward == 3
    assert isinstance(Sokoban(SokobanConfig(generator=SMALL)), WithGoal)


def test_walls_are_blank() -> None:
    assert Sokoban(SokobanConfig(generator=SMALL)).observation.blank == WALL
    # A spec without it, from an older file, is the same spec.
    assert Categories((7, 8), 7, blank=WALL) == Categories((7, 8), 7)
