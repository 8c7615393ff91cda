"""Expected reward vectors, the Pareto front and its hypervolume, for several objectives."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from cbo_gym._util.fronts import (
    generational_distance_plus,
    hypervolume,
    inverted_generational_distance_plus,
    non_dominated,
    search_pareto_set,
    spread_out,
)
from cbo_gym.actions import ChoiceCodec
from cbo_gym.actions.sets import is_set, to_flat
from cbo_gym.modes.base.interface import Region
from cbo_gym.modes.oracles.constrained import ExpectedNode
from cbo_gym.modes.oracles.plain import (
    CLIMB_POINTS,
    RELATIVE_TOLERANCE,
    REPLICATES,
    Estimate,
    Optimum,
    Oracle,
    Scores,
    round_point,
)
from cbo_gym.problems.outcomes import COST
from cbo_gym.scm import Intervention
from cbo_gym.task import Action, Observation

Array = np.ndarray
# The reference point lies below the front's smallest values by this share of the front's range.
REFERENCE_MARGIN = 0.1
# Number of actions of the front that are recorded.
MAX_RECORDED = 50
# Points that a search keeps of a front of two objectives, a curve, and of more objectives, a surface.
CURVE_POINTS, SURFACE_POINTS = 800, 4000
# Children of a generation of the search, and the relative gain at which it stops.
CHILDREN, GAIN = 512, 3e-5
# Quasi-Monte Carlo points per replicate in the search and for random actions, and the number of random actions.
SEARCH_POINTS = 2**4
RANDOM_ACTIONS = 2**11
# Digits of the reference point and of the recorded front.
DIGITS = 6


class Front(NamedTuple):
    """A Pareto front.

    Attributes:
        actions: a selection of actions along the front.
        vectors: their expected rewards, ``(k, m)``.
        reference: reference point of hypervolumes, ``(m,)``.
        value: hypervolume of all points of the search.
        error: standard error of the hypervolume.
    """

    actions: list[Action]
    vectors: Array
    reference: Array
    value: float
    error: float


class SeveralObjectivesOracle(Oracle):
    """Oracle that scores actions by the hypervolume that their expected rewards dominate.

    An action is scored alone, a list of actions as a set, and t rounds of a run as the set of the actions played. The
    optimum is the hypervolume of the Pareto front of expected rewards. Its standard error covers quasi-Monte Carlo
    error and the hypervolume that finitely many points miss. The latter is extrapolated from the hypervolume of half of
    the points: doubling the points divides the missing part of a curve by 2, and of a surface by the square root of 2.
    """

    @cached_property
    def _nodes(self) -> list[ExpectedNode | None]:
        names = [objective.name for objective in self.problem.outcomes.objectives]
        return [None if name == COST else ExpectedNode(self.dynamics, name, self._seed) for name in names]

    @cached_property
    def _signs(self) -> Array:
        return np.array([objective.sign for objective in self.problem.outcomes.objectives])

    @property
    def reference(self) -> Array:
        """Reference point of hypervolumes, shape ``(m,)``."""
        return self.front.reference

    @cached_property
    def front(self) -> Front:
        """The Pareto front of the problem with a known graph, recorded or else found by a search."""
        if self.dynamics.truth is not self.dynamics:
            return type(self)(self.dynamics.truth, self._seed, self._recorded).front
        recorded = self._recorded
        if recorded is None or not recorded.front:
            return self._search_front()
        actions = [self.dynamics.codec.from_record(record) for record in recorded.action]  # type: ignore[arg-type]
        vectors, reference = np.array(recorded.front), np.array(recorded.reference)
        return Front(actions, vectors, reference, recorded.value, recorded.standard_error)

    def expected_vectors(self, actions: list[Action], tolerance: float | None = None) -> Estimate:
        """Return E[rewards | action] of each action, shape ``(len(actions), m)``.

        Args:
            actions: elements of the action space.
            tolerance: standard error to reach in every objective; None for 0.2 % of the front's range in it.
        """
        if not actions:
            return Estimate(*np.zeros((2, 0, len(self._signs))))
        flat = np.array([to_flat(self.dynamics.codec, action) for action in actions])
        _, indices, rows = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        batch = self.dynamics.decode_batch(self._stack([actions[i] for i in indices]))
        vectors = self._vectors(batch.broadcast((len(indices),)), tolerance)
        return Estimate(*(array[rows.reshape(-1)] for array in vectors))

    def _vectors(self, batch: Intervention, tolerance: float | None) -> Estimate:
        if tolerance is None:
            tolerances = RELATIVE_TOLERANCE * np.maximum(np.ptp(self.front.vectors, axis=0), np.finfo(float).tiny)
        else:
            tolerances = np.full(len(self._signs), tolerance)
        estimates = [
            self._cost(batch) if node is None else node.mean_of(batch, float(error))
            for node, error in zip(self._nodes, tolerances, strict=True)
        ]
        value, error = (
            np.stack([np.broadcast_to(column, batch.batch_shape) for column in columns], axis=-1)
            for columns in zip(*estimates, strict=True)
        )
        return Estimate(self._signs * value, error)

    def _cost(self, batch: Intervention) -> Estimate:
        cost = np.asarray(self.dynamics.cost(batch), dtype=float)
        return Estimate(cost, np.zeros_like(cost))

    def expected_rewards(self, actions: list[Any], tolerance: float | None = None) -> Estimate:
        """Return the hypervolume of each action, or of each list of actions together, shape ``(len(actions),)``."""
        groups = [action if is_set(action) else [action] for action in actions]
        vectors = self.expected_vectors([action for group in groups for action in group], tolerance)
        ends = np.cumsum([len(group) for group in groups])[:-1]
        return self._hypervolumes(*(np.split(array, ends) for array in vectors))

    def mean_of(self, intervention: Intervention, tolerance: float | None = None) -> Estimate:
        """Return the hypervolume of each of a batch of interventions, of the batch's shape."""
        shape = intervention.batch_shape
        vectors = self._vectors(intervention.broadcast(shape), tolerance)
        rows = [array.reshape(-1, 1, len(self._signs)) for array in vectors]
        return Estimate(*(array.reshape(shape) for array in self._hypervolumes(*map(list, rows))))

    def _hypervolumes(self, vectors: list[Array], errors: list[Array]) -> Estimate:
        """Return hypervolumes of sets of vectors; an error is the gain if all vectors grow by their errors."""
        value = np.array([hypervolume(group, self.reference) for group in vectors])
        larger = [hypervolume(group + error, self.reference) for group, error in zip(vectors, errors, strict=True)]
        return Estimate(value, np.array(larger).reshape(value.shape) - value)

    def scalarize(self, rewards: np.ndarray) -> np.ndarray:
        """Return the hypervolume of the rewards observed until each round."""
        return np.array([hypervolume(rewards[: t + 1], self.reference) for t in range(len(rewards))])

    def score(self, actions: list[Action], recommended: list[Any], observations: list[Observation]) -> Scores:
        vectors = self.expected_vectors([*actions, *(action for group in recommended for action in group)])
        (played_vectors, recommended_vectors), (played_errors, recommended_errors) = (
            np.split(array, [len(actions)]) for array in vectors
        )
        ends = np.cumsum([len(group) for group in recommended])[:-1]
        groups = np.split(recommended_vectors, ends)
        rounds = range(1, len(actions) + 1)
        best = np.full(len(actions), self.optimum.value)
        front = self.front.vectors
        return Scores(
            self._hypervolumes([played_vectors[:t] for t in rounds], [played_errors[:t] for t in rounds]),
            self._hypervolumes(groups, np.split(recommended_errors, ends)),
            best,
            best,
            extra_columns={"expected_rewards": played_vectors.tolist()},
            extra_next={
                "gd_plus": [generational_distance_plus(group, front) for group in groups],
                "igd_plus": [inverted_generational_distance_plus(group, front) for group in groups],
                "recommended_rewards": [group.ravel().tolist() for group in groups],
            },
        )

    @cached_property
    def optimum(self) -> Optimum:
        recorded = self._recorded
        if recorded is None:
            return self.find_optimum()
        front = self.front
        random = recorded.random_value, recorded.random_standard_error
        return Optimum(recorded.value, front.actions, recorded.standard_error, *random, fields=_record_fields(front))

    def find_optimum(self) -> Optimum:
        """Search for the Pareto front, and estimate the hypervolume of a random action."""
        if self.dynamics.truth is not self.dynamics:
            return type(self)(self.dynamics.truth, self._seed).find_optimum()
        front = self.front if self._recorded is None else self._search_front()
        random = self._random_hypervolume(front)
        return Optimum(front.value, front.actions, front.error, *random, fields=_record_fields(front))

    def _search_front(self) -> Front:
        """Search all target sets at once by evolution on common noise; estimate the last points with new noise."""
        dim = len(self._signs)
        regions, codec = list(self.dynamics.regions()), self.dynamics.codec
        sets = codec.sets if isinstance(codec, ChoiceCodec) else [frozenset(codec.domains.names)]
        members = [[i for i, name in enumerate(codec.domains.names) if name in chosen] for chosen in sets]

        def means(region: Region, points: Array) -> Array:
            batch = self.dynamics.decode_batch(region.to_actions(points))
            return self.replicates(batch, SEARCH_POINTS, len(points)).mean(axis=1)

        result = search_pareto_set(
            [partial(means, region) for region in regions],
            members,
            np.random.default_rng(self._seed),
            children=CHILDREN,
            gain=GAIN,
            size=CURVE_POINTS if dim == 2 else SURFACE_POINTS,
        )
        estimator = type(self)(self.dynamics, self._seed + 1)
        points = round_point(result.points)
        replicates = np.empty((len(points), REPLICATES, dim))
        for index, region in enumerate(regions):
            rows = result.box == index
            if rows.any():
                batch = self.dynamics.decode_batch(region.to_actions(points[rows][:, members[index]]))
                replicates[rows] = estimator.replicates(batch, CLIMB_POINTS, rows.sum())
        vectors = replicates.mean(axis=1)
        on_front = np.flatnonzero(non_dominated(vectors))
        vectors = vectors[on_front]
        smallest, width = vectors.min(axis=0), np.ptp(vectors, axis=0)
        margin = REFERENCE_MARGIN * np.where(width > 0.0, width, np.maximum(np.abs(smallest), 1.0))
        reference = _round(smallest - margin)
        value = hypervolume(vectors, reference)
        values = [hypervolume(replicates[on_front, replicate], reference) for replicate in range(REPLICATES)]
        value_of_half = hypervolume(vectors[spread_out(vectors, len(vectors) // 2 + dim)], reference)
        missing = (value - value_of_half) / (2.0 ** (1.0 / (dim - 1)) - 1.0)
        error = float(np.hypot(np.std(values, ddof=1) / np.sqrt(REPLICATES), missing))
        chosen = on_front[spread_out(vectors, MAX_RECORDED)]
        chosen = chosen[np.argsort(-replicates[chosen].mean(axis=1)[:, 0], kind="stable")]
        actions = [
            self._action_at(regions[index], points[row, members[index]])
            for row, index in zip(chosen, result.box[chosen], strict=True)
        ]
        return Front(actions, _round(replicates[chosen].mean(axis=1)), reference, value, error)

    def replicates(self, intervention: Intervention, points: int, count: int) -> Array:
        """Return means of the rewards over each replicate of ``points``, ``(count, REPLICATES, m)``.

        ``intervention`` is a batch of ``count``, or one for all of them.
        """
        batch = intervention.broadcast((count,))
        columns = [
            self._cost(batch).value[..., None] if node is None else node._replicates(batch, points)
            for node in self._nodes
        ]
        return np.stack([np.broadcast_to(column, (count, REPLICATES)) for column in columns], axis=-1) * self._signs

    def _random_hypervolume(self, front: Front) -> tuple[float, float]:
        """Return the mean and standard error of the hypervolumes of random actions."""
        batch = self.dynamics.decode_batch(self._random_actions(RANDOM_ACTIONS, self._seed))
        vectors = self.replicates(batch, SEARCH_POINTS, RANDOM_ACTIONS).mean(axis=1)
        hypervolumes = np.maximum(vectors - front.reference, 0.0).prod(axis=-1)
        return float(hypervolumes.mean()), float(hypervolumes.std(ddof=1) / np.sqrt(len(hypervolumes)))


def _round(numbers: Array) -> Array:
    return np.array([float(f"{number:.{DIGITS}g}") for number in np.ravel(numbers)]).reshape(np.shape(numbers))


def _record_fields(front: Front) -> dict[str, Any]:
    return {"reference": front.reference.tolist(), "front": front.vectors.tolist()}
