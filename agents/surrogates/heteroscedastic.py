"""HeteroscedasticGP: a GP whose noise level varies with the inputs.

The variance of the noise is ``exp(level + sum_j w_j bump_j(x))``, with bumps along each input, and is fitted by the
marginal likelihood together with the kernel: maximum a posteriori, with normal priors of the weights, so that the
level stays constant where the data do not say otherwise. The prior of the level is BoTorch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from botorch.models import SingleTaskGP
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.likelihoods.noise_models import Noise
from gpytorch.priors import NormalPrior
from linear_operator.operators import DiagLinearOperator
from torch import Tensor

from cbo_gym.agents.surrogates.gp import GaussianProcess

LEVEL_PRIOR = (-4.0, 1.0)  # of the log variance of standardised outputs, as BoTorch's
MIN_NOISE = 1e-4  # variance of standardised outputs, as BoTorch's
BUMPS = 5  # along each input
BUMP_WIDTH = 0.2  # of the range of an input


class HeteroscedasticGP(GaussianProcess):
    """Exact GP regression with a learned noise level that varies with the inputs.

    Arguments are those of :class:`GaussianProcess`, without ``noise_std``.
    """

    def spread(self, points: Tensor) -> Tensor:
        """Standard deviation of the noise, that is of the outputs about their mean: ``... x d`` to ``...``."""
        self.update()
        flat = self.rescaled(points).reshape(-1, self.dim)
        return (self._scale * self._noise_at(flat).sqrt()).reshape(points.shape[:-1])

    def _likelihood(self, points: Tensor) -> BumpyLikelihood:
        return BumpyLikelihood(BumpyNoise(points, self.rescale).to(points), points)

    def _adopt(self, model: SingleTaskGP) -> None:
        super()._adopt(model)
        self._noise_model = model.likelihood.noise_covar

    def _noise_at(self, points: Tensor) -> Tensor:
        return self._noise_model.variance(points)


class BumpyLikelihood(GaussianLikelihood):
    """Normal observations whose variance depends on the inputs.

    It is GPyTorch's likelihood of one noise level with another noise model put in its place.

    Args:
        noise: the variance as a function of the inputs.
        points: where :attr:`noise` is asked for, ``n x d``.
    """

    def __init__(self, noise: BumpyNoise, points: Tensor) -> None:
        super().__init__()
        self.noise_covar = noise
        self._points = points

    @property
    def noise(self) -> Tensor:
        """Variance at the points, shape ``(n,)``."""
        return self.noise_covar.variance(self._points)


class BumpyNoise(Noise):
    """Noise whose log variance is a level plus a weighted sum of Gaussian bumps along each input.

    Args:
        points: of the data, ``n x d``; the bumps cover their range.
        heavy_tailed: columns in which most data may lie close together and a few far out, such as products. Their
            bumps are spaced evenly in ``asinh`` of the distance to the median, which is logarithmic far out.
    """

    def __init__(self, points: Tensor, heavy_tailed: Sequence[int] = ()) -> None:
        super().__init__()
        dim = points.shape[-1]
        self._centre, self._unit = torch.zeros(dim).to(points), torch.ones(dim).to(points)
        self._heavy_tailed = list(heavy_tailed)
        for column in self._heavy_tailed:
            self._centre[column] = points[:, column].median()
            typical = (points[:, column] - self._centre[column]).abs().median()
            self._unit[column] = typical if typical > 0 else 1.0
        bent = self._bend(points)
        self._low, self._high = bent.amin(0), bent.amax(0)
        self._places = torch.linspace(0.0, 1.0, BUMPS).to(points)
        self.register_parameter("level", torch.nn.Parameter(torch.tensor(LEVEL_PRIOR[0])))
        self.register_parameter("weights", torch.nn.Parameter(torch.zeros(dim * BUMPS)))
        for name, prior in (("level", NormalPrior(*LEVEL_PRIOR)), ("weights", NormalPrior(0.0, 1.0))):
            self.register_prior(f"{name}_prior", prior, name)

    def variance(self, points: Tensor) -> Tensor:
        """At points ``n x d``, shape ``(n,)``; beyond the range of the data as at its edge."""
        span = torch.where(self._high > self._low, self._high - self._low, torch.ones_like(self._low))
        along = ((self._bend(points) - self._low) / span).clamp(0.0, 1.0)
        bumps = torch.exp(-0.5 * ((along[..., None] - self._places) / BUMP_WIDTH).square())
        return MIN_NOISE + torch.exp(self.level + bumps.flatten(-2) @ self.weights)

    def forward(self, *inputs: Any, shape: torch.Size | None = None, **_: object) -> DiagLinearOperator:
        points = inputs[0] if torch.is_tensor(inputs[0]) else inputs[0][0]
        return DiagLinearOperator(self.variance(points))

    def _bend(self, points: Tensor) -> Tensor:
        away = (points - self._centre) / self._unit
        columns = list(away.unbind(-1))
        for column in self._heavy_tailed:
            columns[column] = columns[column].asinh()
        return torch.stack(columns, -1)
