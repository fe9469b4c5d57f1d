"""The rooms are as docs/architecture.md draws them, each contract can fail, and what contributors run exists."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "bathysphere"
BIN = Path(sys.executable).parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]

# One forbidden import for each contract: where it is added, what is added, and the contract that must complain.
FORBIDDEN = {
    "upwards": ("storage/files.py", "import bathysphere.runs.runner", "rooms"),
    "upwards inside a function": ("learning/targets.py", "def f():\n    from bathysphere.cli import main", "rooms"),
    "upwards for types only": ("agents/agent.py", "if TYPE_CHECKING:\n    import bathysphere.runs.runner", "rooms"),
    "a room without a place": ("attic.py", "import bathysphere.errors", "rooms"),
    "torch in the planner": ("planning/config.py", "import torch", "light"),
    "ray in a domain": ("domains/deep_sea/domain.py", "def f():\n    import ray", "light"),
    "gymnasium in a domain": ("domains/base.py", "import gymnasium", "light"),
    "ray in the runner": ("runs/runner.py", "def f():\n    import ray", "ray"),
    "a world in the planner": ("planning/config.py", "from bathysphere.domains.deep_sea import DeepSea", "worlds"),
    "a world in the runner": ("runs/runner.py", "import bathysphere.domains.sokoban.rules", "worlds"),
    "a world in the config": ("config/run.py", "import bathysphere.domains.toy_montezuma", "worlds"),
    "a world in another": ("domains/sokoban/rules.py", "import bathysphere.domains.deep_sea", "strangers"),
}


def _lint(package: Path) -> subprocess.CompletedProcess[str]:
    """Checks the contracts of this project on the package in the folder `package`."""
    command = [BIN / "lint-imports", "--no-cache", "--no-logo", "--config", ROOT / "pyproject.toml"]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=package.parent)


@pytest.fixture
def copied(tmp_path):
    """A copy of the package that a test may break."""
    return shutil.copytree(
        PACKAGE,
        tmp_path / "bathysphere",
        ignore=lambda folder, names: [n for n in names if not n.endswith(".py") and not (Path(folder) / n).is_dir()],
    )


def test_the_package_keeps_its_contracts():
    done = _lint(PACKAGE)
    assert done.returncode == 0, done.stdout
    assert f"{len(SETTINGS['contracts'])} kept, 0 broken" in done.stdout


@pytest.mark.parametrize(("file", "addition", "contract"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_forbidden_import_breaks_its_contract(copied, file, addition, contract):
    assert _lint(copied).returncode == 0
    with (copied / file).open("a", encoding="utf-8") as opened:
        opened.write(f"\n{addition}\n")
    done = _lint(copied)
    [name] = [known["name"] for known in SETTINGS["contracts"] if known["id"] == contract]
    assert done.returncode == 1
    assert f"{name} BROKEN" in " ".join(done.stdout.split())


def test_domains_and_planning_load_no_heavy_library():
    """The linter lets adapters import their library inside functions; here it must not be loaded yet."""
    code = """
        import importlib, pkgutil, sys
        for room in ("domains", "planning"):
            package = importlib.import_module(f"bathysphere.{room}")
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                importlib.import_module(module.name)
        print(*sorted({"torch", "ray", "gymnasium"} & set(sys.modules)))
        """
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_contract_is_broken_by_a_test():
    assert {contract for _, _, contract in FORBIDDEN.values()} == {known["id"] for known in SETTINGS["contracts"]}


# The linter sees modules, not names: `from bathysphere.domains import Sokoban` is an import of the whole room to it.
MAY_NAME_WORLDS = ("domains", "models", "puzzles", "studies", "bench", "gym.py", "cli")
MAY_NAME_WORLDS_TOO = {"config/presets.py", "config/run.py"}  # presets, and the domain of a config that names none


def _names_a_world(text: str) -> bool:
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    names = [name.name for node in imports if node.module == "bathysphere.domains" for name in node.names]
    return any(name.startswith(("DeepSea", "Sokoban", "ToyMontezuma")) for name in names)


def test_other_rooms_do_not_take_a_world_from_the_domains_package():
    naming = {
        str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if _names_a_world(file.read_text("utf-8"))
    }
    assert {file for file in naming if not file.startswith(MAY_NAME_WORLDS)} == MAY_NAME_WORLDS_TOO


def test_the_page_lists_the_rooms_in_the_order_of_the_contract():
    layers = [room for layer in SETTINGS["contracts"][0]["layers"] for room in re.findall(r"\w+", layer)]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = re.findall(r"^\| `(\w+)(?:\.py|/)` \|", page, re.MULTILINE)
    assert len(rooms) == len(set(rooms))
    assert set(rooms) == set(layers)
    level = {
        room: k for k, layer in enumerate(SETTINGS["contracts"][0]["layers"]) for room in re.findall(r"\w+", layer)
    }
    assert [level[room] for room in rooms] == sorted((level[room] for room in rooms), reverse=True)


def _plain(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", _plain("Makefile"), re.MULTILINE))


def test_hosted_checks_run_make_check():
    workflow = _plain(".github/workflows/check.yml")
    assert "check" in _targets()
    assert re.findall(r"run: (.*)", workflow) == ["make check"]
    [versions] = re.findall(r"python: \[(.*)\]", workflow)
    oldest = re.search(r'requires-python = ">=([\d.]+)"', _plain("pyproject.toml")).group(1)
    assert oldest in versions
    assert "secrets" not in workflow
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", used) for used in re.findall(r"uses: (.*)", workflow))


def test_commit_hooks_run_tools_that_make_lint_runs():
    entries = re.findall(r"entry: \.venv/bin/(\S+)(.*)", _plain(".pre-commit-config.yaml"))
    assert [tool for tool, _ in entries] == ["ruff", "ruff", "lint-imports"]
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", _plain("Makefile"), re.MULTILINE).group(1)
    for tool, arguments in entries:
        assert (BIN / tool).is_file()
        first = " ".join([tool, *arguments.split()[:1]])
        assert first.replace("--force-exclude", "").strip() in lint


@pytest.mark.parametrize(
    "file",
    [".pre-commit-config.yaml", *(str(file.relative_to(ROOT)) for file in (ROOT / ".github").rglob("*.yml"))],
)
def test_yaml_is_plain(file):
    """No YAML reader is among the dependencies; this finds what most often breaks such a file."""
    for number, line in enumerate(_plain(file).splitlines(), 1):
        where = f"{file}, line {number}: {line!r}"
        assert "\t" not in line, where
        assert (len(line) - len(line.lstrip(" "))) % 2 == 0, where
        value = line.strip().removeprefix("- ").partition(": ")[2]
        is_quoted = value.startswith(("'", '"', "[", "{", "|", ">"))
        assert is_quoted or ": " not in value, f"{where} needs quotes"
        assert line.count('"') % 2 == 0, where


def test_the_page_names_files_that_exist():
    page = _plain("docs/architecture.md")
    paths = re.findall(r"`((?:\w+/)+[\w.]+\.py|(?:tests|src)/[\w/.]+)`", page)
    assert len(paths) > 20
    for path in paths:
        assert (ROOT / path).exists() or (PACKAGE / path).exists(), f"docs/architecture.md names {path}"
