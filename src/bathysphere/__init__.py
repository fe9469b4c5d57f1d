"""Planning with ensembles of value functions for hard, sparse-reward, discrete problems.

The few names most programs need. They are imported when first used, so that `import bathysphere` is light:

- `train(preset, **overrides)` trains and returns the result;
- `load_agent(agent)` returns a trained `Agent` (a shipped one by its name) that acts in a Gymnasium environment of
  `bathysphere.gym`;
- `BathysphereError` is what bad input raises.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bathysphere.errors import BathysphereError

if TYPE_CHECKING:
    from bathysphere.agents.agent import Agent
    from bathysphere.agents.loading import load_agent
    from bathysphere.runs.api import train

__all__ = ["Agent", "BathysphereError", "load_agent", "train"]

_HOMES = {
    "Agent": "bathysphere.agents.agent",
    "load_agent": "bathysphere.agents.loading",
    "train": "bathysphere.runs.api",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'bathysphere' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
