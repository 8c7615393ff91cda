"""Actions that meet a problem's constraints in expectation, and the best of these actions.

An action is *feasible* if E[node | action] is on the right side of the threshold of every constraint, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.base.interface import Region
from cbo_gym.modes.oracles.plain import (
    CLIMB_POINTS,
    MAX_POINTS,
    SEARCH_POINTS,
    SIGNIFICANT_ERRORS,
    TIE_DECIMALS,
    Oracle,
    Scores,
    maximise_in_box,
    round_point,
    with_gradient,
)
from cbo_gym.problems.recorded import RecordedOptimum
from cbo_gym.scm import Intervention
from cbo_gym.task import Action, Observation

# Violation that counts as zero: this share of the threshold, or of 1 if that is more.
ROUNDING = 1e-9
# Numbers of random points of a region in the first search for a feasible one, and in the second.
FEW_POINTS = 2**4
SAMPLE_POINTS = 2**10
# Relative gain at which an ascent stops.
CLIMB_GAIN = 1e-9
# Shares of the way from the end of an ascent back to its start at which points are evaluated.
WAY_BACK = np.array([0.0, *np.geomspace(1e-9, 1.0, 28)])


class ExpectedNode(Oracle):
    """Expected values of a node instead of rewards: E[node | action].

    Args:
        dynamics: the problem in the mode in which it is played.
        node: an observed variable.
        seed: seed of the quasi-Monte Carlo points; an oracle of rewards with the same seed has the same points.
    """

    def __init__(self, dynamics: Dynamics, node: str, seed: int = 0) -> None:
        super().__init__(dynamics, seed)
        self._measured = itemgetter(node)

    @property
    def _relevant_noise(self) -> frozenset[str]:
        return frozenset(variable.name for variable in self.scm.noisy)

    def _is_exact(self, intervention: Intervention) -> bool:
        return not self.scm.noisy


class ConstrainedOracle(Oracle):
    """Expected rewards; the optimum and a random action's expected reward are those of the feasible actions."""

    def __init__(self, dynamics: Dynamics, seed: int = 0, recorded: RecordedOptimum | None = None) -> None:
        super().__init__(dynamics, seed, recorded)
        self.constraints = self.problem.outcomes.constraints
        self._nodes = [ExpectedNode(dynamics, constraint.node, seed) for constraint in self.constraints]
        self._rounding = np.array([ROUNDING * max(1.0, abs(c.threshold)) for c in self.constraints])

    def violations(self, actions: list[Action]) -> np.ndarray:
        """Return the violation of each constraint, 0 if it is met, shape ``(len(actions), constraints)``.

        Near a threshold the number of quasi-Monte Carlo points is increased, up to 2**18 in total.
        """
        if not actions:
            return np.zeros((0, len(self.constraints)))
        return self.batch_violations(self.dynamics.decode_batch(self._stack(actions)), len(actions))

    def batch_violations(self, intervention: Intervention, count: int) -> np.ndarray:
        """Return the violations of a batch of ``count`` interventions, shape ``(count, constraints)``."""
        batch = intervention.broadcast((count,))
        columns = [self._precise_excess(index, batch, count) for index in range(len(self.constraints))]
        return self._violations(np.stack(columns, axis=-1))

    def meets_constraints(self, actions: list[Action]) -> np.ndarray:
        feasible: np.ndarray = self.violations(actions).sum(axis=-1) == 0.0
        return feasible

    def score(self, actions: list[Action], recommended: list[Action], observations: list[Observation]) -> Scores:
        violations = self.violations([*actions, *recommended])
        scores = super().score(actions, recommended, observations)
        return scores._replace(violations=violations[: len(actions)], recommended_violations=violations[len(actions) :])

    def require_feasible(self) -> None:
        """Search for an action that meets all constraints, at random and then by optimisation.

        Raises:
            ArgumentError: if the search fails, with the smallest violation.
        """
        actions = self.dynamics.all_actions()
        if actions is not None:
            self._require_any(self.batch_violations(self.dynamics.decode_batch(actions), len(actions)), actions)
            return
        regions = list(self.dynamics.regions())
        for count in (FEW_POINTS, SAMPLE_POINTS):
            if any(self._sample(region, count)[1].max(axis=1).min() <= 0.0 for region in regions):
                return
        nearest = [
            self._action_at(region, maximise_in_box(self._nearness(region), region.dim, self._seed))
            for region in regions
        ]
        self._require_any(self.violations(nearest), nearest)

    def _require_any(self, violations: np.ndarray, actions: Any) -> None:
        """Raise ArgumentError unless a row of ``violations`` is zero."""
        total = violations.sum(axis=1)
        best = int(total.argmin())
        if total[best] == 0.0:
            return
        pairs = zip(self.constraints, violations[best], strict=True)
        amounts = ", ".join(f"{constraint} by {amount:.4g}" for constraint, amount in pairs if amount)
        record = self.dynamics.codec.to_record(actions[best])
        raise ArgumentError(
            f"{self.problem.name}: no action meets the constraints {list(map(str, self.constraints))}; the "
            f"smallest violation in a search is {amounts}, at {self.dynamics.codec.to_string(record)}"
        )

    def _precise_excess(self, index: int, batch: Intervention, count: int) -> np.ndarray:
        """Return by how much each of a batch exceeds one limit, with more points where the side is in doubt."""
        oracle, constraint = self._nodes[index], self.constraints[index]
        points = self.fewest_points
        value, error = (np.broadcast_to(array, count).copy() for array in oracle._estimate(batch, points))
        while points < MAX_POINTS:
            points *= 4
            doubtful = np.abs(constraint.excess(value)) <= SIGNIFICANT_ERRORS * error
            doubtful &= error > self._rounding[index]
            if not doubtful.any():
                break
            value[doubtful], error[doubtful] = oracle._estimate(batch.rows(doubtful), points)
        return constraint.excess(value)

    def _excess(self, batch: Intervention, count: int, points: int = SEARCH_POINTS) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much each of a batch exceeds each limit, and standard errors: ``(count, constraints)``."""
        excess, errors = [], []
        for oracle, constraint in zip(self._nodes, self.constraints, strict=True):
            value, error = oracle._estimate(batch, points)
            excess.append(np.broadcast_to(constraint.excess(value), count))
            errors.append(np.broadcast_to(error, count))
        return np.stack(excess, axis=-1), np.stack(errors, axis=-1)

    def _violations(self, excess: np.ndarray) -> np.ndarray:
        """Return excesses ``(..., constraints)`` above rounding, and 0 elsewhere."""
        return np.where(excess > self._rounding, excess, 0.0)

    # The search ------------------------------------------------------------------------------------------------

    def _find_maximiser(self) -> Action:
        best = self.dynamics.known_maximiser()
        if best is not None and not self.violations([best]).any():
            return best
        actions = self.dynamics.all_actions()
        if actions is None:
            return self._search_regions(list(self.dynamics.regions()))
        violations = self.batch_violations(self.dynamics.decode_batch(actions), len(actions))
        self._require_any(violations, actions)
        return self._best_of(actions[violations.sum(axis=1) == 0.0])

    def _search_regions(self, regions: list[Region]) -> Action:
        """Search each region, clearly feasible points first; then climb along the constraints on more noise."""
        self.require_feasible()
        points = [maximise_in_box(self._merit(region), region.dim, self._seed) for region in regions]
        located = list(zip(regions, points, strict=True))
        values = np.array([self._means_in(region)(point[None])[0] for region, point in located]).round(TIE_DECIMALS)
        slack = np.array([self._slack(region)(point[None]).min() for region, point in located])
        merits = np.where(slack >= 0.0, values, -np.inf) if slack.max() >= 0.0 else slack
        region, point = located[int(merits.argmax())]
        if region.dim:
            for count in (CLIMB_POINTS, MAX_POINTS):
                point = _climb_along(self._means_in(region, count), self._slack(region, count), point)
        return self._action_at(region, point)

    def _slack(self, region: Region, points: int = SEARCH_POINTS) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function of a region's points ``(n, dim)``: how far they are inside each limit, beyond doubt.

        Its values have shape ``(n, constraints)``; at least 0 if the constraint is met by ``SIGNIFICANT_ERRORS``
        standard errors.
        """

        def slack(trials: np.ndarray) -> np.ndarray:
            excess, error = self._excess(self.dynamics.decode_batch(region.to_actions(trials)), len(trials), points)
            return 0.5 * self._rounding - SIGNIFICANT_ERRORS * error - excess

        return slack

    def _sample(self, region: Region, count: int = SAMPLE_POINTS) -> tuple[np.ndarray, np.ndarray]:
        """Return random points of a region ``(n, dim)``, and their excesses ``(n, constraints)``."""
        points = np.random.default_rng(self._seed).random((count if region.dim else 1, region.dim))
        batch = self.dynamics.decode_batch(region.to_actions(points)).broadcast((len(points),))
        return points, self._excess(batch, len(points))[0]

    def _nearness(self, region: Region) -> Callable[[np.ndarray], np.ndarray]:
        """Return the negative violation as a function of a region's points, each node in units of its range there."""
        slack, width = self._slack(region), np.ptp(self._sample(region)[1], axis=0)
        units = np.where(width > 0.0, width, 1.0)
        return lambda points: (np.minimum(slack(points), 0.0) / units).sum(axis=-1)

    def _merit(self, region: Region) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that the search maximises: every feasible point is above every other one.

        Rewards of feasible points are squeezed into (-1, 1), violations of the others into (-2, -1).
        """
        rewards, nearness = self._means_in(region), self._nearness(region)
        sampled = rewards(self._sample(region)[0])
        centre, unit = float(np.median(sampled)), float(np.ptp(sampled)) or 1.0

        def merit(points: np.ndarray) -> np.ndarray:
            near = nearness(points)
            merits = near / (1.0 - near) - 1.0
            if (inside := near >= 0.0).any():
                merits[inside] = np.arctan((rewards(points[inside]) - centre) / unit) * (2.0 / np.pi)
            return merits

        return merit

    def _is_feasible(self, intervention: Intervention, count: int) -> np.ndarray:
        excess, _ = self._excess(intervention.broadcast((count,)), count)
        feasible: np.ndarray = self._violations(excess).sum(axis=-1) == 0.0
        return feasible


def _climb_along(
    function: Callable[[np.ndarray], np.ndarray], slack: Callable[[np.ndarray], np.ndarray], start: np.ndarray
) -> np.ndarray:
    """Return a local maximiser over the unit box where ``slack`` is at least 0, near ``start``, by SLSQP.

    If the ascent ends outside, the best feasible point on the way back to ``start`` is returned.
    """
    # Imported here, because it is slow to import.
    from scipy.optimize import minimize

    def negative(points: np.ndarray) -> np.ndarray:
        return -function(points)

    @lru_cache(maxsize=1)
    def limits(x: bytes) -> tuple[Any, np.ndarray]:
        """Return the slack and its gradient, cached because SLSQP asks for each separately."""
        return with_gradient(slack, np.frombuffer(x))

    result = minimize(
        lambda x: with_gradient(negative, x),
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(start),
        constraints={
            "type": "ineq",
            "fun": lambda x: limits(x.tobytes())[0],
            "jac": lambda x: limits(x.tobytes())[1],
        },
        options={"ftol": CLIMB_GAIN * max(1.0, abs(float(negative(start[None])[0]))), "maxiter": 30},
    )
    end = round_point(np.where(np.isfinite(result.x), result.x, start))
    path = round_point(end + WAY_BACK[:, None] * (start - end))
    path[-1] = start
    inside: np.ndarray = slack(path).min(axis=-1) >= 0.0
    inside[-1] = True
    return path[int(np.where(inside, function(path), -np.inf).argmax())]


def require_feasible(dynamics: Dynamics) -> None:
    """Raise ArgumentError if no action meets the constraints of a problem, naming the action with least violation."""
    if dynamics.truth.problem.outcomes.constraints:
        ConstrainedOracle(dynamics.truth).require_feasible()
