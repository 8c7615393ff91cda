"""How little a GP knows yet, in units that need no tuning: relative to its prior and to the noise of its outputs."""

from __future__ import annotations

import torch
from torch import Tensor

from cbo_gym.agents.surrogates.protocols import NodeSurrogate

KNOWN = 0.002  # of the prior standard deviation; half of that is left at exact data, by what steadies the matrices
HEARD = 0.5  # of the noise's standard deviation
UNKNOWN = 0.5  # of the prior standard deviation
PLAUSIBLE = 3.0  # posterior standard deviations above the mean
BEYOND = torch.linspace(0.0, 0.05, 17, dtype=torch.float64)[1:]  # of the range of an input that was seen


def ignorance(gp: NodeSurrogate, points: Tensor) -> Tensor:
    """The posterior standard deviation at points, in units of ``KNOWN`` prior ones plus ``HEARD`` of the noise.

    Below 1 one more observation teaches next to nothing. With noise, known or learned, about ``1 / HEARD^2``
    repetitions lead there.
    """
    _, std = gp.posterior(points)
    return std / (KNOWN * gp.prior_std(points) + HEARD * gp.noise_scale)


def information(gp: NodeSurrogate, points: Tensor) -> Tensor:
    """The information that an observation gives of the function: ``log(1 + std^2 / noise^2)``, twice the gain in nats.

    Noise that is smaller than ``KNOWN`` prior standard deviations counts as that.
    """
    _, std = gp.posterior(points)
    return (std / (KNOWN * gp.prior_std(points)).maximum(gp.noise_scale)).square().log1p()


def gap(gp: NodeSurrogate, points: Tensor, best: float) -> Tensor:
    """Distances of points ``n x d`` from the nearest input that was seen, in units of the inputs' ranges, ``(n,)``.

    They are -1 where there is nothing to look for: where the output is half known, its posterior standard deviation
    being below ``UNKNOWN`` prior ones, or not plausibly above ``best``, which is beyond ``PLAUSIBLE`` of them.
    """
    mean, std = gp.posterior(points)
    promising = (std > UNKNOWN * gp.prior_std(points)) & (mean + PLAUSIBLE * std > best)
    distances = torch.cdist(gp.rescaled(points), gp.rescaled(gp.inputs)).amin(-1) if len(gp) else torch.ones_like(mean)
    return distances.where(promising, -torch.ones_like(distances))


def plausible_beyond(gp: NodeSurrogate, point: Tensor, column: int, sign: float) -> Tensor:
    """The best output that is plausible a little beyond a point: its mean plus ``PLAUSIBLE`` standard deviations.

    What goes on is the input of one column, to greater values of it if ``sign`` is 1, to smaller ones if it is -1.
    """
    seen = gp.inputs[:, column] if len(gp) else point.new_tensor([0.0, 1.0])
    points = point.repeat(len(BEYOND), 1)
    points[:, column] += sign * (seen.max() - seen.min()) * BEYOND.to(points)
    mean, std = gp.posterior(points)
    return (mean + PLAUSIBLE * std).max()
