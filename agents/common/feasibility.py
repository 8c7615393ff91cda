"""Whether actions meet constraints, from posteriors of the constrained nodes' expected values."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cbo_gym.task import Constraint

# Standard errors by which an action must meet a constraint to be recommended.
CAUTION = 1.0


def standardised_slack(constraint: Constraint, mean: Tensor, std: Tensor) -> Tensor:
    """Return how far posterior means are inside a constraint, in posterior standard deviations; these are above 0."""
    return -constraint.excess(mean) / std


def log_feasibility(constraint: Constraint, mean: Tensor, std: Tensor) -> Tensor:
    """Return log P(the expected value meets the constraint) if its posterior is Normal(mean, std)."""
    return torch.special.log_ndtr(standardised_slack(constraint, mean, std))


def violations(constraints: Sequence[Constraint], mean: Tensor, std: Tensor, caution: float = CAUTION) -> Tensor:
    """Return the sum of the violations of constraints, each in its node's units, at cautious ends of the posteriors.

    Args:
        constraints: k constraints.
        mean: posterior means, ``n x k``.
        std: posterior standard deviations, ``n x k``.
        caution: number of standard deviations by which a mean must be inside.

    Returns:
        shape ``(n,)``, 0 where all constraints are met.
    """
    missed = [
        (constraint.excess(means) + caution * stds).clamp_min(0.0)
        for constraint, means, stds in zip(constraints, mean.unbind(-1), std.unbind(-1), strict=True)
    ]
    return torch.stack([*missed, torch.zeros_like(mean[:, 0] if missed else mean.sum(-1))]).sum(0)
