import numpy as np
import pytest
import torch

from bathysphere.errors import BathysphereError
from bathysphere.values.config import OptimiserConfig
from bathysphere.values.optimisers import TFRMSProp, build_optimiser


def test_tf_rmsprop_by_hand():
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimiser = TFRMSProp([weight], lr=0.1, decay=0.9, eps=1e-10)
    # Gradient (3, 0): mean square 0.9 + 0.9 = 1.8 and 0.9; step 0.1 * 3 / sqrt(1.8) = 0.2236068.
    weight.grad = torch.tensor([3.0, 0.0])
    optimiser.step()
    np.testing.assert_allclose(weight.detach(), [0.7763932, -2.0], rtol=1e-6)
    # Gradient (0, 1): mean square 1.62 and 0.81 + 0.1 = 0.91; step 0.1 / sqrt(0.91) = 0.1048285.
    weight.grad = torch.tensor([0.0, 1.0])
    optimiser.step()
    np.testing.assert_allclose(weight.detach(), [0.7763932, -2.1048285], rtol=1e-6)
    np.testing.assert_allclose(optimiser.state[weight]["mean_square"], [1.62, 0.91], rtol=1e-6)


def test_tf_rmsprop_settles_at_rate_times_root_ten():
    # A weight touched rarely meets an empty mean square: m = 0.1 g^2, so a hit moves it by rate * sqrt(10).
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = TFRMSProp([weight], lr=2.5e-4, decay=0.9, eps=1e-10)
    for _ in range(400):
        weight.grad = torch.zeros(1)
        optimiser.step()
    weight.grad = torch.full((1,), 0.3)
    optimiser.step()
    assert -weight.item() == pytest.approx(2.5e-4 * 10**0.5, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("adam", torch.optim.AdamW), ("rmsprop", torch.optim.RMSprop), ("sgd", torch.optim.SGD)],
)
def test_optimisers_by_name(name, kind):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = build_optimiser(OptimiserConfig(name=name, learning_rate=0.5), [weight])
    assert type(optimiser) is kind
    assert optimiser.param_groups[0]["lr"] == 0.5


def test_weight_decay_shrinks_weights_by_the_rate_times_itself():
    moved = []
    for decay in (0.0, 0.1):
        weight = torch.nn.Parameter(torch.tensor([4.0]))
        optimiser = build_optimiser(OptimiserConfig(name="adam", learning_rate=0.5, weight_decay=decay), [weight])
        weight.grad = torch.tensor([2.0])
        optimiser.step()
        moved.append(weight.item())
    # Adam's first step is the rate, whatever the gradient; then 0.5 * 0.1 * 4 on top.
    np.testing.assert_allclose(moved, [3.5, 3.3], rtol=1e-6)


def test_delta_rule_is_refused_for_networks():
    with pytest.raises(BathysphereError, match="tables only"):
        build_optimiser(OptimiserConfig(name="delta"), [torch.nn.Parameter(torch.zeros(1))])
