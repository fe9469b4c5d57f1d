"""The planner: a risk-sensitive search over a graph of states, many episodes in lock step."""

from bathysphere.planning.config import SearchConfig
from bathysphere.planning.crew import Crew
from bathysphere.planning.episode import Episode
from bathysphere.planning.search import Search, Values

__all__ = ["Crew", "Episode", "Search", "SearchConfig", "Values"]
