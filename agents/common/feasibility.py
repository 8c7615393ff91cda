"""How likely actions are to meet constraints, from what is believed of the constrained nodes' expected values."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cbo_gym.task import Constraint

CAUTION = 1.0  # standard errors by which an action must be believed to meet a constraint before it is recommended


def standardised_slack(constraint: Constraint, mean: Tensor, std: Tensor) -> Tensor:
    """How far inside a constraint the mean of a belief lies, in its standard deviations, which are above 0."""
    return -constraint.excess(mean) / std


def log_feasibility(constraint: Constraint, mean: Tensor, std: Tensor) -> Tensor:
    """log P(the expected value meets the constraint) where it is believed to be Normal(mean, std)."""
    return torch.special.log_ndtr(standardised_slack(constraint, mean, std))


def violations(constraints: Sequence[Constraint], mean: Tensor, std: Tensor, caution: float = CAUTION) -> Tensor:
    """By how much constraints are missed at the cautious end of beliefs, in all, in units of the thresholds' nodes.

    Args:
        constraints: k of them.
        mean: of the beliefs, ``n x k``.
        std: same shape.
        caution: standard deviations by which the mean must be inside.

    Returns:
        shape ``(n,)``, 0 where all are met.
    """
    missed = [
        (one.excess(means) + caution * stds).clamp_min(0.0)
        for one, means, stds in zip(constraints, mean.unbind(-1), std.unbind(-1), strict=True)
    ]
    return torch.stack([*missed, torch.zeros_like(mean[:, 0] if missed else mean.sum(-1))]).sum(0)
