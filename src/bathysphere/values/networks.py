"""Value networks for all members at once: weights are stacked, so nothing loops over members.

Activations are kept features first, [E, features, n]: measured on one core, that makes 20 small MLPs 1.6
times faster than rows first.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bathysphere.domains.base import Categories, ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.values.config import ValuesConfig
from bathysphere.values.initial import glorot
from bathysphere.values.kernels import sum_rows


def parameter(
    shape: tuple[int, ...], fan_in: int, fan_out: int, rng: np.random.Generator, scale: float = 1.0
) -> nn.Parameter:
    """Returns Glorot uniform weights to be trained; arguments as for `glorot`."""
    return nn.Parameter(torch.from_numpy(glorot(shape, fan_in, fan_out, rng, scale)))


class Dense(nn.Module):
    """A layer of each member: [E, inputs, n], or inputs common to all [1, inputs, n], to [E, outputs, n]."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        members: int,
        is_input_common: bool,
        bias: bool,
        rng: np.random.Generator,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.members = members
        self.is_input_common = is_input_common
        self.weight = parameter((members, outputs, inputs), inputs, outputs, rng, scale)
        self.bias = nn.Parameter(torch.zeros(members, outputs, 1)) if bias else None

    def forward(self, h: Tensor) -> Tensor:
        """Applies the layer, one matrix product when the input is common, else one per member in a batch."""
        if self.is_input_common:
            members, outputs, inputs = self.weight.shape
            product = self.weight.view(members * outputs, inputs) @ h[0]
            product = product.view(members, outputs, -1)
            return product if self.bias is None else product + self.bias
        return torch.bmm(self.weight, h) if self.bias is None else torch.baddbmm(self.bias, self.weight, h)


class CategoryDense(nn.Module):
    """A first layer on categories, [n, cells] to [E, outputs, n]: a product with one-hot rows, as a sum."""

    def __init__(
        self,
        observation: Categories,
        outputs: int,
        members: int,
        bias: bool,
        rng: np.random.Generator,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        cells, self.num_categories = math.prod(observation.shape), observation.num_categories
        inputs = cells * self.num_categories
        self.members = members
        self.weight = parameter((inputs, members * outputs), inputs, outputs, rng, scale)
        self.bias = nn.Parameter(torch.zeros(members * outputs)) if bias else None

    def forward(self, codes: Tensor) -> Tensor:
        """Sums the rows that `codes`, integers [n, ...], name."""
        codes = codes.flatten(1)
        if codes.is_cpu and not torch.is_grad_enabled():
            h = self._sum_rows(codes)
        else:
            first_rows = torch.arange(codes.shape[1], device=codes.device) * self.num_categories
            h = functional.embedding_bag(codes + first_rows, self.weight, mode="sum")
            h = h if self.bias is None else h + self.bias
        return h.view(len(codes), self.members, -1).permute(1, 2, 0)

    def _sum_rows(self, codes: Tensor) -> Tensor:
        out = np.empty((len(codes), self.weight.shape[1]), np.float32)
        bias = np.zeros(out.shape[1], np.float32) if self.bias is None else self.bias.detach().numpy()
        sum_rows(codes.numpy(), self.weight.detach().numpy(), bias, self.num_categories, out)
        return torch.from_numpy(out)


class ConvolutionStack(nn.Module):
    """Convolutions of each member over a board of categories: codes [n, H, W] to [E, channels * H * W, n].

    Codes may also be [E, n, H, W]: boards of its own for each member.

    Members are groups of channels. One-hot codes have their channels last in memory, and convolutions keep
    that order; it measured a third faster on one core.
    """

    def __init__(
        self,
        observation: Categories,
        layers: int,
        channels: int,
        kernel: int,
        residual: bool,
        global_pooling: bool,
        members: int,
        bias: bool,
        rng: np.random.Generator,
    ) -> None:
        super().__init__()
        self.num_categories = observation.num_categories
        self.members = members
        self.residual = residual
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        inputs = observation.num_categories
        for _ in range(layers):
            shape = (members * channels, inputs, kernel, kernel)
            self.weights.append(parameter(shape, inputs * kernel**2, channels * kernel**2, rng))
            if bias:
                self.biases.append(nn.Parameter(torch.zeros(members * channels)))
            inputs = channels
        self.pooled_weights = nn.ParameterList()
        for _ in range((layers - 1) // 2 if global_pooling else 0):
            shape = (members * channels, 2 * channels, 1, 1)
            self.pooled_weights.append(parameter(shape, 2 * channels, channels, rng))

    def forward(self, codes: Tensor) -> Tensor:
        """Convolves; the ReLU after the last convolution is the caller's, as for every layer."""
        h = functional.one_hot(codes.long(), self.num_categories).float()
        # A board that is common to all members is the only group of the first convolution.
        first_groups = 1
        if codes.dim() == 4:
            first_groups, h = self.members, h.permute(1, 2, 3, 0, 4).flatten(3)
        h = self._convolve(0, h.permute(0, 3, 1, 2), first_groups)
        num_convolutions = len(self.weights)
        if self.residual:
            for i in range(1, num_convolutions - 1, 2):
                active = h.relu()
                inner = self._convolve(i, active)
                if len(self.pooled_weights):
                    inner = inner + self._pool(i // 2, active)
                h = h + self._convolve(i + 1, inner.relu_())
            if num_convolutions % 2 == 0:
                h = self._convolve(num_convolutions - 1, h.relu_())
        else:
            for i in range(1, num_convolutions):
                h = self._convolve(i, h.relu_())
        return h.reshape(len(h), self.members, -1).permute(1, 2, 0)

    def _pool(self, block: int, h: Tensor) -> Tensor:
        """Returns what every cell is told of the whole board, [n, E * channels, 1, 1]."""
        pooled = torch.stack([h.mean((2, 3)), h.amax((2, 3))], dim=1).reshape(len(h), 2, self.members, -1)
        pooled = pooled.transpose(1, 2).flatten(1)[:, :, None, None]  # a member's means, then its maxima
        return functional.conv2d(pooled, self.pooled_weights[block], groups=self.members)

    def _convolve(self, i: int, h: Tensor, groups: int | None = None) -> Tensor:
        bias = self.biases[i] if len(self.biases) else None
        return functional.conv2d(h, self.weights[i], bias, padding="same", groups=groups or self.members)


Layer = Dense | CategoryDense | ConvolutionStack


class ValueNetwork(nn.Module):
    """Layers with ReLU between them: observations [n, ...] to values [n, E]."""

    def __init__(self, layers: list[Layer]) -> None:
        super().__init__()
        self._layers = tuple(layers)
        self.layers = nn.ModuleList(layers)

    @property
    def can_part(self) -> bool:
        """Whether members can look at observations of their own, [E, n, ...]: those that share no layer, on boards."""
        first = self._layers[0]
        return isinstance(first, ConvolutionStack) and first.members == self._layers[-1].members

    def forward(self, observations: Tensor) -> Tensor:
        """Evaluates all members."""
        h = observations
        if observations.is_floating_point():
            h = observations.t().unsqueeze(0)
        for layer in self.layers[:-1]:
            h = layer(h).relu_()
        values: Tensor = self.layers[-1](h)
        return values[:, 0].t()

    def num_tensors(self) -> int:
        """Counts parameter tensors as separate networks would have them: not stacked."""
        return sum(layer.members * len(list(layer.parameters())) for layer in self._layers)


def build_network(
    config: ValuesConfig, observation: ObservationSpec, rng: np.random.Generator, init_scale: float
) -> ValueNetwork:
    """Builds and initialises the ensemble's network (Glorot uniform weights, zero biases).

    Args:
      config: kind and sizes.
      observation: what the network reads.
      rng: draws the weights; PyTorch's own generator is not used.
      init_scale: multiplies the last layer's weights.
    """
    members, bias = config.num_members, config.bias
    trunk_members = 1 if config.shared_trunk else members
    layers: list[Layer] = []
    if config.network == "cnn":
        if not isinstance(observation, Categories) or len(observation.shape) != 2:
            raise BathysphereError(
                f"values.network cnn reads a two-dimensional board of categories, but this domain "
                f"shows {observation}; use mlp."
            )
        layers.append(
            ConvolutionStack(
                observation,
                config.conv_layers,
                config.conv_channels,
                config.conv_kernel,
                config.residual,
                config.global_pooling,
                trunk_members,
                bias,
                rng,
            )
        )
        width, sizes = config.conv_channels * math.prod(observation.shape), [config.dense, 1]
    elif isinstance(observation, Categories):
        sizes = [*config.hidden, 1] if config.network == "mlp" else [1]
        is_last = len(sizes) == 1
        layers.append(CategoryDense(observation, sizes[0], trunk_members, bias, rng, init_scale if is_last else 1.0))
        width, sizes = sizes[0], sizes[1:]
    else:
        sizes = [*config.hidden, 1] if config.network == "mlp" else [1]
        width = observation.size
    # The heads of a shared trunk are the last two layers.
    members_before = layers[-1].members if layers else 0
    for left, size in zip(range(len(sizes), 0, -1), sizes, strict=True):
        own = trunk_members if left > 2 else members
        scale = init_scale if left == 1 else 1.0
        layers.append(Dense(width, size, own, members_before < own, bias, rng, scale))
        width, members_before = size, own
    return ValueNetwork(layers)
