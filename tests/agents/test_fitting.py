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
from cbo_gym.agents.surrogates.causal.gp_network import MechanismKernel
from cbo_gym.agents.surrogates.causal.sets_gp import SetsKernel
from cbo_gym.agents.surrogates.gp.additive import AdditiveKernel, TwoPartKernel
from cbo_gym.agents.surrogates.gp.fitting import LogPosterior, covariances
from cbo_gym.agents.surrogates.gp.kernels import ScaledSquaredExponential, SquaredExponential
from cbo_gym.agents.surrogates.gp.noise import KnownNoise, NoiseLevel


def mechanism_about_zero(dim: int) -> MechanismKernel:
    """A kernel that counts its parents, the first two inputs, from values that are not 0."""
    kernel = MechanismKernel(dim, parents=2)
    kernel.count_from(torch.tensor([0.3, -2.0, 0.0]).double())
    return kernel


KERNELS = {
    "default": SquaredExponential,
    "mechanism": partial(MechanismKernel, parents=1),
    "mechanism about zero": mechanism_about_zero,
    "additive": AdditiveKernel,
    "two parts": partial(TwoPartKernel, first=2),
    "parents alone": partial(MechanismKernel, parents=3),
    "decoder": partial(DecoderKernel, mechanism=partial(MechanismKernel, parents=1)),
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
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("centred", [True, False])
def test_gradients_are_those_of_finite_differences(kernel: str, noise: str, centred: bool) -> None:
    points, targets = data(dim=dim_of(kernel))
    known, level = covariances(KERNELS[kernel](dim_of(kernel)).double(), points), NOISES[noise](dim_of(kernel))
    level.look_at(points, 1.0)
    posterior = LogPosterior(known, level, points, targets, centred)
    start = np.concatenate([known.current(), level.values, [] if centred else [0.2]])
    start = start + 0.1 * np.random.default_rng(1).random(len(start))
    error = check_grad(lambda values: posterior(values)[0], lambda values: posterior(values)[1], start)
    assert error < 1e-5 * max(1.0, np.linalg.norm(posterior(start)[1]))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_closed_form_is_the_kernel(kernel: str) -> None:
    points, _ = data(dim=dim_of(kernel))
    module = KERNELS[kernel](dim_of(kernel)).double()
    known = covariances(module, points)
    values = known.current() + 0.3 * np.random.default_rng(2).random(len(known.current()))
    matrix, _ = known.matrix(values)
    known.adopt(values)
    np.testing.assert_allclose(known.current(), values)
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
    noise.look_at(points, 1.0)
    known = covariances(module, points)
    posterior = LogPosterior(known, noise, points, targets)
    assert posterior(np.concatenate([known.current(), noise.values, [0.0]]))[0] == pytest.approx(expected, rel=1e-6)


def test_bounds_are_those_of_botorch() -> None:
    points, targets = data()
    model = SingleTaskGP(torch.from_numpy(points), torch.from_numpy(targets)[:, None])
    _, bounds = get_parameters_and_bounds(model)
    least = {name.split(".")[-1]: float(low) for name, (low, _) in bounds.items()}
    (lengthscale, _), *_ = covariances(SquaredExponential(3), points).bounds()
    ((noise, _),) = NoiseLevel().bounds()
    assert np.exp(lengthscale) == pytest.approx(least["raw_lengthscale"])
    assert np.exp(noise) == pytest.approx(least["raw_noise"])


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_fit_ends_where_the_density_is_flat(kernel: str) -> None:
    points, targets = data(40, dim_of(kernel))
    known, noise = covariances(KERNELS[kernel](dim_of(kernel)).double(), points), NoiseLevel()
    posterior = LogPosterior(known, noise, points, targets)
    start = np.concatenate([known.current(), noise.values, [0.0]])
    density, end = posterior.maximise(start, 200)
    assert density > posterior(start)[0]
    assert np.abs(posterior(end)[1]).max() < 1e-2


def test_an_impossible_covariance_has_no_density() -> None:
    points, targets = data()
    noise = KnownNoise(0.0)
    noise.look_at(points, 1.0)
    posterior = LogPosterior(covariances(SquaredExponential(3), points), noise, points, targets)
    density, slope = posterior(np.array([np.nan, 0.0, 0.0, 0.0]))
    assert density == -np.inf
    assert (slope == 0.0).all()
