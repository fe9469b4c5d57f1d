"""The public names: each is there, explained and documented, and naming the package costs nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import bathysphere

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "numba", "gymnasium", "matplotlib")


@pytest.mark.parametrize("name", bathysphere.__all__)
def test_a_public_name_is_there_and_explained(name):
    thing = getattr(bathysphere, name)
    assert thing.__name__.rpartition(".")[2] == name  # bathysphere.runs is a package that can be called
    assert (thing.__doc__ or "").strip()
    assert f"`{name}" in (bathysphere.__doc__ or ""), f"the docstring of bathysphere does not explain {name}"
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert re.search(rf"`(bathysphere\.)?{name}\b", page), f"docs/architecture.md does not name {name}"


def test_names_are_listed_once():
    assert set(bathysphere._HOMES) | {"BathysphereError"} == set(bathysphere.__all__)
    assert len(set(bathysphere.__all__)) == len(bathysphere.__all__)
    assert set(bathysphere.__all__) <= set(dir(bathysphere))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = bathysphere.trian


@pytest.mark.parametrize(
    "code", ["import bathysphere", "from bathysphere.cli import main; main(['--help'])"], ids=["import", "help"]
)
def test_heavy_libraries_wait_until_they_are_needed(code):
    check = f"{code}\nimport sys\nprint(*sorted({set(HEAVY)!r} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []


def test_train_then_resume(tmp_path):
    small = {"domain": {"size": 5}, "steps": 100, "pictures": False}
    first = bathysphere.train("deep-sea", run_dir=tmp_path / "run", **small)
    with pytest.raises(bathysphere.BathysphereError, match="seed would change"):
        bathysphere.resume(str(tmp_path / "run"), seed=1)
    second = bathysphere.resume(str(tmp_path / "run"), steps=200, pictures=False)
    assert (first["env_steps"], second["env_steps"]) == (100, 200)
    whole = bathysphere.train("deep-sea", run_dir=tmp_path / "whole", **(small | {"steps": 200}))
    assert whole["episodes"] == second["episodes"]
    assert whole["wins"] == second["wins"]
