"""An ensemble of small multilayer perceptrons on the CPU, in compiled loops instead of a tensor library.

A call of a tensor library costs more than the arithmetic of a small network, and it computes pairs of entry and
member that the mask then drops. Here neither happens, and the value of an observation is a function of that
observation and the weights alone, however many others are evaluated with it.
"""

from __future__ import annotations

import copy
import math

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Categories, ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.storage.state import Arrays
from bathysphere.values import kernels, mlp_kernels
from bathysphere.values.batch import Batch, UpdateStats, check_shapes, member_means
from bathysphere.values.config import OptimiserConfig, ValuesConfig
from bathysphere.values.initial import glorot

_KINDS = {"sgd": mlp_kernels.SGD, "tf_rmsprop": mlp_kernels.TF_RMSPROP, "adam": mlp_kernels.ADAM}
Inputs = tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]  # as `mlp_kernels.encode` lists them

_VECTOR = 32  # floats that a compiled loop takes at once; rows are padded to a multiple
_LINE = 64  # bytes of a cache line
_CHUNK = 1024  # rows evaluated at once: bounds memory


def is_small_mlp(config: ValuesConfig, optimiser: OptimiserConfig) -> bool:
    """Tells whether this ensemble and its training are what `MlpLearner` does."""
    return (
        config.network == "mlp" and not config.shared_trunk and optimiser.name in _KINDS and not optimiser.is_extended
    )


class MlpLayout:
    """Where each parameter of an ensemble lies in float32 [E, R, W], the arrangement of `mlp_kernels`."""

    def __init__(self, config: ValuesConfig, observation: ObservationSpec) -> None:
        self.members = config.num_members
        self.constant = 1.0 if config.bias else 0.0  # the input whose weights are the bias
        self.num_categories = 0
        if isinstance(observation, Categories):
            self.num_cells, self.num_categories = math.prod(observation.shape), observation.num_categories
        else:
            self.num_cells = observation.size
        self.inputs = [self.num_cells * max(self.num_categories, 1), *config.hidden]
        widths = [_round_up(size + 1, _VECTOR) for size in config.hidden]
        self.first_rows = np.cumsum([0, *(size + 1 for size in self.inputs[:-1])]).tolist()
        self.layers = np.array(list(zip(self.first_rows[:-1], config.hidden, widths, strict=True)), np.int64)
        self.shape = (self.members, self.first_rows[-1] + 1, max(widths))
        # Parameter tensors as separate networks would have them: not stacked.
        self.num_tensors = self.members * len(self.inputs) * (2 if config.bias else 1)

    def filled(self, value: float) -> NDArray[np.float32]:
        """Returns a new array that starts where a cache line does: vectors that straddle lines are slow."""
        size = math.prod(self.shape) * 4
        memory = np.empty(size + _LINE, np.uint8)
        start = -memory.ctypes.data % _LINE
        packed = memory[start : start + size].view(np.float32).reshape(self.shape)
        packed[...] = value
        return packed

    def copy(self, packed: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns a copy that starts where a cache line does."""
        twin = self.filled(0.0)
        twin[...] = packed
        return twin

    def initial(self, rng: np.random.Generator, init_scale: float) -> NDArray[np.float32]:
        """Draws the same start as the same network of `networks.build_network` has."""
        packed = self.filled(0.0)
        outputs = [*self.inputs[1:], 1]
        last = len(outputs) - 1
        for name, (view, shape) in self.parts(packed).items():
            layer, kind = int(name.split(".")[1]), name.split(".")[2]
            if kind == "weight":
                scale = init_scale if layer == last else 1.0
                drawn = glorot(shape, self.inputs[layer], outputs[layer], rng, scale)
                view[...] = drawn.reshape(view.shape)
        return packed

    def parts(self, packed: NDArray[np.float32]) -> dict[str, tuple[NDArray[np.float32], tuple[int, ...]]]:
        """Returns, by the name a `ValueNetwork` uses, a view of each parameter and the shape it has there."""
        parts = {}
        members, last = self.members, len(self.inputs) - 1
        for layer, (first, inputs) in enumerate(zip(self.first_rows, self.inputs, strict=True)):
            if layer == last:
                weight, bias = packed[:, first, None, :inputs], packed[:, first, inputs, None, None]
            else:
                outputs = self.inputs[layer + 1]
                weight = packed[:, first : first + inputs, :outputs].transpose(0, 2, 1)
                bias = packed[:, first + inputs, :outputs, None]
            if layer == 0 and self.num_categories:
                weight = weight.transpose(2, 0, 1)
                shapes: tuple[tuple[int, ...], ...] = ((inputs, members * outputs), (members * outputs,))
            else:
                shapes = (weight.shape, bias.shape)
            parts[f"layers.{layer}.weight"] = (weight, shapes[0])
            if self.constant:
                parts[f"layers.{layer}.bias"] = (bias, shapes[1])
        return parts

    def save(self, packed: NDArray[np.float32], pattern: str) -> Arrays:
        """Copies the parameters out; `pattern` makes names of {name} and {index}."""
        return {
            pattern.format(name=name, index=index): np.array(view, order="C").reshape(shape)
            for index, (name, (view, shape)) in enumerate(self.parts(packed).items())
        }

    def load(self, packed: NDArray[np.float32], pattern: str, state: Arrays) -> None:
        """Copies in what `save` returned. Mutates: packed."""
        for index, (name, (view, _)) in enumerate(self.parts(packed).items()):
            view[...] = state[pattern.format(name=name, index=index)].reshape(view.shape)


class MlpLearner:
    """All members' weights, a frozen prior if there is one, and the optimiser's state.

    Saved states have the names and shapes that `NetworkLearner` gives them (and a base more), so either loads the
    other's.
    """

    def __init__(
        self, config: ValuesConfig, optimiser: OptimiserConfig, observation: ObservationSpec, rng: np.random.Generator
    ) -> None:
        self._layout = layout = MlpLayout(config, observation)
        self._settings = optimiser
        self._weights = layout.initial(rng, config.init_scale)
        self._prior_scale = np.float32(config.prior_scale)
        self._prior = layout.initial(rng, 1.0) if config.prior_scale else None
        self._gradient = layout.filled(0.0)
        none = np.empty((0, 0, 0), np.float32)
        self._means = layout.filled(0.0) if optimiser.name == "adam" else none
        self._mean_square = layout.filled(0.0) if optimiser.name != "sgd" else none
        # Boards of one task differ in few cells, so boards are evaluated by their difference to one of them: the
        # first that was learnt from. It is part of the saved state, for the sums to round alike after a resume.
        self._no_base = np.full(layout.num_cells if layout.num_categories else 0, -1)
        self._base = self._no_base
        self._restart()

    def evaluate(self, observations: NDArray[np.generic]) -> NDArray[np.float32]:
        """Returns float32 [n, E] for observations [n, ...]."""
        parts = []
        for start in range(0, len(observations), _CHUNK):
            inputs = self._encoded(observations[start : start + _CHUNK], self._base)
            everything = np.ones((len(inputs[0]), self._layout.members), np.bool_)
            values = self._run(self._weights, inputs, everything, self._base)
            if self._prior is not None:
                values += self._prior_scale * self._run(self._prior, inputs, everything, self._base)
            parts.append(values)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def snapshot(self) -> MlpLearner:
        """Returns a learner with weights of its own, to be evaluated only."""
        taken = copy.copy(self)
        taken._weights = self._layout.copy(self._weights)
        taken._prior = None if self._prior is None else self._layout.copy(self._prior)
        return taken

    def update(self, batch: Batch) -> UpdateStats:
        """Learns from the batches in order, in one kernel call."""
        settings, layout = self._settings, self._layout
        num_updates, batch_size, members = batch.mask.shape
        inputs = self._encoded(batch.observations.reshape(num_updates * batch_size, layout.num_cells), self._no_base)
        targets = batch.targets
        if self._prior is not None:
            # What is left for the trained network to say, once the prior has spoken.
            prior = self._run(self._prior, inputs, batch.mask.reshape(-1, members), self._no_base)
            targets = targets - self._prior_scale * prior.reshape(batch.mask.shape)
        member_errors, totals = np.zeros(members), np.zeros(2)
        mlp_kernels.update(
            self._weights,
            layout.layers,
            layout.constant,
            *inputs,
            targets,
            batch.mask,
            kernels.NORMALISE[settings.normalise],
            settings.l2 / layout.num_tensors,
            _KINDS[settings.name],
            settings.learning_rate,
            settings.decay,
            settings.eps,
            self._means,
            self._mean_square,
            self._last_update,
            self._num_updates,
            self._gradient,
            member_errors,
            totals,
        )
        self._num_updates += num_updates
        if self._base is self._no_base and layout.num_categories and batch.mask.size:
            self._base = batch.observations.reshape(-1, layout.num_cells)[0].astype(np.int64)
        loss, norm = (totals / max(num_updates, 1)).tolist()
        return UpdateStats(loss, member_means(member_errors, batch.mask.sum((0, 1), np.float64)), norm)

    def weights(self) -> Arrays:
        """Returns copies of weights, prior and base under flat names."""
        save = self._layout.save
        weights: Arrays = {"base": self._base.copy()} if self._base is not self._no_base else {}
        weights |= save(self._weights, "network.{name}")
        if self._prior is not None:
            weights |= save(self._prior, "prior.{name}")
        return weights

    def load_weights(self, weights: Arrays) -> None:
        """Restores what `weights` returned, with or without a base. Mutates: weights, prior and base."""
        check_shapes(self.weights() | {"base": self._no_base}, {"base": self._no_base} | weights)
        base = weights.get("base", self._no_base)
        if base is not self._no_base and not ((base >= 0) & (base < self._layout.num_categories)).all():
            raise BathysphereError(
                f"the saved values' base holds categories from {base.min()} to {base.max()}; expected 0 to "
                f"{self._layout.num_categories - 1}. Is the file damaged? Load another checkpoint."
            )
        self._base = base.astype(np.int64) if base is not self._no_base else base
        self._layout.load(self._weights, "network.{name}", weights)
        if self._prior is not None:
            self._layout.load(self._prior, "prior.{name}", weights)

    def state_dict(self) -> Arrays:
        """Returns copies of weights, prior, base and optimiser state under flat names."""
        state, save = self.weights(), self._layout.save
        if self._settings.name == "tf_rmsprop":
            mlp_kernels.settle(self._mean_square, self._last_update, self._settings.decay, self._num_updates)
        for slot, packed in self._slots().items():
            state |= save(packed, f"optimiser.{{index}}.{slot}")
        if self._settings.name == "adam":
            num_parts = len(self._layout.parts(self._weights))
            state |= {f"optimiser.{i}.step": np.array(self._num_updates, np.float32) for i in range(num_parts)}
        return state

    def load_state_dict(self, state: Arrays) -> None:
        """Restores what `state_dict` returned.

        Mutates: weights, prior and optimiser.
        """
        # A network that has not been updated saves no optimiser state.
        is_started = any(name.startswith("optimiser.") for name in state)
        own = self.state_dict() | {"base": self._no_base}
        check_shapes(
            {name: v for name, v in own.items() if is_started or not name.startswith("optimiser.")},
            {"base": self._no_base} | state,
        )
        self.load_weights({name: array for name, array in state.items() if not name.startswith("optimiser.")})
        self._restart()
        if is_started:
            for slot, packed in self._slots().items():
                self._layout.load(packed, f"optimiser.{{index}}.{slot}", state)
            self._num_updates = int(state.get("optimiser.0.step", np.array(0)))

    def _restart(self) -> None:
        """Forgets what the optimiser remembers. Mutates: its state."""
        self._means[...] = 0.0
        self._mean_square[...] = 1.0 if self._settings.name == "tf_rmsprop" else 0.0
        self._last_update = np.zeros(self._layout.shape[:2], np.int64)
        self._num_updates = 0

    def _slots(self) -> dict[str, NDArray[np.float32]]:
        """Returns what the optimiser remembers of each parameter, under PyTorch's names."""
        if self._settings.name == "adam":
            return {"exp_avg": self._means, "exp_avg_sq": self._mean_square}
        return {"mean_square": self._mean_square} if self._settings.name == "tf_rmsprop" else {}

    def _encoded(self, observations: NDArray[np.generic], base: NDArray[np.int64]) -> Inputs:
        layout = self._layout
        flat = observations.reshape(len(observations), layout.num_cells)
        shape = (len(flat), _round_up(layout.num_cells + len(base) + 1, mlp_kernels.BLOCK))
        inputs = (np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(len(flat), np.int64))
        mlp_kernels.encode(flat, layout.num_categories, base, layout.constant, *inputs)
        return inputs

    def _run(
        self, weights: NDArray[np.float32], inputs: Inputs, mask: NDArray[np.bool_], base: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        layout = self._layout
        base_rows = (np.arange(len(base)) * layout.num_categories + base)[base >= 0]
        out = np.zeros(mask.shape, np.float32)
        mlp_kernels.evaluate(weights, layout.layers, layout.constant, *inputs, base_rows, mask, out)
        return out


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
