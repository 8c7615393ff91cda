"""Acquisition functions of agents with target sets, and the search for their best point.

The functions are logarithms of expected improvement under normal posteriors. The search is evolutionary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from cbo_gym.agents.common.features import Levels
from cbo_gym.agents.common.improvement import standard_improvement


def log_expected_improvement(mean: Tensor, std: Tensor, best: float) -> Tensor:
    """Return log E[max(f - best, 0)] for f ~ Normal(mean, std), even if the expectation underflows.

    With ``z = (mean - best) / std`` it is ``log std + log(phi(z) + z Phi(z))`` (Jones, Schonlau & Welch 1998); for
    negative z the second term is written as ``log phi(z) + log(1 - |z| Phi(z) / phi(z))``.

    Args:
        mean: any shape.
        std: same shape, above 0.
        best: value to improve upon.
    """
    z = (mean - best) / std
    log_density = -0.5 * (z.square() + math.log(2.0 * math.pi))
    near = z.clamp_min(-1.0)
    direct = standard_improvement(near).log()
    far = z.clamp(-1e6, -1.0)
    ratio = (-far).log() + torch.special.log_ndtr(far) + 0.5 * (far.square() + math.log(2.0 * math.pi))
    tail = log_density + (-torch.expm1(ratio)).clamp_min(1e-12).log()
    return std.log() + torch.where(z > -1.0, direct, tail)


def log_augmented_ei_factor(std: Tensor, noise: float) -> Tensor:
    """Return the log of the share of a posterior standard deviation that one noisy observation removes.

    The share ``1 - noise / sqrt(sd^2 + noise^2)`` is written as a product, which does not cancel for small sd.

    Args:
        std: posterior standard deviations, any shape, above 0.
        noise: standard deviation of the observation, above 0.

    References:
        Huang, Allen, Notz & Zeng (2006), Global optimization of stochastic black-box systems via sequential kriging
        meta-models, Eq. 12.
    """
    total = torch.hypot(std, torch.full_like(std, noise))
    return 2.0 * std.log() - total.log() - (total + noise).log()


def evolve(
    points: Tensor,
    scores: Tensor,
    score: Callable[[Tensor], Tensor],
    rng: np.random.Generator,
    *,
    radii: Sequence[float],
    survivors: int,
    children: int,
    levels: Levels | None = None,
    repair: Callable[[Tensor], Tensor] | None = None,
) -> tuple[np.ndarray, float]:
    """Search by evolution around the best of ``points``; return the best point found and its score.

    Args:
        points: candidates in the unit box, ``n x d``.
        scores: their scores, ``(n,)``.
        score: function of points ``m x d`` to scores ``(m,)``, which is maximised.
        rng: source of the new points.
        radii: for each generation, the standard deviation of the new points about their parents.
        survivors: number of parents of a generation.
        children: number of new points around each parent.
        levels: the levels of the coordinates; None if they may have any values.
        repair: function that returns points ``m x d`` inside limits; None without limits.
    """
    for radius in radii:
        parents = points[scores.topk(survivors).indices].repeat_interleave(children, 0)
        steps = torch.from_numpy(rng.normal(0.0, radius, tuple(parents.shape))).to(parents)
        generation = parents + steps
        if levels is not None:
            generation = levels.perturb(parents, generation, torch.Generator().manual_seed(int(rng.integers(2**31))))
        generation = generation.clamp(0.0, 1.0)
        if repair is not None:
            generation = repair(generation)
        points, scores = torch.cat([points, generation]), torch.cat([scores, score(generation)])
    winner = scores.argmax()
    return points[winner].cpu().numpy(), float(scores[winner])
