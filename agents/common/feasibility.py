"""Probabilities and estimates that actions meet constraints, from posteriors of expected values of the nodes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cbo_gym.task import Constraint

# Number of posterior standard deviations by which an action must meet a constraint to be recommended.
CAUTION = 1.0


def standardised_slack(constraint: Constraint, mean: Tensor, std: Tensor) -> Tensor:
    """Return how far posterior means are inside a constraint, in posterior standard deviations, which are above 0."""
    return -constraint.excess(mean) / std


def log_feasibility(constraint: Constraint, mean: Tensor, std: Tensor) -> Tensor:
    """Return log P(the expected value meets the constraint) if its posterior is Normal(mean, std)."""
    return torch.special.log_ndtr(standardised_slack(constraint, mean, std))


def violations(constraints: Sequence[Constraint], mean: Tensor, std: Tensor, caution: float = CAUTION) -> Tensor:
    """Return the sum of the estimated violations of k constraints, each in its node's units.

    Args:
        constraints: the constraints.
        mean: posterior means, ``n x k``.
        std: posterior standard deviations, ``n x k``.
        caution: number of standard deviations by which a mean must be inside its constraint.

    Returns:
        shape ``(n,)``, 0 if all constraints are met.
    """
    terms = [
        (constraint.excess(means) + caution * stds).clamp_min(0.0)
        for constraint, means, stds in zip(constraints, mean.unbind(-1), std.unbind(-1), strict=True)
    ]
    return torch.stack([*terms, mean.new_zeros(len(mean))]).sum(0)
