"""VarianceKernel: what GPyTorch needs to know of a kernel's variances so that they are fitted under a prior."""

from __future__ import annotations

import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel
from gpytorch.priors import GammaPrior
from torch import Tensor


class VarianceKernel(Kernel):
    """A kernel whose terms have variances of their own, each with a Gamma(2, 1) prior and 1 at first.

    Args:
        terms: number of variances, at least 1.
    """

    def __init__(self, terms: int) -> None:
        super().__init__()
        self.register_parameter("raw_variances", torch.nn.Parameter(torch.zeros(terms)))
        self.register_constraint("raw_variances", Positive(initial_value=1.0))
        self.register_prior(
            "variances_prior",
            GammaPrior(2.0, 1.0),
            lambda kernel: kernel.variances,
            lambda kernel, value: kernel.initialize(
                raw_variances=kernel.raw_variances_constraint.inverse_transform(value)
            ),
        )

    @property
    def variances(self) -> Tensor:
        """Shape ``(terms,)``."""
        return self.raw_variances_constraint.transform(self.raw_variances)
