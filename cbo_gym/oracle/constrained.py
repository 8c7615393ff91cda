"""Which actions meet a problem's constraints in expectation, and the best of those.

An action is *feasible* if E[node | action] is on the right side of the threshold of every constraint, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.feedback import Feedback, Region
from cbo_gym.oracle.plain import (
    CLIMB_POINTS,
    CLIMB_STEP,
    DOUBT,
    MOST_POINTS,
    SEARCH_POINTS,
    TIE_DECIMALS,
    Estimate,
    Oracle,
    Scores,
    maximise_in_box,
    tidy,
)
from cbo_gym.registry import RecordedOptimum
from cbo_gym.scm import Intervention
from cbo_gym.task import Action, Observation

ROUNDING = 1e-9  # of a threshold, or of 1 if that is more: what may be missed and counts as met
FEW = 2**4  # random points of a region that are tried first
SAMPLE = 2**10  # random points of a region, by which the search puts rewards and violations into units
CLIMB_GAIN = 1e-9  # relative, at which an ascent stops
BACK = np.array([0.0, *np.geomspace(1e-9, 1.0, 28)])  # shares of the way back to a feasible point


class ExpectedNode(Oracle):
    """Expected values of a node instead of rewards: E[node | action].

    Args:
        feedback: the problem in the mode in which it is played.
        node: an observed variable.
        seed: of the quasi-Monte Carlo points; with one seed they are those of the rewards.
    """

    def __init__(self, feedback: Feedback, node: str, seed: int = 0) -> None:
        super().__init__(feedback, seed)
        self._measured = itemgetter(node)

    @property
    def _noise_behind(self) -> frozenset[str]:
        return frozenset(variable.name for variable in self.scm.noisy)

    def _is_exact(self, intervention: Intervention) -> bool:
        return not self.scm.noisy

    def estimate(self, intervention: Intervention, points: int) -> Estimate:
        """Of a batch, with so many points a replicate; without an error where it is known exactly."""
        value = self._exactly(intervention)
        if value is not None:
            return Estimate(value, np.zeros_like(value))
        return self._quasi_monte_carlo(intervention, points)

    def replicates(self, intervention: Intervention, points: int) -> np.ndarray:
        """Means over each scrambling of so many points, ``batch + (REPLICATES,)``; one entry where it is exact."""
        value = self._exactly(intervention)
        return self._replicates(intervention, points) if value is None else value[..., None]


class ConstrainedOracle(Oracle):
    """Expected rewards as ever; the optimum is that of the feasible actions, and so is what a random action earns.

    Args:
        feedback: a problem with constraints, in the mode in which it is played.
        seed: of the quasi-Monte Carlo points and the search.
        recorded: the optimum, where it has been searched for already.
    """

    def __init__(self, feedback: Feedback, seed: int = 0, recorded: RecordedOptimum | None = None) -> None:
        super().__init__(feedback, seed, recorded)
        self.constraints = self.problem.outcomes.constraints
        self._nodes = [ExpectedNode(feedback, one.node, seed) for one in self.constraints]
        self._least = np.array([ROUNDING * max(1.0, abs(one.threshold)) for one in self.constraints])

    def missed(self, actions: list[Action]) -> np.ndarray:
        """By how much the actions miss each constraint, 0 where they meet it, shape ``(len(actions), constraints)``.

        Where the side is in doubt the number of quasi-Monte Carlo points grows, to 2**18 in all.
        """
        if not actions:
            return np.zeros((0, len(self.constraints)))
        return self.missed_by(self.feedback.decode_batch(self._stacked(actions)), len(actions))

    def missed_by(self, intervention: Intervention, count: int) -> np.ndarray:
        """The same of a batch of ``count`` interventions."""
        batch = intervention.broadcast((count,))
        columns = [self._excess(place, batch, count) for place in range(len(self.constraints))]
        return self._amounts(np.stack(columns, axis=-1))

    def meets_constraints(self, actions: list[Action]) -> np.ndarray:
        feasible: np.ndarray = self.missed(actions).sum(axis=-1) == 0.0
        return feasible

    def score(self, played: list[Action], recommended: list[Action], seen: list[Observation]) -> Scores:
        missed = self.missed([*played, *recommended])
        scores = super().score(played, recommended, seen)
        return scores._replace(missed=missed[: len(played)], missed_next=missed[len(played) :])

    def require_feasible(self) -> None:
        """Look for an action that meets all constraints: at random, and if none does so by search.

        Raises:
            ArgumentError: if there is none, with the least violation that was found.
        """
        actions = self.feedback.all_actions()
        if actions is not None:
            self._require_any(self.missed_by(self.feedback.decode_batch(actions), len(actions)), actions)
            return
        regions = list(self.feedback.regions())
        for count in (FEW, SAMPLE):
            if any(self._sampled(region, count)[1].max(axis=1).min() <= 0.0 for region in regions):
                return
        nearest = [maximise_in_box(self._nearness(region), region.dim, self._seed) for region in regions]
        found = [self._one(region, point) for region, point in zip(regions, nearest, strict=True)]
        self._require_any(self.missed(found), found)

    def _require_any(self, missed: np.ndarray, actions: Any) -> None:
        """Raises ArgumentError unless a row of ``missed`` is zero."""
        total = missed.sum(axis=1)
        place = int(total.argmin())
        if total[place] == 0.0:
            return
        each = ", ".join(
            f"{one} by {amount:.4g}" for one, amount in zip(self.constraints, missed[place], strict=True) if amount
        )
        record = self.feedback.codec.to_record(actions[place])
        raise ArgumentError(
            f"{self.problem.name}: no action meets the constraints {[str(one) for one in self.constraints]}; the least "
            f"violation that was found misses {each}, at {self.feedback.codec.to_text(record)}"
        )

    def _excess(self, place: int, batch: Intervention, count: int) -> np.ndarray:
        """By how much each of a batch misses one constraint, below 0 where it meets it, shape ``(count,)``."""
        oracle, constraint = self._nodes[place], self.constraints[place]
        points = self.fewest_points
        value, error = (np.broadcast_to(part, count).copy() for part in oracle.estimate(batch, points))
        while points < MOST_POINTS:
            points *= 4
            doubtful = np.abs(constraint.excess(value)) <= DOUBT * error
            doubtful &= error > self._least[place]
            if not doubtful.any():
                break
            doubted = batch.rows(doubtful)
            value[doubtful], error[doubtful] = oracle.estimate(doubted, points)
        return constraint.excess(value)

    def _amounts(self, excess: np.ndarray) -> np.ndarray:
        """The amounts by which excesses ``(..., constraints)`` miss their limits: no rounding."""
        return np.where(excess > self._least, excess, 0.0)

    # The search ------------------------------------------------------------------------------------------------

    def _find_maximiser(self) -> Action:
        known = self.feedback.known_maximiser()
        if known is not None and not self.missed([known]).any():
            return known  # what is best of all actions is best of those
        every = self.feedback.all_actions()
        if every is None:
            return self._search_regions(list(self.feedback.regions()))
        missed = self.missed_by(self.feedback.decode_batch(every), len(every))
        self._require_any(missed, every)
        return self._best_of(every[missed.sum(axis=1) == 0.0])

    def _search_regions(self, regions: list[Region]) -> Action:
        """The best feasible action of all regions.

        Differential evolution in each, which puts what is feasible beyond doubt before what is not; then an ascent
        along the constraints, on more noise, from where the best of them ended.
        """
        self.require_feasible()
        points = [maximise_in_box(self._merit(region), region.dim, self._seed) for region in regions]
        pairs = list(zip(regions, points, strict=True))
        values = np.array([self._means_in(region)(point[None])[0] for region, point in pairs]).round(TIE_DECIMALS)
        slack = np.array([self._slack(region)(point[None]).min() for region, point in pairs])
        place = int(np.where(slack >= 0.0, values, -np.inf).argmax() if slack.max() >= 0.0 else slack.argmax())
        region, point = pairs[place]
        for count in (CLIMB_POINTS, MOST_POINTS) if region.dim else ():
            point = _climb_along(self._means_in(region, count), self._slack(region, count), point)
        return self._one(region, point)

    def _one(self, region: Region, point: np.ndarray) -> Action:
        return self._unstacked(region.to_actions(point[None]))

    def _slack(self, region: Region, points: int = SEARCH_POINTS) -> Callable[[np.ndarray], np.ndarray]:
        """The function of a region's points ``(n, dim)``: how far inside each constraint they are, beyond doubt.

        Shape ``(n, constraints)``; at least 0 where the constraint is met by ``DOUBT`` standard errors.
        """

        def slack(tried: np.ndarray) -> np.ndarray:
            batch = self.feedback.decode_batch(region.to_actions(tried))
            columns = []
            for oracle, constraint, least in zip(self._nodes, self.constraints, self._least, strict=True):
                value, error = (np.broadcast_to(part, len(tried)) for part in oracle.estimate(batch, points))
                columns.append(0.5 * least - DOUBT * error - constraint.excess(value))
            return np.stack(columns, axis=-1)

        return slack

    def _sampled(self, region: Region, count: int = SAMPLE) -> tuple[np.ndarray, np.ndarray]:
        """Random points of a region ``(n, dim)``, and their excesses ``(n, constraints)``."""
        points = np.random.default_rng(self._seed).random((count if region.dim else 1, region.dim))
        batch = self.feedback.decode_batch(region.to_actions(points)).broadcast((len(points),))
        return points, self._excesses(batch, len(points))

    def _units(self, region: Region) -> np.ndarray:
        """The spread of each constrained node over a region, shape ``(constraints,)``; 1 where it has none."""
        spread = np.ptp(self._sampled(region)[1], axis=0)
        return np.where(spread > 0.0, spread, 1.0)

    def _nearness(self, region: Region) -> Callable[[np.ndarray], np.ndarray]:
        """Minus the violation of a region's points, in units of the nodes' spreads; 0 where they are feasible."""
        slack, units = self._slack(region), self._units(region)
        return lambda points: (np.minimum(slack(points), 0.0) / units).sum(axis=-1)

    def _merit(self, region: Region) -> Callable[[np.ndarray], np.ndarray]:
        """The merit that the search maximises: every feasible point above every other one, whatever their rewards.

        Feasible points by their reward, squeezed into (-1, 1); others by their violation, into (-2, -1).
        """
        rewards, nearness = self._means_in(region), self._nearness(region)
        sampled = rewards(self._sampled(region)[0])
        centre, unit = float(np.median(sampled)), float(np.ptp(sampled)) or 1.0

        def merit(points: np.ndarray) -> np.ndarray:
            near = nearness(points)
            found = near / (1.0 - near) - 1.0
            if (inside := near >= 0.0).any():
                found[inside] = np.arctan((rewards(points[inside]) - centre) / unit) * (2.0 / np.pi)
            return found

        return merit

    def _counting(self, intervention: Intervention, count: int) -> np.ndarray:
        excess = self._excesses(intervention.broadcast((count,)), count)
        feasible: np.ndarray = self._amounts(excess).sum(axis=-1) == 0.0
        return feasible

    def _excesses(self, batch: Intervention, count: int) -> np.ndarray:
        """By how much each of a batch misses the constraints, on the points of a search, ``(count, constraints)``."""
        columns = []
        for oracle, constraint in zip(self._nodes, self.constraints, strict=True):
            columns.append(np.broadcast_to(constraint.excess(oracle.estimate(batch, SEARCH_POINTS).value), count))
        return np.stack(columns, axis=-1)


def _climb_along(
    function: Callable[[np.ndarray], np.ndarray], slack: Callable[[np.ndarray], np.ndarray], start: np.ndarray
) -> np.ndarray:
    """A local maximiser over the unit box where ``slack`` is at least 0, near ``start``: SLSQP, with differences.

    Where it ends a little outside, the best feasible point on the way back to ``start`` is taken.
    """
    from scipy.optimize import minimize  # late: slow to import, and needed only here

    def with_slopes(of: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], tuple[Any, np.ndarray]]:
        """The function's value and slopes at a point, remembered for the next time that it is asked for them."""
        last: dict[bytes, tuple[Any, np.ndarray]] = {}

        def at(x: np.ndarray) -> tuple[Any, np.ndarray]:
            if x.tobytes() not in last:
                steps = np.where(x + CLIMB_STEP > 1.0, -CLIMB_STEP, CLIMB_STEP)
                values = of(np.vstack([x, x + np.diag(steps)]))
                last.clear()
                last[x.tobytes()] = values[0], (values[1:] - values[0]).T / steps
            return last[x.tobytes()]

        return at

    lacking, inside_by = with_slopes(lambda points: -function(points)), with_slopes(slack)
    found = minimize(
        lacking,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(start),
        constraints={"type": "ineq", "fun": lambda x: inside_by(x)[0], "jac": lambda x: inside_by(x)[1]},
        options={"ftol": CLIMB_GAIN * max(1.0, abs(float(lacking(start)[0]))), "maxiter": 30},
    )
    end = tidy(np.where(np.isfinite(found.x), found.x, start))
    way = tidy(end + BACK[:, None] * (start - end))
    way[-1] = start
    inside: np.ndarray = slack(way).min(axis=-1) >= 0.0
    inside[-1] = True
    return way[int(np.where(inside, function(way), -np.inf).argmax())]


def require_feasible(feedback: Feedback) -> None:
    """Refuse a problem whose constraints no action meets; of one without constraints there is nothing to find out.

    Raises:
        ArgumentError: with the least violation that was found, and where.
    """
    if feedback.truth.problem.outcomes.constraints:
        ConstrainedOracle(feedback.truth).require_feasible()
