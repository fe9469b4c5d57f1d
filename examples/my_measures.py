"""A risk measure and a value network of your own, from Python and from the command line.

python examples/my_measures.py      (about ten seconds)

In the folder of this file, or wherever Python finds it:

bathysphere train deep-sea --import my_measures --search.risk upper_half --stop.on-solved
bathysphere train deep-sea --import my_measures --values.network cells --optimiser.name adam \\
    --optimiser.learning-rate 0.02 --stop.on-solved

The file registers both when it is imported; run as a program it trains on Deep-sea with each, and with both, and prints
how many episodes each needed until it was solved, beside what comes with the package.
"""

import numpy as np
from torch import nn

import bathysphere


@bathysphere.separable
def upper_half(values, risk_coef):
    """The mean, and so much of what the better half of the members expect beyond it; ignores how bad the others are."""
    mean = values.mean()
    return mean + risk_coef * np.maximum(values - mean, 0.0).mean()


class Cells(nn.Module):
    """One number for each cell and member, with as much more or less as all members learn together."""

    def __init__(self, observation, config):
        super().__init__()
        self.own = nn.Embedding(observation.num_categories, config.num_members)
        self.common = nn.Embedding(observation.num_categories, 1)
        nn.init.zeros_(self.common.weight)

    def forward(self, cells):
        """From cells, whole numbers [n, 1], to values [n, E]."""
        return self.own(cells[:, 0]) + self.common(cells[:, 0])


bathysphere.register_network("cells", Cells)


def main() -> None:
    """Trains four times."""
    mine = {"risk": "upper_half", "risk_coef": 20.0}
    network = {"values": {"network": "cells"}, "optimiser": {"name": "adam", "learning_rate": 0.02}}
    for name, settings in {
        "what comes with the package": {},
        "the measure": {"search": mine},
        "the network": network,
        "both": {"search": mine} | network,
    }.items():
        run = bathysphere.train("deep-sea", seed=1, stop={"on_solved": True}, pictures=False, **settings)
        print(f"{name}: solved after {run['episodes']} episodes", flush=True)


if __name__ == "__main__":
    main()
