"""WarpedGP: the transforms, and that bounds come back in the outputs' own units."""

import numpy as np
import pytest
import torch
from botorch.models.utils.gpytorch_modules import get_matern_kernel_with_gamma_prior
from scipy.stats import yeojohnson

from cbo_gym.agents.scopes.warped_gp import WarpedGP, WarpedKernel, inverse_yeo_johnson


@pytest.mark.parametrize("power", [0.0, 1e-12, 0.3, 1.0, 1.7, 2.0])
def test_the_inverse_undoes_the_transform_and_rises(power: float) -> None:
    values = np.linspace(-5, 5, 41)
    points = torch.from_numpy(yeojohnson(values, power)).requires_grad_(True)
    back = inverse_yeo_johnson(points, power)
    np.testing.assert_allclose(back.detach().numpy(), values, atol=1e-9)
    (slope,) = torch.autograd.grad(back.sum(), points)
    assert ((slope > 0) & slope.isfinite()).all()


def test_the_kernel_starts_unwarped() -> None:
    points = torch.rand(7, 3, dtype=torch.float64)
    ours = WarpedKernel(3).double().forward(points, points)
    theirs = get_matern_kernel_with_gamma_prior(ard_num_dims=3).double().forward(points, points)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_a_bound_of_width_zero_recovers_a_smooth_function() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((30, 2))
    y = 100.0 + np.exp(3.0 * x[:, 0]) * (1 + x[:, 1])
    model = WarpedGP("Y", 2)
    for part in (slice(0, 20), slice(20, 30)):
        model.add(x[part], y[part])
        model.update()
    new = rng.random((50, 2))
    found = model.bound(torch.from_numpy(new), 0.0).numpy()
    truth = 100.0 + np.exp(3.0 * new[:, 0]) * (1 + new[:, 1])
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.15 * y.std()
    assert (model.bound(torch.from_numpy(new), 1.0).numpy() > found).all()


@pytest.mark.parametrize("outputs", [[3.0, 3.0, 3.0], [0.0, 1e6, 1.0]])
def test_awkward_outputs(outputs: list[float]) -> None:
    model = WarpedGP("Y", 1)
    model.add(np.linspace(0, 1, len(outputs))[:, None], outputs)
    assert torch.isfinite(model.bound(torch.rand(5, 1, dtype=torch.float64), 2.0)).all()
