from functools import partial

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.utils.gpytorch_modules import get_matern_kernel_with_gamma_prior
from botorch.optim.utils import get_parameters_and_bounds
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.optimize import check_grad

from cbo_gym.agents.networks.exogenous import DecoderKernel
from cbo_gym.agents.networks.heteroscedastic import BumpyNoise
from cbo_gym.agents.surrogates.causal.causal_prior import CausalKernel
from cbo_gym.agents.surrogates.causal.sets_gp import SetsKernel
from cbo_gym.agents.surrogates.gp.fitting import LogPosterior, covariances
from cbo_gym.agents.surrogates.gp.kernels import (
    AdditiveKernel,
    ScaledSquaredExponential,
    SquaredExponential,
    TwoPartKernel,
)
from cbo_gym.agents.surrogates.gp.mechanism import MechanismKernel, mechanism_kernel
from cbo_gym.agents.surrogates.gp.noise import KnownNoise, NoiseLevel


def mechanism_about_zero(dim: int) -> MechanismKernel:
    """A kernel that counts its parents, the first two inputs, from values that are not 0."""
    kernel = mechanism_kernel(dim, parents=2)
    kernel.set_origin(torch.tensor([0.3, -2.0, 0.0]).double())
    return kernel


KERNELS = {
    "default": SquaredExponential,
    "mechanism": partial(mechanism_kernel, parents=1),
    "mechanism of two": partial(mechanism_kernel, parents=2),
    "mechanism about zero": mechanism_about_zero,
    "additive": AdditiveKernel,
    "two parts": partial(TwoPartKernel, first=2),
    "parents alone": partial(mechanism_kernel, parents=3),
    "decoder": partial(DecoderKernel, mechanism=partial(mechanism_kernel, parents=1)),
    "decoder of a root": partial(DecoderKernel, mechanism=SquaredExponential),
    "causal": CausalKernel,
    "scaled": ScaledSquaredExponential,
    "sets": SetsKernel,
    "Matern": get_matern_kernel_with_gamma_prior,  # by autograd
}
NOISES = {
    "known": lambda dim: KnownNoise(0.3),
    "level": lambda dim: NoiseLevel(),
    "bumpy": lambda dim: BumpyNoise(dim, [0]),
}


def data(count: int = 15, dim: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    points = rng.random((count, dim))
    return points, np.sin(5.0 * points).sum(-1) + 0.3 * rng.standard_normal(count)


def dim_of(kernel: str) -> int:
    return 6 if kernel == "sets" else 3


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("noise", "centred"), [("known", False), ("level", True), ("bumpy", False)])
def test_gradients_are_those_of_finite_differences(kernel: str, noise: str, centred: bool) -> None:
    points, targets = data(dim=dim_of(kernel))
    known, level = covariances(KERNELS[kernel](dim_of(kernel)).double(), points), NOISES[noise](dim_of(kernel))
    level.set_data(points, 1.0)
    posterior = LogPosterior(known, level, points, targets, centred)
    start = np.concatenate([known.theta, level.theta, [] if centred else [0.2]])
    start = start + 0.1 * np.random.default_rng(1).random(len(start))
    error = check_grad(lambda values: posterior(values)[0], lambda values: posterior(values)[1], start)
    assert error < 1e-5 * max(1.0, np.linalg.norm(posterior(start)[1]))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_closed_form_is_the_kernel(kernel: str) -> None:
    points, _ = data(dim=dim_of(kernel))
    module = KERNELS[kernel](dim_of(kernel)).double()
    known = covariances(module, points)
    values = known.theta + 0.3 * np.random.default_rng(2).random(len(known.theta))
    matrix, _ = known.matrix(values)
    known.theta = values
    np.testing.assert_allclose(known.theta, values)
    with torch.no_grad():
        found = module.forward(torch.from_numpy(points), torch.from_numpy(points))
        diagonal = module.forward(torch.from_numpy(points), torch.from_numpy(points), diag=True)
    np.testing.assert_allclose(matrix, found, rtol=1e-10)
    np.testing.assert_allclose(matrix.diagonal(), diagonal, rtol=1e-10)


@pytest.mark.parametrize("kernel", ["default", "mechanism", "decoder", "Matern"])
@pytest.mark.parametrize("noise_std", [None, 0.3])
def test_the_density_is_that_of_gpytorch(kernel: str, noise_std: float | None) -> None:
    points, targets = data()
    variance = None if noise_std is None else torch.full((15, 1), noise_std**2).double()
    module = KERNELS[kernel](3).double()
    inputs = torch.from_numpy(points)
    model = SingleTaskGP(
        inputs, torch.from_numpy(targets)[:, None], variance, covar_module=module, outcome_transform=None
    )
    reference = ExactMarginalLogLikelihood(model.likelihood, model).train()
    expected = float(reference(model(inputs), model.train_targets).detach())
    noise = NoiseLevel() if noise_std is None else KnownNoise(noise_std)
    noise.set_data(points, 1.0)
    known = covariances(module, points)
    posterior = LogPosterior(known, noise, points, targets)
    assert posterior(np.concatenate([known.theta, noise.theta, [0.0]]))[0] == pytest.approx(expected, rel=1e-6)


def rbf(x: np.ndarray, y: np.ndarray, lengths: list[float]) -> np.ndarray:
    return np.exp(-0.5 * (((x[:, None] - y) / lengths) ** 2).sum(-1))


def test_kernels_are_their_formulas() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((4, 3)), rng.random((5, 3))
    smooth = rbf(x, y, [0.3, 0.7, 0.9])
    affine = 2.0 + (x[:, None, :2] * y[:, :2] * [3.0, 4.0]).sum(-1)
    alone = [weight * rbf(x[:, [i]], y[:, [i]], [0.4]) for i, weight in enumerate([2.0, 3.0, 4.0])]
    for kernel, variances, by_hand in [
        ("mechanism of two", [0.5, 2.0, 3.0, 4.0], 0.5 * smooth + affine * rbf(x[:, 2:], y[:, 2:], [0.4])),
        ("additive", [0.5, 2.0, 3.0, 4.0], 0.5 * smooth + sum(alone)),
        ("two parts", [0.5, 2.0], 0.5 * rbf(x[:, :2], y[:, :2], [0.3, 0.7]) + 2.0 * alone[2] / 4.0),
    ]:
        module = KERNELS[kernel](3).double()
        whole = [0.3, 0.7] if kernel == "two parts" else [0.3, 0.7, 0.9]
        theta = np.log([*variances, *whole, *[0.4] * (3 if kernel == "additive" else 1)])
        covariances(module, x).theta = theta
        found = module.forward(torch.tensor(x), torch.tensor(y)).detach()
        np.testing.assert_allclose(found, by_hand, rtol=1e-6, err_msg=kernel)


CLOSED = ["default", "mechanism", "mechanism about zero", "additive", "two parts", "parents alone", "scaled"]


@pytest.mark.parametrize("kernel", CLOSED)
def test_priors_are_the_same_in_stacks_and_in_sets_and_have_the_slopes_of_autograd(kernel: str) -> None:
    rng = torch.Generator().manual_seed(0)
    kernels = [KERNELS[kernel](3).double() for _ in range(2)]
    known = covariances(kernels[1], np.zeros((1, 3)))
    known.theta = known.theta + 0.3
    sets, points = torch.rand((2, 7, 3), generator=rng).double(), torch.rand((2, 4, 3), generator=rng).double()
    gradients = torch.rand((2, 4, 7), generator=rng).double(), torch.rand((2, 4), generator=rng).double()
    numbers = [torch.stack(own) for own in zip(*(own.numbers() for own in kernels), strict=True)]
    together = kernels[0].cross_covariance(sets, numbers)(points)
    slopes = together.pullback(*gradients)
    for place, module in enumerate(kernels):
        free = points[place].clone().requires_grad_(True)
        alone = module.cross_covariance(sets[place])(free)
        torch.testing.assert_close((together.cross[place], together.variance[place]), alone[:2])
        total = sum((own * given[place]).sum() for own, given in zip(alone[:2], gradients, strict=True))
        torch.testing.assert_close(slopes[place], torch.autograd.grad(total, free)[0])
        torch.testing.assert_close(module.covariance(sets)[place], module.forward(sets[place], sets[place]).detach())


def test_actions_that_all_samples_share_change_nothing() -> None:
    kernel = KERNELS["mechanism of two"](3).double()
    rng = torch.Generator().manual_seed(0)
    seen, points = torch.rand((7, 3), generator=rng).double(), torch.rand((4, 5, 3), generator=rng).double()
    points[..., 2] = points[:, :1, 2]
    gradients = torch.rand((4, 5, 7), generator=rng).double(), torch.rand((4, 5), generator=rng).double()
    together, apart = kernel.cross_covariance(seen)(points), kernel.cross_covariance(seen)(points.flatten(0, 1))
    torch.testing.assert_close(together.cross, apart.cross.unflatten(0, (4, 5)))
    slopes = apart.pullback(*(own.flatten(0, 1) for own in gradients))
    torch.testing.assert_close(together.pullback(*gradients), slopes.unflatten(0, (4, 5)))


def test_bounds_are_those_of_botorch() -> None:
    points, targets = data()
    model = SingleTaskGP(torch.from_numpy(points), torch.from_numpy(targets)[:, None])
    _, bounds = get_parameters_and_bounds(model)
    least = {name.split(".")[-1]: float(low) for name, (low, _) in bounds.items()}
    (lengthscale, _), *_ = covariances(SquaredExponential(3), points).bounds
    ((noise, _),) = NoiseLevel().bounds
    assert np.exp(lengthscale) == pytest.approx(least["raw_lengthscale"])
    assert np.exp(noise) == pytest.approx(least["raw_noise"])


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_fit_ends_where_the_density_is_flat(kernel: str) -> None:
    points, targets = data(40, dim_of(kernel))
    known, noise = covariances(KERNELS[kernel](dim_of(kernel)).double(), points), NoiseLevel()
    posterior = LogPosterior(known, noise, points, targets)
    start = np.concatenate([known.theta, noise.theta, [0.0]])
    density, end = posterior.maximise(start, 200)
    assert density > posterior(start)[0]
    assert np.abs(posterior(end)[1]).max() < 1e-2


def test_an_impossible_covariance_has_no_density() -> None:
    points, targets = data()
    noise = KnownNoise(0.0)
    noise.set_data(points, 1.0)
    posterior = LogPosterior(covariances(SquaredExponential(3), points), noise, points, targets)
    density, slope = posterior(np.array([np.nan, 0.0, 0.0, 0.0]))
    assert density == -np.inf
    assert (slope == 0.0).all()
