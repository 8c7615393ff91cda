"""Several GPs with common inputs and independent outputs, as models of BoTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import torch
from botorch.models.model import Model
from botorch.posteriors import Posterior
from botorch.sampling import SobolQMCNormalSampler
from botorch.sampling.get_sampler import GetSampler
from torch import Tensor

from cbo_gym.agents.gp.model import GaussianProcess

OutputModel = TypeVar("OutputModel")


class SampledPosterior(Posterior):
    """Posterior whose samples are functions of standard normal numbers, BoTorch's base samples.

    Subclasses implement ``rsample_from_base_samples``.

    Args:
        like: a tensor with the device and dtype of the samples.
        shape: shape of the outputs, ``b x q x m``.
        base_shape: shape of the base samples of one sample.
    """

    def __init__(self, like: Tensor, shape: Sequence[int], base_shape: Sequence[int]) -> None:
        self._like, self._shape, self._base_shape = like, torch.Size(shape), torch.Size(base_shape)

    @property
    def device(self) -> torch.device:
        return self._like.device

    @property
    def dtype(self) -> torch.dtype:
        return self._like.dtype

    @property
    def base_sample_shape(self) -> torch.Size:
        return self._base_shape

    @property
    def batch_range(self) -> tuple[int, int]:
        return (0, -2)

    # The name is BoTorch's, whose samplers call it.
    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return sample_shape + self._shape

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        shape = sample_shape or torch.Size([1])
        normal = torch.randn(*shape, *self._base_shape, device=self.device, dtype=self.dtype)
        return self.rsample_from_base_samples(shape, normal)


@GetSampler.register(SampledPosterior)
def _sampler(posterior: SampledPosterior, sample_shape: torch.Size, *, seed: int | None = None) -> Any:
    return SobolQMCNormalSampler(sample_shape, seed=seed)


class JointNormals(SampledPosterior):
    """Independent outputs, each jointly normal at the q points of a set.

    Args:
        mean: shape ``b x q x m``.
        roots: lower triangular roots of the covariances, ``b x q x q x m``.
    """

    def __init__(self, mean: Tensor, roots: Tensor) -> None:
        super().__init__(mean, mean.shape, mean.shape)
        self.mean, self._roots = mean, roots

    @property
    def batch_shape(self) -> torch.Size:
        return self.mean.shape[:-2]

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        return self.mean + torch.einsum("...qrm,...rm->...qm", self._roots, base_samples)


class GPOutputs(Model, Generic[OutputModel]):
    """One GP for each output; subclasses implement ``posterior``.

    Args:
        surrogates: the GPs, which have the same inputs.
    """

    def __init__(self, surrogates: Sequence[OutputModel]) -> None:
        super().__init__()
        self._surrogates = tuple(surrogates)

    @property
    def num_outputs(self) -> int:
        return len(self._surrogates)

    @property
    def batch_shape(self) -> torch.Size:
        return torch.Size()


class JointGPs(GPOutputs[GaussianProcess]):
    """Independent outputs, one GP each, with joint samples at sets of points."""

    def posterior(self, X: Tensor, *args: object, **kwargs: object) -> JointNormals:  # noqa: N803
        """Return the latent functions at ``X`` of shape ``b x q x d``, without observation noise."""
        means, roots = zip(*[surrogate.joint(X) for surrogate in self._surrogates], strict=True)
        return JointNormals(torch.stack(means, -1), torch.stack(roots, -1))
