"""Which worlds a model can predict that goes beyond what has happened."""

from __future__ import annotations

from bathysphere.domains.base import Domain, Remembers
from bathysphere.errors import BathysphereError

_MOST_BYTES = 256  # of a row; longer ones are hashes or pictures, or too slow


def check_predictable(domain: Domain) -> None:
    """Refuses worlds whose rows cannot be predicted."""
    if domain.state_size > _MOST_BYTES:
        raise BathysphereError(
            f"The states of {domain.name} have {domain.state_size} bytes; only rows of at most {_MOST_BYTES} can be "
            "predicted. Learn them with the model memory, or plan with the rules."
        )
    if isinstance(domain, Remembers):
        raise BathysphereError(
            f"{domain.name} knows states that it has met, and no others, so none can be predicted. Learn them with the "
            "model memory, or plan with the rules."
        )
