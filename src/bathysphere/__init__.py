"""Planning with ensembles of value functions for hard, sparse-reward, discrete problems.

The names most programs need. They are imported when first used, so that `import bathysphere` is light. Deeper imports
are for contributors; docs/architecture.md says what is where.

Training and playing:

- `train(preset, **overrides)` trains, and returns the `Run`;
- `resume(run)` continues a run from its newest checkpoint;
- `Run` is a run as an object: curves, agent, evaluation, films, and how it ended as a mapping;
- `load_run(run_dir)` returns the run in a directory;
- `sweep(what, vary)` trains every combination of some settings with several seeds, and returns the `Sweep`;
- `Sweep` is what it left behind: a table with intervals, records, runs;
- `runs(folder)` returns all runs in a folder, which print as a table and have one frame of curves;
- `Callback` follows a run, and may end it: extend it, and hand it to `train`;
- `evaluate(agent, episodes)` lets an agent play, and counts its wins;
- `load_agent(agent)` returns a trained `Agent`: a shipped one by its name, one from a file, or that of a run;
- `Agent` acts in the Gymnasium environments of `bathysphere.gym`;
- `RunConfig` is everything that decides a run.

Planning by itself:

- `MCTS` is the paper's planner, with any domain and any values; `SearchConfig` says how it plans;
- `BestFirst` searches for whole plans; `BestFirstConfig` says how;
- `separable` and `joint` make a function of yours a risk measure.

Parts of your own, known by name to configs and to the command line (`--import MODULE`):

- `register_risk(name, measure)` does the same under another name;
- `register_network(name, factory)` makes a PyTorch module of yours a value network;
- `register_preset(name, function)` makes a config of yours a preset.

Worlds of your own:

- `from_steps(world)` makes a domain of a world that is written one state at a time;
- `from_gymnasium(env)` and `from_dm_env(env)` make domains of environments;
- `Domain` is what a world offers;
- `register_domain` makes a class of domains known by name;
- `make_domain(config)` builds the domain that a config describes;
- `check(world)` says what is wrong with a world and how to mend it, and what it is;
- `check_domain(domain, rng)` names the first promise that a domain does not keep.

And `BathysphereError` is what bad input raises.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bathysphere.errors import BathysphereError

if TYPE_CHECKING:
    from bathysphere.agents.agent import Agent
    from bathysphere.agents.evaluation import evaluate
    from bathysphere.agents.loading import load_agent
    from bathysphere.checking.world import check
    from bathysphere.config.presets import register_preset
    from bathysphere.config.run import RunConfig
    from bathysphere.domains.adapters.dm_env import from_dm_env
    from bathysphere.domains.adapters.gymnasium import from_gymnasium
    from bathysphere.domains.adapters.per_state import from_steps
    from bathysphere.domains.base import Domain
    from bathysphere.domains.registry import make_domain, register_domain
    from bathysphere.planning.best_first import BestFirst, BestFirstConfig
    from bathysphere.planning.config import SearchConfig
    from bathysphere.planning.graph.risk import joint, register_risk, separable
    from bathysphere.planning.mcts import MCTS
    from bathysphere.runs.api import resume, train
    from bathysphere.runs.callbacks import Callback
    from bathysphere.runs.collection import runs
    from bathysphere.runs.run import Run, load_run
    from bathysphere.studies.api import Sweep, sweep
    from bathysphere.testing import check_domain
    from bathysphere.values.registry import register_network

__all__ = [
    "MCTS",
    "Agent",
    "BathysphereError",
    "BestFirst",
    "BestFirstConfig",
    "Callback",
    "Domain",
    "Run",
    "RunConfig",
    "SearchConfig",
    "Sweep",
    "check",
    "check_domain",
    "evaluate",
    "from_dm_env",
    "from_gymnasium",
    "from_steps",
    "joint",
    "load_agent",
    "load_run",
    "make_domain",
    "register_domain",
    "register_network",
    "register_preset",
    "register_risk",
    "resume",
    "runs",
    "separable",
    "sweep",
    "train",
]

_HOMES = {
    "Agent": "bathysphere.agents.agent",
    "BestFirst": "bathysphere.planning",
    "BestFirstConfig": "bathysphere.planning",
    "Callback": "bathysphere.runs.callbacks",
    "Domain": "bathysphere.domains",
    "MCTS": "bathysphere.planning",
    "Run": "bathysphere.runs.run",
    "RunConfig": "bathysphere.config.run",
    "SearchConfig": "bathysphere.planning",
    "Sweep": "bathysphere.studies.api",
    "check": "bathysphere.checking.world",
    "check_domain": "bathysphere.testing",
    "evaluate": "bathysphere.agents.evaluation",
    "from_dm_env": "bathysphere.domains.adapters.dm_env",
    "from_gymnasium": "bathysphere.domains.adapters.gymnasium",
    "from_steps": "bathysphere.domains.adapters.per_state",
    "joint": "bathysphere.planning.graph.risk",
    "load_agent": "bathysphere.agents.loading",
    "load_run": "bathysphere.runs.run",
    "make_domain": "bathysphere.domains",
    "register_domain": "bathysphere.domains",
    "register_network": "bathysphere.values.registry",
    "register_preset": "bathysphere.config.presets",
    "register_risk": "bathysphere.planning.graph.risk",
    "resume": "bathysphere.runs.api",
    "runs": "bathysphere.runs.collection",
    "separable": "bathysphere.planning.graph.risk",
    "sweep": "bathysphere.studies.api",
    "train": "bathysphere.runs.api",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'bathysphere' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
