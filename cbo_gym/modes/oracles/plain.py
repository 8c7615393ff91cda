"""Expected rewards of actions and the optimum, with their standard errors: for evaluation, not for agents.

Expectations over the noise are means over quasi-Monte Carlo points: low-discrepancy points, scrambled independently in
each of several *replicates*, whose spread gives the standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from cbo_gym.actions.codec import Actions, Record
from cbo_gym.errors import ArgumentTypeError, OperationError
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.base.interface import Region
from cbo_gym.problems.recorded import RecordedOptimum
from cbo_gym.scm import Intervention
from cbo_gym.scm.system import Draws
from cbo_gym.task import Action, Observation

# Number of replicates.
REPLICATES = 16
# Points per replicate: at most, and in a search.
MAX_POINTS = 2**14
SEARCH_POINTS = 2**6
# Number of noise draws for each random action.
NOISE_DRAWS = 8
# The maximiser of a mean over SEARCH_POINTS may be worse than the maximiser of E[Y | a] by ten standard errors, so a
# search ends with a local ascent on more points.
CLIMB_POINTS = 2**10
# Largest relative loss of value by rounding a point. A greater loss shows a discontinuity, and the point is kept.
MAX_ROUNDING_LOSS = 1e-6
# Step of the finite differences of an ascent.
CLIMB_STEP = 1e-5
# Points per replicate with which an enumeration evaluates every action.
FIRST_POINTS = 2**3
# Largest number of states of the noise that is enumerated.
MAX_STATES = 2**12
# Number of decimals to which expected rewards are compared.
TIE_DECIMALS = 12
# Number of standard errors of a significant difference, with 16 replicates. An enumeration drops an action that is
# worse than the best one by more.
SIGNIFICANT_ERRORS = 6.0
# Differential evolution runs twice: changing few coordinates at a time finds the best of many local optima that differ
# in single coordinates, as on Alpine2, and changing most of them follows narrow valleys.
RECOMBINATION = (0.3, 0.7)
# Values of one variable that are held in memory at a time.
CHUNK = 2**17
# Random actions that estimate the value of random play, and how many of them are decoded at a time.
RANDOM_PLAYS, MAX_DECODED = 2**14, 2**11
# Default tolerance, as a share of the gap between the optimum and a random action.
RELATIVE_TOLERANCE = 0.002


class Estimate(NamedTuple):
    """Means and their standard errors, two arrays of one shape."""

    value: np.ndarray
    standard_error: np.ndarray


@dataclass(frozen=True)
class Optimum:
    """The best expected reward over all actions, an action that reaches it, and a random action's expected reward."""

    value: float
    action: Action
    standard_error: float
    random_value: float
    random_standard_error: float
    #: Further fields of the registry's record.
    fields: Mapping[str, Any] = field(default_factory=dict)


class Scores(NamedTuple):
    """The expected rewards of a run's actions and recommendations, and the best possible ones; one entry per round.

    Attributes:
        expected: expected rewards of the actions played.
        recommended: expected rewards of the recommendations.
        best: the best expected reward in each round.
        best_next: the best expected reward in the round after each, in which its recommendation would be played.
        violations: violations by the actions played, shape ``(rounds, constraints)``; ``None`` without constraints.
        recommended_violations: violations by the recommendations.
        at_random: expected reward of a random action; ``None`` if it is the same in all rounds.
        extra_columns: further columns of the run's table, about the actions played.
        extra_next: further columns about the recommendations.
    """

    expected: Estimate
    recommended: Estimate
    best: np.ndarray
    best_next: np.ndarray
    violations: np.ndarray | None = None
    recommended_violations: np.ndarray | None = None
    at_random: np.ndarray | None = None
    extra_columns: Mapping[str, Sequence[Any]] = {}
    extra_next: Mapping[str, Sequence[Any]] = {}


class Oracle:
    """Expected rewards by quasi-Monte Carlo with common random numbers, or exact if noise does not matter.

    Args:
        dynamics: the problem in the mode in which it is played.
        seed: seed of the quasi-Monte Carlo points and of the search.
        recorded: the optimum, if it is known.

    Raises:
        ArgumentTypeError: if ``dynamics`` is not a Dynamics, for example an environment.
    """

    #: Points per replicate of the first estimate.
    fewest_points: ClassVar[int] = 2**8
    #: Whether the best expected reward differs from round to round, see :class:`Scores`
    best_changes: ClassVar[bool] = False

    def __init__(self, dynamics: Dynamics, seed: int = 0, recorded: RecordedOptimum | None = None) -> None:
        if not isinstance(dynamics, Dynamics):
            raise ArgumentTypeError(
                f"an Oracle needs a Dynamics; given {type(dynamics).__name__}. "
                "Use cbo_gym.envs.oracle_of(env) for an environment"
            )
        self.dynamics = dynamics
        self.problem = dynamics.problem
        self.scm = dynamics.scm
        self._measured = self.problem.outcomes.reward
        self._seed = seed
        self._recorded = recorded
        self._noise_cache: dict[int, Draws] = {}

    def expected_rewards(self, actions: list[Action], tolerance: float | None = None) -> Estimate:
        """Return E[Y | action] of each action, shape ``(len(actions),)``.

        Args:
            actions: elements of the action space.
            tolerance: standard error to reach; None for 0.2 % of the gap between the optimum and a random action.
                At most 2**18 points are used.
        """
        if not actions:
            return Estimate(np.zeros(0), np.zeros(0))
        stacked = self._stack(actions)
        if isinstance(stacked, np.ndarray):
            # Bandits play one action many times.
            distinct, rows = np.unique(stacked, axis=0, return_inverse=True)
            estimate = self.mean_of(self.dynamics.decode_batch(distinct), tolerance)
            return Estimate(*(array[rows.reshape(-1)] for array in estimate))
        estimate = self.mean_of(self.dynamics.decode_batch(stacked), tolerance)
        # A batch without any intervention has no entry that shows its size.
        return Estimate(*(np.broadcast_to(array, len(actions)) for array in estimate))

    def _stack(self, actions: list[Action]) -> Actions:
        space = self.dynamics.action_space
        empty: Actions = create_empty_array(space, len(actions))
        return concatenate(space, actions, empty)

    def expected_in_round(self, intervention: Intervention, observation: Observation) -> Estimate:
        """Return the expected reward of an intervention, or of each of a batch, given the observation before it."""
        return self.mean_of(intervention)

    def meets_constraints(self, actions: list[Action]) -> np.ndarray:
        """Return whether each action meets the problem's constraints in expectation, shape ``(len(actions),)``."""
        return np.ones(len(actions), dtype=bool)

    def best_in_round(self, intervention: Intervention, observation: Observation) -> np.ndarray:
        """Return the best expected reward in the round of an intervention, or in each of a batch of rounds.

        Args:
            intervention: as :meth:`Dynamics.in_round` returns it.
            observation: the observation before the round.
        """
        return np.broadcast_to(self.optimum.value, intervention.batch_shape[self.dynamics.averaged_axes :])

    def scalarize(self, rewards: np.ndarray) -> np.ndarray:
        """Return the value of each round of a run as one number, shape ``(rounds,)``: its reward.

        Args:
            rewards: the environment's rewards, one entry per round.
        """
        return rewards

    def score(self, actions: list[Action], recommended: list[Action], observations: list[Observation]) -> Scores:
        """Return the expected rewards of a run's actions and recommendations, and the best ones possible.

        Args:
            actions: the action of each round.
            recommended: the recommendation after each round.
            observations: the observation before each round, and after the last one.
        """
        estimate = self.expected_rewards([*actions, *recommended])
        count = len(actions)
        played = Estimate(*(array[:count] for array in estimate))
        recommendations = Estimate(*(array[count:] for array in estimate))
        best = np.full(count, self.optimum.value)
        return Scores(played, recommendations, best, best)

    def mean_of(self, intervention: Intervention, tolerance: float | None = None) -> Estimate:
        """Return E[Y | intervention] for a batch of interventions, of the batch's shape (``()`` or ``(n,)``).

        The mode's own axes, in front of the batch's, are averaged over.
        """
        return self._refine(partial(self._estimate, intervention), tolerance)

    def _refine(self, estimate_with: Callable[[int], Estimate], tolerance: float | None) -> Estimate:
        """Return an estimate with as many points as the tolerance needs."""
        points = self.fewest_points
        estimate = estimate_with(points)
        while points < MAX_POINTS and (error := np.max(estimate.standard_error, initial=0.0)) > 0.0:
            if tolerance is None:
                tolerance = RELATIVE_TOLERANCE * (self.optimum.value - self.optimum.random_value)
            if error <= tolerance:
                break
            points *= 4
            estimate = estimate_with(points)
        return estimate

    def _estimate(self, intervention: Intervention, points: int) -> Estimate:
        """Return E[Y | intervention] for a batch: exact if possible, else with ``points`` in each replicate."""
        replicates = self._replicates(intervention, points)
        count = replicates.shape[-1]
        error = replicates.std(axis=-1, ddof=1) / np.sqrt(count) if count > 1 else np.zeros(replicates.shape[:-1])
        return Estimate(replicates.mean(axis=-1), error)

    def _exact_rewards(self, intervention: Intervention) -> np.ndarray | None:
        """Return E[Y | intervention] from one noiseless pass or all states of the noise, if possible."""
        if self._is_exact(intervention):
            return self._rewards(intervention.expand(), tuple(np.zeros(1) for _ in self.scm.noisy))[..., 0]
        if self._states is None:
            return None
        noise, probabilities = self._states
        return self._reduce(intervention, noise, lambda rewards: rewards @ probabilities)

    def _is_exact(self, intervention: Intervention) -> bool:
        """Return whether one noiseless pass gives the expectation."""
        linear = self.problem.noiseless_mean and not intervention.hard
        return linear or not self.scm.noisy

    @cached_property
    def _states(self) -> tuple[Draws, np.ndarray] | None:
        """All states of the noise that affects the reward, with their probabilities; ``None`` if they are too many."""
        # Noise that does not reach the reward may have any value, such as its median.
        median = np.array([0.5])
        atoms = [
            v.noise.atoms if v.name in self._relevant_noise else (v.noise.from_uniform(median), [1.0])
            for v in self.scm.noisy
        ]
        finite = [pair for pair in atoms if pair is not None]
        count = math.prod(len(values) for values, _ in finite)
        if len(finite) < len(atoms) or count > MAX_STATES:
            return None
        noise, probabilities, indices = [], np.ones(count), np.arange(count)
        for values, weights in finite:
            indices, index = np.divmod(indices, len(values))
            noise.append(np.asarray(values)[index])
            probabilities *= np.asarray(weights)[index]
        return tuple(noise), probabilities

    @property
    def _relevant_noise(self) -> frozenset[str]:
        """Noisy variables that affect the measured node or reward."""
        return self.scm.noise_of_reward

    def _rewards(self, intervention: Intervention, noise: Draws) -> np.ndarray:
        """Return rewards of shape ``batch + (number of draws,)`` for an expanded batch."""
        reward = self._measured(self.dynamics.play(noise, intervention))
        draws = np.broadcast_shapes(*[np.shape(column) for column in noise])
        shape = np.broadcast_shapes(intervention.batch_shape[self.dynamics.averaged_axes :], draws or (1,))
        return np.broadcast_to(reward, shape)

    def _replicates(self, intervention: Intervention, points: int) -> np.ndarray:
        """Return means over each replicate of ``points``, ``batch + (REPLICATES,)``; one exact entry if possible."""
        if (exact := self._exact_rewards(intervention)) is not None:
            return exact[..., None]

        def means(rewards: np.ndarray) -> np.ndarray:
            return rewards.reshape(-1, REPLICATES, points).mean(axis=2)

        return self._reduce(intervention, self._noise(points), means)

    def _reduce(
        self, intervention: Intervention, noise: Draws, reduce: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Apply ``reduce`` to the rewards under each of a batch, shape ``(n, draws)``, some rows at a time."""
        leading = intervention.batch_shape[: self.dynamics.averaged_axes]
        shape = intervention.batch_shape[self.dynamics.averaged_axes :]
        count = shape[0] if shape else 1
        batch = intervention.broadcast(shape) if shape else intervention.expand()
        draws = math.prod(np.broadcast_shapes(*map(np.shape, noise)))
        size = max(1, CHUNK // (draws * math.prod(leading)))
        blocks = []
        for start in range(0, count, size):
            rows = batch.rows(slice(start, start + size)).expand()
            blocks.append(reduce(self._rewards(rows, noise).reshape(-1, draws)))
        reduced = np.concatenate(blocks)
        return reduced.reshape((*shape, *reduced.shape[1:]))

    def _noise(self, points: int) -> Draws:
        if points not in self._noise_cache:
            self._noise_cache[points] = self.scm.noise_from_uniform(self.uniforms(points))
        return self._noise_cache[points]

    def uniforms(self, points: int) -> np.ndarray:
        """Return quasi-random numbers in (0, 1), shape ``(noisy variables, REPLICATES * points)``, by replicate."""
        # Imported here, because it is slow to import.
        from scipy.stats import qmc

        dims = len(self.scm.noisy)
        seeds = np.random.SeedSequence(self._seed).spawn(REPLICATES)
        blocks = [qmc.Sobol(dims, scramble=True, rng=np.random.default_rng(s)).random(points) for s in seeds]
        # Keep quantiles finite.
        tiny = 2.0**-40
        return np.clip(np.concatenate(blocks).T, tiny, 1.0 - tiny)

    @cached_property
    def optimum(self) -> Optimum:
        """The recorded optimum, or the result of a search; always that of the problem with its graph known."""
        if self.dynamics.truth is not self.dynamics:
            return type(self)(self.dynamics.truth, self._seed, self._recorded).optimum
        recorded = self._recorded
        if recorded is None:
            return self.find_optimum()
        random: tuple[float, float] = recorded.random_value, recorded.random_standard_error
        # An instance with a bent unit has no recorded value.
        if recorded.random_value is None:
            random = self._random_value()
        # SeveralObjectivesOracle reads lists of actions.
        action = self.dynamics.codec.from_record(cast("Record", recorded.action))
        return Optimum(recorded.value, action, recorded.standard_error, *random)

    def find_optimum(self) -> Optimum:
        """Search for the optimum: take a known maximiser, or enumerate the actions, or search each region.

        The search maximises the mean over fixed noise; the value returned is estimated with more, independent points.
        """
        best = self._find_maximiser()
        estimator = type(self)(self.dynamics, seed=self._seed + 1)
        value, error = estimator.expected_rewards([best], tolerance=0.0)
        return Optimum(float(value[0]), best, float(error[0]), *self._random_value())

    def _find_maximiser(self) -> Action:
        if (best := self.dynamics.known_maximiser()) is not None:
            return best
        actions = self.dynamics.all_actions()
        return self._search_box(list(self.dynamics.regions())) if actions is None else self._best_of(actions)

    def _best_of(self, actions: np.ndarray) -> Action:
        """Return the first action with the greatest E[Y | a], if that is exact.

        Otherwise all actions meet the same noise, in rounds with more and more points, and an action is dropped when
        its mean difference from the best one exceeds ``SIGNIFICANT_ERRORS`` standard errors of that difference.
        """
        exact = self._exact_rewards(self.dynamics.decode_batch(actions))
        if exact is not None:
            return actions[np.argmax(np.round(exact, TIE_DECIMALS))]
        points = FIRST_POINTS
        while len(actions) > 1:
            means = self._replicates(self.dynamics.decode_batch(actions), points)
            behind = means[np.argmax(means.mean(axis=1))] - means
            error = behind.std(axis=1, ddof=1) / np.sqrt(REPLICATES)
            actions = actions[behind.mean(axis=1) <= SIGNIFICANT_ERRORS * error]
            if points >= MAX_POINTS:
                break
            points *= 4
        means = self._replicates(self.dynamics.decode_batch(actions), MAX_POINTS).mean(axis=1)
        return actions[np.argmax(means)]

    def _search_box(self, regions: list[Region]) -> Action:
        """Search each region, and climb from the best point on more noise."""
        points, values = [], []
        for region in regions:
            means = self._means_in(region)
            point, value = round_if_continuous(means, maximise_in_box(means, region.dim, self._seed))
            points.append(point)
            values.append(value)
        best = int(np.argmax(values))
        region, point = regions[best], points[best]
        if region.dim and not self._is_exact(self.dynamics.decode_batch(region.to_actions(point[None]))):
            point = _climb_in_box(self._means_in(region, CLIMB_POINTS), point)
        return self._action_at(region, point)

    def _action_at(self, region: Region, point: np.ndarray) -> Action:
        return next(iter(iterate(batch_space(self.dynamics.action_space, 1), region.to_actions(point[None]))))

    def _means_in(self, region: Region, count: int = SEARCH_POINTS) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function to maximise over a region: points ``(n, dim)`` to means over fixed noise ``(n,)``."""

        def means(points: np.ndarray) -> np.ndarray:
            intervention = self.dynamics.decode_batch(region.to_actions(points))
            return np.broadcast_to(self._estimate(intervention, count).value, len(points))

        return means

    def _random_value(self) -> tuple[float, float]:
        """Return the mean and standard error of E[Y | a] over random feasible actions, each with its own noise draws.

        The error is 0 if all actions can be enumerated, because finite spaces sample them uniformly.
        """
        if (enumerated := self.dynamics.all_actions()) is not None:
            batch = self.dynamics.decode_batch(enumerated)
            if (exact := self._exact_rewards(batch)) is not None:
                return float(_keep_feasible(exact, self._is_feasible(batch, len(exact))).mean()), 0.0
        actions = self._random_actions(RANDOM_PLAYS, self._seed)
        noise = self.scm.draw_noise(np.random.default_rng(self._seed), (RANDOM_PLAYS, NOISE_DRAWS))
        means, feasible = [], []
        # In blocks, because an aggregated action may have a thousand points.
        for start in range(0, RANDOM_PLAYS, MAX_DECODED):
            rows = slice(start, start + MAX_DECODED)
            is_dict = isinstance(actions, dict)
            block = {key: column[rows] for key, column in actions.items()} if is_dict else actions[rows]
            intervention = self.dynamics.decode_batch(block)
            means.append(np.atleast_1d(self._with_noise(intervention, tuple(column[rows] for column in noise))))
            feasible.append(self._is_feasible(intervention, len(means[-1])))
        rewards = _keep_feasible(np.concatenate(means), np.concatenate(feasible))
        return float(rewards.mean()), float(rewards.std(ddof=1) / np.sqrt(len(rewards)))

    def _random_actions(self, count: int, seed: int) -> Actions:
        space = batch_space(self.dynamics.action_space, count)
        space.seed(seed)
        return space.sample()

    def _with_noise(self, batch: Intervention, noise: Draws) -> np.ndarray:
        """Return the mean reward of each of a batch over its own draws, shape ``(n, draws)``; exact if possible."""
        exact = self._exact_rewards(batch)
        return self._rewards(batch.expand(), noise).mean(axis=1) if exact is None else exact

    def _is_feasible(self, intervention: Intervention, count: int) -> np.ndarray:
        """Return whether each of a batch of ``count`` interventions is feasible, shape ``(count,)``."""
        return np.ones(count, dtype=bool)


def _keep_feasible(rewards: np.ndarray, feasible: np.ndarray) -> np.ndarray:
    """Return the rewards of feasible actions, or all rewards if no action is feasible."""
    return rewards[feasible] if feasible.any() else rewards


def maximise_in_box(function: Callable[[np.ndarray], np.ndarray], dim: int, seed: int) -> np.ndarray:
    """Maximise a vectorised function of points ``(n, dim)`` over the unit box by differential evolution."""
    if dim == 0:
        return np.zeros(0)
    # Imported here, because it is slow to import.
    from scipy.optimize import differential_evolution

    def negative(x: np.ndarray) -> np.ndarray:
        values = function(x.T.reshape(-1, dim).clip(0.0, 1.0))
        if not np.isfinite(values).all():
            # SciPy replaces a ValueError by its own.
            raise OperationError(
                "expected rewards are not finite: an equation divides by zero, overflows, or takes a logarithm or a "
                "root of a negative number"
            )
        return -values.reshape(x.shape[1:])

    results = [
        differential_evolution(
            negative,
            bounds=[(0.0, 1.0)] * dim,
            vectorized=True,
            updating="deferred",
            init="sobol",
            popsize=30,
            maxiter=300,
            tol=1e-9,
            recombination=recombination,
            rng=np.random.default_rng([seed, run]),
        )
        for run, recombination in enumerate(RECOMBINATION)
    ]
    return np.clip(min(results, key=lambda result: result.fun).x, 0.0, 1.0)


def with_gradient(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the value ``(...)`` of a vectorised function at ``x``, and its finite differences ``(..., dim)``."""
    steps = np.where(x + CLIMB_STEP > 1.0, -CLIMB_STEP, CLIMB_STEP)
    values = function(np.vstack([x, x + np.diag(steps)]))
    return values[0], (values[1:] - values[0]).T / steps


def _climb_in_box(function: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> np.ndarray:
    """Return a local maximiser over the unit box, near ``start`` and no worse, by L-BFGS."""
    # Imported here, because it is slow to import.
    from scipy.optimize import minimize

    negative = partial(with_gradient, lambda points: -function(points))
    box = [(0.0, 1.0)] * len(start)
    end = round_point(minimize(negative, start, jac=True, method="L-BFGS-B", bounds=box, options={"ftol": 1e-15}).x)
    at_start, at_end = function(np.stack([start, end]))
    return end if at_end > at_start else start


def round_if_continuous(function: Callable[[np.ndarray], np.ndarray], point: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a point and its value, after :func:`round_point` unless that crosses a discontinuity of the function."""
    rounded = round_point(point)
    value, exact_value = function(np.stack([rounded, point])).tolist()
    is_jump = exact_value > value + MAX_ROUNDING_LOSS * (1.0 + abs(exact_value))
    return (point, exact_value) if is_jump else (rounded, value)


def round_point(point: np.ndarray) -> np.ndarray:
    """Round a point, so that 1e-12 becomes 0."""
    return np.clip(np.round(point, 9), 0.0, 1.0)
