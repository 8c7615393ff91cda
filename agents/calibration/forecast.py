"""Draws of new outcomes from a GP, with intervals that hold with few data and much noise.

With few data, a GP with one set of fitted hyper-parameters is overconfident: if a third of the outputs' scale is noise,
its 95 % intervals cover about 75 % of new outcomes. Such a GP suffices for a search, but not for a forecast. Forecasts
therefore fit the noise again with the prior of :func:`~cbo_gym.agents.gp.noise.usual_noise`. Deviations from the mean
have Student's distribution, scaled up if the leave-one-out residuals exceed their standard deviations.

Draws of expectations, which say whether an untried action may be better, have a second problem: the data that an agent
chose lie close together, and the fitted lengthscales are too long elsewhere. Half of these draws have half the
lengthscales.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import t as student
from torch import Tensor

from cbo_gym.agent import LeaveOneOut
from cbo_gym.agents.common.features import ActionFeatures
from cbo_gym.agents.gp.model import GaussianProcess, update_together
from cbo_gym.agents.gp.noise import NoiseLevel, usual_noise
from cbo_gym.task import Action

# Number of data above which the prior of the noise hardly matters.
MAX_REFITTED = 200
# Number of residuals of the expected size that are added to the residuals of the data.
EXPECTED_RESIDUALS = 4
# Smallest number of degrees of freedom.
MIN_FREEDOM = 3
# Divisors of the lengthscales, each for an equal share of the draws of expectations.
SHORTENINGS = (1.0, 2.0)


class Calibration(NamedTuple):
    """Distribution of a GP's errors: Student's, scaled.

    Attributes:
        scale: factor of the GP's standard deviations, at least 1.
        freedom: degrees of freedom: the number of data less 1, but at least 3.
    """

    scale: float
    freedom: int

    @classmethod
    def of(cls, gp: GaussianProcess) -> Calibration:
        """Return the calibration by the leave-one-out residuals of a GP."""
        residuals, std = gp.leave_one_out()
        squares = float((residuals / std).square().sum()) + EXPECTED_RESIDUALS
        scale = math.sqrt(squares / (len(residuals) + EXPECTED_RESIDUALS))
        return cls(max(1.0, scale), max(len(residuals) - 1, MIN_FREEDOM))

    @property
    def width(self) -> float:
        """Half width of a 95 % interval, in standard deviations of the GP."""
        return self.scale * float(student.ppf(0.975, self.freedom))

    def factors(self, count: int, rng: np.random.Generator) -> Tensor:
        """Return random factors, ``(count,)``, by which normal deviations become calibrated errors."""
        return torch.from_numpy(self.scale * np.sqrt(self.freedom / rng.chisquare(self.freedom, count)))


def for_forecasts(gp: GaussianProcess) -> GaussianProcess:
    """Return a copy whose next fit has the noise prior of forecasts; the GP itself if that would change nothing."""
    if gp.noise_std is None and isinstance(gp.noise_model, NoiseLevel) and 0 < len(gp) <= MAX_REFITTED:
        return gp.with_noise(usual_noise)
    return gp


def draw_joint(gp: GaussianProcess, points: Tensor, count: int, rng: np.random.Generator, noise: bool) -> Tensor:
    """Return draws of a GP at points, ``count x q``.

    Args:
        gp: the GP, from :func:`for_forecasts`.
        points: ``q x d``.
        count: number of draws.
        rng: random numbers.
        noise: whether to draw outcomes with independent noise, rather than values of the function.
    """
    if noise:
        return _draw_joint(gp, points, count, rng, noise=True)
    shares = zip(shortened(gp), split_count(count), strict=True)
    return torch.cat([_draw_joint(variant, points, share, rng, noise=False) for variant, share in shares])


def shortened(gp: GaussianProcess) -> list[GaussianProcess]:
    """Return the GP with each of the :data:`SHORTENINGS` of its lengthscales; only itself without data."""
    return [gp if factor == 1.0 or not len(gp) else gp.with_shorter_lengths(factor) for factor in SHORTENINGS]


def split_count(count: int) -> list[int]:
    """Divide a number of draws among the :data:`SHORTENINGS`."""
    return [len(range(index, count, len(SHORTENINGS))) for index in range(len(SHORTENINGS))]


def _draw_joint(gp: GaussianProcess, points: Tensor, count: int, rng: np.random.Generator, noise: bool) -> Tensor:
    with torch.no_grad():
        mean, root = gp.joint(points)
        root = root.expand(len(points), len(points))
        deviations = torch.from_numpy(rng.standard_normal((count, len(points)))).to(points) @ root.T
        factors = Calibration.of(gp).factors(count, rng)[:, None].to(points)
        draws = mean + factors * deviations
        if noise:
            errors = gp.noise_scale * torch.from_numpy(rng.standard_normal((count, len(points)))).to(points)
            draws = draws + errors * (factors if gp.noise_std is None else 1.0)
    return draws


def sample_each(
    surrogates: Mapping[str, Any], points: Tensor, count: int, seed: int, noise: bool
) -> dict[str, np.ndarray] | None:
    """Return name -> :func:`draw_joint` of each surrogate, ``count x q``, at the same points ``q x d``.

    Return None unless all surrogates are Gaussian processes.
    """
    if not all(isinstance(gp, GaussianProcess) for gp in surrogates.values()):
        return None
    gps, rng = _fit_for_forecasts(surrogates), np.random.default_rng(seed)
    return {name: draw_joint(gp, points, count, rng, noise).cpu().numpy() for name, gp in gps.items()}


def leave_one_out(surrogates: Mapping[str, Any]) -> dict[str, LeaveOneOut]:
    """Return leave-one-out predictions of the surrogates that are Gaussian processes and have data."""
    gps = {name: gp for name, gp in surrogates.items() if isinstance(gp, GaussianProcess) and len(gp)}
    return {name: predict_left_out(gp, gp.outputs) for name, gp in _fit_for_forecasts(gps).items()}


class ForecastsByNode(ABC):
    """Mixin: forecasts of an agent with a surrogate from the action to each modelled node."""

    features: ActionFeatures
    device: str

    def forecast_inputs(self, actions: Sequence[Action]) -> Tensor:
        """Return the surrogates' inputs of actions, ``(len(actions), d)``."""
        return self.features.of_actions(actions).to(self.device)

    @abstractmethod
    def surrogates_by_node(self) -> Mapping[str, Any]:
        """Return node -> its surrogate."""

    def sample_outcomes(
        self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True
    ) -> Mapping[str, np.ndarray] | None:
        """See :meth:`cbo_gym.agent.Agent.sample_outcomes`."""
        return sample_each(self.surrogates_by_node(), self.forecast_inputs(actions), count, seed, noise)

    def leave_one_out(self) -> Mapping[str, LeaveOneOut]:
        """See :meth:`cbo_gym.agent.Agent.leave_one_out`."""
        return leave_one_out(self.surrogates_by_node())


def _fit_for_forecasts(surrogates: Mapping[str, GaussianProcess]) -> dict[str, GaussianProcess]:
    gps = {name: for_forecasts(gp) for name, gp in surrogates.items()}
    update_together(gps.values())
    return gps


def predict_left_out(gp: GaussianProcess, values: Tensor) -> LeaveOneOut:
    """Return leave-one-out predictions of ``values``, ``(n,)``, which are a GP's outputs or these plus known means."""
    residuals, std = gp.leave_one_out()
    predictions = values - residuals
    return LeaveOneOut(values.cpu().numpy(), predictions.cpu().numpy(), Calibration.of(gp).width * std.cpu().numpy())
