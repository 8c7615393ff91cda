"""The posterior density of hyper-parameters, fits of stacks, and their optimiser."""

import math

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.optimize import check_grad

from cbo_gym.agents.gp.bfgs import maximise
from cbo_gym.agents.gp.fitting import COARSE_SIZE, Fit, LogPosterior, Regression, fit
from cbo_gym.agents.gp.noise import KnownNoise, Noise, NoiseLevel
from cbo_gym.agents.intervention_sets.multi_task import NoiseLevels
from cbo_gym.agents.networks.heteroscedastic import BumpyNoise
from tests.support.kernels import KERNELS, dim_of, points_of

NOISES = {
    "known": lambda dim: KnownNoise(0.3),
    "level": lambda dim: NoiseLevel(),
    "bumpy": lambda dim: BumpyNoise(dim, [0]),
    "levels": lambda dim: NoiseLevels(2),
}


def regression(
    kernel: str = "default", noise: str = "level", count: int = 15, seed: int = 0, centred: bool = False
) -> Regression:
    points, generator = points_of(kernel, count, seed), torch.Generator().manual_seed(seed)
    targets = (5.0 * points).sin().sum(-1) + 0.3 * torch.randn(count, generator=generator).double()
    own: Noise = NOISES[noise](dim_of(kernel))
    own.set_data(points, 1.0)
    return Regression(
        KERNELS[kernel](dim_of(kernel)), own, points, targets - targets.mean(), 0.1 * targets.square(), centred
    )


def near_start(own: Regression) -> np.ndarray:
    numbers = own.hyperparameters
    moves = 0.1 * np.random.default_rng(1).random(len(numbers))
    return numbers.start.numpy() + np.where(numbers.free, moves, 0.0)


@pytest.mark.parametrize(
    ("kernel", "noise", "centred"),
    [
        *((kernel, "level", True) for kernel in KERNELS),
        *(("mechanism", noise, False) for noise in ("known", "bumpy")),
        ("outcomes", "levels", True),
    ],
)
def test_gradients_are_those_of_finite_differences(kernel: str, noise: str, centred: bool) -> None:
    own = regression(kernel, noise, centred=centred)
    posterior, start, free = LogPosterior([own]), near_start(own), own.hyperparameters.free.numpy()

    def at(values: np.ndarray) -> tuple[float, np.ndarray]:
        theta = start.copy()
        theta[free] = values
        density, slope = posterior(theta[None], [0])
        return density[0], slope[0, free]

    error = check_grad(lambda values: at(values)[0], lambda values: at(values)[1], start[free])
    assert error < 1e-5 * max(1.0, np.linalg.norm(at(start[free])[1]))


@pytest.mark.parametrize("noise_std", [None, 0.3])
@pytest.mark.parametrize(
    ("outputs", "count"),
    [(1.0, 15), (1e-12, 15), (1e12, 15), (1.0, 2), pytest.param(1.0, 1000, marks=pytest.mark.slow)],
)
def test_density_and_predictions_are_those_of_gpytorch(noise_std: float | None, outputs: float, count: int) -> None:
    from cbo_gym.agents.gp.model import GaussianProcess

    own = regression(count=count)
    gp = GaussianProcess("X", 3, noise_std=None if noise_std is None else noise_std * outputs)
    gp.add(own.points.numpy(), outputs * own.targets.numpy())
    gp.update()
    values = (gp.outputs - gp.outputs.mean()) / gp.outputs.std()
    variance = None if noise_std is None else torch.full((count, 1), float(gp.noise)).double()
    model = SingleTaskGP(own.points, values[:, None], variance, outcome_transform=None)
    model.covar_module.lengthscale = gp.kernel_theta.exp()
    if noise_std is None:
        model.likelihood.noise = gp.noise
    model.mean_module.constant.data.fill_(gp.constant)
    density = ExactMarginalLogLikelihood(model.likelihood, model.train())(model(own.points), model.train_targets)
    found, _ = LogPosterior([gp.regression()])(gp.theta.numpy()[None], [0])
    assert found[0] == pytest.approx(float(density.detach()), rel=1e-6)
    points = points_of("default", 20, 3)
    expected = model.eval().posterior(points)
    for one, other in zip(gp.posterior(points), (expected.mean[:, 0], expected.variance[:, 0].sqrt()), strict=True):
        reference = other * gp.outputs.std() + (gp.outputs.mean() if other is expected.mean[:, 0] else 0.0)
        torch.testing.assert_close(one, reference.detach(), rtol=1e-8, atol=1e-8 * outputs)


def test_stacked_densities_are_the_single_ones_whatever_the_padding() -> None:
    owns = [regression("mechanism", "level", count, seed) for seed, count in enumerate((16, 15, 17))]
    starts = np.stack([near_start(own) for own in owns])
    together = LogPosterior(owns)(starts, [0, 1, 2])
    for index, own in enumerate(owns):
        alone = LogPosterior([own])(starts[[index]], [0])
        for one, other in zip(together, alone, strict=True):
            np.testing.assert_allclose(one[index], other[0], rtol=1e-9, atol=1e-12)
    rows = [2, 0, 2]
    for some in (LogPosterior(owns)(starts[rows], rows)[0], LogPosterior(owns).densities(starts[rows], rows)):
        np.testing.assert_allclose(some, together[0][rows])


def test_gps_fitted_together_end_where_they_end_alone() -> None:
    kinds = [(kernel, count) for kernel in ("default", "mechanism") for count in (9, 14, 40)]
    owns = [regression(kernel, "level", count, seed) for seed, (kernel, count) in enumerate(kinds)]
    starts, searches = [Fit(own.hyperparameters.start) for own in owns], [True, False, True] * 2
    together = fit(owns, starts, searches)
    for own, start, search, found in zip(owns, starts, searches, together, strict=True):
        (alone,) = fit([own], [start], [search])
        torch.testing.assert_close(found.theta, alone.theta, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_fit_ends_where_the_density_is_flat(kernel: str) -> None:
    own = regression(kernel, count=40)
    start, posterior = own.hyperparameters.start, LogPosterior([own])
    (found,) = fit([own], [Fit(start)], [False])
    (before, _), (density, slope) = (posterior(theta.numpy()[None], [0]) for theta in (start, found.theta))
    assert density[0] > before[0]
    assert np.abs(slope[0, own.hyperparameters.free.numpy()]).max() < 1e-2


def test_many_data_are_fitted_as_well_from_a_part_of_them() -> None:
    own = regression("mechanism", "known", count=2 * COARSE_SIZE)
    (found,) = fit([own], [Fit(own.hyperparameters.start)], [True])
    posterior = LogPosterior([own])
    whole = posterior.maximise(own.hyperparameters.start.numpy()[None], [0])
    assert posterior(found.theta.numpy()[None], [0])[0] > whole.values - 1e-3


def test_an_impossible_covariance_has_no_density() -> None:
    own = regression(noise="known")
    theta = own.hyperparameters.start.numpy().copy()
    theta[0] = np.nan
    density, slope = LogPosterior([own])(theta[None], [0])
    assert density[0] == LogPosterior([own]).densities(theta[None], [0])[0] == -math.inf
    assert (slope == 0.0).all()


def test_the_optimiser_finds_the_maxima_of_several_functions_within_bounds() -> None:
    """Rosenbrock valleys, negated, each about another point; some of the maxima lie beyond the bounds."""
    centres = np.array([[1.0, 1.0], [0.5, 0.3], [3.0, 9.0]])

    def valleys(points: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, y = (points - centres[active] + 1.0).T
        slopes = np.stack([400.0 * x * (y - x**2) + 2.0 * (1.0 - x), -200.0 * (y - x**2)], -1)
        return -(100.0 * (y - x**2) ** 2 + (1.0 - x) ** 2), slopes

    found = maximise(valleys, np.zeros((3, 2)), np.full(2, -2.0), np.full(2, 2.0), 300, 1e-14)
    np.testing.assert_allclose(found.points[:2], centres[:2], atol=1e-3)
    assert (np.abs(found.points) <= 2.0).all()
    again = maximise(valleys, found.points, np.full(2, -2.0), np.full(2, 2.0), 1, 1e-14, found.inverses)
    assert (again.values >= found.values).all()
