"""Kernels and their algebra: formulas, gradients, stacks and draws."""

from functools import partial

import gpytorch
import numpy as np
import pytest
import torch
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cbo_gym.agents.gp.algebra import OnColumns, Product, Scale, Stacked, Sum
from cbo_gym.agents.gp.hyperparameters import log_prior
from cbo_gym.agents.gp.kernels import Affine, Constant, Dot, Kernel, SquaredExponential
from cbo_gym.agents.intervention_sets.sets_gp import sets_kernel
from cbo_gym.agents.networks.exogenous import decoder_kernel, with_draws
from cbo_gym.agents.networks.kernels import mechanism_kernel
from tests.support.kernels import DIM, KERNELS, dim_of, points_of, theta_of


def check_gradients(kernel: Kernel, points: Tensor, data: Tensor) -> None:
    """Compare the closed forms with autograd, and autograd with finite differences."""
    free_theta, free_points = theta_of(kernel, 2).requires_grad_(True), points.clone().requires_grad_(True)
    rng = torch.Generator().manual_seed(1)
    shapes = (len(points), len(data)), (len(points),)
    upstream = [torch.randn(shape, generator=rng).double() for shape in shapes]
    found = kernel.at(free_theta, data)(free_points)
    total = (found.cross * upstream[0]).sum()
    fixed = kernel.hyperparameters.free
    by_theta = torch.autograd.grad(total + 0.0 * free_theta.sum(), free_theta, retain_graph=True)[0]
    total = total + (found.variance * upstream[1]).sum() + 0.0 * free_points.sum()
    by_points = torch.autograd.grad(total, free_points)[0]
    with torch.no_grad():
        closed = kernel.at(free_theta, data)(free_points)
        torch.testing.assert_close(closed.to_theta(upstream[0])[fixed], by_theta[fixed])
        torch.testing.assert_close(closed.to_points(*upstream), by_points)
    torch.autograd.gradcheck(lambda theta: kernel.at(theta, data)(points).cross + 0.0 * theta.sum(), free_theta)


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "Matern"])
def test_gradients_are_those_of_autograd_and_of_finite_differences(kernel: str) -> None:
    check_gradients(KERNELS[kernel](dim_of(kernel)), points_of(kernel, 4, 0), points_of(kernel, 5, 1))


def expressions(dim: int) -> st.SearchStrategy[Kernel]:
    """Kernels of ``dim`` inputs."""
    leaves = st.sampled_from(
        [SquaredExponential(dim), SquaredExponential.with_gamma_prior(dim), Affine(dim), Dot(), Constant()]
    )
    single = st.sampled_from([SquaredExponential(1), Scale(Dot()), Sum(Scale(Affine(1)), SquaredExponential(1))])

    def operations(kernels: st.SearchStrategy[Kernel]) -> st.SearchStrategy[Kernel]:
        columns = st.integers(0, dim - 1)
        return st.one_of(
            st.builds(Sum, kernels, kernels),
            st.builds(Product, kernels, kernels),
            st.builds(Scale, kernels),
            st.builds(Stacked, single, st.just(dim)),
            st.builds(lambda part, column: OnColumns(part, slice(column, column + 1)), single, columns),
        )

    return st.recursive(leaves, operations, max_leaves=4)


@settings(max_examples=15, deadline=None)
@given(kernel=expressions(DIM), seed=st.integers(0, 100))
def test_the_gradients_of_any_expression(kernel: Kernel, seed: int) -> None:
    check_gradients(kernel, points_of("default", 3, seed), points_of("default", 4, seed + 1))


@settings(max_examples=15, deadline=None)
@given(one=expressions(DIM), other=expressions(DIM), seed=st.integers(0, 100))
def test_the_algebra_is_that_of_the_covariances(one: Kernel, other: Kernel, seed: int) -> None:
    points, data = points_of("default", 3, seed), points_of("default", 4, seed + 1)
    thetas = theta_of(one, seed), theta_of(other, seed)
    a, b = (kernel.at(theta, data)(points) for kernel, theta in zip((one, other), thetas, strict=True))
    both = torch.cat(thetas)
    for kernel, theta, combine in [
        (Sum(one, other), both, torch.add),
        (Product(one, other), both, torch.mul),
        (Scale(one), torch.cat([torch.tensor([0.7]).double(), thetas[0]]), lambda x, _: np.exp(np.float32(0.7)) * x),
    ]:
        found = kernel.at(theta, data)(points)
        torch.testing.assert_close(found.cross, combine(a.cross, b.cross))
        torch.testing.assert_close(found.variance, combine(a.variance, b.variance))
    own = one.at(thetas[0], points)(points)
    torch.testing.assert_close(own.cross.diagonal(), own.variance)


def rbf(x: np.ndarray, y: np.ndarray, lengths: list[float]) -> np.ndarray:
    return np.exp(-0.5 * (((x[:, None] - y) / lengths) ** 2).sum(-1))


def test_kernels_are_their_formulas() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((4, 3)), rng.random((5, 3))
    x[:, 2], y[:, 2] = [0, 1, 0, 1], [1, 1, 0, 1, 0]
    smooth, first = rbf(x, y, [0.3, 0.7, 0.9]), rbf(x[:, :2], y[:, :2], [0.3, 0.7])
    affine = 2.0 + (x[:, None, :2] * y[:, :2] * [3.0, 4.0]).sum(-1)
    alone = [weight * rbf(x[:, [i]], y[:, [i]], [0.4]) for i, weight in enumerate([2.0, 3.0, 4.0])]
    root = np.array([[1.5, 0.0], [-0.4, 0.8]])
    outcomes = (root @ root.T)[x[:, 2].astype(int)][:, y[:, 2].astype(int)]
    along = 1.0 + 2.0 * np.outer(x[:, 2], y[:, 2]) + 3.0 * rbf(x[:, 2:], y[:, 2:], [0.4])
    logs = np.log
    for kernel, theta, by_hand in [
        ("mechanism of two", logs([0.5, 0.3, 0.7, 0.9, 2.0, 3.0, 4.0, 1, 1, np.e, np.e, 0.4]), None),
        ("additive", logs([0.5, 0.3, 0.7, 0.9, 2.0, 0.4, 3.0, 0.4, 4.0, 0.4]), 0.5 * smooth + sum(alone)),
        ("two parts", logs([0.5, 0.3, 0.7, 2.0, 0.4]), 0.5 * first + 0.5 * alone[2]),
        ("decoder of a root", logs([0.3, 0.7, 2.0, 3.0, 0.4]), first * along),
        ("causal", logs([0.5, 0.3, 0.7]), 0.5 * first + np.outer(x[:, 2], y[:, 2])),
    ]:
        expected = 0.5 * smooth + affine * rbf(x[:, 2:], y[:, 2:], [0.4]) if by_hand is None else by_hand
        found = KERNELS[kernel](3).at(torch.from_numpy(theta), torch.from_numpy(y))(torch.from_numpy(x)).cross
        np.testing.assert_allclose(found, expected, rtol=1e-10, err_msg=kernel)
    theta = torch.tensor([np.log(0.3), np.log(1.5), -0.4, np.log(0.8)]).double()
    found = KERNELS["outcomes"](3).at(theta, torch.from_numpy(y))(torch.from_numpy(x)).cross
    same = (x[:, [2]] == y[:, 2]) * np.outer(x[:, 1], y[:, 1])
    np.testing.assert_allclose(found, outcomes * rbf(x[:, :1], y[:, :1], [0.3]) + same, rtol=1e-6)


def test_sets_by_hand() -> None:
    x, kernel = np.random.default_rng(0).random((4, 6)), sets_kernel(6)
    theta = torch.tensor(np.log([0.3, 0.7, 0.9, 0.5, 2.0, 3.0]))
    heights = 2.0 + np.outer(x[:, 4], x[:, 4]) + 3.0 * np.outer(x[:, 5], x[:, 5])
    found = kernel.covariance(theta, torch.from_numpy(x))
    np.testing.assert_allclose(found, rbf(x[:, :4], x[:, :4], [0.3, 0.7, 0.9, 0.5]) * heights, rtol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_stacks_and_sets_are_the_single_kernels(kernel: str) -> None:
    own = KERNELS[kernel](dim_of(kernel))
    thetas = torch.stack([theta_of(own, seed) for seed in range(2)])
    data, points = (torch.stack([points_of(kernel, count, seed) for seed in range(2)]) for count in (7, 4))
    rng = torch.Generator().manual_seed(0)
    up = torch.rand((2, 4, 7), generator=rng).double(), torch.rand((2, 4), generator=rng).double()
    together = own.at(thetas, data)(points)
    for index in range(2):
        alone = own.at(thetas[index], data[index])(points[index])
        torch.testing.assert_close((together.cross[index], together.variance[index]), alone[:2])
        torch.testing.assert_close(together.to_points(*up)[index], alone.to_points(*(one[index] for one in up)))
        torch.testing.assert_close(together.to_theta(up[0])[index], alone.to_theta(up[0][index]))
    within = own.covariance(thetas[0], data)
    torch.testing.assert_close(within[1].detach(), own.at(thetas[0], data[1])(data[1]).cross)


def test_actions_that_all_samples_share_change_nothing() -> None:
    kernel = KERNELS["mechanism of two"](3)
    rng = torch.Generator().manual_seed(0)
    seen, points = torch.rand((7, 3), generator=rng).double(), torch.rand((4, 5, 3), generator=rng).double()
    points[..., 2] = points[:, :1, 2]
    up = torch.rand((4, 5, 7), generator=rng).double(), torch.rand((4, 5), generator=rng).double()
    function = kernel.at(theta_of(kernel, 0), seen)
    together, apart = function(points), function(points.flatten(0, 1))
    torch.testing.assert_close(together.cross, apart.cross.unflatten(0, (4, 5)))
    slopes = apart.to_points(*(own.flatten(0, 1) for own in up))
    torch.testing.assert_close(together.to_points(*up), slopes.unflatten(0, (4, 5)))


def test_a_decoder_is_the_same_with_draws_that_are_combined() -> None:
    kernel = decoder_kernel(3, partial(mechanism_kernel, parents=1))
    rng = torch.Generator().manual_seed(0)
    data, points, u = (torch.rand(shape, generator=rng).double() for shape in ((6, 3), (4, 1, 2), (5,)))
    theta = theta_of(kernel, 0)
    every = torch.cat([points.expand(-1, 5, -1), u[:, None].expand(4, -1, -1)], -1)
    expected, found = kernel.at(theta, data)(every), with_draws(kernel, theta, data, u)(points)
    torch.testing.assert_close(found[:2], expected[:2])
    up = torch.rand((4, 5, 6), generator=rng).double(), torch.rand((4, 5), generator=rng).double()
    torch.testing.assert_close(found.to_points(*up), expected.to_points(*up)[..., :2].sum(1, keepdim=True))


def test_priors_and_bounds_are_those_of_botorch_and_gpytorch() -> None:
    reference = get_covar_module_with_dim_scaled_prior(ard_num_dims=3)
    own = SquaredExponential(3).hyperparameters
    assert float(own.lower.exp()[0]) == pytest.approx(float(reference.raw_lengthscale_constraint.lower_bound))
    torch.testing.assert_close(own.start.exp()[None], reference.lengthscale.detach().double())
    for kernel, prior in [
        (SquaredExponential(3), reference.lengthscale_prior),
        (SquaredExponential.with_gamma_prior(3), gpytorch.priors.GammaPrior(3.0, 6.0)),
    ]:
        theta = theta_of(kernel, 0).requires_grad_(True)
        density, slope = log_prior(theta, kernel.hyperparameters.prior)
        torch.testing.assert_close(density, prior.log_prob(theta.exp()).sum().double(), rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(slope, torch.autograd.grad(density, theta)[0])


def test_kernels_without_draws_say_so() -> None:
    with pytest.raises(NotImplementedError, match="Product has no draws"):
        Product(SquaredExponential(1), SquaredExponential(1)).draw(torch.zeros(2), torch.Generator(), 1)
