"""Hyper-parameters of kernels and noise models: flat vectors with priors and lower bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

FIELDS = ("start", "lower", "upper", "free", "is_lengthscale")
CONSTANT, PRECISION, LOCATION, SLOPE, RATE = range(5)


@dataclass
class Hyperparameters:
    """Numbers that a fit varies, k of them, most of them logarithms of positive ones.

    The log density of the prior of a number t is ``c - p (t - m)^2 / 2 + s t - r exp(t)``. Flat and normal priors of t
    have this form, and lognormal and gamma priors of exp(t).

    Attributes:
        start: where the first fit begins, ``(k,)``.
        lower: lower bounds, ``(k,)``.
        upper: upper bounds, ``(k,)``.
        free: whether a fit varies them; the others keep their ``start``, ``(k,)``.
        is_lengthscale: whether they are logarithms of lengthscales, ``(k,)``.
        prior: c, p, m, s and r, ``5 x k``.
    """

    start: Tensor
    lower: Tensor
    upper: Tensor
    free: Tensor
    is_lengthscale: Tensor
    prior: Tensor

    @classmethod
    def flat(cls, start: Sequence[float], free: bool = True) -> Self:
        """Return numbers without a prior."""
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
        """Return numbers with normal priors, which start at their means."""
        made = cls.flat(mean)
        scale = torch.tensor(std, dtype=torch.float64)
        made.prior[CONSTANT] = -scale.log() - 0.5 * math.log(2.0 * math.pi)
        made.prior[PRECISION], made.prior[LOCATION] = scale**-2, made.start
        return made

    @classmethod
    def lognormal(cls, location: Sequence[float], scale: Sequence[float]) -> Self:
        """Return logarithms of lognormal variables, which start at their modes."""
        made = cls.normal(location, scale)
        made.prior[SLOPE] = -1.0
        made.start = made.start - torch.tensor(scale, dtype=torch.float64) ** 2
        return made

    @classmethod
    def gamma(cls, shape: float, rate: float, count: int = 1) -> Self:
        """Return logarithms of gamma variables with a shape above 1, which start at their modes."""
        made = cls.flat([math.log((shape - 1.0) / rate)] * count)
        made.prior[CONSTANT] = shape * math.log(rate) - math.lgamma(shape)
        made.prior[SLOPE], made.prior[RATE] = shape - 1.0, rate
        return made

    @classmethod
    def join(cls, parts: Sequence[Hyperparameters]) -> Self:
        """Return the numbers of several parts, one after another."""
        joined = {field: torch.cat([getattr(part, field) for part in parts]) for field in FIELDS}
        return cls(**joined, prior=torch.cat([part.prior for part in parts], -1))

    def __len__(self) -> int:
        return len(self.start)


def log_prior(theta: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
    """Return log densities of hyper-parameters ``... x k`` under priors ``... x 5 x k``, and their gradients.

    The densities are of the variables themselves, not of their logarithms.
    """
    constant, precision, location, slope, rate = prior.unbind(-2)
    pull, decay = precision * (theta - location), rate * theta.exp()
    density = constant - 0.5 * pull * (theta - location) + slope * theta - decay
    return density.sum(-1), slope - pull - decay
