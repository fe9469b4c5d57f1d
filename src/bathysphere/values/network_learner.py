"""Training and evaluation of a PyTorch value network."""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bathysphere.domains.base import ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.storage.state import Arrays, require
from bathysphere.values.batch import Batch, UpdateStats, check_shapes, member_means
from bathysphere.values.board_network import BoardNetwork, build_board_network
from bathysphere.values.config import OptimiserConfig, ValuesConfig
from bathysphere.values.int8 import Int8BoardNetwork, Int8Network, is_exact_here
from bathysphere.values.module import ValueModule
from bathysphere.values.networks import ValueNetwork, build_network
from bathysphere.values.optimisers import build_optimiser
from bathysphere.values.own_network import OwnNetwork, build_own_network
from bathysphere.values.registry import find_factory
from bathysphere.values.towers import TowerNetwork, build_towers

_CHUNK_CPU, _CHUNK_GPU = 512, 16384  # rows evaluated at once: bounds memory, and on a CPU keeps to the cache


Network = ValueNetwork | TowerNetwork | BoardNetwork | OwnNetwork


class NetworkLearner:
    """A network for all members, a frozen prior if there is one, and the optimiser."""

    def __init__(
        self,
        config: ValuesConfig,
        optimiser: OptimiserConfig,
        observation: ObservationSpec,
        rng: np.random.Generator,
        device: str,
        num_actions: int = 0,
    ) -> None:
        self._device = resolve_device(device)
        self._settings = optimiser
        self._network: Network
        if config.num_towers:
            self._network = build_towers(config, observation, rng).to(self._device)
        elif config.network == "board":
            policy_size = num_actions if config.policy else 0
            network = build_board_network(config, observation, policy_size, rng, config.init_scale)
            self._network = network.to(self._device)
        else:
            self._network = _build(config, observation, rng, config.init_scale).to(self._device)
        self._trained = [p for p in self._network.parameters() if p.requires_grad]
        self._prior_scale = config.prior_scale
        self._prior = None
        if config.prior_scale:
            self._prior = _build(config, observation, rng, 1.0).to(self._device).requires_grad_(False)
        # What plays: the trained network, or a running mean of it.
        self._playing = copy.deepcopy(self._network).requires_grad_(False) if optimiser.averaging else self._network
        self._is_rounded = config.precision == "int8" and self._device.type == "cpu" and is_exact_here()
        self._rounded: Int8Network | Int8BoardNetwork | None = None  # what plays, if it plays in int8
        self._round()
        self._optimiser = build_optimiser(optimiser, self._trained)
        self._num_updates = 0
        self._chunk = _CHUNK_CPU if self._device.type == "cpu" else _CHUNK_GPU

    def __getstate__(self) -> dict[str, object]:
        """Leaves out what cannot be sent to another process, and is made of the weights there."""
        return {**vars(self), "_rounded": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restores what `__getstate__` returned."""
        vars(self).update(state)
        self._round()

    def evaluate(self, observations: NDArray[np.generic]) -> NDArray[np.float32]:
        """Returns float32 [n, E] for observations [n, ...]."""
        return np.ascontiguousarray(self.outputs(observations)[:, :, 0])

    def outputs(self, observations: NDArray[np.generic]) -> NDArray[np.float32]:
        """Returns all that members say of observations [n, ...]: float32 [n, E, 1 + A], a value and logits of a policy.

        Without policies A is 0.
        """
        starts = range(0, len(observations), self._chunk)
        parts = [self._evaluate(observations[start : start + self._chunk]) for start in starts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def module(self, observation: ObservationSpec) -> ValueModule:
        """Returns a copy of what plays, and of the prior, as one module on the CPU."""
        return ValueModule(self._playing, observation, self._prior, self._prior_scale).cpu()

    def snapshot(self) -> NetworkLearner:
        """Returns a learner with a network of its own, to be evaluated only."""
        taken = copy.copy(self)
        taken._network = taken._playing = copy.deepcopy(self._playing)
        taken._prior = copy.deepcopy(self._prior)
        return taken

    def update(self, batch: Batch) -> UpdateStats:
        """Learns from the batches in order."""
        num_updates, _, num_members = batch.mask.shape
        observations, targets = self._tensor(batch.observations), self._tensor(batch.targets)
        mask = self._tensor(batch.mask).float()
        policy = None if batch.policy is None else self._tensor(batch.policy)
        losses, norms, errors = [], [], torch.zeros(num_members, device=self._device)
        for u in range(num_updates):
            self._set_rate()
            told = None if policy is None else policy[u]
            loss, squared = self._loss(*self._part(observations[u], targets[u], mask[u]), mask[u], told)
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            gradients = [p.grad for p in self._trained if p.grad is not None]
            norms.append(torch.nn.utils.get_total_norm(gradients))
            self._optimiser.step()
            self._num_updates += 1
            self._average()
            losses.append(loss.detach())
            errors += squared.detach().sum(0)
        self._round()
        if not losses:
            return UpdateStats(0.0, np.full(num_members, np.nan), 0.0)
        loss_mean, norm_mean = torch.stack([torch.stack(losses), torch.stack(norms)]).mean(1).tolist()
        member_losses = member_means(errors.cpu().numpy().astype(np.float64), batch.mask.sum((0, 1), np.float64))
        return UpdateStats(loss_mean, member_losses, norm_mean)

    def weights(self) -> Arrays:
        """Returns copies of weights and prior under flat names."""
        weights = {f"network.{name}": _array(value) for name, value in self._playing.state_dict().items()}
        if self._prior is not None:
            weights |= {f"prior.{name}": _array(value) for name, value in self._prior.state_dict().items()}
        return weights

    def load_weights(self, weights: Arrays) -> None:
        """Restores what `weights` returned, here or in an `MlpLearner`. Mutates: weights and prior."""
        check_shapes(self.weights(), {name: array for name, array in weights.items() if name != "base"})
        for network in (self._network, self._playing):
            network.load_state_dict(_section(weights, "network."))
        if self._prior is not None:
            self._prior.load_state_dict(_section(weights, "prior."))
        self._round()

    def state_dict(self) -> Arrays:
        """Returns copies of weights, prior and optimiser state under flat names."""
        state = self.weights()
        if self._settings.averaging:
            state |= {f"trained.{name}": _array(value) for name, value in self._network.state_dict().items()}
        if self._settings.is_extended:
            state["num_updates"] = np.array(self._num_updates)
        for index, slots in self._optimiser.state_dict()["state"].items():
            # A slot may be empty: plain SGD keeps None where momentum would be.
            state |= {f"optimiser.{index}.{slot}": _array(v) for slot, v in slots.items() if v is not None}
        return state

    def load_state_dict(self, state: Arrays) -> None:
        """Restores what `state_dict` returned.

        Mutates: weights, prior and optimiser.
        """
        self.load_weights({name: array for name, array in state.items() if name.startswith(("network.", "prior."))})
        if self._settings.averaging:
            self._network.load_state_dict(_section(state, "trained."))
        slots: dict[int, dict[str, Tensor]] = {}
        for name, value in _section(state, "optimiser.").items():
            index, slot = name.split(".", 1)
            self._check_slot(int(index), slot, value)
            slots.setdefault(int(index), {})[slot] = value
        self._num_updates = int(state.get("num_updates", 0))
        groups = self._optimiser.state_dict()["param_groups"]
        self._optimiser.load_state_dict({"state": slots, "param_groups": groups})

    def _check_slot(self, index: int, slot: str, value: Tensor) -> None:
        """Refuses what the optimiser cannot have kept of a weight: a number of steps, or an average of its shape."""
        require(0 <= index < len(self._trained), "the optimiser knows of weights that there are not")
        fits = value.ndim == 0 or (value.shape == self._trained[index].shape and value.dtype.is_floating_point)
        require(fits, f"what the optimiser keeps of weight {index} ({slot}) is not of its shape")

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        # PyTorch warns about read-only memory, so that is copied.
        return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(self._device)

    def _round(self) -> None:
        """Lets what plays in int8 follow the weights."""
        if self._is_rounded:
            if isinstance(self._playing, BoardNetwork):
                self._rounded = Int8BoardNetwork(self._playing)
            else:
                assert isinstance(self._playing, ValueNetwork)
                self._rounded = Int8Network(self._playing)

    def _evaluate(self, observations: NDArray[np.generic]) -> NDArray[np.float32]:
        if isinstance(self._rounded, Int8BoardNetwork):
            return self._rounded.evaluate(observations)
        if self._rounded is not None:
            return self._rounded.evaluate(observations)[:, :, None]
        with torch.inference_mode():
            return self._predict(self._playing, self._tensor(observations)).contiguous().cpu().numpy()

    def _predict(self, network: Network, observations: Tensor) -> Tensor:
        """Returns [n, E, 1 + A]; see `outputs`."""
        answer: Tensor = network(observations)
        if isinstance(network, BoardNetwork):
            return answer
        if self._prior is not None:
            answer = answer + self._prior_scale * self._prior(observations)
        return answer.unsqueeze(2)

    def _set_rate(self) -> None:
        for group in self._optimiser.param_groups:
            group["lr"] = self._settings.rate(self._num_updates)

    @torch.no_grad()
    def _average(self) -> None:
        if self._settings.averaging:
            # A young mean keeps less, so that it leaves the random start quickly.
            share = min(self._settings.averaging, self._num_updates / (self._num_updates + 9))
            for mean, parameter in zip(self._playing.parameters(), self._network.parameters(), strict=True):
                mean.lerp_(parameter, 1.0 - share)

    def _part(self, observations: Tensor, targets: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Leaves each member only the entries it learns from, if members can part and that is less work.

        Args:
          observations, targets, mask: of b entries, [b, ...], [b, M] and [b, E].

        Returns:
          The same of n < b entries of its own for each member: [E, n, ...], [n, E] and [n, E]. The mask is 0 where a
          member has fewer than others.
        """
        most = int(mask.sum(0).max())
        if not isinstance(self._network, ValueNetwork) or not self._network.can_part or not 0 < most < len(mask):
            return observations, targets, mask
        rows = mask.argsort(dim=0, descending=True, stable=True)[:most]
        return observations[rows.t()], targets.expand_as(mask).gather(0, rows), mask.gather(0, rows)

    def _loss(
        self, observations: Tensor, targets: Tensor, weights: Tensor, mask: Tensor, policy: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Returns the objective and the squared errors times `weights`.

        `mask` is that of the whole batch, [b, E]; `policy` [b, A] is zero where there is nothing to learn.
        """
        outputs = self._predict(self._network, observations)
        squared = (outputs[:, :, 0] - targets).square() * weights
        if self._settings.normalise == "all":
            loss = squared.sum() / mask.numel()
        elif self._settings.normalise == "active":
            loss = squared.sum() / mask.sum().clamp(min=1.0)
        else:
            loss = (squared.sum(0) / mask.sum(0).clamp(min=1.0)).sum()
        if policy is not None:
            surprise = -(policy.unsqueeze(1) * outputs[:, :, 1:].log_softmax(2)).sum(2) * weights
            loss = loss + self._settings.policy_weight * (surprise.sum(0) / mask.sum(0).clamp(min=1.0)).sum()
        if self._settings.l2:
            norms = torch.stack([p.square().sum() for p in self._trained])
            loss = loss + self._settings.l2 * 0.5 * norms.sum() / self._network.num_tensors()
        return loss, squared


def _build(
    config: ValuesConfig, observation: ObservationSpec, rng: np.random.Generator, init_scale: float
) -> ValueNetwork | OwnNetwork:
    if find_factory(config.network) is not None:
        return build_own_network(config, observation, rng)
    return build_network(config, observation, rng, init_scale)


def resolve_device(name: str) -> torch.device:
    """Turns a device's name into a device this machine has; `auto` takes a GPU when there is one."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or not available.get(device.type, False):
        usable = ", ".join(kind for kind, is_here in available.items() if is_here)
        raise BathysphereError(f"device {name!r} is not available here; usable are: auto, {usable}.")
    return device


def _array(value: Tensor) -> NDArray[np.generic]:
    # A contiguous copy: later in-place updates must not reach it.
    return np.array(value.detach().cpu().numpy(), order="C", copy=True)


def _section(state: Arrays, prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): torch.from_numpy(np.array(value))
        for name, value in state.items()
        if name.startswith(prefix)
    }
