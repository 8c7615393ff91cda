"""Several GPs with common inputs and independent outputs, in the form that BoTorch asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import torch
from botorch.models.model import Model
from botorch.posteriors import Posterior
from torch import Tensor

Own = TypeVar("Own")


class NormalOutputs(Posterior):
    """Normal outputs at sets of points; subclasses say how the points of a set go together.

    Args:
        mean: shape ``b x q x m``.
    """

    def __init__(self, mean: Tensor) -> None:
        self.mean = mean

    @property
    def device(self) -> torch.device:
        return self.mean.device

    @property
    def dtype(self) -> torch.dtype:
        return self.mean.dtype

    @property
    def base_sample_shape(self) -> torch.Size:
        return self.mean.shape

    @property
    def batch_range(self) -> tuple[int, int]:
        return (0, -2)

    # The name is BoTorch's: its samplers ask a posterior for this.
    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return sample_shape + self.mean.shape

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        shape = sample_shape or torch.Size([1])
        normal = torch.randn(self._extended_shape(shape), device=self.device, dtype=self.dtype)
        return self.rsample_from_base_samples(shape, normal)


class GPOutputs(Model, Generic[Own]):
    """One GP for each output; subclasses have ``posterior``.

    Args:
        surrogates: with the same inputs.
    """

    def __init__(self, surrogates: Sequence[Own]) -> None:
        super().__init__()
        self._surrogates = tuple(surrogates)

    @property
    def num_outputs(self) -> int:
        return len(self._surrogates)

    @property
    def batch_shape(self) -> torch.Size:
        return torch.Size()
