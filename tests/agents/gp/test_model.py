from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from gpytorch.kernels import Kernel

from cbo_gym.agents.calibration.data_noise import is_noiseless
from cbo_gym.agents.gp.kernels import SquaredExponential
from cbo_gym.agents.gp.model import (
    GaussianProcess,
    SurrogateError,
)
from cbo_gym.agents.gp.noise import NO_NOISE
from cbo_gym.agents.gp.schedule import RefitSchedule
from cbo_gym.agents.networks.kernels import additive_kernel, mechanism_kernel, two_part_kernel
from cbo_gym.errors import ArgumentError
from tests.support.loop import make


def filled(n: int = 12, dim: int = 2, *, seed: int = 0, noise: float = 0.0, **options) -> GaussianProcess:
    rng = np.random.default_rng(seed)
    x = rng.random((n, dim))
    gp = GaussianProcess("X", dim, **options)
    gp.add(x, 3.0 + 2.0 * np.sin(5.0 * x).sum(-1) + noise * rng.standard_normal(n))
    return gp


def test_posterior_keeps_batch_shapes_and_is_differentiable() -> None:
    gp = filled()
    points = torch.rand(3, 4, 2, dtype=torch.float64, requires_grad=True)
    mean, std = gp.posterior(points)
    assert mean.shape == std.shape == (3, 4)
    torch.autograd.gradcheck(gp.posterior, points)


def test_condensed_predictions_are_the_same_and_shorter() -> None:
    whole, short = (filled(60, dim=1, noise=0.3, condense=condense) for condense in (False, True))
    points = torch.rand((40, 1), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for rows in ((15, 60), (16, 61)):  # at the refit, and with one more observation
        means, stds = zip(*(gp.posterior(points) for gp in (whole, short)), strict=True)
        torch.testing.assert_close(means[1], means[0], rtol=0, atol=1e-9)
        torch.testing.assert_close(stds[1], stds[0], rtol=1e-5, atol=0)
        assert len(short.state().root) <= rows[0]
        assert len(whole.state().root) == rows[1]
        for gp in (whole, short):
            gp.add([0.5], 4.0)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (range(10, 60), [*range(10, 30), 32, 36, 40, 44, 49, 54]),  # all arrivals, then growth by a tenth
        (range(150, 165), [150, 153, 157, 161]),  # one of many waits for others
        (range(200, 250), [200, 221, 244]),  # and of very many for more
    ],
)
def test_refits_follow_all_arrivals_but_those_that_are_few_among_many(sizes: range, expected: list[int]) -> None:
    schedule = RefitSchedule()
    fitted_at = []
    for size in sizes:
        if schedule.due(size):
            schedule.record(size)
            fitted_at.append(size)
        assert not schedule.due(size)
    assert fitted_at == expected


def test_a_prediction_refits_as_scheduled_and_leaves_the_global_random_state_alone() -> None:
    before, gp = torch.get_rng_state(), filled(10)
    for expected in range(1, 4):
        gp.posterior(gp.inputs)
        gp.posterior(gp.inputs)
        assert gp.schedule.fits == expected
        gp.add([0.1 * expected, 0.5], 3.0)
    assert torch.equal(before, torch.get_rng_state())


def test_noiseless_gp_interpolates() -> None:
    for env_id, node, expected in [
        ("Alpine2", "Y", True),
        ("Alpine2-Noisy", "X0", False),
        ("Dropwave-NoisyPublished", "X0", False),
    ]:
        assert is_noiseless(make(f"CBO/{env_id}-v0", 0, 1)[1], node) == expected
    gp = filled(30, noise_std=0.0)
    mean, std = gp.posterior(gp.inputs)
    assert float(gp.noise) == pytest.approx(NO_NOISE, rel=1e-12)
    torch.testing.assert_close(mean, gp.outputs, rtol=0.0, atol=1e-3)
    assert std.max() < 0.01


def test_a_ripple_is_found_by_a_fit_that_took_it_for_noise() -> None:
    """Eleven waves, in noise of half their amplitude: invisible in 12 points, plain in 90."""
    rng = np.random.default_rng(0)
    x = rng.random((90, 1))
    wave = np.sin(2.0 * np.pi * 11.0 * x[:, 0])
    y = wave + 0.5 * rng.standard_normal(90)
    gp = GaussianProcess("X", 1)
    gp.add(x[:12], y[:12])
    gp.update()
    gp.add(x[12:], y[12:])
    mean, _ = gp.posterior(gp.inputs)
    assert np.corrcoef(mean.numpy(), wave)[0, 1] > 0.8


def test_rescaled_columns_make_units_immaterial() -> None:
    plain = filled(15)
    other = GaussianProcess("X", 2, rescale=[1])
    unit = plain.inputs.clone()
    low, high = unit[:, 1].min(), unit[:, 1].max()
    unit[:, 1] = (unit[:, 1] - low) / (high - low)
    reference = GaussianProcess("X", 2)
    reference.add(unit.numpy(), plain.outputs.numpy())
    native = unit * torch.tensor([1.0, 400.0]) + torch.tensor([0.0, -90.0])
    other.add(native.numpy(), plain.outputs.numpy())
    for one, two in zip(other.posterior(native), reference.posterior(unit), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("noise_std", [None, 0.0])
@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ([[0.2, 0.4]], [3.0]),
        ([[0.2, 0.4]], [0.0]),
        (np.random.default_rng(0).random((9, 2)), [0.1] * 9),
        ([[0.3, 0.3]] * 8, [1.0] * 8),
        ([[0.3, 0.3]] * 8, list(range(8))),
        (np.random.default_rng(0).random((9, 2)), 1e6 * np.random.default_rng(1).random(9)),
        (np.random.default_rng(0).random((9, 2)), 1e6 + np.random.default_rng(1).random(9)),
        (np.random.default_rng(0).random((9, 2)), [0.0] * 8 + [1e6]),
    ],
    ids=["single", "zero", "constant", "duplicates", "clash", "large", "offset", "outlier"],
)
def test_awkward_data_give_finite_predictions(inputs, outputs, noise_std: float | None) -> None:
    gp = GaussianProcess("X", 2, noise_std=noise_std)
    for x, y in zip(np.asarray(inputs), outputs, strict=True):
        gp.add(x, y)
        points = torch.cat([gp.inputs, torch.rand(5, 2, dtype=torch.float64)])
        mean, std = gp.posterior(points)
        assert mean.isfinite().all()
        assert std.isfinite().all()
        assert (std > 0.0).all()


class Constant(Kernel):
    """The kernel of constant functions, with ``extra`` variance at each point; below 0 it is no covariance."""

    def __init__(self, extra: float) -> None:
        super().__init__()
        self.extra = extra

    def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **_: Any) -> torch.Tensor:
        if diag:
            return torch.full_like(x1[..., 0], 1.0 + self.extra)
        return 1.0 + self.extra * (x1.unsqueeze(-2) == x2.unsqueeze(-3)).all(-1).to(x1)


def test_a_covariance_that_rounding_made_indefinite_is_saved_by_jitter_another_names_the_node() -> None:
    gp = filled(2, noise_std=0.0, covariance=lambda dim: Constant(-0.5))
    with pytest.raises(SurrogateError, match=r"node X \(2 points\) cannot be factorised"):
        gp.update()
    gp = filled(3, noise_std=0.0, covariance=lambda dim: Constant(-1e-5))
    mean, std = gp.posterior(torch.rand(5, 2, dtype=torch.float64))
    torch.testing.assert_close(mean, gp.outputs.mean().expand(5), rtol=0.0, atol=1e-3)
    assert (std < 0.1 * gp.outputs.std()).all()


@pytest.mark.parametrize(
    "covariance",
    [
        SquaredExponential,
        partial(mechanism_kernel, parents=1),
        partial(mechanism_kernel, parents=2),
        additive_kernel,
        partial(two_part_kernel, first=1),
    ],
)
def test_without_data_a_gp_is_its_prior(covariance) -> None:
    gp = GaussianProcess("X", 2, noise_std=0.5, covariance=covariance)
    gp.set_prior(5.0, 2.0)
    points = torch.rand(4, 2, dtype=torch.float64, requires_grad=True)
    mean, std = gp.posterior(points)
    assert mean.tolist() == [5.0] * 4
    torch.testing.assert_close(std, gp.prior_std(points))
    assert float(gp.noise_scale) == pytest.approx(0.5)
    std.sum().backward()
    assert points.grad is not None
    assert points.grad.isfinite().all()
    joint_mean, root = gp.joint(points)
    torch.testing.assert_close(joint_mean, mean)
    assert root.shape == (4, 4)
    gp.add([0.3, 0.2], 1.0)
    assert float(gp.posterior(points[:1].detach())[0]) != 5.0


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: GaussianProcess("X", 2).add([0.1, 0.2], float("nan")), "node X.*finite"),
        (lambda: GaussianProcess("X", 2).add([0.1, float("inf")], 1.0), "node X.*finite"),
        (lambda: GaussianProcess("X", 2).add([[0.1, 0.2]], [1.0, 2.0]), "node X.*1 inputs but 2 outputs"),
        (lambda: GaussianProcess("X", 0), "at least one input"),
        (lambda: GaussianProcess("X", 2, rescale=[2]), "columns from 0 to 1"),
    ],
)
def test_bad_construction_and_use(use, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        use()
