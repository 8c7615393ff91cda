"""Aggregated mode: rounds whose outcome is a mean over a cell."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cbo_gym.modes.aggregated.interface import AggregatedInterface, point_like
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.problems.variations.instance import InstanceRules
from cbo_gym.scm import Intervention
from cbo_gym.scm.system import Draws, Values
from cbo_gym.task import Action

# Largest number of variables that are averaged one by one; more are averaged faster together, with the same sums.
MAX_SEPARATE_MEANS = 2


class CellInstanceRules(InstanceRules):
    """Random transforms in aggregated mode: a reward drawn from a known Gaussian process keeps its unit."""

    @property
    def keeps_reward(self) -> bool:  # type: ignore[override]
        return self.problem.kernel is not None


class AggregatedDynamics(AggregatedInterface, Dynamics):
    """Aggregated feedback on cells of the soft parameters.

    ## Action space
    ``CellBox(0, 1, (2, d))``: the lower and the upper corner of a cell of the box of parameters, lower < upper in
    every coordinate.

    ## Observation space
    ``Dict(nodes=Box(n), aggregate=Box(n))``: both are the mean of the observed variables over the cell's S
    representative points, in topological order, the reward last; zeros at reset. The values at single points are never
    shown. In one dimension the points are the centres of S equal sub-intervals, in more a centred rank-1 lattice. They
    share the exogenous noise of the round, so additive noise of the reward enters the mean once.

    ## Reward
    The mean of the reward variable over the points. Regret is counted from f(x*), the best single point: it is the
    supremum over cells, approached by small ones.

    ## Arguments
    ``points``: the number S of representative points, 1 to 10,000; ``arity``: the number K of parts into which agents
    split a cell, 2 to 100; ``integral``: feedback is the mean over the whole cell, computed on a lattice of
    1021 points, and ``points`` has no effect.

    ## References
    Zhang, Tsuchida & Ong (2022), Gaussian process bandits with aggregated feedback, sec. 2 and D.
    """

    instance_rules = CellInstanceRules

    @cached_property
    def _averaged(self) -> tuple[str, ...]:
        return tuple(self.scm.parameter_dependent)

    def play(self, noise: Draws, intervention: Intervention) -> Values:
        """Return means over the representative points, the intervention's first axis."""
        values = self.scm.propagate(noise, intervention)
        if len(self._averaged) > MAX_SEPARATE_MEANS and np.ndim(intervention.soft[0]) == 1:
            means = np.add.reduce(np.array([values[name] for name in self._averaged]), axis=1) / self._points
            values.update(zip(self._averaged, means.tolist(), strict=True))
            return values
        for name in self._averaged:
            values[name] = np.add.reduce(values[name]) / self._points
        return values

    def known_maximiser(self) -> Action | None:
        best = self.problem.optimal_action
        return None if best is None else point_like(np.array(best, dtype=np.float64))
