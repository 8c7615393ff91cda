"""Closed forms that a kernel may have, beside the ``forward`` of all kernels of GPyTorch.

A kernel declares it by having the method of a protocol. :func:`~cbo_gym.agents.surrogates.gp.fitting.covariances` and
:func:`~cbo_gym.agents.surrogates.gp.prediction.against` ask by type, and fall back on autograd.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from cbo_gym.sums import add_up

Pullback = Callable[[np.ndarray], np.ndarray]
Function = Callable[[Tensor], Tensor]  # points ``... x d`` to values ``...``, differentiable


class Prior(NamedTuple):
    """A kernel's covariances of points ``... x d`` with n data.

    Attributes:
        cross: covariances with the data, ``... x n``.
        variance: of the points, ``...``.
        pullback: of gradients with respect to ``cross`` and ``variance`` to those with respect to the points.
    """

    cross: Tensor
    variance: Tensor
    pullback: Callable[[Tensor, Tensor], Tensor]


Against = Callable[[Tensor], Prior]


class Hyperparameters(ABC):
    """Some hyper-parameters of a kernel, k in number, as a flat array."""

    @abstractmethod
    def current(self) -> np.ndarray:
        """Those that the kernel has, ``(k,)``."""

    @abstractmethod
    def adopt(self, values: np.ndarray) -> None:
        """Give them to the kernel."""

    @abstractmethod
    def bounds(self) -> list[tuple[float, float]]:
        """Of each."""

    @abstractmethod
    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density of their prior, and its gradient ``(k,)``."""


class Covariances(Hyperparameters):
    """The covariances of given points under a kernel, as a function of its hyper-parameters."""

    @abstractmethod
    def matrix(self, values: np.ndarray) -> tuple[np.ndarray, Pullback]:
        """The covariances, ``n x n``, and their pullback: ``n x n`` to ``(k,)``."""


class CompositeCovariances(Covariances):
    """Covariances with hyper-parameters in several parts, which follow each other.

    Args:
        parts: of the hyper-parameters.
    """

    def __init__(self, *parts: Hyperparameters) -> None:
        self._parts = parts
        self._cuts = np.cumsum([len(part.bounds()) for part in parts])[:-1]

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """The hyper-parameters of each part."""
        return np.split(values, self._cuts)

    def current(self) -> np.ndarray:
        return np.concatenate([part.current() for part in self._parts])

    def adopt(self, values: np.ndarray) -> None:
        for part, own in zip(self._parts, self.split(values), strict=True):
            part.adopt(own)

    def bounds(self) -> list[tuple[float, float]]:
        return [pair for part in self._parts for pair in part.bounds()]

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        own = zip(self._parts, self.split(values), strict=True)
        densities, slopes = zip(*(part.log_prior(some) for part, some in own), strict=True)
        return add_up(densities), np.concatenate(slopes)


@runtime_checkable
class WithClosedFit(Protocol):
    """Knows the gradient of its covariances in the hyper-parameters."""

    def closed_form(self, points: np.ndarray) -> Covariances:
        """Its covariances of points ``n x d``."""


@runtime_checkable
class WithClosedPrior(Protocol):
    """Knows the gradient of its covariances in the points."""

    def against(self, data: Tensor) -> Against:
        """Its prior of points beside ``data``, ``n x d``."""


@runtime_checkable
class WithStackedPrior(WithClosedPrior, Protocol):
    """Knows the same of several kernels of its class at once."""

    def numbers(self) -> tuple[Tensor, ...]:
        """All of its hyper-parameters."""

    @classmethod
    def against_of(cls, numbers: Sequence[Tensor], data: Tensor) -> Against:
        """The prior of points beside data ``n x d``, or ``g x n x d`` with the numbers of g kernels stacked."""


@runtime_checkable
class WithJointPrior(Protocol):
    """Knows the covariances of sets of points."""

    def among(self, points: Tensor) -> Tensor:
        """Prior covariances of points among themselves, ``... x q x d`` to ``... x q x q``."""


@runtime_checkable
class WithDraws(Protocol):
    """Knows how to draw functions."""

    def draw(self, generator: torch.Generator) -> Function:
        """A function drawn from its prior."""


@runtime_checkable
class WithOrigin(Protocol):
    """Knows where its inputs are zero."""

    def count_from(self, zeros: Tensor) -> None:
        """Native zeros of the inputs among points whose data fill [0, 1], ``(d,)``."""
