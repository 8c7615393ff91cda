"""Expected improvement of a standard normal variable."""

import math

import torch
from torch import Tensor


def standard_improvement(z: Tensor) -> Tensor:
    """Return E[max(f, 0)] for f ~ Normal(z, 1), ``phi(z) + z Phi(z)`` (Jones, Schonlau & Welch 1998)."""
    return torch.exp(-0.5 * z.square()) / math.sqrt(2.0 * math.pi) + z * torch.special.ndtr(z)
