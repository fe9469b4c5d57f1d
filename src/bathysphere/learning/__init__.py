"""Learning: from finished episodes to targets, masks, replay and batches."""

from bathysphere.learning.hindsight import with_hindsight
from bathysphere.learning.masks import MaskConfig, draw_mask, split_mask
from bathysphere.learning.replay import Replay, ReplayConfig, Sample
from bathysphere.learning.targets import TargetKind, targets
from bathysphere.planning import Episode

__all__ = [
    "Episode",
    "MaskConfig",
    "Replay",
    "ReplayConfig",
    "Sample",
    "TargetKind",
    "draw_mask",
    "split_mask",
    "targets",
    "with_hindsight",
]
