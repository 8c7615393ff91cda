"""Surrogates of several outcomes of the interventions on one target set.

:class:`SeparateGPs` are one independent GP per outcome, :class:`MultiTaskGPs` one GP with correlated outcomes. In both,
every outcome has the prior of :class:`~cbo_gym.agents.surrogates.causal.causal_prior.CausalGP`: mean and standard
deviation from an estimate of its causal effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from cbo_gym.agents.surrogates.causal.causal_prior import CausalGP, Effect
from cbo_gym.agents.surrogates.gp.closed_form import Bounds, Covariances, Hyperparameters
from cbo_gym.agents.surrogates.gp.kernels import MAX_LOG_VARIANCE, SquaredExponential
from cbo_gym.agents.surrogates.gp.model import GaussianProcess
from cbo_gym.agents.surrogates.gp.noise import MIN_VARIANCE, USUAL_NOISE, Noise, log_lognormal

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
    """

    def __init__(self, names: Sequence[str], dim: int, effects: Sequence[Effect], device: str = "cpu") -> None:
        self._gps = [CausalGP(name, dim, effect, device) for name, effect in zip(names, effects, strict=True)]
        self._values = torch.empty((0, dim), dtype=torch.float64, device=device)

    def observe(self, values: Tensor, outcomes: Sequence[float]) -> None:
        """Add a round: ``values`` in [0, 1] of shape ``(d,)``, one number per outcome."""
        self._values = torch.cat([self._values, values[None]])
        for gp, outcome in zip(self._gps, outcomes, strict=True):
            gp.observe(values, outcome)

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
        means, stds = zip(
            *(gp.predict(values, prior) for gp, prior in zip(self._gps, prior_by_gp, strict=True)), strict=True
        )
        return torch.stack(means, -1), torch.diag_embed(torch.stack(stds, -1))

    def at_data(self) -> tuple[Tensor, Tensor]:
        """Return the posterior at the data, as :meth:`predict` does."""
        return self.predict(self._values)


class MultiTaskGPs(GaussianProcess):
    """One GP of all outcomes with learned correlations: an intrinsic coregionalisation model (ICM).

    The GP models the outcomes' residuals about their causal prior means, each divided by the outcome's unit. The prior
    covariance of the residuals of outcomes i and j is ``B_ij RBF(x, x')`` with ``B = L L'`` (Bonilla, Chai & Williams
    2008; the multi-task model of Aglietti et al. 2023, sec. 3.2). If i = j, ``sigma(x) sigma(x')`` is added, where
    sigma is the outcome's causal prior standard deviation. Every outcome has its own noise. The methods are those of
    :class:`SeparateGPs`.

    Args:
        names: names of the m outcomes.
        dim: number of variables that are set.
        effects: prior mean and standard deviation of each outcome.
        device: torch device.
    """

    centred = True

    def __init__(self, names: Sequence[str], dim: int, effects: Sequence[Effect], device: str = "cpu") -> None:
        self._count = len(names)
        super().__init__(", ".join(names), dim + 2, covariance=partial(_coregion, len(names)), device=device)
        self._effects = effects
        self._units = self.outputs.new_ones(self._count)
        self._values = self.inputs[:, :dim]
        self._outcomes = self.outputs.new_empty((0, self._count))

    def observe(self, values: Tensor, outcomes: Sequence[float]) -> None:
        self._values = torch.cat([self._values, values[None]])
        self._outcomes = torch.cat([self._outcomes, self._outcomes.new_tensor(outcomes)[None]])
        self._replace_data()

    def adjust(self, units: Sequence[float]) -> None:
        self._units = self._units.new_tensor(units)
        self._replace_data()

    def refresh(self) -> None:
        self._replace_data()

    def _replace_data(self) -> None:
        mean, inputs = self._joint_inputs(self._values, None)
        self.replace(inputs.flatten(0, 1), ((self._outcomes - mean) / self._units).flatten())

    def predict(self, values: Tensor, priors: Priors | None = None) -> tuple[Tensor, Tensor]:
        mean, inputs = self._joint_inputs(values, priors)
        residual, root = self.joint(inputs)
        return mean + residual * self._units, root * self._units[:, None]

    def at_data(self) -> tuple[Tensor, Tensor]:
        return self.predict(self._values)

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


def _coregion(count: int, dim: int) -> CoregionKernel:
    """Return the kernel of ``count`` outcomes, for a GP with ``dim`` inputs."""
    return CoregionKernel(dim - 2, count)


class CoregionKernel(Kernel, Hyperparameters):
    """``B_ij RBF(x, x') + [i = j] sigma sigma'`` of inputs (x, sigma, i), with ``B = L L'``.

    The hyper-parameters of a fit are the lower triangle of L, with logarithms on its diagonal, and the lengthscales.
    Those of L have normal priors around 0, so the prior variance of every outcome is about its squared unit, and the
    fit to a few rounds does not explain an outcome by noise alone.

    Args:
        dim: length of x.
        count: number of outcomes.
    """

    def __init__(self, dim: int, count: int) -> None:
        super().__init__()
        self.smooth = SquaredExponential(dim)
        self.register_parameter("root", torch.nn.Parameter(torch.eye(count)))
        self._entries = np.tril_indices(count)
        self._diagonal = self._entries[0] == self._entries[1]
        self._precisions = 1.0 / np.where(self._diagonal, LOG_DIAGONAL_STD, 1.0) ** 2

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        smooth = self.smooth.forward(x1[..., :-2], x2[..., :-2], diag=diag)
        if diag:
            return self._outcome_covariance(x1[..., -1], x2[..., -1]) * smooth + _sigma_product(x1, x2)
        return self._combine(smooth, x1.unsqueeze(-2), x2.unsqueeze(-3))

    def covariance(self, points: Tensor) -> Tensor:
        return self._combine(self.smooth.covariance(points[..., :-2]), points.unsqueeze(-2), points.unsqueeze(-3))

    def _combine(self, smooth: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Return the covariances of pairs of inputs, from the RBF ``smooth`` of their values."""
        return self._outcome_covariance(first[..., -1], second[..., -1]) * smooth + _sigma_product(first, second)

    def _outcome_covariance(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the entries of B for pairs of outcome indices."""
        root = self.root.tril()
        return (root @ root.T)[first.long(), second.long()]

    @property
    def theta(self) -> np.ndarray:
        values = self.root.detach().cpu().numpy()[self._entries]
        values[self._diagonal] = np.log(values[self._diagonal])
        return values

    @theta.setter
    def theta(self, values: np.ndarray) -> None:
        self.root.data = torch.from_numpy(self._root_of(values)).to(self.root)

    @property
    def bounds(self) -> Bounds:
        return [(-math.inf, math.inf)] * len(self._diagonal)

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        slope = -self._precisions * values
        return 0.5 * float(slope @ values), slope

    def _root_of(self, values: np.ndarray) -> np.ndarray:
        """Return L for values of its hyper-parameters."""
        root = np.zeros(self.root.shape)
        root[self._entries] = np.where(self._diagonal, np.exp(np.minimum(values, MAX_LOG_VARIANCE / 2.0)), values)
        return root

    def covariances_of(self, points: np.ndarray) -> Covariances:
        smooth, outcome = self.smooth.covariances_of(points[:, :-2]), points[:, -1].astype(int)
        pairs = outcome[:, None], outcome
        sigma_products = (outcome[:, None] == outcome) * np.outer(points[:, -2], points[:, -2])

        def function(entries: np.ndarray, smooth_values: np.ndarray) -> Any:
            root = self._root_of(entries)
            matrix, pullback = smooth.matrix(smooth_values)
            weights = (root @ root.T)[pairs]

            def gradients(gradient: np.ndarray) -> list[np.ndarray]:
                gradient_of_b = np.zeros_like(root)
                np.add.at(gradient_of_b, pairs, gradient * matrix)
                slope = ((gradient_of_b + gradient_of_b.T) @ root)[self._entries]
                return [slope * np.where(self._diagonal, root[self._entries], 1.0), pullback(gradient * weights)]

            return weights * matrix + sigma_products, gradients

        return Covariances([self, smooth], function)


def _sigma_product(first: Tensor, second: Tensor) -> Tensor:
    """Return the product of the sigmas of pairs of inputs of the same outcome, 0 for different outcomes."""
    return (first[..., -1] == second[..., -1]) * first[..., -2] * second[..., -2]


class NoiseLevels(Noise):
    """Noise with one variance per outcome, under the lognormal prior of a CausalGP's noise.

    The last input of a point is the index of its outcome.
    """

    def __init__(self, count: int) -> None:
        self.theta = np.full(count, math.log(USUAL_NOISE))

    @property
    def bounds(self) -> Bounds:
        return [(math.log(MIN_VARIANCE), math.inf)] * len(self.theta)

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        return log_lognormal(values, math.log(USUAL_NOISE), 1.0)

    def at(self, points: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        outcome = points[:, -1].astype(int)
        variances = np.exp(values)[outcome]
        return variances, lambda gradient: np.bincount(outcome, gradient * variances, len(values))
