"""Expected reward vectors, the Pareto front and its hypervolume, where there are several objectives."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector.utils import batch_space

from cbo_gym.actions import ChoiceCodec
from cbo_gym.actions.sets import is_set, to_flat
from cbo_gym.feedback import Region
from cbo_gym.fronts import (
    generational_distance_plus,
    hypervolume,
    inverted_generational_distance_plus,
    non_dominated,
    search_pareto_set,
    spread_out,
)
from cbo_gym.oracle.constrained import ExpectedNode
from cbo_gym.oracle.plain import (
    CLIMB_POINTS,
    RELATIVE_TOLERANCE,
    REPLICATES,
    Estimate,
    Optimum,
    Oracle,
    Scores,
    tidy,
)
from cbo_gym.problems.outcomes import COST
from cbo_gym.scm import Intervention
from cbo_gym.task import Action, Observation

Array = np.ndarray
BELOW = 0.1  # of the front's range, by which the reference point lies below its least values
RECORDED = 50  # actions of the front that are recorded
FRONT_POINTS = {2: 800}  # that a search keeps, by the number of objectives
MOST_FRONT_POINTS = 4000  # with more objectives, whose fronts are surfaces
CHILDREN, GAIN = 512, 3e-5  # of the search
FEW = 2**4  # quasi-Monte Carlo points a replicate, of the search and of random actions
RANDOM_ACTIONS = 2**11
DIGITS = 6  # of the reference point and the recorded front


class Front(NamedTuple):
    """A Pareto front as a search found it.

    Attributes:
        actions: along it, those that are recorded.
        vectors: their expected rewards, ``(k, m)``.
        reference: from which hypervolumes are counted, ``(m,)``.
        value: the hypervolume of all points found, of which the actions are some.
        error: of it.
    """

    actions: list[Action]
    vectors: Array
    reference: Array
    value: float
    error: float


class SeveralObjectivesOracle(Oracle):
    """An oracle by which actions are worth the hypervolume that their expected rewards dominate.

    A single action counts by itself, a list of actions together; after t rounds the actions played so far together.
    The optimum is the hypervolume of the Pareto front of expected rewards. Its standard error covers what quasi-Monte
    Carlo leaves open, and what a front of finitely many points lacks. That is worked out from what half of them lack:
    it halves with twice as many points of a curve, and with those of a surface shrinks by the square root of two.
    """

    @cached_property
    def _nodes(self) -> list[ExpectedNode | None]:
        names = [one.name for one in self.problem.outcomes.objectives]
        return [None if name == COST else ExpectedNode(self.feedback, name, self._seed) for name in names]

    @cached_property
    def _signs(self) -> Array:
        return np.array([one.sign for one in self.problem.outcomes.objectives])

    @property
    def reference(self) -> Array:
        """The point from which hypervolumes are counted, shape ``(m,)``."""
        return self.front.reference

    @cached_property
    def front(self) -> Front:
        """The Pareto front: as it is recorded, or of a search. Of the problem with its graph known."""
        if self.feedback.truth is not self.feedback:
            return type(self)(self.feedback.truth, self._seed, self._recorded).front
        found = self._recorded
        if found is None or not found.front:
            return self._search_front()
        actions = [self.feedback.codec.from_record(record) for record in found.action]  # type: ignore[arg-type]
        return Front(actions, np.array(found.front), np.array(found.reference), found.value, found.standard_error)

    def expected_vectors(self, actions: list[Action], tolerance: float | None = None) -> Estimate:
        """E[rewards | action] of each action, shape ``(len(actions), m)``.

        Args:
            actions: elements of the action space.
            tolerance: standard error to reach, of every objective; None for 0.2 % of the front's range in it.
        """
        if not actions:
            return Estimate(*np.zeros((2, 0, len(self._signs))))
        flat = [to_flat(self.feedback.codec, action) for action in actions]
        _, first, places = np.unique(np.array(flat), axis=0, return_index=True, return_inverse=True)
        batch = self.feedback.decode_batch(self._stacked([actions[place] for place in first]))
        found = self._vectors(batch.broadcast((len(first),)), tolerance)
        return Estimate(*(part[places.reshape(-1)] for part in found))

    def _vectors(self, batch: Intervention, tolerance: float | None) -> Estimate:
        if tolerance is None:
            least = RELATIVE_TOLERANCE * np.maximum(np.ptp(self.front.vectors, axis=0), np.finfo(float).tiny)
        else:
            least = np.full(len(self._signs), tolerance)
        parts = [
            self._cost(batch) if node is None else node.mean_of(batch, float(enough))
            for node, enough in zip(self._nodes, least, strict=True)
        ]
        return self._signed(parts, batch)

    def _cost(self, batch: Intervention) -> Estimate:
        cost = np.asarray(self.feedback.cost(batch), dtype=float)
        return Estimate(cost, np.zeros_like(cost))

    def _signed(self, parts: list[Estimate], batch: Intervention) -> Estimate:
        value, error = (
            np.stack([np.broadcast_to(part[which], batch.batch_shape) for part in parts], axis=-1) for which in (0, 1)
        )
        return Estimate(self._signs * value, error)

    def expected_rewards(self, actions: list[Any], tolerance: float | None = None) -> Estimate:
        """The hypervolume of each action alone, or of each list of actions together, shape ``(len(actions),)``."""
        groups = [one if is_set(one) else [one] for one in actions]
        vectors = self.expected_vectors([action for group in groups for action in group], tolerance)
        ends = np.cumsum([len(group) for group in groups])[:-1]
        return self._hypervolumes(*(np.split(part, ends) for part in vectors))

    def mean_of(self, intervention: Intervention, tolerance: float | None = None) -> Estimate:
        """The hypervolume of each of a batch of interventions alone, of the batch's shape."""
        shape = intervention.batch_shape
        vectors = self._vectors(intervention.broadcast(shape), tolerance)
        rows = [part.reshape(-1, 1, len(self._signs)) for part in vectors]
        return Estimate(*(part.reshape(shape) for part in self._hypervolumes(*map(list, rows))))

    def _hypervolumes(self, vectors: list[Array], errors: list[Array]) -> Estimate:
        """Of sets of vectors; their error is what they would gain if all were larger by theirs."""
        value = np.array([hypervolume(part, self.reference) for part in vectors])
        larger = [hypervolume(part + error, self.reference) for part, error in zip(vectors, errors, strict=True)]
        return Estimate(value, np.array(larger).reshape(value.shape) - value)

    def worth(self, rewards: np.ndarray) -> np.ndarray:
        """The hypervolume of the rewards observed until each round."""
        return np.array([hypervolume(rewards[: t + 1], self.reference) for t in range(len(rewards))])

    def score(self, played: list[Action], recommended: list[Any], seen: list[Observation]) -> Scores:
        known = [action for group in recommended for action in group]
        vectors = self.expected_vectors([*played, *known])
        (own, own_errors), (told, told_errors) = (
            tuple(part[rows] for part in vectors) for rows in (slice(len(played)), slice(len(played), None))
        )
        ends = np.cumsum([len(group) for group in recommended])[:-1]
        groups = np.split(told, ends)
        rounds = range(1, len(played) + 1)
        best = np.full(len(played), self.optimum.value)
        front = self.front.vectors
        return Scores(
            self._hypervolumes([own[:t] for t in rounds], [own_errors[:t] for t in rounds]),
            self._hypervolumes(groups, np.split(told_errors, ends)),
            best,
            best,
            more={"expected_rewards": own.tolist()},
            more_next={
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
        return Optimum(recorded.value, front.actions, recorded.standard_error, *random, more=_recorded(front))

    def find_optimum(self) -> Optimum:
        """Search for the Pareto front, and what a random action dominates by itself."""
        if self.feedback.truth is not self.feedback:
            return type(self)(self.feedback.truth, self._seed).find_optimum()
        front = self.front if self._recorded is None else self._search_front()
        return Optimum(front.value, front.actions, front.error, *self._random(front), more=_recorded(front))

    def _search_front(self) -> Front:
        """All target sets at once: an evolution on common noise, whose last points are estimated on other noise."""
        m = len(self._signs)
        regions, codec = list(self.feedback.regions()), self.feedback.codec
        sets = codec.sets if isinstance(codec, ChoiceCodec) else [frozenset(codec.domains.names)]
        members = [[p for p, name in enumerate(codec.domains.names) if name in one] for one in sets]
        found = search_pareto_set(
            [partial(self._at, region) for region in regions],
            members,
            np.random.default_rng(self._seed),
            children=CHILDREN,
            gain=GAIN,
            size=FRONT_POINTS.get(m, MOST_FRONT_POINTS),
        )
        check = type(self)(self.feedback, self._seed + 1)
        points = tidy(found.points)
        replicates = np.empty((len(points), REPLICATES, m))
        for place, region in enumerate(regions):
            rows = found.box == place
            if rows.any():
                actions = region.to_actions(points[rows][:, members[place]])
                replicates[rows] = check.replicates(self.feedback.decode_batch(actions), CLIMB_POINTS, rows.sum())
        vectors = replicates.mean(axis=1)
        kept = np.flatnonzero(non_dominated(vectors))
        vectors = vectors[kept]
        least, width = vectors.min(axis=0), np.ptp(vectors, axis=0)
        reference = _rounded(least - BELOW * np.where(width > 0.0, width, np.maximum(np.abs(least), 1.0)))
        value = hypervolume(vectors, reference)
        spread = [hypervolume(replicates[kept, one], reference) for one in range(REPLICATES)]
        halves = hypervolume(vectors[spread_out(vectors, len(vectors) // 2 + m)], reference)
        lacking = (value - halves) / (2.0 ** (1.0 / (m - 1)) - 1.0)
        error = float(np.hypot(np.std(spread, ddof=1) / np.sqrt(REPLICATES), lacking))
        chosen = kept[spread_out(vectors, RECORDED)]
        chosen = chosen[np.argsort(-replicates[chosen].mean(axis=1)[:, 0], kind="stable")]
        actions = [
            self._unstacked(regions[place].to_actions(points[[row]][:, members[place]]))
            for row, place in zip(chosen, found.box[chosen], strict=True)
        ]
        return Front(actions, _rounded(replicates[chosen].mean(axis=1)), reference, value, error)

    def _at(self, region: Region, points: Array) -> Array:
        """Means of the rewards over fixed noise, ``(n, m)``, of a region's points."""
        return self.replicates(self.feedback.decode_batch(region.to_actions(points)), FEW, len(points)).mean(axis=1)

    def replicates(self, intervention: Intervention, points: int, count: int) -> Array:
        """Means of the rewards over each scrambling of the noise, ``(count, REPLICATES, m)``.

        Args:
            intervention: a batch of ``count``, or one that stands for them all.
            points: a replicate.
            count: as said.
        """
        batch = intervention.broadcast((count,))
        parts = [
            self._cost(batch).value[..., None] if node is None else node.replicates(batch, points)
            for node in self._nodes
        ]
        return np.stack([np.broadcast_to(part, (count, REPLICATES)) for part in parts], axis=-1) * self._signs

    def _random(self, front: Front) -> tuple[float, float]:
        space = batch_space(self.feedback.action_space, RANDOM_ACTIONS)
        space.seed(self._seed)
        batch = self.feedback.decode_batch(space.sample())
        vectors = self.replicates(batch, FEW, RANDOM_ACTIONS).mean(axis=1)
        alone = np.maximum(vectors - front.reference, 0.0).prod(axis=-1)
        return float(alone.mean()), float(alone.std(ddof=1) / np.sqrt(len(alone)))


def _rounded(numbers: Array) -> Array:
    return np.array([float(f"{number:.{DIGITS}g}") for number in np.ravel(numbers)]).reshape(np.shape(numbers))


def _recorded(front: Front) -> dict[str, Any]:
    return {"reference": front.reference.tolist(), "front": front.vectors.tolist()}
