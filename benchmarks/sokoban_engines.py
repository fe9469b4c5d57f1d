"""Ways to evaluate the trained Sokoban network on one core: how many states a second, how exact, and how well it plays.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/sokoban_engines.py [--boards 300] [--passes 10]

Engines take turns on batches of the same positions of real episodes. OpenVINO is measured too if it is there; it is no
dependency of this package (pip install openvino nncf). Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from bathysphere.agents.loading import load_trained
from bathysphere.domains import make_domain
from bathysphere.planning import Pool
from bathysphere.values import Ensemble
from bathysphere.values.networks import build_network

BATCHES, TURNS, TURN_STATES = (64, 256), 7, 2048
Evaluate = Callable[[np.ndarray], np.ndarray]


@dataclass
class Engine:
    """Values of positions by one engine, as planners want them."""

    evaluate: Evaluate
    num_members: int


class Plain(nn.Module):
    """The same network of ordinary PyTorch layers, one-hot boards [n, C, H, W] to values [n, E], to be converted."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        stack, hidden, last = network.layers
        pairs = zip(stack.weights, stack.biases, strict=True)
        self.convolutions = nn.ModuleList([_convolution(weight, bias) for weight, bias in pairs])
        self.pooled = nn.ModuleList([_convolution(weight, None) for weight in stack.pooled_weights])
        self.hidden = _linear(hidden.weight.flatten(0, 1), hidden.bias.flatten())
        self.last = _linear(torch.block_diag(*last.weight), last.bias.flatten())

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        """Evaluates all heads."""
        h = self.convolutions[0](h)
        for block, pooled in enumerate(self.pooled):
            active = h.relu()
            seen = torch.cat([active.mean((2, 3), keepdim=True), active.amax((2, 3), keepdim=True)], 1)
            inner = self.convolutions[2 * block + 1](active) + pooled(seen)
            h = h + self.convolutions[2 * block + 2](inner.relu())
        return self.last(self.hidden(h.relu().flatten(1)).relu())


def _convolution(weight: nn.Parameter, bias: nn.Parameter | None) -> nn.Conv2d:
    outputs, inputs, side, _ = weight.shape
    layer = nn.Conv2d(inputs, outputs, side, padding=side // 2, bias=bias is not None)
    layer.weight.data.copy_(weight)
    if bias is not None:
        layer.bias.data.copy_(bias)
    return layer


def _linear(weight: torch.Tensor, bias: torch.Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight.data.copy_(weight)
    layer.bias.data.copy_(bias)
    return layer


def openvino_engines(network: nn.Module, positions: np.ndarray, num_categories: int) -> dict[str, Evaluate]:
    """Returns the network in OpenVINO, in floats and in 8-bit integers calibrated on some positions."""
    import nncf
    import openvino

    nncf.set_log_level(logging.ERROR)

    def one_hot(codes: np.ndarray) -> np.ndarray:
        return (codes[:, None] == np.arange(num_categories)[:, None, None]).astype(np.float32)

    calibration = [one_hot(part) for part in np.array_split(positions[:2048], 8)]
    shape = [-1, *calibration[0].shape[1:]]
    model = openvino.convert_model(Plain(network), example_input=torch.from_numpy(calibration[0]), input=shape)
    rounded = nncf.quantize(model, nncf.Dataset(calibration), subset_size=len(calibration))
    settings = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}

    def evaluate_with(model: object) -> Evaluate:
        request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()
        return lambda codes: np.array(request.infer([one_hot(codes)])[0])

    return {"OpenVINO float32": evaluate_with(model), "OpenVINO int8": evaluate_with(rounded)}


def speeds(engines: dict[str, Evaluate], positions: np.ndarray, batch: int) -> dict[str, float]:
    """Returns states per second of each, the median of turns."""
    found: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(TURNS):
        for name, evaluate in engines.items():
            began = time.perf_counter()
            for start in range(0, TURN_STATES, batch):
                evaluate(positions[start : start + batch])
            found[name].append(TURN_STATES / (time.perf_counter() - began))
    return {name: statistics.median(rates) for name, rates in found.items()}


def main() -> None:
    """Measures all engines there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", type=int, default=300)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    trained = load_trained("sokoban")
    config, weights = trained.config, trained.values.weights()
    domain = make_domain(config.domain)
    search = replace(config.search, passes=args.passes)

    def play(engine: object) -> list:
        return Pool(domain, engine, search, batch=64, seed=args.seed, num_episodes=args.boards, workers=1).play()

    engines: dict[str, Evaluate] = {}
    for precision in ("float32", "int8"):
        values = replace(config.values, precision=precision)
        ensemble = Ensemble(values, config.optimiser, domain.observation, 0)
        ensemble.load_weights(weights)
        engines[precision] = ensemble.evaluate
    episodes = {"float32": play(Engine(engines["float32"], config.values.num_members))}
    positions = domain.observe(np.concatenate([episode.states for episode in episodes["float32"]]))
    positions = np.random.default_rng(0).permutation(positions)[: 2 * TURN_STATES]
    if importlib.util.find_spec("openvino") and importlib.util.find_spec("nncf"):
        network = build_network(config.values, domain.observation, np.random.default_rng(0), 1.0)
        named = {name.removeprefix("network."): torch.from_numpy(array) for name, array in weights.items()}
        network.load_state_dict(named)
        engines |= openvino_engines(network, positions[TURN_STATES:], domain.observation.num_categories)
    rates = [speeds(engines, positions, batch) for batch in BATCHES]
    exact = engines["float32"](positions)
    print(f"| engine | {' | '.join(f'states/s, batches of {batch}' for batch in BATCHES)} | mean error | solved |")
    print("|---" * (len(BATCHES) + 3) + "|")
    for name, evaluate in engines.items():
        solved = sum(
            episode.solved for episode in episodes.get(name) or play(Engine(evaluate, config.values.num_members))
        )
        error = np.abs(evaluate(positions) - exact).mean()
        shown = " | ".join(f"{rate[name]:,.0f}" for rate in rates)
        print(f"| {name} | {shown} | {error:.3f} | {solved} of {args.boards} |", flush=True)


if __name__ == "__main__":
    main()
