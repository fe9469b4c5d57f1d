"""Value functions: an ensemble of networks (or a table) that is evaluated and trained as one."""

from bathysphere.values.batch import Batch, UpdateStats
from bathysphere.values.config import OptimiserConfig, ValuesConfig
from bathysphere.values.ensemble import Ensemble

__all__ = ["Batch", "Ensemble", "OptimiserConfig", "UpdateStats", "ValuesConfig"]
