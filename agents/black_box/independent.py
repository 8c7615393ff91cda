"""IndependentGPs: several GPs with common inputs as one BoTorch model, for Monte Carlo acquisition functions."""

from __future__ import annotations

import torch
from torch import Tensor

from cbo_gym.agents.surrogates.gp.outputs import GPOutputs, NormalOutputs
from cbo_gym.agents.surrogates.protocols import Surrogate
from cbo_gym.errors import ArgumentError


class IndependentNormals(NormalOutputs):
    """Normal marginals, independent of each other.

    Args:
        mean: shape ``b x 1 x m``.
        std: standard deviations, same shape.
    """

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__(mean)
        self.std = std

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        return self.mean + self.std * base_samples


class IndependentGPs(GPOutputs[Surrogate]):
    """Independent outputs, one GP each, at single points (``q = 1``): only marginals are computed.

    Args:
        surrogates: with the same inputs.
    """

    def posterior(self, X: Tensor, *args: object, **kwargs: object) -> IndependentNormals:  # noqa: N803
        """Marginals of the latent functions at ``X`` of shape ``b x 1 x d``.

        Raises:
            ArgumentError: if ``X`` asks for the joint distribution of several points.
        """
        if X.shape[-2] != 1:
            raise ArgumentError(f"IndependentGPs takes points of shape b x 1 x d; given {tuple(X.shape)}")
        means, stds = zip(*[surrogate.posterior(X) for surrogate in self._surrogates], strict=True)
        return IndependentNormals(torch.stack(means, -1), torch.stack(stds, -1))
