"""Hyper-parameters of kernels and noise models: vectors of numbers with priors and bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

FIELDS = ("start", "lower", "upper", "free", "is_lengthscale", "prior")
# Rows of ``Hyperparameters.prior``: c, p, m, s and r.
CONSTANT, PRECISION, LOCATION, SLOPE, RATE = range(5)


@dataclass
class Hyperparameters:
    """The k hyper-parameters of a kernel or noise model. Most are logarithms of positive numbers.

    The log density of the prior is ``c - p (t - m)^2 / 2 + s t - r exp(t)``: that of the hyper-parameter t itself if
    its prior is flat or normal, and that of exp(t) if exp(t) has a lognormal or gamma prior.

    Attributes:
        start: where the first fit begins, ``(k,)``.
        lower: lower bounds, ``(k,)``.
        upper: upper bounds, ``(k,)``.
        free: whether a fit varies each of them, ``(k,)``; the others keep their ``start``.
        is_lengthscale: whether each of them is the logarithm of a lengthscale, ``(k,)``.
        prior: c, p, m, s and r of each, ``5 x k``.
    """

    start: Tensor
    lower: Tensor
    upper: Tensor
    free: Tensor
    is_lengthscale: Tensor
    prior: Tensor

    @classmethod
    def flat(cls, start: Sequence[float], free: bool = True) -> Self:
        """Return unbounded hyper-parameters without a prior."""
        values = torch.tensor(start, dtype=torch.float64)
        return cls(
            values,
            torch.full_like(values, -math.inf),
            torch.full_like(values, math.inf),
            torch.full_like(values, free, dtype=torch.bool),
            torch.zeros_like(values, dtype=torch.bool),
            values.new_zeros(5, len(values)),
        )

    @classmethod
    def normal(cls, mean: Sequence[float], std: Sequence[float]) -> Self:
        """Return hyper-parameters with normal priors, which start at their means."""
        normal = cls.flat(mean)
        scale = torch.tensor(std, dtype=torch.float64)
        normal.prior[CONSTANT] = -scale.log() - 0.5 * math.log(2.0 * math.pi)
        normal.prior[PRECISION], normal.prior[LOCATION] = scale**-2, normal.start
        return normal

    @classmethod
    def lognormal(cls, location: Sequence[float], scale: Sequence[float]) -> Self:
        """Return logarithms of lognormal variables, which start where the variables have their modes."""
        logarithms = cls.normal(location, scale)
        logarithms.prior[SLOPE] = -1.0
        logarithms.start = logarithms.start - torch.tensor(scale, dtype=torch.float64) ** 2
        return logarithms

    @classmethod
    def gamma(cls, shape: float, rate: float, count: int = 1) -> Self:
        """Return logarithms of gamma variables with a shape above 1, which start where these have their modes."""
        logarithms = cls.flat([math.log((shape - 1.0) / rate)] * count)
        logarithms.prior[CONSTANT] = shape * math.log(rate) - math.lgamma(shape)
        logarithms.prior[SLOPE], logarithms.prior[RATE] = shape - 1.0, rate
        return logarithms

    @classmethod
    def join(cls, parts: Sequence[Hyperparameters]) -> Self:
        """Return the hyper-parameters of all parts, one after another."""
        return cls(**{field: torch.cat([getattr(part, field) for part in parts], -1) for field in FIELDS})

    def __len__(self) -> int:
        return len(self.start)


def log_prior(theta: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
    """Return log densities of hyper-parameters ``... x k`` under priors ``... x 5 x k``, and their gradients.

    If a hyper-parameter is the logarithm of a variable, the density is that of the variable.
    """
    constant, precision, location, slope, rate = prior.unbind(-2)
    pull, decay = precision * (theta - location), rate * theta.exp()
    density = constant - 0.5 * pull * (theta - location) + slope * theta - decay
    return density.sum(-1), slope - pull - decay
