"""Code of users by its import path: what is named is imported, what a file names only with the same source."""

import subprocess
import sys

import pytest

from bathysphere.domains import user_code
from bathysphere.domains.user_code import find_named, find_saved, import_named, path_of, source_of
from bathysphere.errors import BathysphereError

MODULE = """
print("imported", __name__)
class World:
    pass
def make():
    return World()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with modules of its own, forgotten afterwards."""
    (tmp_path / "ours.py").write_text(MODULE)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("print('imported', __name__)\n")
    (tmp_path / "pack" / "inner.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(user_code, "_accepted", set())
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize("path", ["ours:World", "pack.inner:World"])
def test_what_the_user_names_is_imported_from_the_current_folder(folder, path):
    found = find_named(path)
    assert found.__name__ == "World"
    assert path_of(found) == path
    assert len(source_of(path)) == 64


def test_the_source_is_read_without_importing_anything(folder, capsys):
    assert source_of("pack.inner:World") == source_of("ours:World") != ""
    assert source_of("nowhere:World") == ""
    assert capsys.readouterr().out == ""


def test_what_a_file_names_is_imported_if_the_source_is_the_same(folder):
    assert find_saved("ours:World", source_of("ours:World")).__name__ == "World"


@pytest.mark.parametrize("path", ["ours:World", "pack.inner:World", "antigravity:geohash"])
@pytest.mark.parametrize("source", ["", "0" * 64])
def test_what_a_file_names_with_another_source_is_not_imported(folder, capsys, path, source):
    with pytest.raises(BathysphereError, match=r"is not what it was when this was saved.*--import"):
        find_saved(path, source)
    assert capsys.readouterr().out == ""
    assert path.partition(":")[0] not in sys.modules


def test_naming_the_module_accepts_its_present_source(folder):
    import_named("ours")
    assert find_saved("ours:World", "0" * 64).__name__ == "World"


def test_a_module_that_is_gone_is_named(folder):
    with pytest.raises(BathysphereError, match=r"The world gone:World cannot be found: there is no module gone here"):
        find_saved("gone:World", "0" * 64)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("gone:World", r"There is no module gone in .* Run this in its folder"),
        ("ours:Wordl", r"ours:Wordl cannot be used: ours \(.*ours.py\) has no Wordl. Did you mean 'World'\?"),
        ("broken:World", r"broken cannot be imported: ZeroDivisionError: division by zero \(.*broken.py, line 2\)"),
        ("typo:World", r"typo cannot be imported: SyntaxError: .*typo.py, line 1\)"),
        ("needy:World", r"needy needs a_package_nobody_has, which is not installed \(.*needy.py, line 1\)"),
    ],
)
def test_bad_modules_are_explained(folder, path, said):
    (folder / "broken.py").write_text("one = 1\none / 0\n")
    (folder / "typo.py").write_text("class World\n")
    (folder / "needy.py").write_text("import a_package_nobody_has\n")
    with pytest.raises(BathysphereError, match=said):
        find_named(path)


def test_a_lambda_and_a_local_class_have_no_path():
    class Local:
        pass

    assert path_of(lambda: None) is None
    assert path_of(Local) is None
    names: dict[str, object] = {"__name__": "__main__"}
    exec("class Typed: pass", names)  # as documentation and notebooks do
    assert path_of(names["Typed"]) is None


def test_the_running_script_is_known_by_its_name_and_not_run_twice(folder):
    script = folder / "script.py"
    script.write_text(
        "from bathysphere.domains.user_code import find_saved, path_of, source_of\n"
        "class World: pass\n"
        "print('running', path_of(World), find_saved('script:World', source_of('script:World')) is World)\n"
    )
    said = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["running script:World True"]
