"""WarpedGP: the GP with learned warpings of inputs and outputs, after HEBO (Cowen-Rivers et al. 2022).

HEBO's package needs NumPy below 1.25, so two parts of its model are rebuilt here with BoTorch: Kumaraswamy warpings of
the inputs, fitted under lognormal priors, and the Yeo-Johnson transform of the outputs. The linear part of HEBO's
kernel and its acquisition functions are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from botorch.models.transforms.input import Warp
from botorch.models.transforms.utils import kumaraswamy_warp
from botorch.models.utils.gpytorch_modules import get_matern_kernel_with_gamma_prior
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from cbo_gym.agents.gp.model import GaussianProcess, Numbers

# Prior std of a Kumaraswamy parameter's logarithm, as in BoTorch's tutorial.
WARP_SPREAD = 0.75**0.5
# Range of the Yeo-Johnson parameter in which the transform maps onto the real line, so every bound has an inverse.
POWERS = (0.0, 2.0)


class WarpedKernel(Kernel):
    """A Matern 5/2 kernel between warped points of the unit box.

    Args:
        dim: number of inputs.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.base = get_matern_kernel_with_gamma_prior(ard_num_dims=dim)
        self.warp = Warp(
            d=dim,
            indices=list(range(dim)),
            concentration0_prior=LogNormalPrior(0.0, WARP_SPREAD),
            concentration1_prior=LogNormalPrior(0.0, WARP_SPREAD),
            bounds=torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, dim),
        )

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        return self.base.forward(self._warp(x1), self._warp(x2), diag=diag, **params)

    def _warp(self, points: Tensor) -> Tensor:
        # Warp.transform would do the same, with several times the overhead for points that are in the box already.
        parameters = dict(self.warp.named_parameters())
        return kumaraswamy_warp(points, c0=parameters["concentration0"], c1=parameters["concentration1"])


class WarpedGP(GaussianProcess):
    """GP regression of a transformed scalar; posteriors are of transformed outputs, bounds are in the original units.

    With skewed noise the bound of width 0 is about the median rather than the mean of the outputs. The Yeo-Johnson
    parameter and the scale are fitted together with the hyper-parameters.

    Args:
        name: name of the modelled node, as for :class:`~cbo_gym.agents.gp.model.GaussianProcess`.
        dim: number of inputs.
        settings: other arguments of that class except ``covariance``; the noise must be learned.

    References:
        Cowen-Rivers et al. (2022), HEBO: pushing the limits of sample-efficient hyper-parameter optimisation;
        Snoek et al. (2014), Input warping; Yeo & Johnson (2000).
    """

    def __init__(self, name: str, dim: int, **settings: Any) -> None:
        super().__init__(name, dim, covariance=WarpedKernel, **settings)
        self._raw = np.zeros(0)
        self._power, self._centre, self._unit = 1.0, 0.0, 1.0

    def add(self, inputs: Numbers, outputs: Numbers, std: Numbers = 0.0) -> None:
        raw = np.asarray(outputs, dtype=np.float64).reshape(-1)
        super().add(inputs, self._transform(raw))
        self._raw = np.concatenate([self._raw, raw])

    def bound(self, points: Tensor, width: float) -> Tensor:
        """Return the bound in the outputs' own units."""
        transformed = super().bound(points, width)
        return self._centre + self._unit * inverse_yeo_johnson(transformed, self._power)

    @property
    def noise_scale(self) -> Tensor:
        """Standard deviation of the noise at outputs near their mean, where the transform is only a change of units."""
        return self._unit * super().noise_scale

    def _standardise(self) -> None:
        self._choose_transform()
        self._data = self.inputs, self._tensor(self._transform(self._raw)), self.errors
        super()._standardise()

    def _choose_transform(self) -> None:
        # Imported here, because it is slow to import.
        from scipy.stats import yeojohnson_normmax

        spread = float(self._raw.std())
        self._centre = float(self._raw.mean())
        # Constant outputs keep their unit.
        if spread <= 1e-12 * abs(self._centre):
            self._unit, self._power = 1.0, 1.0
            return
        self._unit = spread
        power = float(yeojohnson_normmax((self._raw - self._centre) / spread))
        self._power = float(np.clip(power, *POWERS)) if np.isfinite(power) else 1.0

    def _transform(self, raw: np.ndarray) -> np.ndarray:
        from scipy.stats import yeojohnson

        return yeojohnson((raw - self._centre) / self._unit, self._power)


def inverse_yeo_johnson(values: Tensor, power: float) -> Tensor:
    """Return the inverse of the Yeo-Johnson transform with a parameter from 0 to 2, differentiable."""
    above, below = values.clamp_min(0.0), (-values).clamp_min(0.0)
    positive = torch.expm1(above) if power < 1e-9 else torch.expm1(torch.log1p(power * above) / power)
    mirrored = 2.0 - power
    negative = torch.expm1(below) if mirrored < 1e-9 else torch.expm1(torch.log1p(mirrored * below) / mirrored)
    return positive - negative
