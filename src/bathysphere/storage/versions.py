"""What a run was made with: versions, commit, machine and processor."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import bathysphere

_PACKAGES = ("bathysphere", "numpy", "numba", "torch")
# Wider registers and fused products add in another order, so numbers of networks differ in their last bits.
_FEATURES = (
    *("amx-bf16", "amx-int8", "avx", "avx2", "avx512bf16", "avx512f", "avx512vnni", "avxvnni", "fma"),  # x86
    *("bf16", "dotprod", "fullfp16", "i8mm", "neon", "sve", "sve2"),  # ARM
)


def collect_versions() -> dict[str, str | None]:
    """Returns versions of Python and of the packages that matter, the commit, the machine and its processor."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    versions |= {name: _version(name) for name in _PACKAGES}
    return {**versions, "commit": find_commit(), "machine": describe_machine(), "processor": find_features()}


def find_commit() -> str | None:
    """Returns the commit of the source checkout the package runs from, with '+changes' if edited.

    None for an installed package, even one inside another repository.
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


def find_features() -> str | None:
    """Returns the features of the processor that can change numbers, such as "avx avx2 fma"; None if it hides them.

    The same run gives the same numbers on processors with the same features.
    """
    from llvmlite.binding import get_host_cpu_features  # type: ignore[import-untyped]

    try:
        features = get_host_cpu_features()
    except RuntimeError:  # as llvmlite says that it does not know this kind of processor
        return None
    return " ".join(name for name in sorted(_FEATURES) if features.get(name)) or None


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
