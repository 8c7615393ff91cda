"""HeteroscedasticGP: a GP whose noise level varies with the inputs.

The variance of the noise is ``exp(level + sum_j w_j bump_j(x))``, with bumps along each input, and is fitted by the
marginal likelihood together with the kernel: maximum a posteriori, with normal priors of the weights, so that the
level stays constant where the data do not say otherwise. The prior of the level is BoTorch's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from cbo_gym.agents.gp.hyperparameters import Hyperparameters
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.noise import LEVEL_PRIOR, NO_NOISE, Noise

# Number of bumps along each input.
BUMPS = 5
# Width of a bump, as a share of the input's range.
BUMP_WIDTH = 0.2


class HeteroscedasticGP(GaussianProcess):
    """Exact GP regression with a learned noise level that varies with the inputs.

    Arguments are those of :class:`GaussianProcess`, without ``noise_std``.
    """

    def spread(self, points: Tensor) -> Tensor:
        """Return the standard deviation of the noise at points: ``... x d`` to ``...``."""
        self.update()
        flat = self.normalise(points).reshape(-1, self.dim)
        return (self._scale * self._noise_at(flat).sqrt()).reshape(points.shape[:-1])

    def mean_error(self) -> Tensor:
        """Return the covariance of the means' errors at the data, ``n x n``: ``N - N (K + N)^-1 N``, N the noise's."""
        self.update()
        noise = self._noise_at(self._points)
        explained = self._inverse_root * noise
        return self._scale**2 * (torch.diag(noise) - explained.T @ explained)

    def _make_noise(self) -> Noise:
        return BumpyNoise(self.dim, self.rescale)


class BumpyNoise(Noise):
    """Noise whose log variance is a level plus a weighted sum of Gaussian bumps along each input.

    The hyper-parameters are the level, then the weights. The bumps cover the range of the data of the fit; beyond it,
    the variance has the value at the edge.

    Args:
        dim: number of inputs.
        heavy_tailed: columns in which most data may lie close together and a few far out, such as products. Their
            bumps are spaced evenly in ``asinh`` of the distance to the median, which is logarithmic far out.
    """

    base = NO_NOISE

    def __init__(self, dim: int, heavy_tailed: Sequence[int] = ()) -> None:
        weights = dim * BUMPS
        location, scale = LEVEL_PRIOR
        super().__init__(Hyperparameters.normal([location] + [0.0] * weights, [scale] + [1.0] * weights))
        self._heavy_tailed = list(heavy_tailed)
        self._centre, self._unit = np.zeros(dim), np.ones(dim)
        self._low, self._span = np.zeros(dim), np.ones(dim)
        self._centres = np.linspace(0.0, 1.0, BUMPS)

    def set_data(self, points: Tensor, unit: float) -> None:
        data = points.cpu().numpy()
        heavy = data[:, self._heavy_tailed]
        self._centre[self._heavy_tailed] = np.median(heavy, 0)
        typical = np.median(np.abs(heavy - np.median(heavy, 0)), 0)
        self._unit[self._heavy_tailed] = np.where(typical > 0, typical, 1.0)
        bent = self._bend(data)
        self._low, span = bent.min(0), np.ptp(bent, 0)
        self._span = np.where(span > 0, span, 1.0)

    def features(self, points: Tensor) -> Tensor:
        along = np.clip((self._bend(points.cpu().numpy()) - self._low) / self._span, 0.0, 1.0)
        bumps = np.exp(-0.5 * ((along[..., None] - self._centres) / BUMP_WIDTH) ** 2)
        # The number of columns is given, because reshape cannot infer it without points.
        columns = bumps.reshape(len(points), BUMPS * along.shape[1])
        return torch.from_numpy(np.column_stack([np.ones(len(points)), columns])).to(points)

    def _bend(self, points: np.ndarray) -> np.ndarray:
        bent = (points - self._centre) / self._unit
        bent[:, self._heavy_tailed] = np.arcsinh(bent[:, self._heavy_tailed])
        return bent
