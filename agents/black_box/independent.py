"""IndependentGPs: several GPs with common inputs as one BoTorch model, for Monte Carlo acquisition functions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.models.model import Model
from botorch.posteriors import Posterior
from torch import Tensor

from cbo_gym.agents.surrogates.protocols import Surrogate
from cbo_gym.errors import ArgumentError


class IndependentNormals(Posterior):
    """Normal marginals, independent of each other.

    Args:
        mean: shape ``b x 1 x m``.
        std: standard deviations, same shape.
    """

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        self.mean, self.std = mean, std

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

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        return self.mean + self.std * base_samples

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        shape = self._extended_shape(sample_shape or torch.Size([1]))
        return self.mean + self.std * torch.randn(shape, device=self.device, dtype=self.dtype)


class IndependentGPs(Model):
    """Independent outputs, one GP each, at single points (``q = 1``): only marginals are computed.

    Args:
        surrogates: with the same inputs.
    """

    def __init__(self, surrogates: Sequence[Surrogate]) -> None:
        super().__init__()
        self._surrogates = tuple(surrogates)

    @property
    def num_outputs(self) -> int:
        return len(self._surrogates)

    @property
    def batch_shape(self) -> torch.Size:
        return torch.Size()

    def posterior(self, X: Tensor, *args: object, **kwargs: object) -> IndependentNormals:  # noqa: N803
        """Marginals of the latent functions at ``X`` of shape ``b x 1 x d``.

        Raises:
            ArgumentError: if ``X`` asks for the joint distribution of several points.
        """
        if X.shape[-2] != 1:
            raise ArgumentError(f"IndependentGPs takes points of shape b x 1 x d; given {tuple(X.shape)}")
        means, stds = zip(*[surrogate.posterior(X) for surrogate in self._surrogates], strict=True)
        return IndependentNormals(torch.stack(means, -1), torch.stack(stds, -1))
