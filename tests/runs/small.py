"""Small runs for tests: seconds at most."""

from bathysphere.config.convert import override
from bathysphere.config.presets import find_preset
from bathysphere.config.run import RunConfig


def small_config(**changes) -> RunConfig:
    """A Deep-sea that is won within a few hundred steps."""
    base = override(find_preset("deep-sea"), {"domain": {"size": 6}, "steps": 1200, "log_every": 100})
    return override(base, changes)


def small_sokoban() -> RunConfig:
    """A Sokoban agent for boards of 7 x 7 with one box, trained for a second. It solves what ten passes can see."""
    changes = {
        "domain": {"generator": {"height": 7, "width": 7, "num_boxes": 1}, "num_boards": 5, "max_steps": 40},
        "values": {"conv_layers": 1, "conv_channels": 4, "dense": 8},
        "search": {"passes": 10},
        "learning": {"min_episodes": 5},
        "batch": 4,
        "steps": 400,
    }
    return override(find_preset("sokoban"), changes)
