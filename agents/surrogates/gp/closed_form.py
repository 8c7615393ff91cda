"""Protocols of kernels that know gradients in closed form, in addition to GPyTorch's ``forward``.

The gradient of its covariances in the points serves searches (``cross_covariance``), that in the hyper-parameters
serves fits (``covariances_of``). For other kernels :mod:`cbo_gym.agents.surrogates.gp.posterior` and
:mod:`cbo_gym.agents.surrogates.gp.fitting` use autograd.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.summation import add_up

Bounds = list[tuple[float, float]]
#: takes gradients with respect to covariances, ``n x n``, to those with respect to k hyper-parameters, ``(k,)``
Pullback = Callable[[np.ndarray], np.ndarray]
#: hyper-parameters of each component -> covariances, ``n x n``, and their gradients with respect to each
CovarianceFunction = Callable[..., tuple[np.ndarray, Callable[[np.ndarray], Sequence[np.ndarray]]]]
Function = Callable[[Tensor], Tensor]  # points ``... x d`` to values ``...``, differentiable


class Prior(NamedTuple):
    """A kernel's covariances of points ``... x d`` with n data.

    Attributes:
        cross: covariances with the data, ``... x n``.
        variance: prior variance of the points, ``...``.
        pullback: takes gradients with respect to ``cross`` and ``variance`` to those with respect to the points.
    """

    cross: Tensor
    variance: Tensor
    pullback: Callable[[Tensor, Tensor], Tensor]


CrossCovariance = Callable[[Tensor], Prior]


class Hyperparameters(ABC):
    """Some hyper-parameters, k in number, as a flat array."""

    @property
    @abstractmethod
    def theta(self) -> np.ndarray:
        """The present values, ``(k,)``; they can be set."""

    @theta.setter
    @abstractmethod
    def theta(self, values: np.ndarray) -> None: ...

    @property
    @abstractmethod
    def bounds(self) -> Bounds:
        """Lower and upper bound of each."""

    @abstractmethod
    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log density of the prior at ``values``, and its gradient, ``(k,)``."""


class Covariances(Hyperparameters):
    """The covariances of n points under a kernel, as a function of its hyper-parameters.

    Args:
        components: the hyper-parameters, concatenated.
        function: function of those of each component to the covariances and their gradients.
    """

    def __init__(self, components: Sequence[Hyperparameters], function: CovarianceFunction) -> None:
        self._components, self._function = components, function
        self._cuts = np.cumsum([len(component.bounds) for component in components])[:-1]

    @property
    def theta(self) -> np.ndarray:
        return np.concatenate([component.theta for component in self._components])

    @theta.setter
    def theta(self, values: np.ndarray) -> None:
        for component, own in zip(self._components, np.split(values, self._cuts), strict=True):
            component.theta = own

    @property
    def bounds(self) -> Bounds:
        return [pair for component in self._components for pair in component.bounds]

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        own = zip(self._components, np.split(values, self._cuts), strict=True)
        densities, slopes = zip(*(component.log_prior(some) for component, some in own), strict=True)
        return add_up(densities), np.concatenate(slopes)

    def matrix(self, values: np.ndarray) -> tuple[np.ndarray, Pullback]:
        """Return the covariances, ``n x n``, and their pullback."""
        matrix, gradients = self._function(*np.split(values, self._cuts))
        return matrix, lambda gradient: np.concatenate(gradients(gradient))


@runtime_checkable
class WithClosedFit(Protocol):
    """Knows the gradient of its covariances in the hyper-parameters."""

    def covariances_of(self, points: np.ndarray) -> Covariances:
        """Return the covariances of points ``n x d``."""


@runtime_checkable
class WithClosedPrior(Protocol):
    """Knows the gradient of its covariances in the points, and how to draw functions and sets of values."""

    def numbers(self) -> tuple[Tensor, ...]:
        """Return all of its hyper-parameters."""

    def cross_covariance(self, data: Tensor, numbers: Sequence[Tensor] | None = None) -> CrossCovariance:
        """Return the covariances of points with data ``n x d``, or ``g x n x d`` for g such kernels stacked.

        Args:
            data: ``n x d`` or ``g x n x d``.
            numbers: the hyper-parameters, stacked for g kernels; None for the kernel's own.
        """

    def covariance(self, points: Tensor) -> Tensor:
        """Return prior covariances of the points of each set, ``... x q x d`` to ``... x q x q``."""

    def draw(self, generator: torch.Generator) -> Function:
        """Return a function drawn from the prior."""


@runtime_checkable
class WithOrigin(Protocol):
    """Knows where its inputs are zero."""

    def set_origin(self, zeros: Tensor) -> None:
        """Take native zeros of the inputs, ``(d,)``, in units in which the data fill [0, 1]."""
