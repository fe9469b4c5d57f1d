"""Small runs for tests: seconds at most."""

from bathysphere.runs.config import RunConfig
from bathysphere.runs.presets import find_preset
from bathysphere.runs.serialise import override


def small_config(**changes) -> RunConfig:
    """A Deep-sea that is won within a few hundred steps."""
    base = override(find_preset("deep-sea"), {"domain": {"size": 6}, "steps": 1200, "log_every": 100})
    return override(base, changes)
