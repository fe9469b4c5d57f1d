"""Objects become equal bytes if and only if they are equal, and come back equal."""

import collections
import contextlib
import enum
import typing
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bathysphere.domains.adapters.packing import Packer
from bathysphere.errors import WorldError


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Place(typing.NamedTuple):
    row: int
    column: int


@dataclass(frozen=True)
class Room:
    place: Place
    doors: frozenset


@dataclass
class Loose:
    place: int


@dataclass(frozen=True)
class Careless:
    place: int
    note: str = field(default="", compare=False)


NUMBERS = st.one_of(
    st.booleans(), st.integers(-300, 300), st.integers(), st.floats(allow_nan=False), st.sampled_from([-0.0, 1.0])
)
LEAVES = st.one_of(st.none(), NUMBERS, st.text(), st.binary(max_size=200), st.sampled_from(Colour))
THINGS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5).map(tuple), st.frozensets(inner, max_size=5), st.tuples(NUMBERS, NUMBERS)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=300)
@given(THINGS, st.binary(max_size=3))
def test_an_object_comes_back_equal_whatever_zeros_follow(thing, key):
    packer = Packer()
    packed = packer.pack(thing)
    assert packer.unpack(packed.ljust(len(packed) + len(key), b"\0")) == thing
    assert packer.pack(packer.unpack(packed)) == packed


@settings(deadline=None, max_examples=300)
@given(THINGS, THINGS)
def test_bytes_are_equal_if_and_only_if_the_objects_are(one, other):
    packer = Packer()
    assert (packer.pack(one) == packer.pack(other)) == (one == other)


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(0, 1), st.integers(-1, 256)), max_size=300))
def test_tuples_of_whole_numbers_have_one_form_whatever_the_numbers_are(numbers):
    packer = Packer()
    packed = packer.pack(tuple(numbers))
    assert packer.pack(tuple(map(float, numbers))) == packed
    assert packer.pack(tuple(map(np.int16, numbers))) == packed
    assert packer.unpack(packed) == tuple(numbers)


@pytest.mark.parametrize(
    "equal",
    [
        (True, 1, 1.0, np.True_, np.uint8(1), np.float32(1), Level.LOW),
        ((True, 0), (1, 0), (1.0, -0.0), (np.int64(1), False)),
        ((0.5, 1), (0.5, True), (np.float64(0.5), 1.0)),
        (0.0, -0.0, 0, False),
        (2.0**70, 2**70),
        (frozenset([1, "a", (2,)]), frozenset([(2.0,), "a", True])),
        ("ab", np.str_("ab")),
    ],
)
def test_equal_objects_of_different_types_are_one(equal):
    assert len({Packer().pack(thing) for thing in equal}) == 1


@pytest.mark.parametrize(
    "different",
    [
        (1, "1", b"1", (1,), frozenset([1]), None, 1.5, Colour.RED, np.array(1)),
        ((1, 2), Place(1, 2), ((1, 2),), (1, 2, 0), (1, 2, 300)),
        ((), "", b"", frozenset(), np.zeros(0)),
        (np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.int8), np.zeros(3)),
    ],
)
def test_different_objects_differ_even_when_padded(different):
    packed = {Packer().pack(thing).ljust(200, b"\0") for thing in different}
    assert len(packed) == len(different)


def test_sets_of_texts_do_not_depend_on_the_order_of_hashing():
    words = [f"word {number}" for number in range(20)]
    assert Packer().pack(frozenset(words)) == Packer().pack(frozenset(reversed(words)))


def test_classes_come_back_also_in_a_process_that_has_packed_none():
    room = Room(Place(1, 2), frozenset([Colour.RED, Colour.BLUE]))
    back = Packer(__name__).unpack(Packer().pack(room))
    assert back == room
    assert isinstance(back.place, Place)


def test_a_class_that_is_not_beside_the_world_is_not_imported():
    with pytest.raises(WorldError, match="class Room, which is not in the module builtins"):
        Packer().unpack(Packer().pack(Room(Place(1, 2), frozenset())))


def test_two_classes_of_one_name_are_refused():
    packer = Packer()
    packer.pack(Place(1, 2))
    other = collections.namedtuple("Place", "x")
    with pytest.raises(WorldError, match="two classes called Place"):
        packer.pack(other(1))


@pytest.mark.parametrize("dtype", ["bool", "int8", ">i4", "float32", "float16"])
def test_arrays_keep_type_and_shape_and_cannot_be_changed(dtype):
    array = np.arange(6).reshape(2, 3).T.astype(dtype)
    back = Packer().unpack(Packer().pack(array))
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype.newbyteorder("<")
    with pytest.raises(ValueError, match="read-only"):
        back[0] = 1


def test_minus_zero_in_an_array_is_zero():
    assert Packer().pack(np.array([-0.0, 1.0])) == Packer().pack(np.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        ([1, 2], "holds a list, which can change.* Return a tuple"),
        ((1, {2}), "holds a set, .* Return a frozenset"),
        ({"a": 1}, "holds a dict"),
        (object(), r"holds a object, which cannot be packed into bytes.*pack\(state\)"),
        (1j, "holds a complex"),
        (float("nan"), "NaN"),
        ((1.0, float("nan")), "NaN"),
        (np.array([np.nan]), "NaN"),
        (np.array([None]), "an array of object"),
        (Loose(1), r"a Loose, .*frozen=True"),
        (Careless(1), "a Careless, "),
    ],
)
def test_what_cannot_be_packed_is_said(thing, sentence):
    with pytest.raises(WorldError, match=sentence):
        Packer().pack(thing)


@pytest.mark.parametrize(
    "things",
    [
        [(1, 2), (0, 255)],
        [(True, np.int8(3)), (np.uint8(9), 0)],
        [()] * 3,
        [(7,) * 127],
    ],
    ids=str,
)
def test_small_numbers_at_once_are_what_each_packs_to(things):
    packer = Packer()
    assert packer.small_numbers(things).tolist() == [list(packer.pack(thing)) for thing in things]


@pytest.mark.parametrize(
    "things",
    [
        [],
        [(1, 2), (3,)],
        [(1, 256)],
        [(1, -1)],
        [(1, 2.0)],
        [(1, "a")],
        [(1, 2), [1, 2]],
        [(7,) * 128],
        [b"ab", b"cd"],
        [typing.NamedTuple("Two", [("a", int), ("b", int)])(1, 2)],
    ],
    ids=lambda things: str(things)[:30],
)
def test_anything_else_is_packed_one_by_one(things):
    assert Packer().small_numbers(things) is None


@settings(deadline=None, max_examples=500)
@given(st.one_of(st.binary(min_size=1, max_size=60), st.tuples(THINGS, st.integers(0, 40), st.integers(0, 255))))
def test_any_bytes_are_an_object_or_a_sentence(made_up):
    data = made_up
    if not isinstance(made_up, bytes):  # one byte of a good state is another
        thing, place, byte = made_up
        good = bytearray(Packer().pack(thing))
        good[place % len(good)] = byte
        data = bytes(good)
    with contextlib.suppress(WorldError):
        Packer(__name__).unpack(data)


def test_states_within_states_end():
    with pytest.raises(WorldError, match="stand for nothing"):
        Packer().unpack(b"t\x01" * 30_000)


@pytest.mark.parametrize("tag", [b"e", b"n", b"d"])
def test_no_class_is_used_for_what_it_was_not_packed_as(tag):
    name = b"Loose" if tag == b"d" else b"collections.OrderedDict"
    with pytest.raises(WorldError):
        Packer(__name__).unpack(tag + bytes([len(name)]) + name + Packer().pack((1, 2)))
