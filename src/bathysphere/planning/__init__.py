"""Planning: risk-sensitive search over graphs of states, many episodes at once."""

from bathysphere.planning.best_first import BestFirst, BestFirstConfig, Replan, ReplanConfig
from bathysphere.planning.config import PlannerSettings, SearchConfig
from bathysphere.planning.episode import Episode
from bathysphere.planning.expectimax import Expectimax, ExpectimaxConfig
from bathysphere.planning.mcts import MCTS
from bathysphere.planning.named import named_planner
from bathysphere.planning.no_planner import NoPlanner, NoPlannerConfig
from bathysphere.planning.planner import Planner, Values, make_planner
from bathysphere.planning.pool import Pool

__all__ = [
    "MCTS",
    "BestFirst",
    "BestFirstConfig",
    "Episode",
    "Expectimax",
    "ExpectimaxConfig",
    "NoPlanner",
    "NoPlannerConfig",
    "Planner",
    "PlannerSettings",
    "Pool",
    "Replan",
    "ReplanConfig",
    "SearchConfig",
    "Values",
    "make_planner",
    "named_planner",
]
