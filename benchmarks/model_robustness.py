"""How an agent plays with models that err: python benchmarks/model_robustness.py FILE...

Plans with the values of an agent and the models in the given files (`bathysphere model train` makes them): the first
alone, and all of them as an ensemble that votes, with several numbers of votes and weights of what is unknown. With
--wrong instead of files, models are the rules, but that share of predictions is what another action leads to, drawn
once and for all for every model, state and action. A quarter of these happen to be right: boards_right says how many.

The planner mcts plans as the agent was trained to. replan searches for whole plans, and makes another one when a step
leads elsewhere than planned; best-first follows its one plan up to there. None of the three is told of deadlocks.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from bathysphere.agents.loading import load_values
from bathysphere.domains.base import Domain, Model, States, Successors
from bathysphere.models.config import DataConfig
from bathysphere.models.evaluation import on_random_episodes
from bathysphere.models.learned import load_model
from bathysphere.models.unknown import UnknownValues
from bathysphere.models.voting import VotingModel
from bathysphere.planning import BestFirstConfig, PlannerSettings, ReplanConfig, SearchConfig
from bathysphere.planning.planner import make_planner, play_all
from bathysphere.statistics import wilson_interval


class WrongModel:
    """The rules, with a share of wrong predictions: a wrong step leads to what another action should lead to."""

    def __init__(self, domain: Domain, share: float, seed: int) -> None:
        self._domain, self._share = domain, share
        self._draws = UnknownValues(len(domain.action_names), 2, 3.0**-0.5, seed)  # uniform in -1 to 1

    def successors(self, states: States) -> Successors:
        """Predicts all actions from `states`, uint8 [n, S]."""
        truth = self._domain.successors(states)
        drawn = (self._draws.of(states) + 1) / 2
        num_actions = drawn.shape[1]
        other = (np.arange(num_actions) + 1 + (drawn[..., 1] * (num_actions - 1)).astype(int)) % num_actions
        action = np.where(drawn[..., 0] < self._share, other, np.arange(num_actions))
        rows = np.arange(len(states))[:, None]
        return Successors(*(part[rows, action] for part in truth))


def play(
    domain: Domain, values: Any, search: PlannerSettings, model: Model | None, episodes: int, seed: int
) -> dict[str, Any]:
    """Plays episodes with a model and returns what was counted."""
    began = time.process_time()
    options: dict[str, Any] = {"batch": min(60, episodes), "num_episodes": episodes, "seed": seed}
    planner = make_planner(domain, values, search, model=model, **options)
    wins = sum(episode.solved for episode in play_all(planner))
    low, high = wilson_interval(wins, episodes)
    work = planner.work
    return {
        "won": f"{wins} of {episodes}: {wins / episodes:.1%} ({low:.1%} to {high:.1%})",
        "real_steps": work.steps,
        "imagined_steps": work.model_calls * len(domain.action_names),
        "wrong_states": work.model_errors["wrong_state"],
        "unknown_steps": work.unknown_steps,
        "seconds": round(time.process_time() - began),
    }


def settings(planner: str, trained: SearchConfig, model_risk: float, max_expansions: int) -> PlannerSettings:
    """Returns how to plan, with the discount, the limit of steps and the pruning that the agent was trained with."""
    if planner == "mcts":
        return replace(trained, model_risk=model_risk)
    kind = {"replan": ReplanConfig, "best-first": BestFirstConfig}[planner]
    alike = {"discount": trained.discount, "max_steps": trained.max_steps, "prune": trained.prune}
    order = {"order": "steps", "weight": 2.0, "width": 4, "max_expansions": max_expansions}
    return kind(**alike, **order, model_risk=model_risk)


def main() -> None:
    """Plays with every kind of model and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--wrong", type=float, help="share of wrong predictions, instead of files")
    parser.add_argument("--models", type=int, default=5, help="with --wrong: how many")
    parser.add_argument("--agent", default="sokoban-10x10")
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--planners", nargs="+", choices=["mcts", "replan", "best-first"], default=["mcts"])
    parser.add_argument("--max-expansions", type=int, default=300, help="of each plan of replan and best-first")
    parser.add_argument("--rules", action="store_true", help="plan with the rules too")
    parser.add_argument("--quorums", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--model-risks", type=float, nargs="+", default=[0.0, -3.0])
    parser.add_argument("--seed", type=int, default=9000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    config, domain, values = load_values(args.agent)
    models: list[Model]
    if args.wrong is not None:
        models = [WrongModel(domain, args.wrong, number) for number in range(args.models)]
    else:
        models = [load_model(file, domain) for file in args.files]
    starts = domain.initial(16, np.random.default_rng(0))
    spread = float(values.evaluate(domain.observe(starts)).mean())  # as wide as what a board is worth
    unknown = UnknownValues(len(domain.action_names), values.num_members, spread, 0)
    data = DataConfig(held_out=20, episodes=1)
    right = [round(on_random_episodes(model, domain, data).frames_right, 4) for model in models]
    print(json.dumps({"boards_right": right, "spread": spread}), flush=True)

    def report(planner: str, kind: str, model: Model | None, model_risk: float) -> None:
        search = settings(planner, config.search, model_risk, args.max_expansions)
        row = play(domain, values, search, model, args.episodes, args.seed)
        print(json.dumps({"planner": planner, "model": kind, "model_risk": model_risk, **row}), flush=True)

    for planner in args.planners:
        if args.rules:
            report(planner, "rules", None, 0.0)
        report(planner, "first alone", models[0], 0.0)
        for quorum in args.quorums:
            for model_risk in args.model_risks:
                report(planner, f"{quorum} of {len(models)} votes", VotingModel(models, unknown, quorum), model_risk)


if __name__ == "__main__":
    main()
