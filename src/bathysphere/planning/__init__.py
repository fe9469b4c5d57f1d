"""Planning: risk-sensitive search over graphs of states, many episodes at once."""

from bathysphere.planning.config import SearchConfig
from bathysphere.planning.episode import Episode
from bathysphere.planning.mcts import MCTS
from bathysphere.planning.planner import Planner, PlannerConfig, Values, make_planner
from bathysphere.planning.pool import Pool

__all__ = ["MCTS", "Episode", "Planner", "PlannerConfig", "Pool", "SearchConfig", "Values", "make_planner"]
