"""Wrapper that makes any kernel of GPyTorch a kernel of this package, with gradients by autograd."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import gpytorch
import torch
from botorch.optim.utils import get_parameters_and_bounds
from torch import Tensor

from cbo_gym.agents.gp.hyperparameters import Hyperparameters
from cbo_gym.agents.gp.kernels import Covariance, CrossCovariance, Kernel


def as_kernel(kernel: Any) -> Kernel:
    """Return a kernel of this package unchanged, and wrap one of GPyTorch."""
    return GPyTorchKernel(kernel) if isinstance(kernel, gpytorch.kernels.Kernel) else kernel


class GPyTorchKernel(Kernel):
    """A kernel of GPyTorch, whose hyper-parameters are its raw parameters.

    Args:
        module: the kernel. Every call sets its parameters.
    """

    def __init__(self, module: gpytorch.kernels.Kernel) -> None:
        self._module = module.double().requires_grad_(False)
        parameters, limits = get_parameters_and_bounds(module)
        self._tensors = list(parameters.values())
        self._sizes = [tensor.numel() for tensor in self._tensors]
        self.hyperparameters = Hyperparameters.flat(self._values())
        # No two kernels are computed together.
        self.structure = object()
        unlimited = (-math.inf, math.inf)
        for index, bounds in enumerate((self.hyperparameters.lower, self.hyperparameters.upper)):
            for parameter_bounds, name in zip(bounds.split(self._sizes), parameters, strict=True):
                parameter_bounds[:] = torch.as_tensor(limits.get(name, unlimited)[index])
        self._priors = list(module.named_priors())

    def _values(self) -> list[float]:
        return [float(value) for tensor in self._tensors for value in tensor.detach().flatten()]

    def with_lengthscale(self, length: float) -> Tensor:
        self._set(self.hyperparameters.start)
        for kernel in self._module.modules():
            if isinstance(kernel, gpytorch.kernels.Kernel) and kernel.has_lengthscale:
                kernel.lengthscale = length
        return torch.tensor(self._values(), dtype=torch.float64)

    def log_prior(self, theta: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
        def density() -> Tensor:
            densities = [prior.log_prob(closure(module)).sum() for _, module, prior, closure, _ in self._priors]
            return torch.stack([torch.zeros((), dtype=torch.float64), *densities]).sum()

        total, gradient = super().log_prior(theta, prior)
        count = len(self.hyperparameters)
        results = [self._with_slope(values[:count], density, torch.ones_like) for values in theta]
        gradient[:, :count] = torch.stack([slope for _, slope in results])
        return total + torch.stack([value for value, _ in results]), gradient

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        if log_scale is not None:
            raise NotImplementedError("kernels of GPyTorch cannot be parts of others; use its own operations")
        if theta.dim() > 1:
            # Several starts of the fit of one GP.
            return _stack([self.at(gp_theta, gp_data) for gp_theta, gp_data in zip(theta, data, strict=True)])

        def covariance(points: Tensor) -> Covariance:
            self._set(theta)
            flat = points.detach().reshape(-1, points.shape[-1])
            with torch.inference_mode(False), torch.enable_grad():
                x, fixed_data = flat.clone().requires_grad_(True), data.clone()
                outputs = self._module.forward(x, fixed_data), self._module.forward(x, x, diag=True)

            def to_points(*gradients: Tensor) -> Tensor:
                # Leave out the variance if it is constant, as that of a stationary kernel.
                pairs = zip(outputs, gradients, strict=True)
                terms = [(output, slope.reshape(output.shape)) for output, slope in pairs if output.requires_grad]
                varying, slopes = zip(*terms, strict=True)
                return torch.autograd.grad(varying, x, slopes, retain_graph=True)[0].reshape(points.shape)

            def to_theta(gradient: Tensor) -> Tensor:
                return self._with_slope(theta, lambda: self._module.forward(x, fixed_data), lambda _: gradient)[1]

            cross, variance = (output.detach() for output in outputs)
            shape = points.shape[:-1]
            return Covariance(cross.reshape(*shape, -1), variance.reshape(shape), to_points, to_theta)

        return covariance

    def covariance(self, theta: Tensor, points: Tensor) -> Tensor:
        self._set(theta)
        return self._module.forward(points, points)

    def _set(self, theta: Tensor) -> None:
        self._module.to(theta.device)
        with torch.inference_mode(False):
            for tensor, values in zip(self._tensors, theta.detach().split(self._sizes), strict=True):
                tensor.data = values.reshape(tensor.shape).clone()

    def _with_slope(
        self, theta: Tensor, function: Callable[[], Tensor], upstream: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return the output of a function of the parameters, and the gradient of its product with ``upstream``."""
        self._set(theta)
        self._module.requires_grad_(True)
        with torch.inference_mode(False), torch.enable_grad():
            output = function()
        slopes: Sequence[Tensor] = [torch.zeros_like(tensor) for tensor in self._tensors]
        if output.requires_grad:
            slopes = torch.autograd.grad(output, self._tensors, upstream(output), materialize_grads=True)
        self._module.requires_grad_(False)
        return output.detach(), torch.cat([theta[:0], *(slope.flatten() for slope in slopes)])


def _stack(functions: Sequence[CrossCovariance]) -> CrossCovariance:
    def covariance(points: Tensor) -> Covariance:
        single = [function(gp_points) for function, gp_points in zip(functions, points, strict=True)]
        return Covariance(
            torch.stack([one_gp.cross for one_gp in single]),
            torch.stack([one_gp.variance for one_gp in single]),
            lambda *slopes: torch.stack(
                [one_gp.to_points(*gp_slopes) for one_gp, *gp_slopes in zip(single, *slopes, strict=True)]
            ),
            lambda slope: torch.stack(
                [one_gp.to_theta(gp_slope) for one_gp, gp_slope in zip(single, slope, strict=True)]
            ),
        )

    return covariance
