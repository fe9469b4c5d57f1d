"""Training a world model: data, updates, reports on held-out boards, checkpoints, and a file at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from bathysphere.domains import Sokoban, SokobanConfig
from bathysphere.domains.base import States
from bathysphere.domains.sokoban.rules import NUM_CODES
from bathysphere.models.config import DataConfig, TrainingConfig
from bathysphere.models.data import Transitions
from bathysphere.models.evaluation import Tally, on_states
from bathysphere.models.learned import LearnedModel
from bathysphere.models.network import build_network, loss, num_parameters
from bathysphere.storage.state import Arrays, check_finite, check_optimiser


class ModelTrainer:
    """Makes updates, deterministically from the config's seed: update number u depends on nothing but u.

    Attributes:
      num_updates: made so far.
      seconds: of training so far, reports included, data not.
      last_loss: of the latest update.
      last_report: the latest.
    """

    def __init__(self, config: TrainingConfig, data: Transitions, held_out: States) -> None:
        self.config, self.data, self.held_out = config, data, held_out
        self.domain = make_domain(config.data)
        rng = np.random.default_rng(config.data.seed)
        self.network = build_network(config.model, NUM_CODES, len(self.domain.action_names), rng)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._optimiser = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate)
        self._numbers = data.order(config.data.solved_copies)
        self._epoch, self._order = -1, self._numbers
        self.num_updates, self.seconds, self.last_loss = 0, 0.0, float("nan")
        self.last_report: Tally | None = None

    @property
    def updates_per_epoch(self) -> int:
        """Updates in one pass over the data; what does not fill a batch is left for other passes."""
        return max(1, len(self._numbers) // self.config.batch_size)

    def train(self, num_updates: int) -> None:
        """Makes that many updates."""
        began = time.perf_counter()
        for _ in range(num_updates):
            self._update()
        self.seconds += time.perf_counter() - began

    def report(self) -> Tally:
        """Compares the network as it is now with the rules, on the held-out boards."""
        began = time.perf_counter()
        model = LearnedModel.of_network(self.network, self.config.model, self.domain)
        self.last_report = on_states(model, self.domain, self.held_out)
        self.seconds += time.perf_counter() - began
        return self.last_report

    def card(self) -> dict[str, Any]:
        """Returns how the model was trained, as its file tells it."""
        return {
            "training": asdict(self.config),
            "parameters": num_parameters(self.network),
            "transitions": len(self.data.before),
            "updates": self.num_updates,
            "seconds": round(self.seconds, 1),
        }

    def _update(self) -> None:
        config, data = self.config, self.data
        epoch, place = divmod(self.num_updates, self.updates_per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = np.random.default_rng([config.data.seed, epoch]).permutation(self._numbers)
        chosen = self._order[place * config.batch_size : (place + 1) * config.batch_size]
        for group in self._optimiser.param_groups:
            group["lr"] = self._learning_rate(epoch)
        before = data.before[chosen]
        boards, next_boards = (torch.from_numpy(self._boards(data.frames[rows])) for rows in (before, before + 1))
        cells, done = self.network.predict(boards, torch.from_numpy(data.actions[chosen]))
        is_done = torch.from_numpy(data.done[chosen])
        objective = loss(cells, done, boards, next_boards, is_done, config.model.cells, config.changed_weight)
        self._optimiser.zero_grad()
        objective.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        self.num_updates += 1
        self.last_loss = objective.item()

    def _learning_rate(self, epoch: int) -> float:
        config = self.config
        if config.schedule == "epochs":
            return config.learning_rate / (1 + 0.1 * epoch)
        return config.learning_rate * max(0.0, 1 - self.num_updates / config.updates)

    def _boards(self, rows: States) -> States:
        return rows.reshape(-1, self.config.data.height, self.config.data.width)

    def state_dict(self) -> Arrays:
        """Returns everything that training needs to go on bit for bit."""
        state = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        for index, slots in self._optimiser.state_dict()["state"].items():
            state |= {f"optimiser.{index}.{slot}": tensor for slot, tensor in slots.items()}
        arrays: Arrays = {name: np.array(tensor.numpy(), order="C") for name, tensor in state.items()}
        return {**arrays, "num_updates": np.array(self.num_updates), "seconds": np.array(self.seconds)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what `state_dict` returned.

        Mutates: network, optimiser and counters.
        """
        check_finite(state)
        check_optimiser(state)
        tensors = {name: torch.from_numpy(np.array(array)) for name, array in state.items()}
        prefix = "network."
        self.network.load_state_dict({k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)})
        slots: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimiser."):
                _, index, slot = name.split(".")
                slots.setdefault(int(index), {})[slot] = tensor
        groups = self._optimiser.state_dict()["param_groups"]
        self._optimiser.load_state_dict({"state": slots, "param_groups": groups})
        self.num_updates, self.seconds = int(state["num_updates"]), float(state["seconds"])


def make_domain(config: DataConfig) -> Sokoban:
    """Returns the world in which the data are made."""
    return Sokoban(SokobanConfig(generator=config.generator(config.max_boxes)))
