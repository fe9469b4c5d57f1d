"""Where a run's first weights come from, if they are not random: another agent."""

from __future__ import annotations

from bathysphere.domains.base import ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.runs.agent import load_trained
from bathysphere.values.ensemble import Ensemble


def begin_with(values: Ensemble, agent: str, observation: ObservationSpec) -> None:
    """Gives an ensemble the weights of an agent, which must have seen the same and have the same network.

    Mutates: values.
    """
    trained = load_trained(agent)
    if trained.observation != observation:
        raise BathysphereError(
            f"{agent} cannot be started from: it sees {trained.observation}, this run sees {observation}. "
            "Start from an agent of the same world, with boards of the same size."
        )
    try:
        values.load_weights(trained.values.weights())
    except BathysphereError as error:
        raise BathysphereError(
            f"{agent} cannot be started from, because its network is another one: {error}"
        ) from error
