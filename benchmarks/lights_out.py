"""Lights Out on 5 x 5 lamps: what the settings chosen for it do, and what a network can learn of it at all.

python benchmarks/lights_out.py train [risk_coef ...]      (two minutes for each of two seeds)
python benchmarks/lights_out.py told                       (a minute)

A press switches a lamp and its neighbours, and dark is the goal. `train` begins with 1 to 6 presses of different
buttons and counts the episodes won out of the first 150; without arguments with the settings that are chosen. `told`
trains a network on exact distances of fresh boards, to see whether it could value boards if somebody told it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import bathysphere
from bathysphere.domains.base import Categories, States, Successors

SEEDS = (1, 2)
ROW, COLUMN = np.divmod(np.arange(25), 5)
MASKS = (np.abs(ROW[:, None] - ROW) + np.abs(COLUMN[:, None] - COLUMN) <= 1).astype(np.uint8)  # what a press switches


class LightsOut:
    """For whole batches. A state is 25 bytes, and so is an observation.

    Args:
      presses: the most presses of different buttons that an episode begins with.
    """

    name, state_size, max_steps = "lights-out", 25, 50
    action_names = tuple(map(str, range(25)))
    observation = Categories((25,), 2)

    def __init__(self, presses: int = 6) -> None:
        self.presses = presses

    def initial(self, n: int, rng: np.random.Generator) -> States:
        """Returns boards that are not dark."""
        boards = np.zeros((n, 25), np.uint8)
        while len(dark := np.flatnonzero(~boards.any(axis=1))):
            boards[dark] = pressed(rng, len(dark), self.presses) @ MASKS % 2
        return boards

    def successors(self, states: States) -> Successors:
        """Presses every button; a dark board stays dark."""
        is_over = ~states.any(axis=1)
        after = states[:, None] ^ (MASKS[None] * ~is_over[:, None, None])
        is_dark = ~after.any(axis=2)
        return Successors(after, (is_dark & ~is_over[:, None]).astype(np.float64), is_dark, is_dark)

    def observe(self, states: States) -> NDArray[np.int32]:
        """Returns the lamps."""
        return states.astype(np.int32)


def pressed(rng: np.random.Generator, n: int, most: int) -> NDArray[np.uint8]:
    """Returns which buttons are pressed, uint8 [n, 25]: from 1 to `most` of them."""
    order = rng.random((n, 25)).argsort(axis=1).argsort(axis=1)
    return (order < rng.integers(1, most + 1, (n, 1))).astype(np.uint8)


def train(risk_coefs: list[float]) -> None:
    """Trains with each coefficient and seed, and prints how many of the first episodes were won."""
    for risk_coef in risk_coefs or [None]:
        for seed in SEEDS:
            changes: dict[str, Any] = {} if risk_coef is None else {"search": {"risk_coef": risk_coef}}
            with tempfile.TemporaryDirectory() as folder:
                run = bathysphere.train(
                    LightsOut(),
                    seed=seed,
                    stop={"episodes": 150},
                    run_dir=Path(folder) / "run",
                    pictures=False,
                    **changes,
                )
                used = run.config.search.risk_coef  # type: ignore[attr-defined]
                say(
                    f"risk_coef {used:g}, seed {seed}: won {run['wins']} of {run['episodes']}, {run['env_steps']} steps"
                )


def told(updates: int = 4000) -> None:
    """Trains an mlp on exact values of boards with few and with many presses, and prints the share it explains."""
    torch.set_num_threads(1)
    quiet = np.array(_quiet())
    for most in (3, 6, 12, 25):
        rng = np.random.default_rng(0)
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Linear(25, 128),
            torch.nn.ReLU(),
            torch.nn.Linear(128, 128),
            torch.nn.ReLU(),
            torch.nn.Linear(128, 1),
        )
        optimiser = torch.optim.Adam(net.parameters(), 1e-3)

        def boards(n: int, most: int = most, rng: np.random.Generator = rng) -> tuple[torch.Tensor, torch.Tensor]:
            presses = pressed(rng, n, most)
            steps = (presses[:, None] ^ quiet).sum(axis=2).min(axis=1)
            lamps = torch.tensor(presses @ MASKS % 2, dtype=torch.float32)
            return 2 * lamps - 1, torch.tensor(0.98**steps, dtype=torch.float32)[:, None]

        for _ in range(updates):
            lamps, values = boards(256)
            optimiser.zero_grad()
            torch.nn.functional.mse_loss(net(lamps), values).backward()
            optimiser.step()
        with torch.no_grad():
            lamps, values = boards(4000)
            explained = 1 - float(((net(lamps) - values) ** 2).mean() / values.var())
        say(f"1 to {most} presses: {explained:.0%} of the variance of values explained after {updates * 256:,} boards")


def _quiet() -> list[NDArray[np.uint8]]:
    """Returns the four sets of presses that switch nothing."""
    rows = [np.array(list(f"{k:05b}"), np.uint8) for k in range(32)]
    found = []
    for first in rows:  # the first row of presses decides all others
        presses = np.zeros((5, 5), np.uint8)
        presses[0] = first
        for row in range(1, 5):
            presses[row] = (presses.ravel() @ MASKS % 2).reshape(5, 5)[row - 1]
        if not (presses.ravel() @ MASKS % 2).any():
            found.append(presses.ravel())
    return found


def say(line: str) -> None:
    """Prints at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Does what the command line says."""
    if sys.argv[1:2] == ["told"]:
        told()
    else:
        train([float(word) for word in sys.argv[2:]])


if __name__ == "__main__":
    main()
