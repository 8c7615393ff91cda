"""Interfaces of surrogates, the agents' regression models: a model that has them can replace a GP.

Agents make their surrogates with the class attribute ``make_surrogate``; see the guide, *Writing an agent*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from cbo_gym.agents.gp.kernels import Function
from cbo_gym.agents.gp.model import Numbers


class Surrogate(Protocol):
    """Model of a reward, or of any other scalar. Points are ``... x d``, values ``...``.

    Predictions must be possible without data, because a node may never have been observed.
    """

    @property
    def inputs(self) -> Tensor:
        """The inputs that were added, ``n x d``."""

    @property
    def outputs(self) -> Tensor:
        """The outputs that were added, ``(n,)``."""

    @property
    def noise_scale(self) -> Tensor:
        """Standard deviation of the outputs' noise, known or learned."""

    def __len__(self) -> int:
        """Number of observations."""

    def add(self, inputs: Numbers, outputs: Numbers) -> None:
        """Add observations: ``n x d`` and ``(n,)``, or one observation, ``(d,)`` and a number."""

    def update(self) -> None:
        """Bring the model up to date with the data, as every prediction does."""

    def mean(self, points: Tensor) -> Tensor:
        """Return posterior means of the noiseless function, differentiable."""

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return posterior means and standard deviations of the noiseless function, differentiable."""

    def bound(self, points: Tensor, width: float) -> Tensor:
        """Return the value ``width`` standard deviations above the mean, differentiable."""


class NodeSurrogate(Surrogate, Protocol):
    """Model of a node of a network, with further methods for rollouts, joint samples and exploration."""

    @property
    def dim(self) -> int:
        """Number of inputs d."""

    def joint(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return posterior means, ``... x q``, and Cholesky factors, ``... x q x q``, at points ``... x q x d``."""

    def prior_std(self, points: Tensor) -> Tensor:
        """Return prior standard deviations of the noiseless function."""

    def normalise(self, points: Tensor) -> Tensor:
        """Return points in units in which the data span about [0, 1]."""

    def draw(self, generator: torch.Generator) -> Function:
        """Return a function drawn from the posterior."""


#: Called with the modelled name, the number of inputs, and keywords of
#: :class:`~cbo_gym.agents.gp.model.GaussianProcess` that depend on the agent.
MakeSurrogate = Callable[..., Surrogate]
#: Called with the modelled name, the number of inputs, and the keywords ``noise_std``, ``covariance``, ``rescale``,
#: ``condense``, ``device`` and, if there are categories, ``categories`` of
#: :class:`~cbo_gym.agents.gp.model.GaussianProcess`.
MakeNodeSurrogate = Callable[..., NodeSurrogate]
