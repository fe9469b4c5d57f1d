"""Code of users, found by its import path: `my_world:MyWorld` is the name MyWorld in the module my_world.

What a user names is imported. What only a file names (a run directory, an agent) is imported if the module found here
has the very source that the file speaks of; so a file from a stranger runs no code that its reader does not have and
the writer did not know, and nobody's run goes on in a world that has changed meanwhile.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
import sysconfig
import traceback
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bathysphere.errors import BathysphereError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_accepted: set[str] = set()  # modules that the user has named, and whose present source is therefore the one to use


def is_import_path(text: str) -> bool:
    """Tells whether `text` has the form of an import path.

    >>> is_import_path("my_world:MyWorld"), is_import_path("worlds/my_world.py:MyWorld"), is_import_path("sokoban")
    (True, False, False)
    """
    return _PATH.fullmatch(text) is not None


def import_named(module: str) -> ModuleType:
    """Imports a module that the user has named; from now on its present source is the one to use."""
    with _current_folder(), _own_errors(module):
        imported = _main_called(module) or importlib.import_module(module)
    _accepted.add(module)
    return imported


def named_modules() -> list[str]:
    """Returns the modules that the user has named: a process that goes on with the work must import them too."""
    return sorted(_accepted)


def find_named(path: str) -> Any:
    """Returns what the import path `path` stands for, which the user has named."""
    module, _, name = path.partition(":")
    return _look_up(import_named(module), path, name)


def find_saved(path: str, source: str) -> Any:
    """Returns what the import path `path` stands for, which a file names together with its source.

    Args:
      path: the import path.
      source: `source_of` it when the file was written.
    """
    module, _, name = path.partition(":")
    if module not in _accepted:
        _check_source(module, path, source)
    with _current_folder(), _own_errors(module):
        imported = _main_called(module) or importlib.import_module(module)
    return _look_up(imported, path, name)


def source_of(path: str) -> str:
    """Returns a fingerprint (SHA-256) of the file that defines the module of an import path."""
    file = _file_of(path.partition(":")[0])
    return "" if file is None else hashlib.sha256(file.read_bytes()).hexdigest()


def path_of(thing: Any) -> str | None:
    """Returns the import path of a class or function; None for what has none, such as a lambda."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if module == "__main__":
        module = _main_name() if _is_in_main(thing, name) else None
    path = f"{module}:{name}"
    if module is None or not is_import_path(path) or _file_of(module) is None:
        return None
    return path


def _is_in_main(thing: Any, name: str) -> bool:
    """Tells whether the program that runs defines `thing` under this name; what `exec` defined is in no file."""
    found: Any = sys.modules["__main__"]
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is thing


def _check_source(module: str, path: str, source: str) -> None:
    file = _file_of(module)
    if file is None:
        raise BathysphereError(
            f"The world {path} cannot be found: there is no module {module} here. Run this in the folder of "
            f"{module.partition('.')[0]}.py, or put that folder on PYTHONPATH."
        )
    if not source or hashlib.sha256(file.read_bytes()).hexdigest() != source:
        raise BathysphereError(
            f"{file} is not what it was when this was saved, so {path} may be another world now. To use it as it is, "
            f"say --import {module} (in Python: import_named({module!r}) of bathysphere.domains.user_code); otherwise "
            "restore the file."
        )


def _look_up(module: ModuleType, path: str, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [each for each in vars(module) if not each.startswith("_")]
            raise BathysphereError(
                f"{path} cannot be used: {module.__name__} ({getattr(module, '__file__', None)}) has no {name}."
                f"{did_you_mean(name, known)}"
            )
        found = getattr(found, part)
    return found


def _file_of(module: str) -> Path | None:
    """Returns the file of a module without importing it; None if there is none."""
    main = _main_called(module)
    if main is not None:
        return Path(str(main.__file__))
    with _current_folder():
        try:
            spec = importlib.util.find_spec(module) if "." not in module else _spec_in_package(module)
        except (ImportError, ValueError):
            return None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return None
    return Path(spec.origin)


def _spec_in_package(module: str) -> Any:
    """Finds a module of a package; `find_spec` would import the package first."""
    first, *rest = module.split(".")
    spec = importlib.util.find_spec(first)
    for count, _ in enumerate(rest, 2):
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = ".".join(module.split(".")[:count])
        spec = importlib.machinery.PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return spec


def _main_name() -> str | None:
    """Returns the name by which the running script could be imported."""
    main = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is not None:  # python -m NAME
        return str(main.__spec__.name) if main.__spec__ is not None else None
    file = getattr(main, "__file__", None)
    return None if file is None else Path(file).stem


def _main_called(module: str) -> ModuleType | None:
    """Returns the running script if that is its name: importing it would run it twice."""
    return sys.modules["__main__"] if _main_name() == module and hasattr(sys.modules["__main__"], "__file__") else None


@contextmanager
def _current_folder() -> Iterator[None]:
    """Looks for modules in the current folder too, as `python` does and installed commands do not."""
    folder = str(Path.cwd())
    if folder in sys.path or "" in sys.path:
        yield
        return
    sys.path.insert(0, folder)  # stays: what is imported may import its neighbours later
    importlib.invalidate_caches()
    yield


@contextmanager
def _own_errors(module: str) -> Iterator[None]:
    """Tells what is wrong with a user's module in a sentence, with the line of it."""
    try:
        yield
    except BathysphereError:
        raise
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise BathysphereError(
                f"There is no module {module} in {Path.cwd()} or among what is installed. Run this in its folder, or "
                "put that folder on PYTHONPATH."
            ) from error
        raise BathysphereError(f"{module} needs {error.name}, which is not installed{where(error)}.") from error
    except Exception as error:
        raise BathysphereError(
            f"{module} cannot be imported: {type(error).__name__}: {error}{where(error)}."
        ) from error


def where(error: BaseException) -> str:
    """Returns " (FILE, line N)": the innermost line of the user's own code that led to an error, if there is one."""
    libraries = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    others = (str(Path(__file__).parents[1]), *libraries, "<")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(others)]
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def parameters(thing: Any) -> dict[str, inspect.Parameter]:
    """Returns what a class or function takes by name, in order."""
    try:
        signature = inspect.signature(thing, eval_str=True)
    except (TypeError, ValueError, NameError):
        return {}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: each for name, each in signature.parameters.items() if each.kind in named}
