"""What a run was made with: versions, commit and machine."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import bathysphere

_PACKAGES = ("bathysphere", "numpy", "numba", "torch")


def collect_versions() -> dict[str, str | None]:
    """Returns versions of Python and of the packages that matter, the commit, and the machine."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    versions |= {name: _version(name) for name in _PACKAGES}
    return {**versions, "commit": find_commit(), "machine": describe_machine()}


def find_commit() -> str | None:
    """Returns the commit of the source checkout the package runs from, with '+changes' if edited.

    None for an installed package, even one inside somebody else's repository.
    """
    package = Path(bathysphere.__file__).resolve().parent
    root = package.parents[1]
    if package != root / "src" / "bathysphere" or not (root / ".git").exists():
        return None
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None:
        return None
    return commit + ("+changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")


def describe_machine() -> str:
    """Returns processor, cores and operating system in one line."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass  # not Linux, or a processor that does not say
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git(root: Path, *arguments: str) -> str | None:
    try:
        command = ["git", "-C", str(root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
