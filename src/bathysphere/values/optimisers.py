"""PyTorch optimisers by name, and the one PyTorch lacks: TensorFlow 1's RMSProp."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from bathysphere.errors import BathysphereError
from bathysphere.values.config import OptimiserConfig
from bathysphere.values.kernels import rmsprop_step


class TFRMSProp(torch.optim.Optimizer):
    """RMSProp as in TensorFlow 1 (no momentum, not centred).

    m <- decay * m + (1 - decay) * g^2;  w <- w - lr * g / sqrt(m + eps), where m starts at 1 (PyTorch: 0)
    and eps is inside the root (PyTorch: outside). The start makes early steps small.
    Parameters must be contiguous.
    """

    def __init__(self, params: Iterable[torch.nn.Parameter], lr: float, decay: float, eps: float) -> None:
        super().__init__(params, {"lr": lr, "decay": decay, "eps": eps})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Takes one step for all parameters that have a gradient."""
        for group in self.param_groups:
            decay = group["decay"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["mean_square"] = torch.ones_like(parameter)
                gradient, mean_square = parameter.grad, state["mean_square"]
                if parameter.is_cpu:
                    # One sweep instead of five; without it, this is half of a small network's update.
                    w, g, m = (t.detach().numpy().reshape(-1) for t in (parameter, gradient, mean_square))
                    rmsprop_step(w, g, m, group["lr"], decay, group["eps"])
                    continue
                mean_square.mul_(decay).addcmul_(gradient, gradient, value=1.0 - decay)
                parameter.addcdiv_(gradient, (mean_square + group["eps"]).sqrt_(), value=-group["lr"])


def build_optimiser(config: OptimiserConfig, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """Returns the optimiser that `config` names, over `parameters`."""
    rate, decay, eps = config.learning_rate, config.decay, config.eps
    if config.name == "tf_rmsprop":
        return TFRMSProp(parameters, rate, decay, eps)
    if config.name == "sgd":
        return torch.optim.SGD(parameters, rate)
    if config.name == "adam":
        return torch.optim.AdamW(parameters, rate, eps=eps, weight_decay=config.weight_decay)
    if config.name == "rmsprop":
        return torch.optim.RMSprop(parameters, rate, alpha=decay, eps=eps)
    raise BathysphereError(
        "optimiser.name delta works on tables only: a linear network without bias and l2, on a domain that "
        "shows one category, and with half_life, anneal_over, averaging and weight_decay off. Use tf_rmsprop, sgd, "
        "adam or rmsprop, or make the values linear without bias."
    )
