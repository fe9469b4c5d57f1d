"""What a run begins with, told to people."""

import pytest

from bathysphere.config.auto import Choice
from bathysphere.config.start import explained

REASON = "episodes have up to 60 steps, and their end must count at their beginning"
CHOICES = [Choice("search.discount 0.9833", REASON), Choice("batch 4", "the world is slow")]


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_choices_are_wrapped_at_the_width_of_the_terminal(columns):
    _, *lines = explained(CHOICES, columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[0].startswith("  search.discount 0.9833")
    assert " ".join(" ".join(lines).split()) == f"search.discount 0.9833 {REASON} batch 4 the world is slow"


def test_what_goes_to_a_file_has_a_line_for_each_choice():
    _, first, second = explained(CHOICES).splitlines()
    assert first == f"  search.discount 0.9833  {REASON}"
    assert second == "  batch 4                 the world is slow"
