"""A trained run as an agent: it plans from the state it is shown, and acts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bathysphere.domains import make_domain
from bathysphere.domains.base import Domain, States
from bathysphere.errors import BathysphereError
from bathysphere.planning import Search, SearchConfig
from bathysphere.runs.checkpoint import CheckpointStore
from bathysphere.runs.config import RunConfig
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.serialise import config_hash
from bathysphere.values.ensemble import Ensemble


class Agent:
    """Chooses actions in a world by planning with trained values.

    It keeps its search graph as long as the world goes on as it expects, and plans anew from any other state.

    Args:
      domain: the world.
      values: the trained ensemble.
      search: how to plan.
      seed: decides ties and the members drawn.
    """

    def __init__(self, domain: Domain, values: Ensemble, search: SearchConfig, seed: int = 0) -> None:
        self.domain, self.values, self.config = domain, values, search
        self._rng = np.random.default_rng(seed)
        self._search: Search | None = None
        self._expected: bytes | None = None

    def act(self, where: Any) -> int:
        """Returns the number of the chosen action.

        Args:
          where: an environment made by `bathysphere.gym`, looked at but not touched, or a state, uint8 [S].
        """
        state = self._state(where)
        if self._search is None or state.tobytes() != self._expected:
            seed = int(self._rng.integers(2**63))
            self._search = Search(self.domain, self.values, self.config, starts=state[None], seed=seed)
        finished = self._search.step()
        action = int(self._search.actions[0])
        if finished:
            self._search = None
        else:
            self._expected = self._search.root_states[0].tobytes()
        return action

    def _state(self, where: Any) -> States:
        if isinstance(where, np.ndarray):
            state = where
        else:
            inner: Any = getattr(where, "unwrapped", None)
            if not hasattr(inner, "get_state"):
                raise BathysphereError(
                    f"act takes an environment made by bathysphere.gym or a state; got {type(where).__name__}."
                )
            state = np.frombuffer(inner.get_state().state, np.uint8)
        if state.dtype != np.uint8 or state.shape != (self.domain.state_size,):
            raise BathysphereError(
                f"The state is {state.dtype} of shape {state.shape}; expected uint8 "
                f"[{self.domain.state_size}], as {self.domain.name} has it. "
                "Was the agent trained in another world?"
            )
        return state.copy()


def load_agent(run_dir: str | Path, *, search: SearchConfig | None = None, seed: int = 0) -> Agent:
    """Returns the agent that a run has trained, as of its newest checkpoint.

    Args:
      run_dir: the run directory.
      search: how to plan; as in training if not given.
      seed: decides ties and the members drawn.
    """
    config, domain, values = load_values(Path(run_dir))
    return Agent(domain, values, search or config.search, seed)


def load_values(run_dir: Path) -> tuple[RunConfig, Domain, Ensemble]:
    """Returns a run's config, its world, and its ensemble as of the newest checkpoint."""
    directory = RunDirectory.open(run_dir)
    config = directory.load_config()
    store = CheckpointStore(directory.checkpoints, config_hash(config))
    if not (paths := store.paths()):
        raise BathysphereError(f"{run_dir} has no checkpoint yet. Train it: bathysphere train --resume {run_dir}")
    weights = store.read_weights(paths[-1])
    domain = make_domain(config.domain)
    values = Ensemble(config.values, config.optimiser, domain.observation, config.seed, config.device)
    values.load_state_dict({name.removeprefix("values."): array for name, array in weights.items()})
    return config, domain, values
