"""JointGPs: a GP from the action to each objective as one BoTorch model, with joint samples at sets of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from botorch.models.model import Model
from botorch.posteriors import Posterior
from botorch.sampling import SobolQMCNormalSampler
from botorch.sampling.get_sampler import GetSampler
from torch import Tensor

from cbo_gym.agents.surrogates.gp.model import GaussianProcess


class JointNormals(Posterior):
    """Outputs that are independent of each other, each normal jointly at the points of a set.

    Args:
        mean: shape ``b x q x m``.
        roots: lower triangular roots of the covariances, ``b x q x q x m``.
    """

    def __init__(self, mean: Tensor, roots: Tensor) -> None:
        self.mean, self._roots = mean, roots

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
    def batch_shape(self) -> torch.Size:
        return self.mean.shape[:-2]

    @property
    def batch_range(self) -> tuple[int, int]:
        return (0, -2)

    # The name is BoTorch's: its samplers ask a posterior for this.
    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return sample_shape + self.mean.shape

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        return self.mean + torch.einsum("...qrm,...rm->...qm", self._roots, base_samples)

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        shape = sample_shape or torch.Size([1])
        normal = torch.randn(self._extended_shape(shape), device=self.device, dtype=self.dtype)
        return self.rsample_from_base_samples(shape, normal)


@GetSampler.register(JointNormals)
def _sampler(posterior: JointNormals, sample_shape: torch.Size, *, seed: int | None = None) -> Any:
    """What acquisition functions use that are not given a sampler."""
    return SobolQMCNormalSampler(sample_shape, seed=seed)


class JointGPs(Model):
    """Independent outputs, one GP each.

    Args:
        surrogates: with the same inputs.
    """

    def __init__(self, surrogates: Sequence[GaussianProcess]) -> None:
        super().__init__()
        self._surrogates = tuple(surrogates)

    @property
    def num_outputs(self) -> int:
        return len(self._surrogates)

    @property
    def batch_shape(self) -> torch.Size:
        return torch.Size()

    def posterior(self, X: Tensor, *args: object, **kwargs: object) -> JointNormals:  # noqa: N803
        """The latent functions at ``X`` of shape ``b x q x d``, without observation noise."""
        means, roots = zip(*[surrogate.joint(X) for surrogate in self._surrogates], strict=True)
        return JointNormals(torch.stack(means, -1), torch.stack(roots, -1))
