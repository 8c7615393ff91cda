"""One GP of the rewards of all target sets, whose prior comes from observations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from cbo_gym._util.summation import add_up
from cbo_gym.agents.surrogates.causal.causal_prior import RewardGP
from cbo_gym.agents.surrogates.gp.closed_form import Covariances
from cbo_gym.agents.surrogates.gp.kernels import MAX_LOG_VARIANCE, SquaredExponential, VarianceKernel
from cbo_gym.agents.surrogates.gp.noise import log_lognormal

MIN_SHARE = 0.1  # least share of the rewards' variance that is expected not to be noise
# Modes of logarithms, and their standard deviations; lengths are in units of the domains.
ERROR = (-2.0, 1.5)  # variance of the error of the causal prior where there were observations, in rewards' units
BEYOND = (0.3, 0.4)  # additional variance where there were none, in units of the variance that is not noise
LENGTH = (-1.3, 0.7)  # lengthscale of a variable's values
SETTING = (-0.3, 0.7)  # lengthscale of setting it or not
REACH = 0.1  # standard deviation, as a share of a domain, within which an observation informs about its neighbours

Lognormal = tuple[float, float]


class SetsGP(RewardGP):
    """GP of the reward under do(x) for all sets together, about a causal prior with mean m and standard deviation s.

    An action's inputs are the values of all variables in [0, 1], for each whether it is set, s, and its novelty n, from
    0 amid the observations to 1 far from all of them. The prior covariance of two actions is
    ``RBF (v + s s' + w n n')``: errors of the causal prior are similar for similar values and for sets with most
    variables in common, and they may be large where it extrapolates. Noise and scales are learned from the rewards of
    all sets.

    Args:
        name: name of the reward, for error messages.
        variables: number of variables that can be set.
        device: torch device.
        noise_std: standard deviation of the rewards' noise where it is known; None to learn it.

    References:
        Aglietti, Damoulas, Alvarez & Gonzalez (2020), Multi-task causal learning with Gaussian processes: one model of
        all target sets, there by a kernel that follows the graph.
    """

    deviation = -2

    def __init__(self, name: str, variables: int, device: str = "cpu", noise_std: float | None = None) -> None:
        super().__init__(name, 2 * variables + 2, SetsKernel, device, noise_std)
        self._owners = torch.empty(0, dtype=torch.int64, device=device)

    def observe(self, owner: int, inputs: Tensor, mean: Tensor, reward: float) -> None:
        """Add the reward of an action of the set with number ``owner``: inputs ``1 x d``, and m there, ``(1,)``."""
        self._owners = torch.cat([self._owners, self._owners.new_tensor([owner])])
        self._rewards = torch.cat([self._rewards, mean.new_tensor([reward])])
        self.add(inputs.cpu(), reward - mean.cpu())

    def revise(self, owner: int, inputs: Tensor, means: Tensor) -> None:
        """Replace the inputs ``n x d`` and the prior means ``(n,)`` of a set's data."""
        own = self._owners == owner
        self.inputs[own], self.outputs[own] = inputs, self._rewards[own] - means
        self._points = self._points[:0]

    def predict(self, inputs: Tensor, means: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and std, ``(n,)`` each, of E[Y | do(x)], for inputs ``n x d`` and prior means ``(n,)``."""
        if not len(self):
            self._span[self.deviation] = self.unit
            points = self.normalise(inputs)
            return means, self.unit * self.kernel.forward(points, points, diag=True).sqrt()
        residual, spread = self.posterior(inputs)
        return means + residual, spread

    def prior_means(self, owner: int) -> Tensor:
        """Return prior means at a set's data, shape ``(n,)``."""
        return (self._rewards - self.outputs)[self._owners == owner]

    def means_at_data(self, owner: int) -> Tensor:
        """Return posterior means at a set's data, shape ``(n,)``."""
        own = self._owners == owner
        return self.prior_means(owner) + self.mean(self.inputs[own]) if own.any() else self._rewards[own]

    def _standardise(self) -> None:
        super()._standardise()
        if self.noise_std is None and (share := self._expected_share) is not None:
            self.kernel.share = max(1.0 - share, MIN_SHARE)


class SetsKernel(VarianceKernel):
    """``RBF (v + s s' + w n n')`` of inputs (values, whether set, s, n); v and w have lognormal priors.

    Args:
        dim: number of inputs, 2 more than twice that of the variables.

    Attributes:
        share: share of the rewards' variance that is not noise, above 0; the prior of w is relative to it.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(terms=2)
        self.share = 1.0
        self.smooth = SetsShape(dim - 2)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        error, beyond = self.variances
        if diag:
            return error + x1[..., -2].square() + beyond * x1[..., -1].square()
        known = x1[..., -2].unsqueeze(-1) * x2[..., -2].unsqueeze(-2)
        novel = x1[..., -1].unsqueeze(-1) * x2[..., -1].unsqueeze(-2)
        return self.smooth.forward(x1[..., :-2], x2[..., :-2]) * (error + known + beyond * novel)

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        return log_modes(values, [ERROR, (BEYOND[0] + math.log(self.share), BEYOND[1])])

    def covariances_of(self, points: np.ndarray) -> Covariances:
        smooth = self.smooth.covariances_of(points[:, :-2])
        known, novel = (np.outer(column, column) for column in points[:, -2:].T)

        def function(logs: np.ndarray, own: np.ndarray) -> Any:
            error, beyond = np.exp(np.minimum(logs, MAX_LOG_VARIANCE))
            shape, pullback = smooth.matrix(own)
            heights = error + known + beyond * novel

            def gradients(gradient: np.ndarray) -> list[np.ndarray]:
                weighted = gradient * shape
                slopes = np.array([error * weighted.sum(), beyond * np.vdot(weighted, novel)])
                return [slopes, pullback(gradient * heights)]

            return shape * heights, gradients

        return Covariances([self, smooth], function)


class SetsShape(SquaredExponential):
    """A squared exponential of values and memberships, whose lengthscales have priors of their own.

    Args:
        dim: number of inputs, twice that of the variables.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        location, scale = torch.tensor([LENGTH, SETTING], dtype=torch.float64).repeat_interleave(dim // 2, 0).T
        prior = LogNormalPrior(location + scale.square(), scale)
        self.register_prior("lengthscale_prior", prior, _lengthscales, _set_lengthscales)
        self.lengthscale = location.exp()

    def log_prior(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        return log_modes(logs, [LENGTH, SETTING])


def _lengthscales(kernel: SetsShape) -> Tensor:
    return kernel.lengthscale


def _set_lengthscales(kernel: SetsShape, value: Tensor) -> None:
    kernel.lengthscale = value


def log_modes(logs: np.ndarray, priors: Sequence[Lognormal]) -> tuple[float, np.ndarray]:
    """Return the summed log density of lognormal variables, and its gradient with respect to their logarithms.

    ``priors`` are modes of the logarithms and their standard deviations, each for an equal share of the ``logs``.
    """
    terms = [
        log_lognormal(own, mode + scale**2, scale)
        for own, (mode, scale) in zip(np.split(logs, len(priors)), priors, strict=True)
    ]
    return add_up(density for density, _ in terms), np.concatenate([slope for _, slope in terms])


def novelty(points: Tensor, observed: Tensor) -> Tensor:
    """Return the novelty of points, from 0 to 1, in the variable where it is greatest: ``n x d`` to ``(n,)``.

    ``observed`` are the observed values of the same variables, ``m x d``; without any the novelty is 1.
    """
    if not len(observed):
        return torch.ones_like(points[:, 0])
    nearest = torch.stack(
        [(own[:, None] - data).abs().amin(-1) for own, data in zip(points.T, observed.T, strict=True)]
    )
    return 1.0 - (-0.5 * (nearest.amax(0) / REACH).square()).exp()
