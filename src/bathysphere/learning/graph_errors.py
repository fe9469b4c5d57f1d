"""How often a model that is learnt while acting is wrong where planning asks it: about steps that nobody may make."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from bathysphere.domains.base import AskedModel, Chance, Domain, Outcomes, PartialChance, PartialModel, States
from bathysphere.planning.planner import MODEL_ERRORS


def graph_errors(model: AskedModel, domain: Domain) -> dict[str, Any]:
    """Returns the share of wrong predictions, by kind of error, for the states that the model was asked about last.

    The rules are asked for these columns of the metrics alone; nothing is learnt from the answer. What the model does
    not know is left out. None if it was asked about nothing. In a world with chance it is the probability, on average
    over actions, that the model gives to outcomes beyond what they have.
    """
    states = model.asked
    if isinstance(model, Chance) and isinstance(domain, Chance):
        return {"model_graph_wrong_chance": _wrong_chance(model, domain, states) if len(states) else None}
    if len(states) == 0:
        return {f"model_graph_{kind}": None for kind in MODEL_ERRORS}
    truth, imagined = domain.successors(states), model.imagine(states) if isinstance(model, PartialModel) else None
    told = model.successors(states) if imagined is None else imagined.successors
    is_known = np.ones(told.rewards.shape, np.bool_) if imagined is None else imagined.is_known
    wrong = (
        told.rewards != truth.rewards,
        told.terminal & ~truth.terminal,
        truth.terminal & ~told.terminal,
        (told.states != truth.states).any(axis=2),
    )
    num_known = max(int(is_known.sum()), 1)
    pairs = zip(MODEL_ERRORS, wrong, strict=True)
    return {f"model_graph_{kind}": int((is_wrong & is_known).sum()) / num_known for kind, is_wrong in pairs}


def _wrong_chance(model: Chance, domain: Chance, states: States) -> float:
    told = model.imagine_outcomes(states).outcomes if isinstance(model, PartialChance) else model.outcomes(states)
    wrong = 0.0
    for said, true in zip(_chances(told), _chances(domain.outcomes(states)), strict=True):
        wrong += sum(max(chance - true[outcome], 0.0) for outcome, chance in said.items())
    return wrong / max(told.rewards[..., 0].size, 1)


def _chances(told: Outcomes) -> list[Counter[Any]]:
    """Returns for every state and action how probable each outcome is."""
    num_pairs = told.rewards[..., 0].size
    states, chances, *rest = (part.reshape(num_pairs, *part.shape[2:]) for part in told)
    found: list[Counter[Any]] = [Counter() for _ in range(num_pairs)]
    for pair, place in zip(*np.nonzero(chances), strict=True):
        outcome = states[pair, place].tobytes(), *(part[pair, place].item() for part in rest)
        found[pair][outcome] += chances[pair, place].item()
    return found
