"""A trained agent: it plans from the state it is shown, and acts. Where agents come from."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bathysphere.agents import shipped
from bathysphere.domains import make_domain
from bathysphere.domains.base import Domain, Model, ObservationSpec, States
from bathysphere.errors import BathysphereError
from bathysphere.planning import Search, SearchConfig
from bathysphere.runs import agent_file
from bathysphere.runs.config import RunConfig
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.models import make_model
from bathysphere.values.ensemble import Ensemble


class Agent:
    """Chooses actions in a world by planning with trained values.

    It keeps its search graph as long as the world goes on as it expects, and plans anew from any other state.

    Args:
      domain: the world.
      values: the trained ensemble.
      search: how to plan.
      seed: decides ties and the members drawn.
      model: what planning believes happens; the world's own rules if not given.
    """

    def __init__(
        self, domain: Domain, values: Ensemble, search: SearchConfig, seed: int = 0, model: Model | None = None
    ) -> None:
        self.domain, self.values, self.config, self.model = domain, values, search, model
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
            self._search = Search(
                self.domain, self.values, self.config, starts=state[None], seed=seed, model=self.model
            )
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


class Trained(NamedTuple):
    """What training has left behind."""

    path: Path  # the file or run directory it was read from
    config: RunConfig
    observation: ObservationSpec
    values: Ensemble
    fingerprint: str  # of the weights


def load_agent(agent: str | Path, *, search: SearchConfig | None = None, seed: int = 0) -> Agent:
    """Returns an agent that can act.

    Args:
      agent: name of a shipped agent, agent file, or run directory (as of its newest checkpoint).
      search: how to plan; as in training if not given.
      seed: decides ties and the members drawn.
    """
    trained = load_trained(agent)
    config, domain = trained.config, make_domain(trained.config.domain)
    return Agent(domain, trained.values, search or config.search, seed, make_model(config, domain, trained.path))


def load_values(agent: str | Path) -> tuple[RunConfig, Domain, Ensemble]:
    """Returns an agent's config, its world and its ensemble; `agent` as for `load_agent`."""
    trained = load_trained(agent)
    return trained.config, make_domain(trained.config.domain), trained.values


def load_trained(agent: str | Path) -> Trained:
    """Returns what is left of training, without the world; `agent` as for `load_agent`."""
    path = find_agent(agent)
    if path.is_dir():
        return _load_run(path)
    config, observation, _, weights, fingerprint = agent_file.read(path)
    values = Ensemble(config.values, config.optimiser, observation, config.seed, config.device)
    try:
        values.load_weights(weights)
    except BathysphereError as error:
        raise BathysphereError(f"{path} cannot be used: {error}") from error
    return Trained(path, config, observation, values, fingerprint)


def find_agent(agent: str | Path) -> Path:
    """Returns the file or run directory that `agent` means.

    A file or run directory of that name comes before a shipped agent; a folder that is no run does not.
    """
    path, agents = Path(agent), shipped()
    if path.is_file() or (path / "config.json").is_file():
        return path
    if str(agent) in agents:
        return agents[str(agent)]
    if path.is_dir():
        return RunDirectory.open(path).path  # says what is missing
    near = difflib.get_close_matches(str(agent), agents, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise BathysphereError(
        f"There is no agent {str(agent)!r}: no file, no run directory, and none of the agents that come with "
        f"Bathysphere ({', '.join(agents)}).{hint}"
    )


def _load_run(run_dir: Path) -> Trained:
    directory = RunDirectory.open(run_dir)
    config = directory.load_config()
    store = directory.checkpoint_store()
    weights = store.read_weights(store.newest())
    observation = make_domain(config.domain).observation
    values = Ensemble(config.values, config.optimiser, observation, config.seed, config.device)
    values.load_state_dict({name.removeprefix("values."): array for name, array in weights.items()})
    return Trained(run_dir, config, observation, values, agent_file.weights_fingerprint(values.weights()))
