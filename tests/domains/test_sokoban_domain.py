from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tyro

from bathysphere.domains.base import Categories, Domain
from bathysphere.domains.sokoban import GeneratorConfig, Level, Rewards, Sokoban, SokobanConfig, parse_levels
from bathysphere.domains.sokoban.tiles import draw_board
from bathysphere.errors import BathysphereError

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
