"""JointGPs: a GP from the action to each objective as one BoTorch model, with joint samples at sets of points."""

from __future__ import annotations

from typing import Any

import torch
from botorch.sampling import SobolQMCNormalSampler
from botorch.sampling.get_sampler import GetSampler
from torch import Tensor

from cbo_gym.agents.surrogates.gp.model import GaussianProcess
from cbo_gym.agents.surrogates.gp.outputs import GPOutputs, NormalOutputs


class JointNormals(NormalOutputs):
    """Outputs that are independent of each other, each normal jointly at the points of a set.

    Args:
        mean: shape ``b x q x m``.
        roots: lower triangular roots of the covariances, ``b x q x q x m``.
    """

    def __init__(self, mean: Tensor, roots: Tensor) -> None:
        super().__init__(mean)
        self._roots = roots

    @property
    def batch_shape(self) -> torch.Size:
        return self.mean.shape[:-2]

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        return self.mean + torch.einsum("...qrm,...rm->...qm", self._roots, base_samples)


@GetSampler.register(JointNormals)
def _sampler(posterior: JointNormals, sample_shape: torch.Size, *, seed: int | None = None) -> Any:
    """The sampler of acquisition functions that are given none."""
    return SobolQMCNormalSampler(sample_shape, seed=seed)


class JointGPs(GPOutputs[GaussianProcess]):
    """Independent outputs, one GP each.

    Args:
        surrogates: with the same inputs.
    """

    def posterior(self, X: Tensor, *args: object, **kwargs: object) -> JointNormals:  # noqa: N803
        """The latent functions at ``X`` of shape ``b x q x d``, without observation noise."""
        means, roots = zip(*[surrogate.joint(X) for surrogate in self._surrogates], strict=True)
        return JointNormals(torch.stack(means, -1), torch.stack(roots, -1))
