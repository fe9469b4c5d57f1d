"""Best-first search: one search for a whole plan instead of a search for every step."""

from bathysphere.planning.best_first.config import BestFirstConfig
from bathysphere.planning.best_first.planner import BestFirst
from bathysphere.planning.best_first.replan import Replan, ReplanConfig

__all__ = ["BestFirst", "BestFirstConfig", "Replan", "ReplanConfig"]
