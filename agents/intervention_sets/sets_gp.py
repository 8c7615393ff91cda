"""SetsGP: one GP of the rewards of all target sets, whose prior comes from observations.

CBO uses it if all sets share a GP, so that the rewards of one set inform the model of the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import torch
from torch import Tensor

from cbo_gym.agents.gp.algebra import OnColumns, Product, Scale, Sum
from cbo_gym.agents.gp.hyperparameters import Hyperparameters
from cbo_gym.agents.gp.kernels import Constant, Dot, Kernel, SquaredExponential
from cbo_gym.agents.intervention_sets.causal_prior import RewardGP

# Mode and standard deviation of the logarithm of a hyper-parameter.
Lognormal = tuple[float, float]

# Smallest expected share of the rewards' variance that is not noise.
MIN_SHARE = 0.1
# Prior of v, the variance of the causal prior's error among the observations, in the units of the GP's data.
ERROR: Lognormal = (-2.0, 1.5)
# Prior of w, the additional variance far from the observations, in units of the variance that is not noise.
BEYOND: Lognormal = (0.3, 0.4)
# Priors of the lengthscales of a variable's values, in units of its domain, and of whether it is set.
LENGTH: Lognormal = (-1.3, 0.7)
SETTING: Lognormal = (-0.3, 0.7)
# Standard deviation of the Gaussian by which novelty falls near an observation, in units of the domain.
REACH = 0.1


class SetsGP(RewardGP):
    """GP of the reward under do(x) for all sets, with a causal prior of mean m and standard deviation s.

    The inputs of an action are the values of all variables in [0, 1]; for each variable whether it is set; s; and the
    novelty n, from 0 among the observations to 1 far from all of them. The prior covariance of two actions is
    ``RBF (v + s s' + w n n')``: errors of the causal prior are similar for similar values and for sets with most
    variables in common, and they may be large far from the observations. Noise and scales are learned from the rewards
    of all sets.

    Args:
        variables: number of variables that can be set; the other arguments are those of :class:`RewardGP`.

    References:
        Aglietti, Damoulas, Alvarez & Gonzalez (2020), Multi-task causal learning with Gaussian processes: one model of
        all target sets, whose kernel follows the graph.
    """

    deviation = -2

    def __init__(
        self,
        name: str,
        variables: int,
        device: str = "cpu",
        noise_std: float | None = None,
        categories: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        super().__init__(name, 2 * variables + 2, sets_kernel, device, noise_std, categories)
        self._owners = torch.empty(0, dtype=torch.int64, device=device)

    def observe(self, owner: int, inputs: Tensor, mean: Tensor, reward: float, error: float = 0.0) -> None:
        """Add the reward of an action: its inputs ``1 x d`` and prior mean ``(1,)``; ``owner`` is its set's index."""
        self._owners = torch.cat([self._owners, self._owners.new_tensor([owner])])
        self.rewards = torch.cat([self.rewards, mean.new_tensor([reward])])
        self.add(inputs.cpu(), reward - mean.cpu(), error)

    def revise(self, owner: int, inputs: Tensor, means: Tensor) -> None:
        """Replace the inputs ``n x d`` and the prior means ``(n,)`` of a set's data."""
        is_owned = self._owners == owner
        self.inputs[is_owned], self.outputs[is_owned] = inputs, self.rewards[is_owned] - means
        self._points = self._points[:0]

    def predict(self, inputs: Tensor, means: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and std of E[Y | do(x)], ``(n,)`` each, given inputs ``n x d`` and prior means ``(n,)``."""
        if not len(self):
            self._span[self.deviation] = self.unit
            points = self.normalise(inputs)
            return means, self.unit * self.kernel.at(self.kernel_theta, points[:0])(points).variance.sqrt()
        residual, spread = self.posterior(inputs)
        return means + residual, spread

    def prior_means(self, owner: int) -> Tensor:
        """Return prior means at a set's data, shape ``(n,)``."""
        return (self.rewards - self.outputs)[self._owners == owner]

    def means_at_data(self, owner: int) -> Tensor:
        """Return posterior means at a set's data, shape ``(n,)``."""
        is_owned = self._owners == owner
        return self.prior_means(owner) + self.mean(self.inputs[is_owned]) if is_owned.any() else self.rewards[is_owned]

    def _standardise(self) -> None:
        super()._standardise()
        if self.noise_std is None and (share := self._expected_share) is not None:
            self.kernel = sets_kernel(self.dim, max(1.0 - share, MIN_SHARE)).with_categories(self.categories)


def sets_kernel(dim: int, share: float = 1.0) -> Kernel:
    """Return ``RBF (v + s s' + w n n')`` of inputs (values, whether set, s, n).

    Args:
        dim: number of inputs, twice the number of variables plus 2.
        share: share of the rewards' variance that is not noise, above 0; the prior of w is relative to it.
    """
    count = dim // 2 - 1
    lengths = of_modes([LENGTH] * count + [SETTING] * count)
    error, beyond = of_modes([ERROR]), of_modes([(BEYOND[0] + math.log(share), BEYOND[1])])
    error.start[:], beyond.start[:] = 0.0, 0.0
    heights = Sum(
        Scale(Constant(), error),
        OnColumns(Dot(), slice(dim - 2, dim - 1)),
        Scale(OnColumns(Dot(), slice(dim - 1, dim)), beyond),
    )
    return Product(OnColumns(SquaredExponential(dim - 2, lengths), slice(dim - 2)), heights)


def of_modes(priors: Sequence[Lognormal]) -> Hyperparameters:
    """Return hyperparameters with lognormal priors, given the mode and standard deviation of each logarithm."""
    return Hyperparameters.lognormal([mode + scale**2 for mode, scale in priors], [scale for _, scale in priors])


def novelty(points: Tensor, observed: Tensor) -> Tensor:
    """Return the novelty of points ``n x d``, the greatest over their variables, from 0 to 1, shape ``(n,)``.

    ``observed`` are the observed values of the same variables, ``m x d``; without observations the novelty is 1.
    """
    if not len(observed):
        return torch.ones_like(points[:, 0])
    columns = zip(points.T, observed.T, strict=True)
    distances = torch.stack([(column[:, None] - data).abs().amin(-1) for column, data in columns])
    return 1.0 - (-0.5 * (distances.amax(0) / REACH).square()).exp()
