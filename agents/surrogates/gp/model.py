"""Exact Gaussian process, the agents' model of a reward or of a node.

The model is BoTorch's default (``SingleTaskGP``): a squared-exponential kernel with the dimension-scaled lognormal
lengthscale prior of Hvarfner et al. (2024), a constant mean, and standardised outputs, in float64. Hyper-parameters are
refitted on a schedule with gradients in closed form (:mod:`cbo_gym.agents.surrogates.gp.fitting`); between refits new
data extend the cached Cholesky factor, so that a prediction costs a few matrix products. The noise level may be fixed,
because a learned one can be badly wrong: the most probable fit to 100 random points of noiseless Dropwave is one third
noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor

from cbo_gym.agents.surrogates.gp.closed_form import Function, WithOrigin
from cbo_gym.agents.surrogates.gp.fitting import LogPosterior, covariances
from cbo_gym.agents.surrogates.gp.kernels import SquaredExponential
from cbo_gym.agents.surrogates.gp.noise import KnownNoise, Noise, NoiseLevel
from cbo_gym.agents.surrogates.gp.posterior import Posterior, condense, cross_covariance
from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.scm.noise import Zero
from cbo_gym.task import Task

FIT_ITERATIONS = 100
# Variance added to joint posteriors of standardised outputs, so that every covariance has a Cholesky factor.
JITTER = 1e-8
# Lengthscales among which the starting point of a second fit is chosen.
LENGTHSCALES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

Numbers = float | Sequence[float] | np.ndarray | Tensor


class SurrogateError(OperationError):
    """Raised if a surrogate cannot be computed from its data; the message names the node."""


@dataclass
class RefitSchedule:
    """Schedule of hyper-parameter refits: often at first, later when the data have grown by a tenth.

    A fit is due if the number of points has grown by a factor since the last fit: ``early`` for the first fits, then
    ``growth``.

    Args:
        every_time: number of fits to which ``early`` applies.
        growth: factor of later fits.
        early: factor of early fits; 1.02 refits after every new point up to 50 points.
        many: number of points at and above which ``growth`` applies in any case.
        fits: number of fits so far.
        size: number of points at the last fit.
    """

    every_time: int = 20
    growth: float = 1.1
    early: float = 1.02
    many: int = 200
    fits: int = 0
    size: int = 0

    def due(self, size: int) -> bool:
        """Return whether a fit is due now that there are ``size`` points."""
        early = self.fits < self.every_time and self.size < self.many
        return size > self.size and size >= self.size * (self.early if early else self.growth)

    def record(self, size: int) -> None:
        """Record a fit to ``size`` points."""
        self.fits += 1
        self.size = size


class State(NamedTuple):
    """Data from which the predictions of a GP are computed.

    Attributes:
        posterior: posterior at rescaled points.
        points: rescaled inputs of the data, ``n x d``.
        low: offset of the rescaling ``(x - low) / span``, ``(d,)``.
        span: divisor of the rescaling, ``(d,)``.
    """

    posterior: Posterior
    points: Tensor
    low: Tensor
    span: Tensor


class GaussianProcess:
    """Exact GP regression of one scalar, with a refit schedule and cached factors.

    Data may be added at any time; the next prediction updates the model. Torch's global random state is neither used
    nor seeded.

    Args:
        name: name of the modelled node, for error messages.
        dim: number of inputs d, at least 1.
        noise_std: standard deviation of the outputs' noise, 0 for exact outputs; None to learn it.
        covariance: function that returns the kernel for d inputs.
        noise: function that returns the noise model, which is used if ``noise_std`` is None.
        rescale: input columns that are not in [0, 1]; they are rescaled by their range in the data at each refit.
        refit_iterations: maximum number of iterations of a refit, which starts where the last fit ended.
        condense: whether predictions leave out directions of the data whose signal is negligible compared with the
            noise, see :func:`~cbo_gym.agents.surrogates.gp.posterior.condense`. With many data this saves most of their
            cost. The noise must be the same for all data.
        device: torch device of data and computations.

    Attributes:
        kernel: kernel with the hyper-parameters of the last fit.
        constant: prior mean of the standardised outputs.
        centred: whether ``constant`` is fixed at 0.

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
        covariance: Callable[[int], Kernel] = SquaredExponential,
        noise: Callable[[], Noise] = NoiseLevel,
        rescale: Sequence[int] = (),
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
        self.covariance = covariance
        self._unknown_noise = noise
        self.rescale = list(rescale)
        self.refit_iterations = refit_iterations
        self.condense = condense
        self.schedule = RefitSchedule()
        self._device = torch.device(device)
        self.kernel = self._make_kernel()
        self.constant = 0.0
        self._noise = self._make_noise()
        # Number of points at the last search over lengthscales.
        self._searched = 0
        self.inputs = self._tensor(np.empty((0, dim)))
        self.outputs = self._tensor([])
        self.set_prior(0.0, 1.0)
        self._low = self._tensor([0.0] * dim)
        self._span = self._tensor([1.0] * dim)
        # Rescaled inputs of the points in the factor; points added later are not among them.
        self._points = self.inputs
        self._inverse_root: Tensor
        self._posterior: Posterior

    def learn_noise(self, noise: Callable[[], Noise]) -> None:
        """Learn the outputs' noise from now on, with the noise model that ``noise`` returns."""
        self.noise_std, self._unknown_noise = None, noise
        self._noise = self._make_noise()

    def set_prior(self, mean: float, std: float) -> None:
        """Set the prior mean and standard deviation of the outputs, in the outputs' units."""
        self._location, self._scale = self._tensor(mean), self._tensor(std)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the cross-covariance function, which ``__setstate__`` makes again."""
        state = dict(self.__dict__)
        if "_posterior" in state:
            state["_posterior"] = {
                name: value for name, value in vars(self._posterior).items() if name != "cross_covariance"
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_posterior" in state:
            self._posterior = Posterior(cross_covariance(self.kernel, self._points), **state["_posterior"])

    def __len__(self) -> int:
        """Return the number of observations."""
        return len(self.outputs)

    def add(self, inputs: Numbers, outputs: Numbers) -> None:
        """Add observations.

        Args:
            inputs: shape ``(n, d)`` or, for one observation, ``(d,)``; in [0, 1] except for the rescaled columns.
            outputs: shape ``(n,)``, or a scalar.

        Raises:
            ArgumentError: if the shapes do not fit or a number is not finite.
        """
        x = self._tensor(inputs).reshape(-1, self.dim)
        y = self._tensor(outputs).reshape(-1)
        if len(x) != len(y):
            raise ArgumentError(f"node {self.name}: {len(x)} inputs but {len(y)} outputs")
        if not (x.isfinite().all() and y.isfinite().all()):
            raise ArgumentError(f"node {self.name}: observations must be finite; given {inputs} -> {outputs}")
        self.inputs = torch.cat([self.inputs, x])
        self.outputs = torch.cat([self.outputs, y])

    def replace(self, inputs: Tensor, outputs: Tensor) -> None:
        """Replace all observations by others, ``n x d`` and ``(n,)``, without a reset of the refit schedule."""
        self.inputs, self.outputs = self.inputs[:0], self.outputs[:0]
        self._points = self._points[:0]
        self.add(inputs.cpu(), outputs.cpu())

    def mean(self, points: Tensor) -> Tensor:
        """Return only the means of :meth:`posterior`, at linear instead of quadratic cost in the data."""
        self.update()
        return self._posterior.mean(self.normalise(points))

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and standard deviation of the latent function (noise excluded), differentiable in ``points``.

        Args:
            points: shape ``batch_shape x d``.

        Returns:
            two tensors of shape ``batch_shape``: mean and standard deviation of each point.

        Raises:
            SurrogateError: if the covariance matrix cannot be factorised.
        """
        self.update()
        return self._posterior.mean_and_std(self.normalise(points))

    def joint(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and Cholesky factors of the latent function at sets of q points, differentiable in the points.

        The kernel must have a method ``covariance``.

        Args:
            points: shape ``batch_shape x q x d``.

        Returns:
            means, ``batch_shape x q``, and lower triangular L with covariance L L', ``batch_shape x q x q``.

        Raises:
            SurrogateError: as :meth:`posterior`.
        """
        if points.shape[-2] == 1:
            mean, std = self.posterior(points)
            return mean, std.unsqueeze(-1)
        self.update()
        inner = self.normalise(points)
        mean, covariance = self._posterior.mean_and_covariance(inner, self.kernel.covariance(inner))
        return mean, self._scale * self._cholesky(covariance + JITTER * torch.eye(covariance.shape[-1]).to(covariance))

    def prior_std(self, points: Tensor) -> Tensor:
        """Return prior standard deviations under the hyper-parameters of the last fit: ``... x d`` to ``...``."""
        self.update()
        return self._scale * self._posterior.cross_covariance(self.normalise(points)).variance.sqrt()

    def draw(self, generator: torch.Generator) -> Function:
        """Return a function drawn from the posterior: a prior draw, conditioned on the data (Wilson et al. 2020).

        The kernel must have a method ``draw``. Data that are added later do not change the function.
        """
        self.update()
        prior, posterior = self.kernel.draw(generator), self._posterior
        noise = torch.randn(len(self._points), dtype=torch.float64, generator=generator).to(self._points)
        residuals = (self.outputs - self._location) / self._scale - self.constant - prior(self._points)
        residuals = residuals - self._noise_at(self._points).sqrt() * noise
        weights = self._inverse_root.T @ (self._inverse_root @ residuals)

        def function(points: Tensor) -> Tensor:
            inner = self.normalise(points)
            return posterior.offset + posterior.scale * (
                prior(inner) + posterior.cross_covariance(inner).cross @ weights
            )

        return function

    def bound(self, points: Tensor, width: float) -> Tensor:
        """Return posterior means plus ``width`` standard deviations at points ``batch_shape x d``, differentiable."""
        mean, std = self.posterior(points)
        return mean + width * std

    def state(self) -> State:
        """Update the model and return its state."""
        self.update()
        return State(self._posterior, self._points, self._low, self._span)

    def normalise(self, points: Tensor) -> Tensor:
        """Return points ``... x d`` whose columns ``rescale`` are mapped so that the last refit's data span [0, 1]."""
        return (points - self._low) / self._span if self.rescale else points

    @property
    def noise_scale(self) -> Tensor:
        """Standard deviation of the outputs' noise, known or learned, in the outputs' units."""
        self.update()
        return self._scale * self.noise.sqrt()

    def update(self) -> None:
        """Update the model to the data: refit if the schedule says so, else extend the Cholesky factor.

        Without data the model predicts its prior.

        Raises:
            SurrogateError: if the covariance matrix cannot be factorised.
        """
        known = len(self._points)
        if self.schedule.due(len(self)):
            self._standardise()
            self._fit()
            self.schedule.record(len(self))
            self._factorise(0)
        elif not len(self) and "_posterior" not in vars(self):
            self._noise.set_data(np.zeros((1, self.dim)), float(self._scale))
            self._factorise(0)
        elif known < len(self):
            self._factorise(known)

    def _tensor(self, numbers: Numbers) -> Tensor:
        return torch.as_tensor(np.asarray(numbers, dtype=np.float64), device=self._device)

    def _standardise(self) -> None:
        self._location = self.outputs.mean()
        spread = self.outputs.std(correction=min(1, len(self) - 1))
        # If the outputs are constant, their spread is a rounding error, so they are not scaled.
        informative = spread > 1e-12 * self._location.abs()
        self._scale = torch.where(informative, spread, torch.ones_like(spread))
        if self.rescale:
            columns = self.inputs[:, self.rescale]
            low, high = columns.amin(0), columns.amax(0)
            self._low[self.rescale] = low
            self._span[self.rescale] = torch.where(high > low, high - low, torch.ones_like(low))
            if isinstance(self.kernel, WithOrigin):
                self.kernel.set_origin(-self._low / self._span)

    def _fit(self) -> None:
        """Fit the hyper-parameters, starting from their last values; the first fit starts from the modes of the priors.

        If the data have grown enough, a second fit starts from the most probable of ``LENGTHSCALES``. The posterior
        density often has two modes, one in which fast variation is signal and one in which it is noise, and a fit that
        starts where the last one ended would stay in its mode.
        """
        points = self.normalise(self.inputs).cpu().numpy()
        targets = ((self.outputs - self._location) / self._scale).cpu().numpy()
        self._noise.set_data(points, float(self._scale))
        data_covariances = covariances(self.kernel, points)
        posterior = LogPosterior(data_covariances, self._noise, points, targets, self.centred)
        mean = [] if self.centred else [self.constant]
        starts = [np.concatenate([data_covariances.theta, self._noise.theta, mean])]
        if len(self) >= self.schedule.growth * self._searched:
            starts.append(self._best_lengthscale(posterior, points))
            self._searched = len(self)
        iterations = self.refit_iterations if self.schedule.fits else FIT_ITERATIONS
        _, best = max((posterior.maximise(start, iterations) for start in starts), key=lambda end: end[0])
        kernel_values, self._noise.theta, self.constant = posterior.split(best)
        data_covariances.theta = kernel_values

    def _best_lengthscale(self, posterior: LogPosterior, points: np.ndarray) -> np.ndarray:
        """Return the most probable hyper-parameters with one of ``LENGTHSCALES`` for all inputs.

        The other hyper-parameters are at the modes of their priors.
        """
        new_kernel = self._make_kernel()
        others = np.concatenate([self._make_noise().theta, [] if self.centred else [0.0]])

        def with_lengthscale(lengthscale: float) -> np.ndarray:
            for kernel in new_kernel.modules():
                if isinstance(kernel, Kernel) and kernel.has_lengthscale:
                    kernel.lengthscale = lengthscale
            return np.concatenate([covariances(new_kernel, points[:0]).theta, others])

        return max(map(with_lengthscale, LENGTHSCALES), key=lambda values: posterior(values)[0])

    def _make_kernel(self) -> Any:
        return self.covariance(self.dim).to(device=self._device, dtype=torch.float64).requires_grad_(False)

    def _make_noise(self) -> Noise:
        return self._unknown_noise() if self.noise_std is None else KnownNoise(self.noise_std)

    @property
    def noise(self) -> Tensor:
        """Noise variance of standardised outputs at the first point of the data, or at the origin without data."""
        first = self.inputs[:1] if len(self) else self.inputs.new_zeros(1, self.dim)
        return self._noise_at(self.normalise(first))[0]

    def _noise_at(self, points: Tensor) -> Tensor:
        """Return the noise variances of standardised outputs at rescaled points, ``n x d`` to ``n``."""
        variances, _ = self._noise.at(points.detach().cpu().numpy(), self._noise.theta)
        return torch.from_numpy(variances).to(points)

    def _noise_covariance(self, points: Tensor) -> Tensor:
        """Return the noise covariance of standardised outputs at the last n points of the data, ``n x n``."""
        return torch.diag(self._noise_at(points))

    def _factorise(self, known: int) -> None:
        """Extend the inverse Cholesky factor of the first ``known`` points to all points; 0 computes it from scratch.

        With ``W`` the inverse Cholesky factor of the known block, ``B`` the covariance of old and new points and
        ``C`` that of the new ones, the new rows are ``[-V (W B)' W, V]``, where ``V`` inverts the Cholesky factor
        of the Schur complement ``C - (W B)' (W B)``.
        """
        points = self.normalise(self.inputs)
        new = points[known:]
        prior = self.kernel.forward(new, new)
        covariance = prior + self._noise_covariance(new)
        if known:
            projected = self._inverse_root @ self.kernel.forward(points[:known], new)
            covariance = covariance - projected.T @ projected
        root = self._cholesky(covariance)
        corner = torch.linalg.solve_triangular(root, torch.eye(len(new)).to(new), upper=False)
        inverse_root = new.new_zeros((len(points), len(points)))
        inverse_root[known:, known:] = corner
        if known:
            inverse_root[:known, :known] = self._inverse_root
            inverse_root[known:, :known] = -corner @ projected.T @ self._inverse_root
        residuals = (self.outputs - self._location) / self._scale - self.constant
        root = self._root_of_predictions(known, inverse_root, prior)
        self._points, self._inverse_root = points, inverse_root
        self._posterior = Posterior(
            cross_covariance(self.kernel, points),
            self._scale * (inverse_root.T @ (inverse_root @ residuals)),
            self._location + self._scale * self.constant,
            self._scale,
            root,
        )

    def _root_of_predictions(self, known: int, inverse_root: Tensor, prior: Tensor) -> Tensor:
        """Return R of :class:`Posterior`: condensed at a refit, otherwise the last R with the new rows of W."""
        if not self.condense:
            return inverse_root
        if not known:
            return condense(inverse_root, prior, self.noise)
        last_root = torch.nn.functional.pad(self._posterior.root, (0, len(prior)))
        return torch.cat([last_root, inverse_root[known:]])

    def _cholesky(self, covariance: Tensor) -> Tensor:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NumericalWarning)
                return psd_safe_cholesky(covariance, max_tries=6)
        except (NotPSDError, NanError) as error:
            raise SurrogateError(
                f"the covariance matrix of node {self.name} ({len(self)} points) cannot be factorised, even with "
                "jitter on its diagonal"
            ) from error


def is_noiseless(task: Task, node: str) -> bool:
    """Return whether ``node`` is known to be a function of the action alone.

    This is so if the diagram is known, the noise is known to be zero at the node and all its ancestors, and none of
    them has a latent cause.
    """
    if task.graph.diagram is None:
        return False
    upstream = task.diagram.ancestors([node])
    if task.noise is None or any(pair & upstream for pair in task.diagram.bidirected):
        return False
    return all(isinstance(task.noise[name], Zero) for name in upstream)
