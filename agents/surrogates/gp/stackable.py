"""Kernels whose prior beside data follows from numbers, so that those of a class predict at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from torch import Tensor

from cbo_gym.agents.surrogates.gp.closed_form import Against
from cbo_gym.agents.surrogates.gp.kernels import VarianceKernel


class StackableKernel(VarianceKernel):
    """A kernel with variances that is a :class:`~cbo_gym.agents.surrogates.gp.closed_form.WithStackedPrior`."""

    @abstractmethod
    def numbers(self) -> tuple[Tensor, ...]:
        """All of its hyper-parameters."""

    @classmethod
    @abstractmethod
    def against_of(cls, numbers: Sequence[Tensor], data: Tensor) -> Against:
        """The prior of one kernel, or of g of them at once, beside data ``n x d`` or ``g x n x d``."""

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        prior = self.against(x2)(x1)
        return prior.variance if diag else prior.cross

    def against(self, data: Tensor) -> Against:
        """Its prior beside ``data``."""
        return self.against_of(self.numbers(), data)
