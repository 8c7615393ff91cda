"""The noise of rewards, estimated from observations before any variable is set."""

from __future__ import annotations

import torch
from torch import Tensor

MIN_ROUNDS = 6  # observations for each coefficient


def residual_std(values: Tensor, rewards: Tensor) -> float | None:
    """Return the standard deviation of rewards about a least-squares fit by a set's variables and their squares.

    An intervention on these variables removes their part of the rewards' variance, and, without confounding, leaves the
    rest. The arguments are of rounds where nothing was set, ``n x d`` and ``(n,)``. The estimate is None with fewer
    than ``MIN_ROUNDS`` rounds a coefficient.
    """
    count, dim = values.shape
    coefficients = 1 + 2 * dim
    if count < MIN_ROUNDS * coefficients:
        return None
    standard = (values - values.mean(0)) / values.std(0).clamp_min(torch.finfo(values.dtype).tiny)
    columns = torch.cat([torch.ones_like(standard[:, :1]), standard, standard.square()], -1)
    fit = columns @ (torch.linalg.pinv(columns) @ rewards)
    return float(((rewards - fit).square().sum() / (count - coefficients)).sqrt())
