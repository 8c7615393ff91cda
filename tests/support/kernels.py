"""The kernels of the agents, by name, with points and hyper-parameters for them."""

from collections.abc import Callable
from functools import partial

import gpytorch
import torch
from torch import Tensor

from cbo_gym.agents.gp.gpytorch_kernel import as_kernel
from cbo_gym.agents.gp.kernels import Kernel, SquaredExponential
from cbo_gym.agents.intervention_sets.causal_prior import causal_kernel
from cbo_gym.agents.intervention_sets.multi_task import coregion_kernel
from cbo_gym.agents.intervention_sets.sets_gp import sets_kernel
from cbo_gym.agents.networks.exogenous import decoder_kernel
from cbo_gym.agents.networks.kernels import additive_kernel, mechanism_kernel, two_part_kernel
from cbo_gym.agents.scopes.scope_arm import short_kernel

DIM = 3


def matern(dim: int) -> Kernel:
    return as_kernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=dim))


def mechanism_about_zero(dim: int) -> Kernel:
    """A kernel that counts its parents, the first two inputs, from values that are not 0."""
    kernel = mechanism_kernel(dim, parents=2)
    kernel.set_zeros(torch.tensor([0.3, -2.0, 0.0]).double())
    return kernel


def with_a_category(dim: int) -> Kernel:
    """A kernel whose second input is one of three categories."""
    return short_kernel(dim).with_categories({1: 3})


KERNELS: dict[str, Callable[[int], Kernel]] = {
    "default": SquaredExponential,
    "short": short_kernel,
    "category": with_a_category,
    "mechanism": partial(mechanism_kernel, parents=1),
    "mechanism of two": partial(mechanism_kernel, parents=2),
    "mechanism about zero": mechanism_about_zero,
    "additive": additive_kernel,
    "two parts": partial(two_part_kernel, first=2),
    "decoder": partial(decoder_kernel, mechanism=partial(mechanism_kernel, parents=1)),
    "decoder of a root": partial(decoder_kernel, mechanism=SquaredExponential),
    "causal": causal_kernel,
    "sets": sets_kernel,
    "outcomes": partial(coregion_kernel, count=2),
    "Matern": matern,
}


def dim_of(kernel: str) -> int:
    return 6 if kernel == "sets" else DIM


def points_of(kernel: str, count: int, seed: int) -> Tensor:
    points = torch.rand((count, dim_of(kernel)), generator=torch.Generator().manual_seed(seed)).double()
    if kernel == "outcomes":
        points[:, -1] = points[:, -1].round()
    return points


def theta_of(kernel: Kernel, seed: int) -> Tensor:
    start = kernel.hyperparameters.start
    moves = 0.4 * torch.randn(len(start), dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return start + moves.where(kernel.hyperparameters.free, 0.0)
