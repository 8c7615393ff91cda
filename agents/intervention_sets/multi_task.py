"""Surrogates of several outcomes of the interventions on one target set: of the reward and of the constrained nodes.

cCBO uses them. :class:`SeparateGPs` are one independent GP per outcome, :class:`MultiTaskGPs` one GP with correlated
outcomes. In both, every outcome has the prior of
:class:`~cbo_gym.agents.intervention_sets.causal_prior.CausalGP`: mean and standard deviation from an estimate of its
causal effect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor

from cbo_gym.agents.gp.algebra import OnColumns, Product, Sum
from cbo_gym.agents.gp.hyperparameters import Hyperparameters
from cbo_gym.agents.gp.kernels import Covariance, CrossCovariance, Dot, Kernel, SquaredExponential
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.noise import USUAL_NOISE, Noise, with_min_variance
from cbo_gym.agents.intervention_sets.causal_prior import CausalGP, Effect, GPQuery

# Prior standard deviation of the logarithms of the diagonal of L, the root of the covariance between outcomes.
LOG_DIAGONAL_STD = 0.5

#: Prior mean and standard deviation of each outcome at n points, ``(n,)`` each.
Priors = Sequence[tuple[Tensor, Tensor]]


class SeparateGPs:
    """One independent GP per outcome (the single-task model of Aglietti et al. 2023, sec. 3.2).

    Args:
        names: names of the outcomes, for error messages.
        dim: number of variables that are set.
        effects: prior mean and standard deviation of each outcome.
        device: torch device.
        categories: variable that is a category, by its index -> the number of categories.

    Attributes:
        complete_values: values of the rounds that are not partial, ``n x d``.
    """

    def __init__(
        self,
        names: Sequence[str],
        dim: int,
        effects: Sequence[Effect],
        device: str = "cpu",
        categories: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._gps = [
            CausalGP(name, dim, effect, device, categories=categories)
            for name, effect in zip(names, effects, strict=True)
        ]
        self.complete_values = torch.empty((0, dim), dtype=torch.float64, device=device)

    def observe(
        self, values: Tensor, outcomes: Sequence[float], errors: Sequence[float], partial: bool = False
    ) -> None:
        """Add a round: ``values`` in [0, 1], ``(d,)``, and for each outcome its value and its standard error.

        The outcomes of a ``partial`` round may be NaN.
        """
        if not partial:
            self.complete_values = torch.cat([self.complete_values, values[None]])
        for gp, outcome, error in zip(self._gps, outcomes, errors, strict=True):
            if not math.isnan(outcome):
                gp.observe(values, outcome, error)

    def adjust(self, units: Sequence[float]) -> None:
        """Set the unit of each outcome, above 0: the standard deviation of its values in all rounds."""
        for gp, unit in zip(self._gps, units, strict=True):
            gp.unit = unit

    def refresh(self) -> None:
        """Recompute the causal priors at the data after the estimates of the effects have changed."""
        for gp in self._gps:
            if len(gp):
                gp.refresh()

    def predict(self, values: Tensor, priors: Priors | None = None) -> tuple[Tensor, Tensor]:
        """Return the posterior of the m outcomes at points.

        Args:
            values: the points in [0, 1], ``n x d``.
            priors: causal priors at the points; None to compute them.

        Returns:
            Means, ``n x m``, and lower triangular roots of the covariances between outcomes, ``n x m x m``.
        """
        prior_by_gp: Sequence[tuple[Tensor, Tensor] | None] = priors or [None] * len(self._gps)
        posteriors = [gp.predict(values, prior) for gp, prior in zip(self._gps, prior_by_gp, strict=True)]
        means, stds = zip(*posteriors, strict=True)
        return torch.stack(means, -1), torch.diag_embed(torch.stack(stds, -1))

    def queries(self, values: Tensor) -> list[GPQuery]:
        """Return the query of each outcome's GP at values ``n x d``."""
        return [gp.query(values) for gp in self._gps]


class MultiTaskGPs(GaussianProcess):
    """One GP of all outcomes with learned correlations: an intrinsic coregionalisation model (ICM).

    The GP models the outcomes' residuals about their causal prior means, each divided by the outcome's unit. The prior
    covariance of the residuals of outcomes i and j is ``B_ij RBF(x, x')`` with ``B = L L'`` (Bonilla, Chai & Williams
    2008; the multi-task model of Aglietti et al. 2023, sec. 3.2). If i = j, ``sigma(x) sigma(x')`` is added, where
    sigma is the outcome's causal prior standard deviation. Every outcome has its own noise. Arguments and methods are
    those of :class:`SeparateGPs`.
    """

    centred = True

    def __init__(
        self,
        names: Sequence[str],
        dim: int,
        effects: Sequence[Effect],
        device: str = "cpu",
        categories: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._count = len(names)
        super().__init__(
            ", ".join(names),
            dim + 2,
            covariance=partial(coregion_kernel, count=len(names)),
            categories=categories,
            device=device,
        )
        self._effects = effects
        self._units = self.outputs.new_ones(self._count)
        # Values of all rounds, and of those that are not partial.
        self._values = self.complete_values = self.inputs[:, :dim]
        self._outcomes = self._variances = self.outputs.new_empty((0, self._count))

    def observe(
        self, values: Tensor, outcomes: Sequence[float], errors: Sequence[float], partial: bool = False
    ) -> None:
        self._values = torch.cat([self._values, values[None]])
        if not partial:
            self.complete_values = torch.cat([self.complete_values, values[None]])
        self._outcomes = torch.cat([self._outcomes, self._outcomes.new_tensor(outcomes)[None]])
        self._variances = torch.cat([self._variances, self._outcomes.new_tensor(errors)[None].square()])
        self.refresh()

    def adjust(self, units: Sequence[float]) -> None:
        self._units = self._units.new_tensor(units)
        self.refresh()

    def refresh(self) -> None:
        mean, inputs = self._joint_inputs(self._values, None)
        residuals = ((self._outcomes - mean) / self._units).flatten()
        is_measured = residuals.isfinite()
        errors = (self._variances / self._units**2).flatten()
        self.replace(inputs.flatten(0, 1)[is_measured], residuals[is_measured], errors[is_measured])

    def predict(self, values: Tensor, priors: Priors | None = None) -> tuple[Tensor, Tensor]:
        mean, inputs = self._joint_inputs(values, priors)
        residual, root = self.joint(inputs)
        return mean + residual * self._units, root * self._units[:, None]

    def _joint_inputs(self, values: Tensor, priors: Priors | None) -> tuple[Tensor, Tensor]:
        """Return prior means, ``n x m``, and GP inputs, ``n x m x (d + 2)``: values, sigma / unit, outcome's index."""
        means, stds = zip(*(priors or [effect(values) for effect in self._effects]), strict=True)
        sigma = torch.stack(stds, -1) / self._units
        indices = torch.arange(self._count).to(sigma).expand_as(sigma)
        repeated = values[:, None].expand(-1, self._count, -1)
        return torch.stack(means, -1), torch.cat([repeated, sigma[..., None], indices[..., None]], -1)

    def _standardise(self) -> None:
        self._location, self._scale = self.outputs.new_tensor(0.0), self.outputs.new_tensor(1.0)

    def _make_noise(self) -> Noise:
        return NoiseLevels(self._count)


def coregion_kernel(dim: int, count: int) -> Kernel:
    """Return ``B_ij RBF(x, x') + [i = j] sigma sigma'`` of inputs (x, sigma, i), with i one of ``count`` outcomes."""
    smooth = OnColumns(SquaredExponential(dim - 2), slice(dim - 2))
    outcome = slice(dim - 1, dim)
    prior_error = Product(OnColumns(Dot(), slice(dim - 2, dim - 1)), OnColumns(SameOutcome(), outcome))
    return Sum(Product(smooth, OnColumns(OutcomeCovariance(count), outcome)), prior_error)


class OutcomeCovariance(Kernel):
    """``B_ij`` of the indices of outcomes, with ``B = L L'``.

    The hyper-parameters of a fit are the lower triangle of L, with logarithms on its diagonal. They have normal priors
    around 0, so the prior variance of every outcome is about its squared unit, and the fit to a few rounds does not
    explain an outcome by noise alone.

    Args:
        count: number of outcomes.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.structure = type(self), count
        # Rows and columns of the lower triangle.
        self._rows, self._columns = torch.tril_indices(count, count).unbind()
        self._is_diagonal = self._rows == self._columns
        stds = torch.where(self._is_diagonal, LOG_DIAGONAL_STD, 1.0).tolist()
        self.hyperparameters = Hyperparameters.normal([0.0] * len(stds), stds)

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        entries = torch.where(self._is_diagonal.to(theta.device), theta.exp(), theta)
        root = theta.new_zeros(*theta.shape[:-1], self._count, self._count)
        root[..., self._rows, self._columns] = entries
        factor = theta.new_ones(1, 1) if log_scale is None else log_scale.exp()[..., None, None]
        of_data = self._indicators(data) @ root

        def covariance(points: Tensor) -> Covariance:
            of_points = self._indicators(points) @ root

            def to_theta(gradient: Tensor) -> Tensor:
                left = self._indicators(points).mT @ (gradient @ of_data)
                slope = factor * (left + self._indicators(data).mT @ (gradient.mT @ of_points))
                slopes = slope[..., self._rows, self._columns]
                return torch.where(self._is_diagonal.to(slopes.device), slopes * entries, slopes)

            return Covariance(
                factor * of_points @ of_data.mT,
                factor.squeeze(-1) * of_points.square().sum(-1),
                lambda *_: torch.zeros_like(points),
                to_theta,
            )

        return covariance

    def _indicators(self, indices: Tensor) -> Tensor:
        """Return one-hot vectors of the indices of outcomes, ``... x n x 1`` to ``... x n x count``."""
        return torch.nn.functional.one_hot(indices[..., 0].long(), self._count).to(indices)


class SameOutcome(Kernel):
    """1 for equal indices and 0 for different indices."""

    hyperparameters = Hyperparameters.flat([])
    structure = "same outcome"

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        factor = theta.new_ones(1, 1) if log_scale is None else log_scale.exp()[..., None, None]

        def covariance(points: Tensor) -> Covariance:
            cross = factor * (points == data.mT).to(points)
            variance = factor.squeeze(-1).expand(points.shape[:-1])
            return Covariance(cross, variance, lambda *_: torch.zeros_like(points), lambda gradient: theta)

        return covariance


class NoiseLevels(Noise):
    """Noise with one variance per outcome, under the lognormal prior of a CausalGP's noise.

    The last input of a point is the index of its outcome.
    """

    def __init__(self, count: int) -> None:
        levels = with_min_variance(Hyperparameters.lognormal([math.log(USUAL_NOISE)] * count, [1.0] * count))
        levels.start[:] = math.log(USUAL_NOISE)
        super().__init__(levels)
        self._count = count

    def features(self, points: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(points[:, -1].long(), self._count).to(points)
