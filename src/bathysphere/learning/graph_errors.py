"""How often a model that is learnt while acting is wrong where planning asks it: about steps that nobody may make."""

from __future__ import annotations

from typing import Any

import numpy as np

from bathysphere.domains.base import AskedModel, Domain, PartialModel
from bathysphere.planning.planner import MODEL_ERRORS


def graph_errors(model: AskedModel, domain: Domain) -> dict[str, Any]:
    """Returns the share of wrong predictions, by kind of error, for the states that the model was asked about last.

    The rules are asked for these columns of the metrics alone; nothing is learnt from the answer. What the model does
    not know is left out. None if it was asked about nothing.
    """
    states = model.asked
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
