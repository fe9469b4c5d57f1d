import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig, Sokoban, ToyMontezuma
from bathysphere.domains.adapters.calling import user_code
from bathysphere.domains.base import Domain, Placed, Renderer, TextRenderer
from bathysphere.domains.presentation import film_of, picture_of, poster_of, text_of
from bathysphere.errors import WorldError
from tests.domains.corridor import Corridor, DrawnCorridor


def test_a_domain_needs_neither_pictures_nor_text():
    assert isinstance(Corridor(), Domain)
    assert not isinstance(Corridor(), Renderer | TextRenderer)


def test_what_a_domain_offers_is_used():
    domain, state = DrawnCorridor(), np.array([2], np.uint8)
    assert text_of(domain, state) == "..o.."
    assert np.array_equal(picture_of(domain, state), domain.render(state))
    sea = DeepSea(DeepSeaConfig(4))
    states = np.repeat(sea.initial(1, np.random.default_rng(0)), 2, axis=0)
    states[1] = sea.successors(states[:1]).states[0, 0]
    assert np.array_equal(poster_of(sea, states), sea.render_episode(states))
    assert not np.array_equal(poster_of(sea, states), sea.render(states[-1]))


def test_without_text_there_are_bytes_in_short_lines():
    assert text_of(Corridor(), np.array([10], np.uint8)) == "0a"
    assert text_of(Corridor(), np.arange(18, dtype=np.uint8)).split("\n")[1] == "10 11"


def test_without_pictures_the_text_is_drawn():
    domain = type("WithText", (Corridor,), {"text": lambda self, state: "ab\n" + "c" * state[0]})()
    one, two = (picture_of(domain, np.array([cell], np.uint8)) for cell in (3, 2))
    assert one.shape == (96, 80, 3)
    assert one.dtype == np.uint8
    assert two.shape == (96, 64, 3)
    assert not np.array_equal(one[:, :64], two)  # the third c is not there
    assert np.array_equal(one[:, :48], two[:, :48])
    assert np.array_equal(poster_of(domain, np.array([[3], [2]], np.uint8)), two)


def test_frames_of_a_film_have_one_size():
    domain = type("WithText", (Corridor,), {"text": lambda self, state: "c" * state[0]})()
    states = np.array([[1], [4]], np.uint8)
    one, four = film_of(domain, states)
    assert one.shape == four.shape == (64, 96, 3)
    assert np.array_equal(one[:, :48], picture_of(domain, states[0]))
    assert (one[:, 48:] == 255).all()


@pytest.mark.parametrize("text", ["", "\n", "→ ☃"])
def test_any_text_can_be_drawn(text):
    domain = type("WithText", (Corridor,), {"text": lambda self, state: text})()
    assert picture_of(domain, np.array([1], np.uint8)).ndim == 3


def test_real_pictures_stay_as_they_are():
    domain = Sokoban()
    states = domain.initial(2, np.random.default_rng(0))
    for frame, state in zip(film_of(domain, states), states, strict=True):
        assert np.array_equal(frame, domain.render(state))


@pytest.mark.parametrize("domain", [DeepSea(DeepSeaConfig(6)), Sokoban(), ToyMontezuma()], ids=lambda d: d.name)
def test_places_are_where_pictures_change(domain):
    assert isinstance(domain, Placed)
    state = domain.initial(1, np.random.default_rng(0))[0]
    moved = 0
    for step in range(12):
        answer = domain.successors(state[None])
        actions = [a for a in range(len(domain.action_names)) if not np.array_equal(answer.states[0, a], state)]
        nearby = answer.states[0, actions[step % len(actions)]]
        if answer.terminal[0, actions[step % len(actions)]]:
            break
        before, after = domain.render(state), domain.render(nearby)
        places = domain.places(np.stack([state, nearby]), state)
        if ((places > 0) & (places < 1)).all():
            moved += 1
            for row, column in (places * before.shape[:2]).astype(int):
                here = np.s_[row - 6 : row + 7, column - 6 : column + 7]
                assert (before[here] != after[here]).any()
            rows, columns = np.nonzero((before != after).any(axis=2))
            middle = (rows.min() + rows.max() + 1) / 2, (columns.min() + columns.max() + 1) / 2
            assert np.linalg.norm(places.mean(axis=0) * before.shape[:2] - middle) < 0.12 * len(before)
        state = nearby
    assert moved > 2


def test_places_outside_the_picture_are_said_too():
    domain = ToyMontezuma()
    start = domain.initial(1, np.random.default_rng(0))[0]
    (shown,) = domain.state_maps(start)
    places = domain.places(shown.states, start)
    is_here = ((places > 0) & (places < 1)).all(axis=1)
    assert 0 < is_here.sum() < len(places)
    same_room = domain.room_index(shown.states) == domain.room_index(start[None])
    assert np.array_equal(is_here, same_room)


def test_where_a_package_for_pictures_is_missing_the_text_is_drawn():
    class DependencyNotInstalled(Exception):
        """As Gymnasium's."""

    def render(self, state):
        with user_code("render"):
            raise DependencyNotInstalled("pygame")

    state = np.array([2], np.uint8)
    bare = type("NoPictures", (Corridor,), {"render": render})()
    with pytest.raises(WorldError, match="Install it to have pictures"):
        picture_of(bare, state)
    with_text = type("NoPicturesButText", (Corridor,), {"render": render, "text": lambda self, state: "abc"})()
    assert picture_of(with_text, state).shape == (64, 80, 3)
