"""The examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import bathysphere

MODULES = [
    info.name for info in pkgutil.walk_packages(bathysphere.__path__, "bathysphere.") if "__main__" not in info.name
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_some():
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(examples) > 5
