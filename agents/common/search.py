"""Search for the action with the highest value of an acquisition function.

The function is first evaluated at random search points and at points around the best actions played (screening). For
each of the most promising target sets, or sets of changed coordinates, a few of these points start gradient ascents.
BoTorch's batched L-BFGS-B runs all ascents together for some iterations (scouting), and then only the best of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from botorch.exceptions.errors import OptimizationGradientError
from botorch.exceptions.warnings import BadInitialCandidatesWarning
from botorch.optim.batched_lbfgs_b import fmin_l_bfgs_b_batched
from botorch.optim.initializers import initialize_q_batch
from torch import Tensor

from cbo_gym.agents.common.features import ActionFeatures
from cbo_gym.task import Action, Round

# Number of distinct played actions among the starts.
INCUMBENTS = 3
# Number of best points around which the next generation is drawn.
SURVIVORS = 32
# Largest number of target sets, or sets of changed coordinates, from which ascents start.
MAX_SETS = 8
# Number of points screened at a time. Posteriors split them further if their covariances do not fit a cache.
CHUNK = 1024
# Number of ascents that continue after scouting.
FINALISTS = 3

#: GP inputs ``b x 1 x input_dim`` -> values ``(b,)``.
Acquisition = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Effort:
    """Size of a search.

    Attributes:
        raw_samples: number of random points that are screened.
        perturbed: number of screened points around each of the best distinct actions played.
        generations: number of times that points around the best ones so far are screened too.
        children: number of points around each of the best ones in a generation.
        restarts: number of starts of ascents, shared by the target sets, at least two for each.
        scouting: number of iterations of every ascent before the best ones are chosen.
        max_iterations: largest number of iterations of an ascent, scouting included.
        relative_gain: relative gain of the acquisition function at which an ascent stops.
    """

    raw_samples: int = 1024
    perturbed: int = 128
    generations: int = 4
    children: int = 16
    restarts: int = 12
    scouting: int = 10
    max_iterations: int = 60
    relative_gain: float = 1e-6


DEFAULT_EFFORT = Effort()


def best_first(history: Sequence[Round], estimates: np.ndarray) -> list[Action]:
    """Return the actions played, from the highest estimate to the lowest; ``estimates`` has one for each round."""
    return [history[index].action for index in np.argsort(-estimates, kind="stable")]


def maximise(
    acquisition: Acquisition,
    features: ActionFeatures,
    played: Sequence[Action],
    *,
    seed: int,
    screening: Acquisition | None = None,
    scouting: Acquisition | None = None,
    effort: Effort = DEFAULT_EFFORT,
    device: str | torch.device = "cpu",
) -> Action:
    """Search for the action that maximises ``acquisition``.

    Args:
        acquisition: the differentiable function; each value must depend only on its own row of the inputs.
        features: features of the task's actions.
        played: actions played, from the best to the worst; ascents also start from the first distinct ones.
        seed: seed of the random points. The global random state of torch does not change.
        screening: a faster function for the choice of the starts; None for ``acquisition`` itself.
        scouting: a faster function for the first iterations of the ascents; None for ``acquisition`` itself.
        effort: size of the search.
        device: torch device on which ``acquisition`` computes.

    Returns:
        An element of the action space.
    """
    starts = screen(screening or acquisition, features, played, seed=seed, effort=effort, device=device)

    def at_points(function: Acquisition) -> Acquisition:
        return lambda points: _with_slope(function(features.inputs(points)), points)

    value = at_points(acquisition)
    finalists = torch.stack([starts[0], _ascend(value, at_points(scouting or acquisition), starts, effort)])
    with torch.no_grad():
        winner = value(finalists.unsqueeze(-2)).argmax()
    return features.decode(finalists[winner])


def screen(
    acquisition: Acquisition,
    features: ActionFeatures,
    played: Sequence[Action],
    *,
    seed: int,
    effort: Effort = DEFAULT_EFFORT,
    device: str | torch.device = "cpu",
) -> Tensor:
    """Return starts for ascents, shape ``n x search_dim``. The arguments are those of :func:`maximise`.

    The first is the best point that was screened; the last are the best distinct actions played.
    """
    generator = torch.Generator().manual_seed(seed)

    def value(points: Tensor) -> Tensor:
        with torch.no_grad():
            return torch.cat([acquisition(features.inputs(chunk.unsqueeze(-2))) for chunk in points.split(CHUNK)])

    played = [action for action in played if features.allows(action)]
    incumbents = _first_distinct(played, features) if played else features.draw(1, generator)[:1]
    around = features.perturb(incumbents.repeat_interleave(effort.perturbed, 0), generator)
    candidates = torch.cat([features.draw(effort.raw_samples, generator), around]).to(device)
    values = value(candidates)
    for _ in range(effort.generations):
        survivors = candidates[values.topk(SURVIVORS).indices].cpu()
        offspring = features.perturb(survivors.repeat_interleave(effort.children, 0), generator).to(device)
        candidates, values = torch.cat([candidates, offspring]), torch.cat([values, value(offspring)])
    best = candidates[values.argmax()][None]
    starts = _choose_starts(candidates, values, features, effort.restarts, generator)
    return torch.cat([best, starts, incumbents.to(device)])


def _first_distinct(played: Sequence[Action], features: ActionFeatures) -> Tensor:
    """Return the search points of the first ``INCUMBENTS`` actions with different GP inputs, moved inside limits."""
    distinct: dict[tuple[float, ...], Tensor] = {}
    for action in played:
        point = features.encode_inside(action)
        distinct.setdefault(tuple(features.inputs(point).tolist()), point)
        if len(distinct) == INCUMBENTS:
            break
    return torch.stack(list(distinct.values()))


def _choose_starts(
    candidates: Tensor, values: Tensor, features: ActionFeatures, restarts: int, generator: torch.Generator
) -> Tensor:
    """Return starts for ascents: from each of the best sets of coordinates its best point, and other good points."""
    membership = features.membership(candidates)
    if membership.shape[-1]:
        _, set_index = membership.unique(dim=0, return_inverse=True)
    else:
        set_index = torch.zeros(len(candidates), dtype=torch.long, device=candidates.device)
    best = torch.stack([values[set_index == index].max() for index in range(int(set_index.max()) + 1)])
    best_sets = best.topk(min(MAX_SETS, len(best))).indices
    starts_per_set = max(2, restarts // len(best_sets))
    starts = []
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # BoTorch warns if all values are equal, as those of a set without an effect.
        warnings.simplefilter("ignore", BadInitialCandidatesWarning)
        torch.default_generator.set_state(generator.get_state())
        for index in best_sets:
            rows = (set_index == index).nonzero()[:, 0].cpu()
            points, scores = candidates.cpu()[rows].unsqueeze(-2), values.cpu()[rows]
            starts.append(initialize_q_batch(points, scores, min(starts_per_set, len(rows)))[0].squeeze(-2))
    return torch.cat(starts).to(candidates)


def _with_slope(values: Tensor, points: Tensor) -> Tensor:
    """Make values differentiable in points ``b x 1 x d``, even if they do not depend on them.

    Values do not depend on the points if all points have the empty target set.
    """
    return values if values.requires_grad or not points.requires_grad else values + 0.0 * points.sum((-1, -2))


def _ascend(value: Acquisition, approximation: Acquisition, starts: Tensor, effort: Effort) -> Tensor:
    """Return the best point that gradient ascents from ``starts``, ``n x search_dim``, reach.

    They begin on ``approximation``; the best of them continue on ``value``.
    """
    try:
        points, values = _climb(approximation, starts, effort.scouting, effort.relative_gain)
        finalists = points[values.topk(min(FINALISTS, len(values))).indices]
        points, values = _climb(value, finalists, effort.max_iterations - effort.scouting, effort.relative_gain)
    except OptimizationGradientError:
        # If a gradient is NaN, the best screened point is the result.
        return starts[0]
    return points[values.argmax()]


def _climb(value: Acquisition, starts: Tensor, iterations: int, gain: float) -> tuple[Tensor, Tensor]:
    """Return the points that L-BFGS-B reaches from ``starts`` in these iterations, and their values."""

    def losses(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        points = torch.from_numpy(rows).to(starts).unsqueeze(-2).requires_grad_(True)
        values = value(points)
        (slopes,) = torch.autograd.grad(values.sum(), points)
        if slopes.isnan().any():
            raise OptimizationGradientError("the gradient is not a number", current_x=rows)
        return -values.detach().cpu().numpy(), -slopes.squeeze(-2).cpu().numpy()

    # Whether an ascent converged does not matter, because its end is a good start in any case.
    ends, _, _ = fmin_l_bfgs_b_batched(
        losses,
        starts.cpu().numpy(),
        bounds=[(0.0, 1.0)] * starts.shape[-1],
        factr=gain / np.finfo(float).eps,
        maxiter=iterations,
    )
    points = torch.from_numpy(ends).to(starts)
    with torch.no_grad():
        return points, value(points.unsqueeze(-2))
