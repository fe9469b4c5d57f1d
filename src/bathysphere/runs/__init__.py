"""Runs: the run directory, checkpoints and resume, metrics, results, pictures; a run as an object, and all of a folder.

The package can be called: `bathysphere.runs("runs")` returns the runs in a folder (see `collection.runs`).
"""

from __future__ import annotations

import sys
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bathysphere.runs.collection import Runs


class _CallablePackage(ModuleType):
    """As a public name, `bathysphere.runs` is a function; as soon as anything here is imported, it is this package."""

    def __call__(self, folder: str | PathLike[str] = "runs") -> Runs:
        from bathysphere.runs.collection import runs

        return runs(folder)


sys.modules[__name__].__class__ = _CallablePackage
