"""What a value ensemble is made of and how it is trained, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from bathysphere.errors import BathysphereError
from bathysphere.values.registry import check_network

MOST_LAYERS = 1000


@dataclass(frozen=True)
class ValuesConfig:
    """The ensemble of value functions. Members never share weights unless `shared_trunk` says so."""

    network: str = "linear"
    """linear: one weighted sum; mlp: hidden layers with ReLU; cnn: convolutions, then one hidden layer; board: residual
    convolutions with global pooling for boards of any size, whose members are heads of one trunk; or your own
    (`register_network`)."""
    num_members: int = 20
    """E, the number of members."""
    hidden: tuple[int, ...] = (50, 50)
    """mlp: units in each hidden layer of one member."""
    policy: bool = False
    """board: every member also has a policy, probabilities of the actions, for planners that are guided by one."""
    conv_layers: int = 5
    """cnn, board: number of convolutions (stride 1, zero padding that keeps the board's size)."""
    conv_channels: int = 64
    """cnn, board: channels of each convolution of one member."""
    conv_kernel: int = 3
    """cnn, board: side of the square filter; odd."""
    residual: bool = False
    """cnn: after the first convolution, every two add to what went into them (an odd last one stands alone)."""
    global_pooling: bool = False
    """cnn, residual: the first convolution of every two also sees each channel's mean and maximum over the board."""
    dense: int = 128
    """cnn, board: units of the hidden layer after the convolutions, per member."""
    bias: bool = True
    """Whether layers add a bias (starting at zero). The paper's Deep-sea network has none."""
    prior_scale: float = 0.0
    """Randomised prior: this times a frozen copy with weights of its own is added to the output. 0 is off."""
    shared_trunk: bool = False
    """Members are heads of one hidden layer each on a common trunk (mlp and cnn only)."""
    precision: Literal["float32", "int8"] = "float32"
    """What episodes are played in; learning is in float32. int8: a board network, or a residual cnn of one trunk,
    rounded, takes half the time (where PyTorch has 8-bit convolutions, as on x86 processors; elsewhere, and on a GPU,
    it plays in float32)."""
    init_scale: float = 1.0
    """Multiplies the last layer's initial weights, and so the initial spread between members (not of networks of your
    own)."""
    scale: float = 1.0
    """Size of values: networks learn them divided by this, so that worlds with large or small rewards are learnt alike.
    A table's initial weights are multiplied by it."""
    num_towers: int = 0
    """Transfer: that many frozen cnns of this kind, trained elsewhere, whose values an aggregator learns to put
    together. 0 is off: one network that learns."""
    aggregator: Literal["linear", "hidden"] = "linear"
    """Transfer: a weighted sum that starts as the mean (the authors' code), or one hidden layer (the paper)."""

    def __post_init__(self) -> None:
        check_network(self.network)
        _positive(self, "num_members", "conv_layers", "conv_channels", "conv_kernel", "dense", "scale")
        if self.conv_layers > MOST_LAYERS or len(self.hidden) > MOST_LAYERS:
            raise BathysphereError(
                f"values.conv_layers is {self.conv_layers} and values.hidden has {len(self.hidden)} sizes; expected at "
                f"most {MOST_LAYERS} layers."
            )
        if self.network == "mlp" and (not self.hidden or min(self.hidden) < 1):
            raise BathysphereError(
                f"values.hidden must list at least one positive size for an mlp, got {self.hidden}; "
                "use values.network linear for a network without hidden layers."
            )
        if self.init_scale < 0:
            raise BathysphereError(f"values.init_scale is {self.init_scale}; expected at least 0.")
        if self.conv_kernel % 2 == 0:
            raise BathysphereError(
                f"values.conv_kernel must be odd (a filter needs a centre), got {self.conv_kernel}; try 3."
            )
        has_trunk = self.network in ("cnn", "board") or (self.network == "mlp" and len(self.hidden) > 1)
        if self.shared_trunk and not has_trunk:
            raise BathysphereError(
                "values.shared_trunk needs layers to share: a cnn, or an mlp with two or more hidden layers "
                f"(the last belongs to the heads); got network {self.network} with hidden {self.hidden}."
            )
        if self.global_pooling and not (self.network == "cnn" and self.residual):
            raise BathysphereError(
                "values.global_pooling is part of residual convolutions; set values.network cnn and values.residual "
                f"too (got {self.network} and {self.residual})."
            )
        if self.policy and self.network != "board":
            raise BathysphereError(
                f"values.policy needs values.network board, got {self.network}; other networks have values only."
            )
        if self.network == "board" and (self.conv_layers % 2 == 0 or self.prior_scale or not self.bias):
            raise BathysphereError(
                "values.network board has an odd number of convolutions, biases and no prior; got "
                f"conv_layers {self.conv_layers}, bias {self.bias} and prior_scale {self.prior_scale}."
            )
        if self.precision == "int8" and not self._can_be_rounded:
            raise BathysphereError(
                "values.precision int8 is for a board network, or a residual cnn with an odd number of convolutions, "
                "one trunk (shared_trunk, or one member), no prior and no towers; use float32, or change the network."
            )
        if self.num_towers < 0:
            raise BathysphereError(f"values.num_towers must not be negative, got {self.num_towers}; 0 is off.")
        if self.num_towers and (self.network, self.num_members, self.prior_scale) != ("cnn", 1, 0.0):
            raise BathysphereError(
                f"values.num_towers puts cnns of one member without a prior together; got network {self.network}, "
                f"num_members {self.num_members} and prior_scale {self.prior_scale}."
            )

    @property
    def _can_be_rounded(self) -> bool:
        if self.network == "board":
            return True
        is_residual = self.network == "cnn" and self.residual and self.conv_layers % 2 == 1
        has_one_trunk = self.shared_trunk or self.num_members == 1
        return is_residual and has_one_trunk and not self.prior_scale and not self.num_towers


@dataclass(frozen=True)
class OptimiserConfig:
    """How targets change the ensemble."""

    name: Literal["tf_rmsprop", "delta", "sgd", "adam", "rmsprop"] = "tf_rmsprop"
    """tf_rmsprop: TensorFlow 1's RMSProp (the paper's); delta: w += rate * (target - w), one entry of the
    batch after another (tables only: a linear network without bias that reads one category); sgd: gradient
    steps; adam, rmsprop: PyTorch's."""
    learning_rate: float = 2.5e-4
    """Step size; for delta the fraction of the error that one visit removes."""
    averaging: float = 0.0
    """Episodes are played with a running mean of the weights, of which every update keeps this share. 0: with the
    weights themselves (the paper's)."""
    half_life: int | None = None
    """h: the learning rate of update u is divided by 1 + u / h, so it has halved after h updates and quartered after
    3 h. None: it stays (the paper's)."""
    anneal_over: int | None = None
    """n: the learning rate rises for the first twentieth of n updates, then falls along a cosine to zero at the n-th,
    where it stays. None: it does not."""
    decay: float = 0.9
    """Smoothing of the mean square in tf_rmsprop and rmsprop (adam keeps PyTorch's betas)."""
    eps: float = 1e-10
    """Keeps the denominator from zero: inside the square root in tf_rmsprop, outside in adam and rmsprop."""
    l2: float = 0.0
    """Weight of the mean, over parameter tensors, of half the squared norm (biases included)."""
    weight_decay: float = 0.0
    """adam: every update also takes this times the learning rate off each weight (biases included), as in AdamW."""
    policy_weight: float = 1.0
    """Weight of the policies' cross-entropy beside the squared errors of the values (values.policy)."""
    normalise: Literal["all", "active", "member"] = "all"
    """The squared errors that the mask keeps are summed and divided by, all: batch size times members (the
    authors' code with masks); active: the number of entries kept (the authors' code when a batch is split
    among members); member: each member's own number of entries, so that each learns as if alone."""

    def __post_init__(self) -> None:
        _positive(self, "learning_rate", "eps")
        if self.name == "delta" and self.learning_rate > 1:
            raise BathysphereError(
                f"optimiser.learning_rate must be at most 1 for the delta rule, got {self.learning_rate}; "
                "1 already replaces the old value by the target."
            )
        if not 0 <= self.decay < 1:
            raise BathysphereError(f"optimiser.decay must be in [0, 1), got {self.decay}; the paper's is 0.9.")
        if not 0 <= self.averaging < 1:
            raise BathysphereError(f"optimiser.averaging must be in [0, 1), got {self.averaging}; 0 is off.")
        if self.half_life is not None and self.half_life < 1:
            raise BathysphereError(f"optimiser.half_life must be at least 1 update (or none), got {self.half_life}.")
        if self.anneal_over is not None and (self.anneal_over < 1 or self.half_life is not None):
            raise BathysphereError(
                f"optimiser.anneal_over is {self.anneal_over} with half_life {self.half_life}; expected at least 1 "
                "update (or none), and one of the two."
            )
        if self.weight_decay < 0 or (self.weight_decay and self.name != "adam"):
            raise BathysphereError(
                f"optimiser.weight_decay is {self.weight_decay} with {self.name}; it must not be negative, and needs "
                "optimiser.name adam (l2 is there for the others)."
            )
        if self.policy_weight < 0:
            raise BathysphereError(f"optimiser.policy_weight must not be negative, got {self.policy_weight}.")
        if self.l2 < 0:
            raise BathysphereError(f"optimiser.l2 must not be negative, got {self.l2}; 0 is off.")

    def rate(self, num_updates: int) -> float:
        """Returns the learning rate after that many updates."""
        if self.half_life is not None:
            return self.learning_rate / (1 + num_updates / self.half_life)
        if self.anneal_over is not None:
            done = min((num_updates + 1) / self.anneal_over, 1.0)
            return self.learning_rate * min(20 * done, 1.0) * (1 + math.cos(math.pi * done)) / 2
        return self.learning_rate

    @property
    def is_extended(self) -> bool:
        """Whether it does more than the compiled learners do."""
        is_falling = self.half_life is not None or self.anneal_over is not None
        return is_falling or self.averaging > 0 or self.weight_decay > 0


def _positive(config: ValuesConfig | OptimiserConfig, *names: str) -> None:
    section = "values" if isinstance(config, ValuesConfig) else "optimiser"
    for name in names:
        if not getattr(config, name) > 0:
            raise BathysphereError(f"{section}.{name} must be positive, got {getattr(config, name)}.")
