"""Exact Gaussian process, the agents' model of a reward or of a node.

The model is BoTorch's default (``SingleTaskGP``): a squared-exponential kernel with the dimension-scaled lognormal
lengthscale prior of Hvarfner et al. (2024), a constant mean, and standardised outputs, in float64. Hyper-parameters are
refitted on a schedule, those of several GPs together (:func:`update_together`). Between refits new data extend the
cached Cholesky factor, so that a prediction takes a few matrix products. The noise level may be fixed, because a
learned one can be badly wrong: the most probable fit to 100 random points of noiseless Dropwave is one third noise.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import torch
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor

from cbo_gym.agents.gp.fitting import FIT_ITERATIONS, Fit, Regression, fit
from cbo_gym.agents.gp.gpytorch_kernel import as_kernel
from cbo_gym.agents.gp.kernels import Function, Kernel, SquaredExponential
from cbo_gym.agents.gp.noise import KnownNoise, Noise, NoiseLevel
from cbo_gym.agents.gp.posterior import Posterior, condense
from cbo_gym.agents.gp.schedule import RefitSchedule
from cbo_gym.errors import ArgumentError, OperationError

# Variance added to joint posteriors of standardised outputs, so that every covariance has a Cholesky factor.
JITTER = 1e-8

Numbers = float | Sequence[float] | np.ndarray | Tensor


class SurrogateError(OperationError):
    """Raised if a surrogate cannot be computed from its data; the message names the node."""


class GaussianProcess:
    """Exact GP regression of one scalar, with a refit schedule and cached factors.

    Data may be added at any time; the next prediction updates the model, which raises SurrogateError if the covariance
    matrix cannot be factorised. Torch's global random state is neither used nor seeded.

    Args:
        name: name of the modelled node, for error messages.
        dim: number of inputs d, at least 1.
        noise_std: standard deviation of the outputs' noise, 0 for exact outputs; None to learn it.
        covariance: function that returns the kernel for d inputs, one of this package or of GPyTorch.
        noise: function that returns the noise model, which is used if ``noise_std`` is None.
        rescale: input columns that are not in [0, 1]; each refit rescales them by their range in the data.
        categories: input column that is a category -> the number of categories, which are equally spaced in [0, 1].
        refit_iterations: maximum number of iterations of a refit, which starts where the last fit ended.
        condense: whether predictions leave out directions of the data whose signal is negligible compared with the
            noise, see :func:`~cbo_gym.agents.gp.posterior.condense`, which makes them much faster with many data. The
            noise must be the same for all data, apart from stated errors.
        device: torch device of data and computations.

    Attributes:
        kernel: the prior covariance.
        noise_model: the model of the outputs' noise.
        theta: hyper-parameters of the last fit: the kernel's, the noise's, and the prior mean of standardised outputs.
        centred: whether the prior mean is fixed at 0.

    Raises:
        ArgumentError: if ``dim`` is below 1 or ``rescale`` names a column that does not exist.

    References:
        Hvarfner, Hellsten & Nardi (2024), Vanilla Bayesian optimization performs great in high dimensions.
    """

    centred = False

    def __init__(
        self,
        name: str,
        dim: int,
        *,
        noise_std: float | None = None,
        covariance: Callable[[int], Any] = SquaredExponential,
        noise: Callable[[], Noise] = NoiseLevel,
        rescale: Sequence[int] = (),
        categories: Mapping[int, int] = MappingProxyType({}),
        refit_iterations: int = FIT_ITERATIONS,
        condense: bool = False,
        device: str | torch.device = "cpu",
    ) -> None:
        if dim < 1:
            raise ArgumentError(f"the GP of node {name} needs at least one input; given dim={dim}")
        if outside := [column for column in rescale if column not in range(dim)]:
            raise ArgumentError(f"rescale of node {name} must name columns from 0 to {dim - 1}; given {outside}")
        self.name = name
        self.dim = dim
        self.noise_std = noise_std
        self._unknown_noise = noise
        self.rescale = list(rescale)
        self.refit_iterations = refit_iterations
        self.condense = condense
        self.schedule = RefitSchedule()
        self._device = torch.device(device)
        self.categories = dict(categories)
        self.kernel: Kernel = as_kernel(covariance(dim)).with_categories(self.categories)
        self._set_noise()
        # Number of points at the last search over lengthscales.
        self._searched_size = 0
        # Inputs, outputs and error variances when they were last read, and the observations added since then.
        self._data = self._tensor(np.empty((0, dim))), self._tensor([]), self._tensor([])
        self._new: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.set_prior(0.0, 1.0)
        self._low = self._tensor([0.0] * dim)
        self._span = self._tensor([1.0] * dim)
        # Rescaled inputs of the n points in the posterior, which lacks the points added since the last update.
        self._points = self.inputs
        # The first n rows and columns are the inverse Cholesky factor W of the covariance of these points.
        self._rows = self._tensor(np.zeros((0, 0)))
        self._posterior: Posterior

    def learn_noise(self, noise: Callable[[], Noise]) -> None:
        """Learn the outputs' noise from now on, with the noise model that ``noise`` returns."""
        self.noise_std, self._unknown_noise = None, noise
        self._set_noise()

    def with_noise(self, noise: Callable[[], Noise]) -> Self:
        """Return a copy with the same data whose next update fits it with the noise model that ``noise`` returns."""
        copied = deepcopy(self)
        copied.learn_noise(noise)
        copied.schedule, copied._searched_size, copied._points = RefitSchedule(), 0, self._points[:0]
        return copied

    def with_shorter_lengths(self, factor: float) -> Self:
        """Return an updated copy whose lengthscales are divided by ``factor``; other hyper-parameters stay."""
        self.update()
        copied = deepcopy(self)
        is_lengthscale = self.kernel.hyperparameters.is_lengthscale
        padding = len(self.theta) - len(is_lengthscale)
        copied.theta = self.theta - math.log(factor) * torch.nn.functional.pad(is_lengthscale, (0, padding))
        copied._points = self._points[:0]
        copied._refresh()
        return copied

    def _set_noise(self) -> None:
        """Make the noise model, and discard the last fit."""
        self.noise_model = self._make_noise()
        # Inverse Hessian at the end of the last fit.
        self._inverse: np.ndarray | None = None
        starts = self.kernel.hyperparameters.start, self.noise_model.hyperparameters.start
        self.theta = torch.cat([*starts, torch.zeros(1, dtype=torch.float64)])

    @property
    def kernel_theta(self) -> Tensor:
        """The hyper-parameters of the kernel, ``(k,)``."""
        return self.theta.to(self._device)[: -1 - len(self.noise_model.hyperparameters)]

    @property
    def constant(self) -> float:
        """Prior mean of the standardised outputs."""
        return float(self.theta[-1])

    def set_prior(self, mean: float, std: float) -> None:
        """Set the outputs' mean and standard deviation in predictions without data, in the outputs' units."""
        self._location, self._scale = self._tensor(mean), self._tensor(std)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes except the posterior's function, which ``__setstate__`` makes again."""
        state = dict(self.__dict__)
        if "_posterior" in state:
            state["_posterior"] = {
                name: value for name, value in vars(self._posterior).items() if name != "cross_covariance"
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_posterior" in state:
            self._posterior = Posterior(self.kernel.at(self.kernel_theta, self._points), **state["_posterior"])

    def __len__(self) -> int:
        """Return the number of observations."""
        return len(self.outputs)

    @property
    def inputs(self) -> Tensor:
        """Inputs of the observations, ``n x d``."""
        return self._join()[0]

    @property
    def outputs(self) -> Tensor:
        """Outputs of the observations, ``(n,)``."""
        return self._join()[1]

    @property
    def errors(self) -> Tensor:
        """Variances of the stated errors of the outputs, ``(n,)``; 0 if none is stated. The noise adds to them."""
        return self._join()[2]

    def _join(self) -> tuple[Tensor, Tensor, Tensor]:
        # New observations are only joined when they are read, because agents add hundreds of them one by one.
        if self._new:
            inputs, outputs, errors = (self._tensor(np.concatenate(column)) for column in zip(*self._new, strict=True))
            x, y, variances = self._data
            self._data = torch.cat([x, inputs]), torch.cat([y, outputs]), torch.cat([variances, errors])
            self._new = []
        return self._data

    def add(self, inputs: Numbers, outputs: Numbers, std: Numbers = 0.0) -> None:
        """Add observations.

        Args:
            inputs: shape ``(n, d)`` or, for one observation, ``(d,)``; in [0, 1] except for the rescaled columns.
            outputs: shape ``(n,)``, or a scalar.
            std: known standard errors of the outputs, ``(n,)`` or a scalar, at least 0. The variance of an output's
                error is the sum of their squares and the variance of the noise.

        Raises:
            ArgumentError: if the shapes do not fit or a number is not finite.
        """
        x = np.asarray(inputs, dtype=np.float64).reshape(-1, self.dim).copy()
        y = np.asarray(outputs, dtype=np.float64).reshape(-1).copy()
        # Faster than numpy.broadcast_to, which matters because agents add hundreds of observations one by one.
        errors = np.zeros_like(y) + np.square(np.asarray(std, dtype=np.float64))
        if len(x) != len(y):
            raise ArgumentError(f"node {self.name}: {len(x)} inputs but {len(y)} outputs")
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise ArgumentError(f"node {self.name}: observations must be finite; given {inputs} -> {outputs}")
        self._new.append((x, y, errors))

    def replace(self, inputs: Tensor, outputs: Tensor, errors: Tensor | None = None) -> None:
        """Replace all observations, but keep the refit schedule: ``n x d``, ``(n,)`` and error variances ``(n,)``."""
        self._data, self._new = (self.inputs[:0], self.outputs[:0], self.errors[:0]), []
        self._points = self._points[:0]
        self.add(inputs.cpu(), outputs.cpu(), 0.0 if errors is None else errors.sqrt().cpu())

    def mean(self, points: Tensor) -> Tensor:
        """Return only the means of :meth:`posterior`, at linear instead of quadratic cost in the data."""
        self.update()
        return self._posterior.mean(points)

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and standard deviation of the latent function (noise excluded), differentiable in ``points``.

        Args:
            points: shape ``batch_shape x d``.

        Returns:
            two tensors of shape ``batch_shape``: mean and standard deviation of each point.
        """
        self.update()
        return self._posterior.mean_and_std(points)

    def joint(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the joint posterior of the latent function at sets of q points, differentiable in the points.

        Args:
            points: shape ``batch_shape x q x d``.

        Returns:
            means, ``batch_shape x q``, and lower triangular L with covariance L L', ``batch_shape x q x q``.
        """
        if points.shape[-2] == 1:
            mean, std = self.posterior(points)
            return mean, std.unsqueeze(-1)
        self.update()
        prior = self.kernel.covariance(self.kernel_theta, self.normalise(points))
        mean, covariance = self._posterior.mean_and_covariance(points, prior)
        return mean, self._scale * self._cholesky(covariance + JITTER * torch.eye(covariance.shape[-1]).to(covariance))

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        """Return the errors of the predictions of each output from all others, and their standard deviations.

        Hyper-parameters and standardisation are those of the last fit, to all data. With K the covariance of the data,
        noise included, an error is ``[K^-1 y]_i / [K^-1]_ii`` and its variance ``1 / [K^-1]_ii`` (Rasmussen &
        Williams 2006, eq. 5.12).

        Returns:
            two tensors ``(n,)``, in the outputs' units; the noise is part of the standard deviations.
        """
        self.update()
        precision = self._inverse_root.square().sum(0)
        return self._posterior.weights / precision, self._scale / precision.sqrt()

    def covariance(self, points: Tensor, others: Tensor) -> Tensor:
        """Return posterior covariances of the latent function: points ``... x d`` and ``m x d`` to ``... x m``."""
        self.update()
        posterior, left, right = self._posterior, self.normalise(points), self.normalise(others)
        prior = self.kernel.at(self.kernel_theta, right)(left).cross
        projected = [posterior.cross_covariance(x).cross @ posterior.root.T for x in (left, right)]
        return self._scale.square() * (prior - projected[0] @ projected[1].T)

    def prior_std(self, points: Tensor) -> Tensor:
        """Return prior standard deviations under the hyper-parameters of the last fit: ``... x d`` to ``...``."""
        self.update()
        return self._scale * self.kernel.at(self.kernel_theta, self._points[:0])(self.normalise(points)).variance.sqrt()

    def draw(self, generator: torch.Generator) -> Function:
        """Return a function drawn from the posterior: a prior draw, conditioned on the data (Wilson et al. 2020).

        The kernel must implement ``draw``. Data that are added later do not change the function.
        """
        self.update()
        prior = self.kernel.draw(self.kernel_theta, generator, 1)
        corrections = self.correction(prior(self._points).squeeze(-1), generator)
        posterior = dataclasses.replace(self._posterior, weights=corrections)

        def function(points: Tensor) -> Tensor:
            rescaled = posterior.rescale(points)
            return posterior.mean_at_rescaled(rescaled) + posterior.scale * prior(rescaled).squeeze(-1)

        return function

    def correction(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Return the weights of the data that turn a draw from the prior into one from the posterior, ``(n,)``.

        ``values`` are the values of the prior draw at the data, ``(n,)``.
        """
        noise = torch.randn(len(self._points), dtype=torch.float64, generator=generator).to(self._points)
        residuals = (self.outputs - self._location) / self._scale - self.constant - values
        variances = self._noise_at(self._points) + self._scaled_errors()[: len(self._points)]
        residuals = residuals - variances.sqrt() * noise
        return self._scale * (self._inverse_root.T @ (self._inverse_root @ residuals))

    def bound(self, points: Tensor, width: float) -> Tensor:
        """Return posterior means plus ``width`` standard deviations at points ``batch_shape x d``, differentiable."""
        mean, std = self.posterior(points)
        return mean + width * std

    def state(self) -> Posterior:
        """Update the model and return its posterior."""
        self.update()
        return self._posterior

    def normalise(self, points: Tensor) -> Tensor:
        """Return points ``... x d`` with rescaled columns ``rescale``, in which the last refit's data span [0, 1]."""
        return (points - self._low) / self._span

    @property
    def noise_scale(self) -> Tensor:
        """Standard deviation of the outputs' noise, known or learned, in the outputs' units."""
        self.update()
        return self._scale * self.noise.sqrt()

    def update(self) -> None:
        """Update the model to the data: refit it if the schedule says so, otherwise extend the Cholesky factor."""
        if len(self._points) != len(self) or "_posterior" not in vars(self):
            update_together([self])

    def regression(self) -> Regression:
        """Standardise the data, and return the regression to fit."""
        self._standardise()
        points = self.normalise(self.inputs)
        self.kernel.set_zeros(-self._low / self._span)
        self.noise_model.set_data(points, float(self._scale))
        targets = (self.outputs - self._location) / self._scale
        return Regression(self.kernel, self.noise_model, points, targets, self._scaled_errors(), self.centred)

    def _refresh(self) -> None:
        """Update the posterior to the data, with the present hyper-parameters."""
        if not len(self) and "_posterior" not in vars(self):
            self.noise_model.set_data(self.inputs.new_zeros(1, self.dim), float(self._scale))
            self.theta = self._with_fixed()
        elif len(self._points) == len(self):
            return
        self._factorise(len(self._points))

    def _with_fixed(self) -> Tensor:
        """Return ``theta`` with the present values of the hyper-parameters that fits do not vary."""
        parts = self.kernel.hyperparameters, self.noise_model.hyperparameters
        start, free = (torch.cat([getattr(part, name) for part in parts]) for name in ("start", "free"))
        return torch.cat([self.theta[:-1].where(free, start), self.theta[-1:]])

    def _tensor(self, numbers: Numbers) -> Tensor:
        return torch.as_tensor(np.asarray(numbers, dtype=np.float64), device=self._device)

    def _standardise(self) -> None:
        self._location = self.outputs.mean()
        spread = self.outputs.std(correction=min(1, len(self) - 1))
        # The spread of constant outputs is a rounding error, so they are not scaled.
        varies = spread > 1e-12 * self._location.abs()
        self._scale = torch.where(varies, spread, torch.ones_like(spread))
        if self.rescale:
            columns = self.inputs[:, self.rescale]
            low, high = columns.amin(0), columns.amax(0)
            self._low[self.rescale] = low
            self._span[self.rescale] = torch.where(high > low, high - low, torch.ones_like(low))

    def _make_noise(self) -> Noise:
        return self._unknown_noise() if self.noise_std is None else KnownNoise(self.noise_std)

    @property
    def noise(self) -> Tensor:
        """Noise variance of standardised outputs at the first point of the data, or at the origin without data."""
        point = self.inputs[:1] if len(self) else self.inputs.new_zeros(1, self.dim)
        return self._noise_at(self.normalise(point))[0]

    def _noise_at(self, points: Tensor) -> Tensor:
        """Return the noise variances of standardised outputs at rescaled points, ``n x d`` to ``n``."""
        theta = self.theta.to(self._device)[-1 - len(self.noise_model.hyperparameters) : -1]
        return self.noise_model.at(points.detach(), theta)

    def _scaled_errors(self) -> Tensor:
        """Return the variances of the stated errors in units of standardised outputs, ``(n,)``."""
        return self.errors / self._scale**2

    def _noise_covariance(self, points: Tensor) -> Tensor:
        """Return the noise covariance of standardised outputs at the last n points of the data, ``n x n``."""
        return torch.diag(self._noise_at(points) + self._scaled_errors()[len(self) - len(points) :])

    def _factorise(self, done: int) -> None:
        """Extend the inverse Cholesky factor from the first ``done`` points to all; 0 computes it from scratch.

        With ``W`` the inverse Cholesky factor of the old points, ``B`` the covariance of old and new points and ``C``
        that of the new ones, the new rows are ``[-V (W B)' W, V]``, where ``V`` inverts the Cholesky factor of the
        Schur complement ``C - (W B)' (W B)``.
        """
        points = self.normalise(self.inputs)
        theta, count = self.kernel_theta, len(points)
        new, cross_covariance = points[done:], self.kernel.at(theta, points)
        cross = cross_covariance(new).cross
        prior = cross[:, done:]
        covariance = prior + self._noise_covariance(new)
        self._reserve(done, count)
        if done:
            projected = self._rows[:done, :done] @ cross[:, :done].T
            covariance = covariance - projected.T @ projected
        corner = torch.linalg.solve_triangular(self._cholesky(covariance), torch.eye(len(new)).to(new), upper=False)
        self._rows[done:count, done:count] = corner
        if done:
            self._rows[done:count, :done] = -corner @ (projected.T @ self._rows[:done, :done])
        residuals = (self.outputs - self._location) / self._scale - self.constant
        new_rows = self._rows[done:count, :count]
        weights = self._scale * (new_rows.T @ (new_rows @ residuals))
        if done:
            weights[:done] += self._posterior.weights
        self._points = points
        self._posterior = Posterior(
            cross_covariance,
            points,
            weights,
            self._location + self._scale * self.constant,
            self._scale,
            self._root_of_predictions(done, prior),
            self._low,
            self._span,
        )

    @property
    def _inverse_root(self) -> Tensor:
        return self._rows[: len(self._points), : len(self._points)]

    def _reserve(self, done: int, count: int) -> None:
        """Make room for the inverse Cholesky factor of ``count`` points, and keep that of the first ``done``."""
        if done and count <= len(self._rows):
            return
        size = count + count // 4 if done else count
        rows = self._rows.new_zeros((size, size))
        rows[:done, :done] = self._rows[:done, :done]
        self._rows = rows

    def _root_of_predictions(self, done: int, prior: Tensor) -> Tensor:
        """Return R of :class:`Posterior`: condensed at a refit, otherwise the last R with the new rows of W."""
        if not self.condense:
            return self._inverse_root
        if not done:
            return condense(self._inverse_root, prior, self.noise)
        last_root = torch.nn.functional.pad(self._posterior.root, (0, len(prior)))
        return torch.cat([last_root, self._inverse_root[done:]])

    def _cholesky(self, covariance: Tensor) -> Tensor:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NumericalWarning)
                try:
                    return psd_safe_cholesky(covariance, max_tries=6)
                except NotPSDError:
                    # The jitter does not depend on the variances, and is too small if they are large.
                    largest = covariance.diagonal(dim1=-2, dim2=-1).amax(-1)[..., None, None]
                    return largest.sqrt() * psd_safe_cholesky(covariance / largest, max_tries=6)
        except (NotPSDError, NanError) as error:
            raise SurrogateError(
                f"the covariance matrix of node {self.name} ({len(self)} points) cannot be factorised, even with "
                "jitter on its diagonal"
            ) from error


def update_together(gps: Iterable[GaussianProcess]) -> None:
    """Update GPs to their data, as :meth:`GaussianProcess.update`; GPs that are due are fitted together.

    Raises:
        SurrogateError: if a covariance matrix cannot be factorised.
    """
    gps, due = list(gps), defaultdict(list)
    for gp in gps:
        if gp.schedule.due(len(gp)):
            due[gp.refit_iterations if gp.schedule.fits else FIT_ITERATIONS].append(gp)
    for iterations, group in due.items():
        regressions = [gp.regression() for gp in group]
        searches = [len(gp) >= gp.schedule.growth * gp._searched_size for gp in group]
        fitted = fit(regressions, [Fit(gp._with_fixed(), gp._inverse) for gp in group], searches, iterations)
        for gp, fit_result, searched in zip(group, fitted, searches, strict=True):
            gp.theta, gp._inverse, gp._points = fit_result.theta, fit_result.inverse, gp._points[:0]
            gp._searched_size = len(gp) if searched else gp._searched_size
            gp.schedule.record(len(gp))
    for gp in gps:
        gp._refresh()
