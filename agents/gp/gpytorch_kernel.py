"""Any kernel of GPyTorch as a kernel of this package, with gradients by autograd."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
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
        module: the kernel; its parameters change with every call.
    """

    def __init__(self, module: gpytorch.kernels.Kernel) -> None:
        self._module = module.double().requires_grad_(False)
        parameters, limits = get_parameters_and_bounds(module)
        self._tensors = list(parameters.values())
        self._raw = Hyperparameters.flat(self._values())
        free = (-math.inf, math.inf)
        for bounds, index in ((self._raw.lower, 0), (self._raw.upper, 1)):
            for part, name in zip(bounds.split(self._sizes), parameters, strict=True):
                part[:] = torch.as_tensor(limits.get(name, free)[index])
        self._priors = list(module.named_priors())

    @property
    def _sizes(self) -> list[int]:
        return [tensor.numel() for tensor in self._tensors]

    def _values(self) -> list[float]:
        return [float(value) for tensor in self._tensors for value in tensor.detach().flatten()]

    @property
    def hyperparameters(self) -> Hyperparameters:
        return self._raw

    @property
    def structure(self) -> Hashable:
        return id(self)

    def with_lengthscale(self, length: float) -> Tensor:
        self._set(self._raw.start)
        for kernel in self._module.modules():
            if isinstance(kernel, gpytorch.kernels.Kernel) and kernel.has_lengthscale:
                kernel.lengthscale = length
        return torch.tensor(self._values(), dtype=torch.float64)

    def log_prior(self, theta: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
        def density() -> Tensor:
            densities = [prior.log_prob(closure(module)).sum() for _, module, prior, closure, _ in self._priors]
            return torch.stack([torch.zeros((), dtype=torch.float64), *densities]).sum()

        total, gradient = super().log_prior(theta, prior)
        count = len(self._raw)
        results = [self._with_slope(values[:count], density, torch.ones_like) for values in theta]
        gradient[:, :count] = torch.stack([slope for _, slope in results])
        return total + torch.stack([value for value, _ in results]), gradient

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        if log_scale is not None:
            raise NotImplementedError("kernels of GPyTorch cannot be parts of others; use its own operations")
        if theta.dim() > 1:  # one GP, perhaps from several starts
            return _stack([self.at(gp_theta, gp_data) for gp_theta, gp_data in zip(theta, data, strict=True)])

        def covariance(points: Tensor) -> Covariance:
            self._set(theta)
            flat = points.detach().reshape(-1, points.shape[-1])
            with torch.inference_mode(False), torch.enable_grad():
                free, fixed = flat.clone().requires_grad_(True), data.clone()
                outputs = self._module.forward(free, fixed), self._module.forward(free, free, diag=True)

            def to_points(*gradients: Tensor) -> Tensor:
                # The variance of a stationary kernel is constant.
                pairs = [(output, up) for output, up in zip(outputs, gradients, strict=True) if output.requires_grad]
                varying, upstream = zip(*((output, up.reshape(output.shape)) for output, up in pairs), strict=True)
                return torch.autograd.grad(varying, free, upstream, retain_graph=True)[0].reshape(points.shape)

            def to_theta(gradient: Tensor) -> Tensor:
                return self._with_slope(theta, lambda: self._module.forward(free, fixed), lambda _: gradient)[1]

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
        each = [function(gp_points) for function, gp_points in zip(functions, points, strict=True)]
        return Covariance(
            torch.stack([covariance.cross for covariance in each]),
            torch.stack([covariance.variance for covariance in each]),
            lambda *ups: torch.stack([covariance.to_points(*up) for covariance, *up in zip(each, *ups, strict=True)]),
            lambda up: torch.stack(
                [covariance.to_theta(gradient) for covariance, gradient in zip(each, up, strict=True)]
            ),
        )

    return covariance
