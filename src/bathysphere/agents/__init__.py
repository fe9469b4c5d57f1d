"""Trained agents that come with the package: every `.safetensors` file in this folder, called by its name."""

from __future__ import annotations

from pathlib import Path


def shipped() -> dict[str, Path]:
    """Returns the files of the agents there are, by name."""
    return {file.stem: file for file in sorted(Path(__file__).parent.glob("*.safetensors"))}
