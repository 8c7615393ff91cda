"""The expected reward of actions and the optimum, with their standard errors.

Only the evaluator and :class:`cbo_gym.wrappers.OracleInfo` use it; agents never do.
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
from cbo_gym.feedback import Feedback, Region
from cbo_gym.registry import RecordedOptimum
from cbo_gym.scm import Intervention
from cbo_gym.scm.system import Draws
from cbo_gym.task import Action, Observation

REPLICATES = 16  # independent scramblings of the quasi-Monte Carlo points; their spread is the standard error
MOST_POINTS = 2**14  # a replicate
SEARCH_POINTS = 2**6
# Where the mean of so few points has its maximum, E[Y | a] may be lower than at its own by ten standard errors of the
# value reported; the search ends with a climb on more of them.
CLIMB_POINTS = 2**10
# Relative loss of value by rounding a point that only a discontinuity explains.
JUMP = 1e-6
CLIMB_STEP = 1e-5  # of the differences that stand for its gradient
FIRST_POINTS = 2**3  # on which every action of an enumeration is tried
MOST_STATES = 2**12  # of the noise, where all are gone through
TIE_DECIMALS = 12  # to which expected rewards are equal
DOUBT = 6.0  # standard errors behind the best at which enumeration drops an action; of 16 replicates, so Student's t
# Of the searches in a box: changing few coordinates at a time finds the best of many local optima that differ in single
# coordinates, as on Alpine2, and changing most of them follows narrow valleys.
RECOMBINATION = (0.3, 0.7)
CHUNK = 2**17  # values of one variable held at a time
RANDOM_ACTIONS = 2**11  # decoded at a time
RELATIVE_TOLERANCE = 0.002  # of the gap between the optimum and a random action


class Estimate(NamedTuple):
    """Means and their standard errors, arrays of one shape."""

    value: np.ndarray
    standard_error: np.ndarray


@dataclass(frozen=True)
class Optimum:
    """The best expected reward over all actions, an action that reaches it, and what a random action earns."""

    value: float
    action: Action
    standard_error: float
    random_value: float
    random_standard_error: float
    more: Mapping[str, Any] = field(default_factory=dict)  # what is recorded besides


class Scores(NamedTuple):
    """The expected rewards of a run's rounds and recommendations, and the best that was possible.

    ``expected`` and ``recommended`` are of the actions played and recommended; ``best`` and ``best_next`` are the best
    expected rewards in the rounds that were played, and in those after them, in which recommendations would be.
    ``at_random`` is what a random action earns in each round, where that changes. Where there are constraints,
    ``missed`` and ``missed_next`` are by how much the actions played and recommended miss them, shape
    ``(rounds, constraints)``. ``more`` and ``more_next`` are further columns of a run's table, one entry per round, of
    the actions played and of those recommended.
    """

    expected: Estimate
    recommended: Estimate
    best: np.ndarray
    best_next: np.ndarray
    missed: np.ndarray | None = None
    missed_next: np.ndarray | None = None
    at_random: np.ndarray | None = None
    more: Mapping[str, Sequence[Any]] = {}
    more_next: Mapping[str, Sequence[Any]] = {}


class Oracle:
    """Expected rewards by quasi-Monte Carlo with common random numbers; exact where noise does not matter.

    Args:
        feedback: the problem in the mode in which it is played.
        seed: of the quasi-Monte Carlo points and the search.
        recorded: the optimum, where it has been searched for already.

    Raises:
        ArgumentTypeError: if ``feedback`` is something else, an environment for example.
    """

    fewest_points: ClassVar[int] = 2**8  # a replicate
    #: whether regret is counted from what is best in each round by itself, see :class:`Scores`
    best_changes: ClassVar[bool] = False

    def __init__(self, feedback: Feedback, seed: int = 0, recorded: RecordedOptimum | None = None) -> None:
        if not isinstance(feedback, Feedback):
            raise ArgumentTypeError(
                f"an Oracle needs a Feedback; given {type(feedback).__name__}. "
                "cbo_gym.oracle.oracle_of(env) gives that of an environment"
            )
        self.feedback = feedback
        self.problem = feedback.problem
        self.scm = feedback.scm
        self._measured = self.problem.outcomes.reward
        self._seed = seed
        self._recorded = recorded
        self._noise_cache: dict[int, Draws] = {}

    def expected_rewards(self, actions: list[Action], tolerance: float | None = None) -> Estimate:
        """E[Y | action] of each action, shape ``(len(actions),)``.

        Args:
            actions: elements of the action space.
            tolerance: standard error to reach; None for 0.2 % of the gap between the optimum and a random action.
                The number of points stops growing at 2**18 in all.
        """
        if not actions:
            return Estimate(np.zeros(0), np.zeros(0))
        stacked = self._stacked(actions)
        if isinstance(stacked, np.ndarray):  # bandits play one action many times
            stacked, places = np.unique(stacked, axis=0, return_inverse=True)
            found = self.mean_of(self.feedback.decode_batch(stacked), tolerance)
            return Estimate(*(part[places.reshape(-1)] for part in found))
        found = self.mean_of(self.feedback.decode_batch(stacked), tolerance)
        # a batch of nothing but observations holds no entry that shows its size
        return Estimate(*(np.broadcast_to(part, len(actions)) for part in found))

    def _stacked(self, actions: list[Action]) -> Actions:
        space = self.feedback.action_space
        empty: Actions = create_empty_array(space, len(actions))
        return concatenate(space, actions, empty)

    def expected_in_round(self, intervention: Intervention, seen: Observation) -> Estimate:
        """The expected reward of an intervention after what was seen before it; of a batch, in a batch of rounds."""
        return self.mean_of(intervention)

    def meets_constraints(self, actions: list[Action]) -> np.ndarray:
        """Whether each action meets the problem's constraints in expectation, boolean: all do where there are none."""
        return np.ones(len(actions), dtype=bool)

    def best_in_round(self, intervention: Intervention, seen: Observation) -> np.ndarray:
        """The best expected reward in the round in which an intervention is played, from which its regret is counted.

        Args:
            intervention: situated, of one round or of a batch of them.
            seen: before the round.
        """
        return np.broadcast_to(self.optimum.value, intervention.batch_shape[self.feedback.own_axes :])

    def worth(self, rewards: np.ndarray) -> np.ndarray:
        """The value of each round of a run as one number, shape ``(rounds,)``: its reward.

        Args:
            rewards: as the environment gave them, one per round.
        """
        return rewards

    def score(self, played: list[Action], recommended: list[Action], seen: list[Observation]) -> Scores:
        """The expected rewards of a run's actions and recommendations, and the best that could be had in each round.

        Args:
            played: the actions, one per round.
            recommended: the recommendation after each round.
            seen: what was seen before each round, and after the last one.
        """
        both = self.expected_rewards([*played, *recommended])
        first, second = (Estimate(*parts) for parts in zip(*[np.split(p, [len(played)]) for p in both], strict=True))
        best = np.full(len(played), self.optimum.value)
        return Scores(first, second, best, best)

    def mean_of(self, intervention: Intervention, tolerance: float | None = None) -> Estimate:
        """E[Y | intervention] for a batch of interventions, of the batch's shape (``()`` or ``(n,)``).

        Axes in front of the batch's, the mode's own, are not counted.
        """
        value = self._exactly(intervention)
        if value is not None:
            return Estimate(value, np.zeros_like(value))
        return self._refine(partial(self._quasi_monte_carlo, intervention), tolerance)

    def _refine(self, estimate_with: Callable[[int], Estimate], tolerance: float | None) -> Estimate:
        """An estimate with as many points as the tolerance asks for."""
        if tolerance is None:
            gap = self.optimum.value - self.optimum.random_value
            tolerance = RELATIVE_TOLERANCE * gap
        points = self.fewest_points
        while True:
            estimate = estimate_with(points)
            if points >= MOST_POINTS or np.max(estimate.standard_error, initial=0.0) <= tolerance:
                return estimate
            points *= 4

    def _exactly(self, intervention: Intervention) -> np.ndarray | None:
        """E[Y | intervention] without an error: from one noiseless pass, or over all states of the noise; else None."""
        if self._is_exact(intervention):
            return self._rewards(intervention.expand(), self._no_noise)[..., 0]
        if self._states is None:
            return None
        noise, probabilities = self._states
        return self._reduced(intervention, noise, lambda rewards: rewards @ probabilities)

    def _is_exact(self, intervention: Intervention) -> bool:
        """Whether one noiseless pass gives the expectation."""
        linear = self.problem.noiseless_mean and not intervention.hard
        return linear or not self.scm.noisy

    @cached_property
    def _states(self) -> tuple[Draws, np.ndarray] | None:
        """All values of the noise behind the reward with their probabilities; None where they are not few."""
        behind = self._noise_behind
        some = np.array([0.5])  # of the noise of others any draw will do
        atoms = [v.noise.atoms if v.name in behind else (v.noise.from_uniform(some), [1.0]) for v in self.scm.noisy]
        known = [found for found in atoms if found is not None]
        count = math.prod(len(values) for values, _ in known)
        if len(known) < len(atoms) or count > MOST_STATES:
            return None
        noise, probabilities, rest = [], np.ones(count), np.arange(count)
        for values, weights in known:
            rest, place = np.divmod(rest, len(values))
            noise.append(np.asarray(values)[place])
            probabilities *= np.asarray(weights)[place]
        return tuple(noise), probabilities

    @property
    def _noise_behind(self) -> frozenset[str]:
        """The noisy variables on whose draws depends what is measured."""
        return self.scm.noise_of_reward

    @property
    def _no_noise(self) -> Draws:
        return tuple(np.zeros(1) for _ in self.scm.noisy)

    def _rewards(self, intervention: Intervention, noise: Draws) -> np.ndarray:
        """Rewards of shape ``batch + (number of draws,)`` of an expanded batch."""
        reward = self._measured(self.feedback.play(noise, intervention))
        draws = np.broadcast_shapes(*[np.shape(column) for column in noise])
        shape = np.broadcast_shapes(intervention.batch_shape[self.feedback.own_axes :], draws or (1,))
        return np.broadcast_to(reward, shape)

    def _quasi_monte_carlo(self, intervention: Intervention, points: int) -> Estimate:
        replicates = self._replicates(intervention, points)
        error = replicates.std(axis=-1, ddof=1) / np.sqrt(REPLICATES)
        return Estimate(replicates.mean(axis=-1), error)

    def _replicates(self, intervention: Intervention, points: int) -> np.ndarray:
        """Means over each scrambling of the points, shape ``batch + (REPLICATES,)``."""

        def means(rewards: np.ndarray) -> np.ndarray:
            return rewards.reshape(-1, REPLICATES, points).mean(axis=2)

        return self._reduced(intervention, self._noise(points), means)

    def _reduced(
        self, intervention: Intervention, noise: Draws, reduce: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """The rewards under each of a batch, shape ``(n, draws)``, reduced by ``reduce`` some rows at a time."""
        own = intervention.batch_shape[: self.feedback.own_axes]
        shape = intervention.batch_shape[self.feedback.own_axes :]
        count = shape[0] if shape else 1
        batch = intervention.broadcast(shape) if shape else intervention.expand()
        draws = math.prod(np.broadcast_shapes(*map(np.shape, noise)))
        size = max(1, CHUNK // (draws * math.prod(own)))
        parts = []
        for start in range(0, count, size):
            part = batch.rows(slice(start, start + size)).expand()
            parts.append(reduce(self._rewards(part, noise).reshape(-1, draws)))
        found = np.concatenate(parts)
        return found.reshape((*shape, *found.shape[1:]))

    def _noise(self, points: int) -> Draws:
        if points not in self._noise_cache:
            self._noise_cache[points] = self.scm.noise_from_uniform(self._uniforms(points))
        return self._noise_cache[points]

    def _uniforms(self, points: int) -> np.ndarray:
        """Quasi-random numbers in (0, 1), shape ``(noisy variables, REPLICATES * points)``, replicate by replicate."""
        from scipy.stats import qmc  # late: slow to import, and needed only here

        dims = len(self.scm.noisy)
        seeds = np.random.SeedSequence(self._seed).spawn(REPLICATES)
        blocks = [qmc.Sobol(dims, scramble=True, rng=np.random.default_rng(s)).random(points) for s in seeds]
        tiny = 2.0**-40  # keeps quantiles finite
        return np.clip(np.concatenate(blocks).T, tiny, 1.0 - tiny)

    @cached_property
    def optimum(self) -> Optimum:
        """The recorded optimum where there is one, else a search's result: of the problem with its graph known."""
        if self.feedback.truth is not self.feedback:
            return type(self)(self.feedback.truth, self._seed, self._recorded).optimum
        recorded = self._recorded
        if recorded is None:
            return self.find_optimum()
        random: tuple[float, float] = recorded.random_value, recorded.random_standard_error
        if recorded.random_value is None:  # of an instance
            random = self._random_value()
        action = self.feedback.codec.from_record(cast("Record", recorded.action))  # lists of actions are read elsewhere
        return Optimum(recorded.value, action, recorded.standard_error, *random)

    def find_optimum(self) -> Optimum:
        """Search for the optimum: a known maximiser where the problem has one, else by enumeration or by region.

        The search maximises the mean over fixed noise; the value reported is of independent, more numerous points.
        """
        best = self._find_maximiser()
        check = type(self)(self.feedback, seed=self._seed + 1)
        value, error = check.expected_rewards([best], tolerance=0.0)
        random = self._random_value()
        return Optimum(float(value[0]), best, float(error[0]), *random)

    def _find_maximiser(self) -> Action:
        if (best := self.feedback.known_maximiser()) is not None:
            return best
        every = self.feedback.all_actions()
        return self._search_box(list(self.feedback.regions())) if every is None else self._best_of(every)

    def _best_of(self, actions: np.ndarray) -> Action:
        """The best of an array of actions: the first with the greatest E[Y | a], where that is known exactly.

        Elsewhere all are tried on the same noise, and only those within reach of the best go on to more points: actions
        whose difference from it, which common noise makes far less uncertain than either mean, is at most ``DOUBT``
        standard errors.
        """
        known = self._exactly(self.feedback.decode_batch(actions))
        if known is not None:
            return actions[np.argmax(np.round(known, TIE_DECIMALS))]
        points = FIRST_POINTS
        while len(actions) > 1:
            means = self._replicates(self.feedback.decode_batch(actions), points)
            behind = means[np.argmax(means.mean(axis=1))] - means
            error = behind.std(axis=1, ddof=1) / np.sqrt(REPLICATES)
            actions = actions[behind.mean(axis=1) <= DOUBT * error]
            if points >= MOST_POINTS:
                break
            points *= 4
        means = self._replicates(self.feedback.decode_batch(actions), MOST_POINTS).mean(axis=1)
        return actions[np.argmax(means)]

    def _search_box(self, regions: list[Region]) -> Action:
        """The best action of all regions: that of the best of their searches, after a climb on more noise."""
        searched = [(self._means_in(region), region.dim) for region in regions]
        points, values = zip(
            *(tidied(means, maximise_in_box(means, dim, self._seed)) for means, dim in searched), strict=True
        )
        place = int(np.argmax(values))
        region, point = regions[place], points[place]
        if region.dim and not self._is_exact(self.feedback.decode_batch(region.to_actions(point[None]))):
            point = _climb_in_box(self._means_in(region, CLIMB_POINTS), point)
        return self._unstacked(region.to_actions(point[None]))

    def _unstacked(self, actions: Actions) -> Action:
        return next(iter(iterate(batch_space(self.feedback.action_space, 1), actions)))

    def _means_in(self, region: Region, count: int = SEARCH_POINTS) -> Callable[[np.ndarray], np.ndarray]:
        """The function of a region's points ``(n, dim)`` to search: means over fixed noise, ``count`` a replicate."""

        def means(points: np.ndarray) -> np.ndarray:
            intervention = self.feedback.decode_batch(region.to_actions(points))
            exact = self._exactly(intervention)
            if exact is not None:
                return np.broadcast_to(exact, len(points))
            return np.broadcast_to(self._quasi_monte_carlo(intervention, count).value, len(points))

        return means

    def _random_value(self, count: int = 2**14) -> tuple[float, float]:
        """Mean and standard error of E[Y | a] over random actions a, each met by a few noise draws of its own.

        Without an error where all actions can be gone through: spaces of finitely many sample them uniformly.
        """
        every = self.feedback.all_actions()
        known = None if every is None else self._exactly(self.feedback.decode_batch(every))
        if every is not None and known is not None:
            return float(_those(known, self._counting(self.feedback.decode_batch(every), len(known))).mean()), 0.0
        space = batch_space(self.feedback.action_space, count)
        space.seed(self._seed)
        rng = np.random.default_rng(self._seed)
        actions = space.sample()
        noise = self.scm.draw_noise(rng, (count, 8))
        parts, counting = [], []
        for start in range(0, count, RANDOM_ACTIONS):  # an aggregated action may be a thousand points
            rows = slice(start, start + RANDOM_ACTIONS)
            chosen = {k: v[rows] for k, v in actions.items()} if isinstance(actions, dict) else actions[rows]
            intervention = self.feedback.decode_batch(chosen)
            exact = self._exactly(intervention)
            if exact is None:
                drawn = tuple(column[rows] for column in noise)
                exact = self._rewards(intervention.expand(), drawn).mean(axis=1)
            parts.append(np.atleast_1d(exact))
            counting.append(self._counting(intervention, len(parts[-1])))
        rewards = _those(np.concatenate(parts), np.concatenate(counting))
        return float(rewards.mean()), float(rewards.std(ddof=1) / np.sqrt(len(rewards)))

    def _counting(self, intervention: Intervention, count: int) -> np.ndarray:
        """Which of a batch of ``count`` interventions count as random actions, boolean, shape ``(count,)``."""
        return np.ones(count, dtype=bool)


def _those(rewards: np.ndarray, counting: np.ndarray) -> np.ndarray:
    """The rewards that count; all where none does."""
    return rewards[counting] if counting.any() else rewards


def maximise_in_box(function: Callable[[np.ndarray], np.ndarray], dim: int, seed: int) -> np.ndarray:
    """A maximiser over the unit box of a vectorised function of points ``(n, dim)``; differential evolution."""
    if dim == 0:
        return np.zeros(0)
    from scipy.optimize import differential_evolution  # late: slow to import, and needed only here

    def lacking(x: np.ndarray) -> np.ndarray:
        values = function(x.T.reshape(-1, dim).clip(0.0, 1.0))
        if not np.isfinite(values).all():
            raise OperationError(  # SciPy makes something else of a ValueError
                "expected rewards are not finite: some equation divides by zero, overflows, or takes a logarithm or a "
                "root of a negative number"
            )
        return -values.reshape(x.shape[1:])

    found = [
        differential_evolution(
            lacking,
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
    return np.clip(min(found, key=lambda result: result.fun).x, 0.0, 1.0)


def _climb_in_box(function: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> np.ndarray:
    """A local maximiser over the unit box, near ``start`` and no worse: L-BFGS with differences for the gradient."""
    from scipy.optimize import minimize  # late: slow to import, and needed only here

    def lacking(x: np.ndarray) -> tuple[float, np.ndarray]:
        steps = np.where(x + CLIMB_STEP > 1.0, -CLIMB_STEP, CLIMB_STEP)
        values = -function(np.vstack([x, x + np.diag(steps)]))
        return float(values[0]), (values[1:] - values[0]) / steps

    found = minimize(
        lacking, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(start), options={"ftol": 1e-15}
    )
    reached = tidy(found.x)
    here, there = function(np.stack([start, reached]))
    return reached if there > here else start


def tidied(function: Callable[[np.ndarray], np.ndarray], point: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a point, by :func:`tidy` unless that steps over a jump of the function, and the value there."""
    rounded, exact = function(np.stack([tidy(point), point])).tolist()
    return (point, exact) if exact > rounded + JUMP * (1.0 + abs(exact)) else (tidy(point), rounded)


def tidy(point: np.ndarray) -> np.ndarray:
    """0 and 1 rather than 1e-12 beside them."""
    return np.clip(np.round(point, 9), 0.0, 1.0)
