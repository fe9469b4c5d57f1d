import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig, Sokoban
from bathysphere.domains.base import Domain, Renderer, TextRenderer
from bathysphere.domains.presentation import film_of, picture_of, poster_of, text_of
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
