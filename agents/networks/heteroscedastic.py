"""HeteroscedasticGP: a GP whose noise level varies with the inputs, for the encoders of EXCBO.

The variance of the noise is ``exp(level + sum_j w_j bump_j(x))``, with bumps along each input. Level and weights are
fitted together with the kernel (maximum a posteriori). The normal priors of the weights keep the noise constant unless
the data contradict that. The prior of the level is BoTorch's.
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
        """Return the covariance of the errors of the means at the data, ``N - N (K + N)^-1 N``, shape ``n x n``.

        K is the prior covariance of the data, N that of their noise.
        """
        self.update()
        noise = self._noise_at(self._points)
        explained = self._inverse_root * noise
        return self._scale**2 * (torch.diag(noise) - explained.T @ explained)

    def _make_noise(self) -> Noise:
        return BumpyNoise(self.dim, self.rescale)


class BumpyNoise(Noise):
    """Noise whose log variance is a level plus a weighted sum of Gaussian bumps along each input.

    The hyper-parameters are the level, then the weights. The bumps cover the range of the data of the fit. Beyond the
    range, the variance is that at its edge.

    Args:
        dim: number of inputs.
        heavy_tailed: columns in which most data may lie close together and a few far away, such as products. Their
            bumps are evenly spaced in ``asinh`` of the distance to the median, which is logarithmic far away.
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
        columns = data[:, self._heavy_tailed]
        median = np.median(columns, 0)
        deviation = np.median(np.abs(columns - median), 0)
        self._centre[self._heavy_tailed] = median
        self._unit[self._heavy_tailed] = np.where(deviation > 0, deviation, 1.0)
        compressed = self._compress(data)
        self._low, span = compressed.min(0), np.ptp(compressed, 0)
        self._span = np.where(span > 0, span, 1.0)

    def features(self, points: Tensor) -> Tensor:
        rescaled = np.clip((self._compress(points.cpu().numpy()) - self._low) / self._span, 0.0, 1.0)
        bumps = np.exp(-0.5 * ((rescaled[..., None] - self._centres) / BUMP_WIDTH) ** 2)
        # The number of columns is stated, because reshape cannot infer it if there are no points.
        columns = bumps.reshape(len(points), BUMPS * rescaled.shape[1])
        return torch.from_numpy(np.column_stack([np.ones(len(points)), columns])).to(points)

    def _compress(self, points: np.ndarray) -> np.ndarray:
        """Return points with ``asinh`` of the heavy-tailed columns."""
        scaled = (points - self._centre) / self._unit
        scaled[:, self._heavy_tailed] = np.arcsinh(scaled[:, self._heavy_tailed])
        return scaled
