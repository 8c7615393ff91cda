"""Noise of a GP's standardised outputs, whose log variance is linear in the hyper-parameters."""

from __future__ import annotations

import math
from collections.abc import Hashable

import torch
from torch import Tensor

from cbo_gym.agents.gp.hyperparameters import Hyperparameters

# Prior mean and standard deviation of the log variance, and the lower limit of the variance, all as BoTorch's.
LEVEL_PRIOR, MIN_VARIANCE = (-4.0, 1.0), 1e-4
# Variance of outputs without noise: too small to matter, but large enough for a stable Cholesky factor.
NO_NOISE = 1e-6
# Prior median of the noise variance if noise is expected to be a large part of the outputs' variance.
USUAL_NOISE = math.exp(-1.0)


class Noise:
    """Noise with the variance ``base + exp(F theta)`` at n points with features F, ``n x q``.

    Args:
        hyperparameters: theta, q numbers.

    Attributes:
        base: constant part of the variance.
    """

    base = 0.0

    def __init__(self, hyperparameters: Hyperparameters) -> None:
        self.hyperparameters = hyperparameters

    @property
    def structure(self) -> Hashable:
        """Key that two noise models must share to be fitted together."""
        hyperparameters = self.hyperparameters
        return self.base, tuple(hyperparameters.free.tolist()), tuple(hyperparameters.lower.tolist())

    def set_data(self, points: Tensor, unit: float) -> None:
        """Set what a fit needs: its points, ``n x d``, and the unit by which the outputs are divided."""

    def features(self, points: Tensor) -> Tensor:
        """Return F, ``n x d`` to ``n x q``."""
        return torch.ones_like(points[:, :1])

    def at(self, points: Tensor, theta: Tensor) -> Tensor:
        """Return variances at points: ``n x d`` and ``(q,)`` to ``(n,)``."""
        return self.base + (self.features(points) @ theta).exp()


class KnownNoise(Noise):
    """Noise whose standard deviation is known, in the outputs' own units, at least 0."""

    def __init__(self, std: float) -> None:
        super().__init__(Hyperparameters.flat([math.log(NO_NOISE)], free=False))
        self._std = std

    def set_data(self, points: Tensor, unit: float) -> None:
        self.hyperparameters.start[0] = math.log(max(NO_NOISE, (self._std / unit) ** 2))


class NoiseLevel(Noise):
    """Noise with the same variance everywhere, under a lognormal prior.

    Args:
        location: prior mean of the logarithm of the variance.
        scale: prior standard deviation of the logarithm.
        start: the initial variance; None for the mode of the prior.
    """

    def __init__(
        self, location: float = LEVEL_PRIOR[0], scale: float = LEVEL_PRIOR[1], start: float | None = None
    ) -> None:
        super().__init__(with_min_variance(Hyperparameters.lognormal([location], [scale])))
        if start is not None:
            self.hyperparameters.start[0] = math.log(start)

    def expect(self, variance: float, scale: float) -> None:
        """Set the prior's mode, ``variance``, and the standard deviation ``scale`` of the logarithm."""
        self.hyperparameters.prior = Hyperparameters.lognormal([math.log(variance) + scale**2], [scale]).prior


def with_min_variance(log_variances: Hyperparameters) -> Hyperparameters:
    """Set BoTorch's lower limit of noise variances, and return their logarithms."""
    log_variances.lower[:] = math.log(MIN_VARIANCE)
    return log_variances


def usual_noise() -> NoiseLevel:
    """Return noise that is expected to be a large part of the outputs' variance; BoTorch expects a fiftieth.

    With this prior, the GP is less likely to take a few lucky outputs for a peak.
    """
    return NoiseLevel(math.log(USUAL_NOISE), 1.0, start=USUAL_NOISE)
