from pathlib import Path

import numba
import numpy as np
import pytest

from bathysphere.domains.toy_montezuma import ToyMontezuma, ToyMontezumaConfig, maps
from bathysphere.errors import BathysphereError
from bathysphere.testing import check_domain
from tests.domains.walks import compare_walks
from tests.oracles.toy_montezuma import ToyMontezumaOracle

WALKS, STEPS = (10, 60) if numba.config.DISABLE_JIT else (600, 300)
FOLDER = Path(maps.__file__).parent / "maps"
NAMES = ["full", "four-rooms", "hallway", "one-room"]

# All that a walk can meet in two small rooms and a goal; a trap and a key lie just behind an edge.
TINY = "\n".join(
    [
        "room size: 4 x 3",
        "first room: 2, 7",
        "",
        "#.#.^.##GGGG",
        "#@k.k.D.GGGG",
        "#..^..#.GGGG",
    ]
)


def explore(domain):
    """Returns all reachable non-terminal states, breadth first, and the length of the shortest solution."""
    frontier = domain.initial(1, np.random.default_rng(0))
    seen = {frontier[0].tobytes()}
    order, depth, shortest = [frontier], 0, None
    while len(frontier):
        out = domain.successors(frontier)
        depth += 1
        if shortest is None and out.solved.any():
            shortest = depth
        fresh = []
        for row in out.states[~out.terminal]:
            if row.tobytes() not in seen:
                seen.add(row.tobytes())
                fresh.append(row)
        frontier = np.array(fresh, np.uint8).reshape(-1, domain.state_size)
        order.append(frontier)
    return np.concatenate(order), shortest


@pytest.mark.parametrize(
    ("name", "rooms", "keys", "doors", "traps", "states", "shortest"),
    [
        ("full", 24, 4, 4, 100, 30_884, 232),
        ("four-rooms", 4, 1, 1, 0, 462, 128),
        ("hallway", 4, 3, 3, 0, 974, 47),
        ("one-room", 2, 1, 1, 0, 192, 17),
    ],
)
def test_the_worlds_are_the_known_ones(name, rooms, keys, doors, traps, states, shortest):
    domain = ToyMontezuma(ToyMontezumaConfig(name))
    assert len(domain.rooms) == rooms
    assert len(domain.world.keys) == keys
    assert len(domain.world.doors) == doors
    assert (domain.world.tiles == maps.TRAP).sum() == traps
    reached, solution = explore(domain)
    assert len(reached) == states
    assert solution == shortest

    # All rooms but the goal are visited before the end, and all cells but rock and traps are stood on.
    assert len(set(domain.room_index(reached).tolist())) == rooms - 1
    x, y = domain.positions(reached)
    standing = np.isin(domain.world.tiles, (maps.FLOOR, maps.KEY, maps.DOOR))
    assert len(set(zip(x.tolist(), y.tolist(), strict=True))) == standing.sum()

    # Room edges lead to floor, doors or the goal only, so tests the authors leave out there never matter.
    width, height = domain.world.room_size
    for dx, dy in ((0, -1), (1, 0), (0, 1), (-1, 0)):
        inside = (x + dx >= 0) & (x + dx < domain.world.tiles.shape[1])
        inside &= (y + dy >= 0) & (y + dy < domain.world.tiles.shape[0])
        crossing = inside & (((x + dx) // width != x // width) | ((y + dy) // height != y // height))
        landing = domain.world.tiles[y[crossing] + dy, x[crossing] + dx]
        assert set(landing.tolist()) <= {maps.FLOOR, maps.DOOR, maps.GOAL}


@pytest.mark.parametrize("name", NAMES)
def test_every_reachable_state_equals_the_oracle(name):
    domain = ToyMontezuma(ToyMontezumaConfig(name))
    oracle = ToyMontezumaOracle((FOLDER / f"{name}.map").read_text())
    states, _ = explore(domain)
    out = domain.successors(states)
    for i, state in enumerate(states):
        for action in range(4):
            row, *rest = oracle.step(state.tobytes(), action)
            assert out.states[i, action].tobytes() == row
            assert [out.rewards[i, action], out.terminal[i, action], out.solved[i, action]] == rest


def test_the_known_start_row_and_item_order():
    domain = ToyMontezuma()
    start = domain.initial(2, np.random.default_rng(0))
    assert start.tolist() == [[5, 1, 0, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]] * 2
    assert domain.observe(start).dtype == np.float32
    assert (domain.observe(start) == start).all()

    def named(places):
        (width, height), (first_x, first_y) = domain.world.room_size, domain.world.first_room
        return [((x // width + first_x, y // height + first_y), (x % width, y % height)) for x, y in places]

    assert named(domain.world.keys) == [
        ((2, 3), (5, 1)),
        ((5, 1), (1, 4)),
        ((7, 2), (9, 2)),
        ((8, 3), (9, 4)),
    ]
    assert named(domain.world.doors) == [
        ((3, 4), (0, 1)),
        ((4, 4), (0, 1)),
        ((5, 1), (0, 1)),
        ((5, 1), (10, 1)),
    ]
    assert domain.max_steps == 300


@pytest.mark.kernels
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lives", [1, 3])
def test_walks_equal_the_oracle(name, lives):
    prizes = {"max_lives": lives, "trap_reward": -0.5, "key_reward": 0.25, "door_reward": 0.125}
    domain = ToyMontezuma(ToyMontezumaConfig(name, **prizes))
    oracle = ToyMontezumaOracle((FOLDER / f"{name}.map").read_text(), **prizes)
    compare_walks(domain, oracle, WALKS, STEPS, np.random.default_rng(len(name)))


@pytest.mark.kernels
@pytest.mark.parametrize("lives", [1, 2, 255])
def test_walks_over_eventful_edges_equal_the_oracle(tmp_path, lives):
    path = tmp_path / "tiny.map"
    path.write_text(TINY)
    domain = ToyMontezuma(ToyMontezumaConfig(str(path), max_lives=lives, trap_reward=-1))
    oracle = ToyMontezumaOracle(TINY, max_lives=lives, trap_reward=-1)
    ended, solved = compare_walks(domain, oracle, 100, 60, np.random.default_rng(lives))
    assert ended >= solved > 0


@pytest.mark.parametrize("name", NAMES)
def test_conforms(name):
    check_domain(ToyMontezuma(ToyMontezumaConfig(name)), np.random.default_rng(0))


def test_more_lives_than_a_row_has_room_for_end_with_the_first():
    """Rows of worlds with one life do not know where a room was entered; a made-up one must not lead beyond its end."""
    domain = ToyMontezuma(ToyMontezumaConfig())
    rng = np.random.default_rng(0)
    states = domain.initial(100, rng)
    states[:, -2] = 7  # lives
    for _ in range(60):
        out = domain.successors(states)
        assert (out.terminal | (out.states[..., -2] == 7)).all()
        states = out.states[np.arange(len(states)), rng.integers(4, size=len(states))]
    assert (states[:, -2] == 6).any()


def test_conforms_with_lives():
    check_domain(ToyMontezuma(ToyMontezumaConfig(max_lives=2)), np.random.default_rng(0))


def test_text():
    domain = ToyMontezuma(ToyMontezumaConfig("one-room"))
    lines = domain.text(domain.initial(1, np.random.default_rng(0))[0]).splitlines()
    assert lines[4] == "#....@...#"
    assert lines[8:] == ["#k.......#", "########D#", "room 0,0  keys 0  lives 1"]


def test_pictures():
    domain = ToyMontezuma()
    state = domain.initial(1, np.random.default_rng(0))[0]
    assert domain.render(state).shape == (480, 440, 3)
    empty, lived = domain.render_world(), domain.render_world(state)
    assert empty.shape == lived.shape == (44 * 11, 99 * 11, 3)
    assert (empty != lived).any()
    heat = np.full((44, 99), np.nan)
    heat[1, 34] = 1.0
    changed = np.argwhere((domain.render_world(heat=heat) != empty).any(axis=2)) // 11
    assert (changed == [1, 34]).all()
    assert domain.render_episode(np.stack([state, state])).shape == lived.shape


ROOM = ["room size: 3 x 3", "", "###GGG", "#@.GGG", "###GGG"]


def edited(line, text):
    lines = list(ROOM)
    lines[line] = text
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (edited(3, "#@?GGG"), r"my.map, line 4, column 3: unknown tile '\?'"),
        (edited(3, "#@.GG"), "my.map, line 4: 5 characters, but the picture's first row has 6"),
        (edited(3, "#..GGG"), "my.map: no start"),
        (edited(3, "#@@GGG"), "my.map, lines 4 and 4: 2 starts"),
        (edited(3, "#@#GGG"), "my.map: the goal room cannot be reached"),
        (edited(3, "#@DGGG"), "my.map: the goal room cannot be reached"),
        (edited(3, "#@^GGG"), "my.map: the goal room cannot be reached"),
        (edited(3, "#@.GG."), "my.map, line 4, column 6: a room is drawn either with 'G'"),
        ("\n".join([*ROOM[:2], "###", "#@.", "###"]), "my.map: no goal room"),
        (edited(0, "room size: 4 x 3"), "not a whole number of 4 x 3 rooms"),
        (edited(0, "room size: 0 x 3"), "no room size"),
        (edited(0, "room size: big"), "my.map, line 1: expected 'room size: 10 x 10'"),
        (edited(0, "colour: 1 x 3"), "my.map, line 1: expected 'room size: 10 x 10'"),
        ("\n".join(ROOM[2:]), "no room size"),
        ("room size: 3 x 3\nfirst room: 255, 0\n" + "\n".join(ROOM[2:]), "must not exceed 255"),
        ("", "my.map: no picture"),
        ("; only a comment\n", "my.map: no picture"),
    ],
)
def test_bad_maps_get_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "my.map"
    path.write_text(text)
    with pytest.raises(BathysphereError, match=sentence):
        ToyMontezuma(ToyMontezumaConfig(str(path)))


def test_unreadable_maps_get_a_sentence(tmp_path):
    with pytest.raises(BathysphereError, match="one of: four-rooms, full, hallway, one-room"):
        ToyMontezuma(ToyMontezumaConfig("ful"))
    with pytest.raises(BathysphereError, match="no readable map"):
        ToyMontezuma(ToyMontezumaConfig(str(tmp_path)))
    binary = tmp_path / "binary.map"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BathysphereError, match="no readable map"):
        ToyMontezuma(ToyMontezumaConfig(str(binary)))
    huge = tmp_path / "huge.map"
    huge.write_bytes(b"#" * 1_000_001)
    with pytest.raises(BathysphereError, match="at most 1000000 bytes"):
        ToyMontezuma(ToyMontezumaConfig(str(huge)))


def test_a_key_behind_its_own_door_is_noticed(tmp_path):
    with pytest.raises(BathysphereError, match="cannot be reached"):
        maps.parse_map("room size: 3 x 1\n\n@Dk.D.GGG", "my.map")
    assert maps.parse_map("room size: 3 x 1\n\nk@D.k.D..GGG", "my.map").start == (1, 0)


def doors_and_keys(sealed):
    """A hall with 250 keys and 140 doors that lead nowhere; behind 250 doors in a row is the goal, if not sealed."""
    hall = [["."] * 249 + ["#"] for _ in range(250)]
    hall[0][0] = "@"
    for place in range(250):
        hall[place][1 + place * 97 % 100] = "k"
        hall[place][100 + place * 89 % 140] = "D"
    hall[125][249] = "D"
    ways = [("D" if row == 125 and not sealed else "#") * 250 for row in range(250)]
    rows = ["".join(left) + way + "G" * 250 for left, way in zip(hall, ways, strict=True)]
    return "room size: 250 x 250\n" + "\n".join(rows)


def test_looking_for_a_way_through_very_many_doors_comes_to_an_end():
    assert len(maps.parse_map(doors_and_keys(sealed=False), "text").doors) > 250
    with pytest.raises(BathysphereError, match="cannot be reached"):
        maps.parse_map(doors_and_keys(sealed=True), "text")


def test_very_many_small_rooms_are_refused_before_they_are_looked_at():
    with pytest.raises(BathysphereError, match="must not exceed 255"):
        maps.parse_map("room size: 1 x 1\n" + ("." * 900 + "\n") * 900, "text")


@pytest.mark.parametrize("bad", [{"max_steps": 0}, {"max_lives": 0}, {"max_lives": 256}, {"key_reward": float("nan")}])
def test_bad_numbers_get_a_sentence_that_names_the_setting(bad):
    with pytest.raises(BathysphereError, match=f"Toy Montezuma.*{next(iter(bad))}"):
        ToyMontezumaConfig(**bad)
