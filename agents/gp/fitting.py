"""The posterior density of the hyper-parameters of GPs given their data, and fits of several GPs at once.

GPs whose kernels and noise have the same structure are *stacked*: their densities and gradients are computed together,
with the data padded to one size. Each GP has its own state of BFGS.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from cbo_gym.agents.gp.bfgs import Ascents, maximise
from cbo_gym.agents.gp.hyperparameters import Hyperparameters
from cbo_gym.agents.gp.kernels import Covariance, Kernel
from cbo_gym.agents.gp.noise import Noise
from cbo_gym.agents.gp.posterior import BLOCK_ENTRIES

FIT_ITERATIONS = 100
# A fit stops if a step gains less, in log density per datum: usually, after a fit to fewer data, and in the first fit
# to a part of the data.
RELATIVE_GAIN, REFINING_GAIN, COARSE_GAIN = 1e-6, 1e-5, 1e-4
# Added to the diagonal of a covariance that is indefinite because of rounding, until one suffices.
JITTERS = (1e-8, 1e-7, 1e-6)
# The second fit starts from the most probable of these.
LENGTHSCALES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
# Number of data of the fits that choose between starting points.
COARSE_SIZE = 64
# With this many data for each one of a part, a fit to the part takes less time than it saves.
WORTHWHILE = 1.75


@dataclass(frozen=True)
class Regression:
    """The data of a GP, its kernel and its noise model: all that a fit needs.

    Attributes:
        kernel: the prior of the latent function.
        noise: the noise model, after ``set_data`` with the points.
        points: inputs, ``n x d``.
        targets: standardised outputs, ``(n,)``.
        errors: variances of the targets' stated errors, which are added to the noise, ``(n,)``.
        centred: whether the prior mean is 0 rather than a constant to be fitted.
    """

    kernel: Kernel
    noise: Noise
    points: Tensor
    targets: Tensor
    errors: Tensor
    centred: bool = False

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Hyper-parameters of the kernel, then those of the noise, then the constant mean."""
        mean = Hyperparameters.flat([0.0], free=not self.centred)
        return Hyperparameters.join([self.kernel.hyperparameters, self.noise.hyperparameters, mean])

    @property
    def structure(self) -> Hashable:
        """Key that regressions must share to be fitted together. They have about the same number of data."""
        size_class = round(4.0 * math.log2(len(self.targets)))
        return self.kernel.structure, self.noise.structure, self.centred, size_class, self.points.device

    def subset(self, count: int) -> Regression:
        """Return the regression on ``count`` of the data, evenly spaced."""
        chosen = torch.linspace(0, len(self.targets) - 1, count).round().long()
        return replace(self, points=self.points[chosen], targets=self.targets[chosen], errors=self.errors[chosen])


class LogPosterior:
    """Log of the marginal likelihood times the prior of the hyper-parameters, divided by the number of data.

    Args:
        regressions: g regressions of one structure, each with at least one datum.
    """

    def __init__(self, regressions: Sequence[Regression]) -> None:
        first = regressions[0]
        self._kernel, self._base = first.kernel, first.noise.base
        hyperparameters = [regression.hyperparameters for regression in regressions]
        self._sizes = [len(first.kernel.hyperparameters), len(first.noise.hyperparameters), 1]
        self._free = hyperparameters[0].free.numpy()
        self._lower, self._upper = (
            bound[hyperparameters[0].free].numpy() for bound in (hyperparameters[0].lower, hyperparameters[0].upper)
        )
        points = pad_sequence([regression.points for regression in regressions], batch_first=True)
        targets = pad_sequence([regression.targets for regression in regressions], batch_first=True)
        errors = pad_sequence([regression.errors for regression in regressions], batch_first=True)
        features = [regression.noise.features(regression.points) for regression in regressions]
        counts = torch.tensor([len(regression.targets) for regression in regressions]).to(points)
        is_datum = torch.arange(targets.shape[1], device=counts.device) < counts[:, None]
        priors = torch.stack([numbers.prior for numbers in hyperparameters]).to(points)
        self._data = points, targets, errors, pad_sequence(features, batch_first=True), is_datum, counts, priors
        self._padded = not bool(is_datum.all())
        # The last regressions that were selected, and their data.
        self._last: tuple[tuple[int, ...], list[Tensor]] = (), []

    def __call__(self, theta: np.ndarray, rows: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return densities, ``(h,)``, and gradients, ``h x k``; -inf and 0 if a covariance matrix has no factor.

        Args:
            theta: hyper-parameters, ``h x k``.
            rows: index of the regression of each, h in number.
        """
        density, gradient = self._in_blocks(self._with_gradients, theta, rows)
        is_defined = np.isfinite(density)
        if is_defined.all():
            return density, gradient
        return np.where(is_defined, density, -np.inf), np.where(is_defined[:, None], gradient, 0.0)

    def densities(self, theta: np.ndarray, rows: Sequence[int]) -> np.ndarray:
        """Return only the densities of :meth:`__call__`, in a third of the time."""
        (density,) = self._in_blocks(self._without_gradients, theta, rows)
        return np.where(np.isfinite(density), density, -np.inf)

    def _in_blocks(
        self, function: Callable[[Tensor, list[Tensor]], tuple[Tensor, ...]], theta: np.ndarray, rows: Sequence[int]
    ) -> list[np.ndarray]:
        """Return the results of a function of hyper-parameters and data, computed in blocks that fit a cache."""
        size = max(1, BLOCK_ENTRIES // self._data[1].shape[1] ** 2)
        results = []
        with torch.inference_mode():
            for start in range(0, len(rows), size):
                data = self._select(tuple(rows[start : start + size]))
                results.append(function(torch.from_numpy(theta[start : start + size]).to(data[0]), data))
        blocks_of_each = zip(*results, strict=True)
        return [(torch.cat(blocks) if len(results) > 1 else blocks[0]).cpu().numpy() for blocks in blocks_of_each]

    def _select(self, rows: tuple[int, ...]) -> list[Tensor]:
        """Return the data and priors of some of the regressions."""
        if self._last[0] != rows:
            self._last = rows, [tensor[list(rows)] for tensor in self._data]
        return self._last[1]

    def _factorise(self, theta: Tensor, data: list[Tensor]) -> tuple[Covariance, Tensor, Tensor, Tensor]:
        """Return the prior covariances of the data, and the Cholesky factors of their sums with the noise.

        The last two results are the residuals, ``h x n x 1``, and the part of the noise that is fitted, ``h x n``.
        """
        points, targets, errors, features, is_datum, _, _ = data
        kernel_theta, noise_theta, mean = theta.split_with_sizes(self._sizes, -1)
        covariance = self._kernel.at(kernel_theta, points)(points)
        fitted_noise = torch.bmm(features, noise_theta.unsqueeze(-1)).squeeze(-1).exp_()
        matrix, noise, residuals = covariance.cross.clone(), self._base + fitted_noise + errors, targets - mean
        if self._padded:
            matrix.masked_fill_(~(is_datum.unsqueeze(-1) & is_datum.unsqueeze(-2)), 0.0)
            noise, residuals = noise.where(is_datum, 1.0), residuals.where(is_datum, 0.0)
        matrix.diagonal(dim1=-2, dim2=-1).add_(noise)
        return covariance, _factor(matrix), residuals.unsqueeze(-1), fitted_noise

    def _density(
        self, theta: Tensor, data: list[Tensor], root: Tensor, residuals: Tensor, weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return densities, and the gradients of the log priors; ``weights`` are the inverse times the residuals."""
        prior_density, prior_gradient = self._kernel.log_prior(theta, data[-1])
        density = -0.5 * torch.bmm(residuals.mT, weights).view(-1) - root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return (density + prior_density) / data[-2] - 0.5 * math.log(2.0 * math.pi), prior_gradient

    def _without_gradients(self, theta: Tensor, data: list[Tensor]) -> tuple[Tensor, ...]:
        _, root, residuals, _ = self._factorise(theta, data)
        return self._density(theta, data, root, residuals, torch.cholesky_solve(residuals, root))[:1]

    def _with_gradients(self, theta: Tensor, data: list[Tensor]) -> tuple[Tensor, ...]:
        covariance, root, residuals, fitted_noise = self._factorise(theta, data)
        _, _, _, features, is_datum, count, _ = data
        # The inverse is symmetric, but stored by columns; the transpose is stored by rows.
        inverse = torch.cholesky_inverse(root).mT
        weights = torch.bmm(inverse, residuals)
        # Gradient with respect to the covariance matrix.
        slope = torch.baddbmm(inverse, weights, weights.mT, beta=-0.5, alpha=0.5)
        if self._padded:
            slope.masked_fill_(~(is_datum.unsqueeze(-1) & is_datum.unsqueeze(-2)), 0.0)
        by_noise = torch.bmm((slope.diagonal(dim1=-2, dim2=-1) * fitted_noise).unsqueeze(-2), features).squeeze(-2)
        gradient = torch.cat([covariance.to_theta(slope), by_noise, weights.sum(-2)], -1)
        density, prior_gradient = self._density(theta, data, root, residuals, weights)
        return density, (gradient + prior_gradient) / count.unsqueeze(-1)

    def maximise(
        self,
        starts: np.ndarray,
        rows: Sequence[int],
        iterations: int = FIT_ITERATIONS,
        gain: float = RELATIVE_GAIN,
        inverses: np.ndarray | None = None,
    ) -> Ascents:
        """Return local maxima of the densities as :func:`~cbo_gym.agents.gp.bfgs.maximise`.

        Starts and ends are complete hyper-parameters, ``h x k``, as of :meth:`__call__`. The ``inverses`` are those of
        the f free ones, ``h x f x f``.
        """
        row_array = np.asarray(rows)

        def densities(values: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            theta = starts[active]
            theta[:, self._free] = values
            density, slope = self(theta, row_array[active].tolist())
            return density, slope.compress(self._free, 1)

        ascents = maximise(
            densities, starts.compress(self._free, 1), self._lower, self._upper, iterations, gain, inverses
        )
        ends = starts.copy()
        ends[:, self._free] = ascents.points
        return replace(ascents, points=ends)


def _factor(matrix: Tensor) -> Tensor:
    """Return Cholesky factors, with jitter on the diagonal of those that need it; NaN if none suffices."""
    root, failed = torch.linalg.cholesky_ex(matrix)
    if not failed.any():
        return root
    for jitter in JITTERS:
        rows = failed.nonzero()[:, 0]
        jittered = matrix[rows] + jitter * torch.eye(matrix.shape[-1]).to(matrix)
        root[rows], failed[rows] = torch.linalg.cholesky_ex(jittered)
    return root.masked_fill(failed.bool()[:, None, None], torch.nan)


@dataclass
class Fit:
    """Hyper-parameters of a GP.

    Attributes:
        theta: the hyper-parameters, ``(k,)``.
        inverse: inverse of the negative Hessian of the density, in the f free ones, ``f x f``; None before a fit.
    """

    theta: Tensor
    inverse: np.ndarray | None = None


def fit(
    regressions: Sequence[Regression], starts: Sequence[Fit], searches: Sequence[bool], iterations: int = FIT_ITERATIONS
) -> list[Fit]:
    """Return the hyper-parameters of several GPs with the highest posterior densities.

    Args:
        regressions: the GPs, each with at least one datum.
        starts: hyper-parameters from which the fit of each GP starts.
        searches: for each GP, whether a second fit starts from the most probable of ``LENGTHSCALES``. The posterior
            density often has two modes, one in which fast variation is signal and one in which it is noise, and a fit
            that starts where the last one ended would stay in its mode.
        iterations: the greatest number of iterations.
    """
    groups: dict[tuple[Hashable, bool], list[int]] = defaultdict(list)
    for index, (regression, search) in enumerate(zip(regressions, searches, strict=True)):
        groups[regression.structure, search].append(index)
    fitted = list(starts)
    for (_, search), indices in groups.items():
        group = [regressions[index] for index in indices]
        thetas = np.stack([starts[index].theta.numpy() for index in indices])
        free_count = int(group[0].hyperparameters.free.sum())
        last_inverses = [starts[index].inverse for index in indices]
        unknown = np.zeros((free_count, free_count))
        inverses = np.stack([unknown if inverse is None else inverse for inverse in last_inverses])
        if search:
            ascents = _fit_twice(group, thetas, inverses, iterations)
        else:
            ascents = LogPosterior(group).maximise(thetas, range(len(group)), iterations, inverses=inverses)
        for index, theta, inverse in zip(indices, ascents.points, ascents.inverses, strict=True):
            fitted[index] = Fit(torch.from_numpy(theta), inverse)
    return fitted


def _fit_twice(regressions: Sequence[Regression], thetas: np.ndarray, inverses: np.ndarray, iterations: int) -> Ascents:
    """Fit from ``thetas`` and from the best lengthscales; with many data, fit to parts of them first."""
    count, rows = len(thetas), list(range(len(thetas)))
    sizes = _sizes_of_parts(max(len(regression.targets) for regression in regressions))
    parts = [[regression.subset(size) for regression in regressions] for size in sizes]
    posterior, *larger = map(LogPosterior, [*parts, regressions])
    scaled = np.stack([_with_lengthscales(regression) for regression in regressions], axis=1)
    densities = posterior.densities(scaled.reshape(-1, thetas.shape[1]), rows * len(LENGTHSCALES))
    starts = np.concatenate([thetas, scaled[densities.reshape(-1, count).argmax(0), rows]])
    inverses = np.concatenate([inverses, np.zeros_like(inverses)])
    ascents = posterior.maximise(starts, rows * 2, iterations, COARSE_GAIN if larger else RELATIVE_GAIN, inverses)
    values = larger[0].densities(ascents.points, rows * 2) if larger else ascents.values
    best = values.reshape(2, count).argmax(0) * count + rows
    ascents = Ascents(ascents.points[best], values[best], ascents.inverses[best])
    for posterior in larger:
        ascents = posterior.maximise(ascents.points, rows, iterations, REFINING_GAIN, ascents.inverses)
    return ascents


def _sizes_of_parts(size: int) -> list[int]:
    """Return the numbers of data of the fits that precede a fit to ``size`` data, each twice the last."""
    sizes = [COARSE_SIZE] if size >= 1.5 * COARSE_SIZE else []
    while sizes and size >= WORTHWHILE * 2 * sizes[-1]:
        sizes.append(2 * sizes[-1])
    return sizes


def _with_lengthscales(regression: Regression) -> np.ndarray:
    """Return the initial hyper-parameters with each of ``LENGTHSCALES`` in turn for all inputs, one row each."""
    rest = regression.hyperparameters.start[len(regression.kernel.hyperparameters) :]
    return np.stack([torch.cat([regression.kernel.with_lengthscale(length), rest]) for length in LENGTHSCALES])
