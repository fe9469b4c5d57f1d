"""Attributes on which no step depends, found by reading the source: running totals, and notes for a log.

No number of steps proves that something does not matter, but code can: if all that is done with an attribute is to
write it, to add to it, and to decide what is added to others of its kind, then no answer of the environment depends on
it. Where code cannot be read, or uses attributes by names that are computed, nothing is found.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

_OURS = "bathysphere"
# What is asked of an environment; all else counts only if one of these may call it.
_ENTRANCES = frozenset(
    [
        "step",
        "reset",
        "unwrapped",
        "action_masks",
        "action_space",
        "observation_space",
        "render_mode",
        "metadata",
        "spec",
        "render",
        "observation",
        "get_state",
        "set_state",
        "clone_state",
        "restore_state",
        "ale",
        "layers",
    ]
)
_NO_WORLDS = frozenset(("builtins", "abc", "typing"))
_INSTALLED = frozenset(("site-packages", "dist-packages"))
_COMPUTED = frozenset(("vars", "locals", "globals", "eval", "exec", "__dict__", "__getattribute__"))
_BY_NAME = frozenset(("getattr", "hasattr", "attrgetter"))
_PURE = frozenset(("abs", "bool", "float", "int", "len", "max", "min", "round", "str"))


class _Unknown(Exception):
    """Code makes environments of other kinds."""


def unread(chain: Sequence[Any], names: Collection[str]) -> frozenset[str]:
    """Returns those of the attributes `names` that steps or resets write, and on which no answer of theirs depends.

    Args:
      chain: the wrappers, outermost first, and the environment inside.
      names: the attributes that are asked about.
    """
    idle = frozenset(names)
    try:
        parts = list(_reachable(_code_of(chain, idle)))
    except (OSError, SyntaxError, TypeError, _Unknown):  # there is no source to read, or too much of it
        return frozenset()
    if any(_uses_computed_names(part) for part in parts):
        return frozenset()
    while idle:
        reader = _Reader(idle)
        for part in parts:
            reader.visit(part)
        if not idle & reader.used:
            break
        idle -= reader.used
    return idle & {name for part in parts for name in _written(part)}


def _code_of(chain: Sequence[Any], names: frozenset[str]) -> list[ast.Module]:
    """Returns the modules of the environment, and those that these know of and that speak of one of `names`.

    Of other environments there, which have a class in common with this one, all but the name of a class is left out.
    """
    kinds = {kind for thing in chain for kind in type(thing).__mro__ if kind.__module__ not in _NO_WORLDS}
    own = {kind.__module__ for kind in kinds if kind.__module__.partition(".")[0] != _OURS}
    packages = {name.partition(".")[0] for name in own}
    waiting, met, found = sorted(own), set(own), list[ast.Module]()
    while waiting:
        name = waiting.pop()
        module = sys.modules[name]
        try:
            text = inspect.getsource(module)
        except (OSError, TypeError):
            if name in own:
                raise
            continue
        if name in own or any(each in text for each in names):
            found.append(ast.parse(text))
            for part in found[-1].body:
                if isinstance(part, ast.ClassDef) and _is_another(vars(module).get(part.name), kinds):
                    part.body = []
        for other in _modules_in(module) - met:
            met.add(other)
            if other.partition(".")[0] in packages or not _is_library(other):
                waiting.append(other)
    return found


def _is_another(kind: Any, kinds: set[type]) -> bool:
    return isinstance(kind, type) and kind not in kinds and not kinds.isdisjoint(kind.__mro__)


def _modules_in(module: ModuleType) -> set[str]:
    """Returns the names of modules that a module imports, or imports something from."""
    named = {
        thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)
        for thing in vars(module).values()
    }
    return {name for name in named if isinstance(name, str) and name in sys.modules}


def _is_library(name: str) -> bool:
    """Tells whether a module is of Python or was installed, and so does not know the attributes of others' worlds."""
    file, top = getattr(sys.modules[name], "__file__", None), name.partition(".")[0]
    return file is None or top == _OURS or top in sys.stdlib_module_names or not _INSTALLED.isdisjoint(Path(file).parts)


def _reachable(modules: list[ast.Module]) -> Iterator[ast.AST]:
    """Yields all code that may run in a step or a reset: what any name that such code mentions may stand for."""
    functions: dict[str, list[ast.AST]] = defaultdict(list)
    waiting, others = list[ast.AST](), set[str]()
    for module in modules:
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions[node.name].append(node)
            elif isinstance(node, ast.ClassDef) and not node.body:
                others.add(node.name)
    mentioned = set(_ENTRANCES) | {name for name in functions if name.startswith("__") and name.endswith("__")}
    while True:
        for name in mentioned & functions.keys():
            waiting += functions.pop(name)
        if others & mentioned:
            raise _Unknown
        if not waiting:
            return
        for node in waiting:
            mentioned.update(_mentioned(node))
        yield from waiting
        waiting = []


def _mentioned(part: ast.AST) -> Iterator[str]:
    for node in ast.walk(part):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _written(part: ast.AST) -> Iterator[str]:
    if getattr(part, "name", None) != "__init__":
        for node in ast.walk(part):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                yield node.attr


def _uses_computed_names(part: ast.AST) -> bool:
    """Tells whether code may use any attribute there is."""
    for node in ast.walk(part):
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in _COMPUTED:
                return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            told = node.args[1:2] if name != "attrgetter" else node.args
            if name in _BY_NAME and not all(isinstance(each, ast.Constant) for each in told):
                return True
    return False


class _Reader(ast.NodeVisitor):
    """Collects the attributes that code uses for anything but the value of idle ones.

    Args:
      idle: attributes that are taken for idle.
    """

    def __init__(self, idle: frozenset[str]) -> None:
        self._idle = idle
        self.used: set[str] = set()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """A value that is looked at."""
        if isinstance(node.ctx, ast.Load):
            self.used.add(node.attr)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """A text may be the name of an attribute."""
        if isinstance(node.value, str):
            self.used.update(node.value.split("."))

    def visit_Assign(self, node: ast.Assign) -> None:
        """What only idle attributes get is used by calls on the way alone."""
        if all(self._is_idle(target) for target in node.targets):
            self._flow(node.value)
        else:
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """As `visit_Assign`; other attributes use what they were."""
        if self._is_idle(node.target):
            self._flow(node.value)
            return
        if isinstance(node.target, ast.Attribute):
            self.used.add(node.target.attr)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """What decides on nothing but idle attributes is not used."""
        if not (_is_pure(node.test) and all(self._does_nothing(part) for part in node.body + node.orelse)):
            self.generic_visit(node)

    def _is_idle(self, target: ast.expr) -> bool:
        return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.attr in self._idle

    def _flow(self, value: ast.expr) -> None:
        if not _is_pure(value):
            self.visit(value)

    def _does_nothing(self, part: ast.stmt) -> bool:
        """Tells whether a statement changes idle attributes at most."""
        match part:
            case ast.Pass():
                return True
            case ast.Assign(targets=targets, value=value):
                return all(map(self._is_idle, targets)) and _is_pure(value)
            case ast.AugAssign(target=target, value=value):
                return self._is_idle(target) and _is_pure(value)
            case ast.If(test=test, body=body, orelse=orelse):
                return _is_pure(test) and all(map(self._does_nothing, body + orelse))
        return False


def _is_pure(value: ast.expr) -> bool:
    """Tells whether an expression only computes a value from others."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            if not (isinstance(node.func, ast.Name) and node.func.id in _PURE):
                return False
        elif isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr | ast.Lambda):
            return False
    return True
