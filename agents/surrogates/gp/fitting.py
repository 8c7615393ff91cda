"""The posterior density of a GP's hyper-parameters given its data, and its maximisation by L-BFGS-B.

Covariances of the data come with a *pullback*, which takes gradients with respect to the covariances to gradients with
respect to the hyper-parameters: in closed form, which with few data takes a tenth of the time, or by autograd.
Hyper-parameters are flat arrays here, in units that suit the search; most are logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from botorch.optim.utils import get_parameters_and_bounds
from gpytorch.kernels import Kernel
from scipy.linalg import lapack
from scipy.optimize import minimize
from torch import Tensor

from cbo_gym.agents.surrogates.gp.closed_form import Bounds, Covariances, Hyperparameters, WithClosedFit
from cbo_gym.agents.surrogates.gp.noise import Noise

RELATIVE_GAIN = 1e-7  # gain in log density per datum below which a fit stops
JITTERS = (0.0, 1e-8, 1e-7, 1e-6)  # added to the diagonal of a covariance that is indefinite because of rounding


def covariances(kernel: Kernel, points: np.ndarray) -> Covariances:
    """Return the covariances of ``points``, shape ``n x d``, as a function of the kernel's hyper-parameters."""
    if isinstance(kernel, WithClosedFit):
        return kernel.covariances_of(points)
    raw = RawParameters(kernel)
    return Covariances([raw], partial(raw.covariances, torch.from_numpy(points).to(kernel.device)))


class RawParameters(Hyperparameters):
    """The raw parameters of any kernel of GPyTorch, with gradients by autograd."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        parameters, limits = get_parameters_and_bounds(kernel)
        free = (-math.inf, math.inf)
        self._tensors = list(parameters.values())
        self._bounds = [
            (float(low), float(high))  # type: ignore[arg-type]  # bounds that are None were replaced
            for name, tensor in parameters.items()
            for low, high in [limits.get(name, free)] * tensor.numel()
        ]
        self._priors = list(kernel.named_priors())

    @property
    def theta(self) -> np.ndarray:
        return _flatten(self._tensors)

    @theta.setter
    def theta(self, values: np.ndarray) -> None:
        self._vary(values)
        self._kernel.requires_grad_(False)

    @property
    def bounds(self) -> Bounds:
        return self._bounds

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        self._vary(values)
        with torch.enable_grad():
            densities = [prior.log_prob(closure(module)).sum() for _, module, prior, closure, _ in self._priors]
            total = torch.stack([torch.zeros((), dtype=torch.float64, device=self._kernel.device), *densities]).sum()
        return float(total.detach()), self._gradient(total, torch.ones_like(total))

    def covariances(self, points: Tensor, values: np.ndarray) -> Any:
        """Return the covariances of points ``n x d``, and their gradient, as in :class:`Covariances`."""
        self._vary(values)
        with torch.enable_grad():
            matrix = self._kernel.forward(points, points)

        def gradients(gradient: np.ndarray) -> list[np.ndarray]:
            return [self._gradient(matrix, torch.from_numpy(gradient).to(matrix))]

        return matrix.detach().cpu().numpy(), gradients

    def _vary(self, values: np.ndarray) -> None:
        """Set the raw parameters, and make them differentiable."""
        rest = torch.tensor(values, device=self._kernel.device)
        for tensor in self._tensors:
            own, rest = rest[: tensor.numel()], rest[tensor.numel() :]
            tensor.data = own.reshape(tensor.shape)
        self._kernel.requires_grad_(True)

    def _gradient(self, output: Tensor, upstream: Tensor) -> np.ndarray:
        if not output.requires_grad:
            return np.zeros(len(self._bounds))
        return _flatten(torch.autograd.grad(output, self._tensors, upstream, materialize_grads=True))


def _flatten(tensors: Sequence[Tensor]) -> np.ndarray:
    return np.concatenate([np.empty(0), *(tensor.detach().cpu().numpy().ravel() for tensor in tensors)])


class LogPosterior:
    """Log of the marginal likelihood times the prior of the hyper-parameters, divided by the number of data.

    The hyper-parameters are those of the covariances, then the noise's, then the constant mean unless it is 0.

    Args:
        covariances: the prior covariances of the data.
        noise: the noise of the outputs.
        points: shape ``n x d``.
        targets: shape ``(n,)``.
        centred: whether the mean is 0 rather than a constant to be fitted.
    """

    def __init__(
        self, covariances: Covariances, noise: Noise, points: np.ndarray, targets: np.ndarray, centred: bool = False
    ) -> None:
        self._covariances, self._noise = covariances, noise
        self._points, self._targets, self._centred = points, targets, centred
        first = len(covariances.bounds)
        self._cuts = [first, first + len(noise.bounds)]

    def split(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the hyper-parameters of the covariances, those of the noise, and the mean."""
        kernel, noise, mean = np.split(values, self._cuts)
        return kernel, noise, float(mean.sum())

    def __call__(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        """The density and its gradient; -inf and zeros where the covariance matrix cannot be factorised."""
        kernel, noise, mean = self.split(values)
        matrix, pull_kernel = self._covariances.matrix(kernel)
        variances, pull_noise = self._noise.at(self._points, noise)
        root, inverse = _factor(matrix, variances)
        if root is None:
            return -math.inf, np.zeros_like(values)
        residuals = self._targets - mean
        weights = inverse @ residuals
        density = -0.5 * residuals @ weights - np.log(root.diagonal()).sum() - 0.5 * len(root) * math.log(2.0 * math.pi)
        slope = 0.5 * (weights[:, None] * weights - inverse)  # with respect to the covariance matrix
        kernel_prior, kernel_slope = self._covariances.log_prior(kernel)
        noise_prior, noise_slope = self._noise.log_prior(noise)
        slopes = [pull_kernel(slope) + kernel_slope, pull_noise(slope.diagonal()) + noise_slope]
        if not self._centred:
            slopes.append(weights.sum()[None])
        return (density + kernel_prior + noise_prior) / len(root), np.concatenate(slopes) / len(root)

    def maximise(self, start: np.ndarray, iterations: int) -> tuple[float, np.ndarray]:
        """Return the highest density that L-BFGS-B finds from ``start``, and its hyper-parameters."""
        best = (-math.inf, start)

        def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best
            density, slope = self(values)
            if density > best[0]:
                best = (density, values.copy())
            return -density, -slope

        limits = self._covariances.bounds + self._noise.bounds
        limits += [] if self._centred else [(-math.inf, math.inf)]
        options = {"maxiter": iterations, "ftol": RELATIVE_GAIN}
        with np.errstate(all="ignore"):  # where the covariance matrix cannot be factorised
            minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
        return best


def _factor(matrix: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """The Cholesky factor, or None, and the inverse of a covariance matrix with the noise's variances added."""
    for jitter in JITTERS:
        covariance = matrix.copy()
        covariance.flat[:: len(matrix) + 1] += variances + jitter
        root, failed = lapack.dpotrf(covariance, lower=1)
        if not failed and np.isfinite(root[-1, -1]):
            inverse, _ = lapack.dpotri(root, lower=1)
            return root, inverse + np.tril(inverse, -1).T
    return None, matrix
