"""The planner: a risk-sensitive search over a graph of states, many episodes in lock step."""

from bathysphere.planning.config import SearchConfig
from bathysphere.planning.episode import Episode
from bathysphere.planning.mcts import Search, Values
from bathysphere.planning.pool import Crew

__all__ = ["Crew", "Episode", "Search", "SearchConfig", "Values"]
