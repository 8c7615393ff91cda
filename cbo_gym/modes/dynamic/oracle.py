"""The oracle of dynamic mode: the best sequence of interventions, and the best next action after earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby, islice, product
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cbo_gym.modes.base.interface import Region
from cbo_gym.modes.dynamic.dynamics import DynamicDynamics, Past
from cbo_gym.modes.oracles.plain import (
    NOISE_DRAWS,
    SEARCH_POINTS,
    Estimate,
    Optimum,
    Oracle,
    Scores,
    round_if_continuous,
)
from cbo_gym.scm import Intervention
from cbo_gym.task import Action, Observation

# Random sequences that estimate the value of random play.
SEQUENCES = 2**12
# Random sequences, and how many of the best of them start a search for the best sequence.
SAMPLED_SEQUENCES, STARTS = 2**14, 4
# Random actions that estimate the value of random play in one slice.
RANDOM_PLAYS = 2**10
# The search in a slice, whose sets have few variables: quasi-random points, then generations around the best ones.
FIRST_POINTS = 2**10
SURVIVORS, CHILDREN = 8, 16
RADIUS, SHRINKING, GENERATIONS = 0.1, 0.6, 24
# Relative gain below which exchanging an action of a sequence is not an improvement.
GAIN = 1e-9


class SliceOptimum(NamedTuple):
    """The best action of a slice after a past, with its expected reward."""

    action: Action
    value: float


class DynamicOracle(Oracle):
    """E[Y_t | action, past interventions] and two kinds of optimum.

    * :attr:`optimum` is the best sequence: its value is the greatest mean over slices of the expected reward of the
      implemented interventions, those of the last round of each slice. A sacrifice in one slice may pay in later ones.
    * The best in a round is myopic: the greatest E[Y_t | action, past] over the actions of its slice. Regret is
      measured from it, so that the damage of an earlier slice is not counted again.

    A recommendation is scored as an action of the slice of the round after which it is made.
    """

    dynamics: DynamicDynamics
    best_changes: ClassVar[bool] = True

    def __init__(self, dynamics: DynamicDynamics, seed: int = 0, recorded: Any = None) -> None:
        super().__init__(dynamics, seed, recorded)
        # Cache of :meth:`best_after`.
        self._best_after: dict[object, SliceOptimum] = {}

    def score(self, actions: list[Action], recommended: list[Action], observations: list[Observation]) -> Scores:
        pasts = self._pasts(actions)
        of_actions, of_recommended, best, random = [], [], [], []
        for index, rounds in groupby(range(len(actions)), key=self.dynamics.slice_of):
            members, past = list(rounds), pasts[index]
            of_actions.append(np.stack(self.expected_after([actions[i] for i in members], past)))
            of_recommended.append(np.stack(self.expected_after([recommended[i] for i in members], past)))
            best += [self.best_after(past).value] * len(members)
            random += [self.random_after(past)] * len(members)
        expected, expected_next = (Estimate(*np.concatenate(arrays, axis=1)) for arrays in (of_actions, of_recommended))
        return Scores(expected, expected_next, np.array(best), np.array(best), at_random=np.array(random))

    def expected_after(self, actions: list[Action], past: Past) -> Estimate:
        """Return E[Y_t | action, past] of each action in a slice, shape ``(len(actions),)``."""
        batch = self.dynamics.in_round(self.dynamics.decode_batch(self._stack(actions)), past)
        return Estimate(*(np.broadcast_to(array, len(actions)) for array in self.mean_of(batch)))

    def past_of(self, implemented: Sequence[Action]) -> Past:
        """Return the past of the rounds of a slice, given the actions implemented in the slices before."""
        past = self.dynamics.start()
        for action in implemented:
            in_slice = self.dynamics.in_round(self.dynamics.decode(action), past)
            past = Past(past.rounds + self.dynamics.trials, in_slice.hard)
        return past

    def _pasts(self, actions: list[Action]) -> list[Past]:
        """Return the past of each slice of a run, given the actions of its rounds."""
        last = self.dynamics.slice_of(len(actions) - 1) if actions else 0
        implemented = [actions[(index + 1) * self.dynamics.trials - 1] for index in range(last)]
        return [self.past_of(implemented[:index]) for index in range(last + 1)]

    def best_after(self, past: Past) -> SliceOptimum:
        """Return the myopic best action of the slice after a past."""
        index = self.dynamics.slice_of(past.rounds)
        implemented = sorted((name, bool(mask), float(value)) for name, (mask, value) in past.implemented.items())
        key = (index, tuple(implemented))
        if key not in self._best_after:
            self._best_after[key] = self._search_slice(lambda batch: self._mean(self.dynamics.in_round(batch, past)))
        return self._best_after[key]

    def random_after(self, past: Past) -> float:
        """Return the mean of E[Y_t | action, past] over random actions of the slice after a past."""
        batch = self.dynamics.in_round(self.dynamics.decode_batch(self._random_actions(RANDOM_PLAYS, 0)), past)
        return float(self._with_drawn_noise(batch, RANDOM_PLAYS).mean())

    def best_in_round(self, intervention: Intervention, observation: Observation) -> np.ndarray:
        shape = intervention.batch_shape
        batch = intervention.broadcast(shape or (1,))
        pasts = [self._past_in(batch.at(i)) for i in (range(shape[0]) if shape else [0])]
        return np.array([self.best_after(past).value for past in pasts]).reshape(shape)

    def _past_in(self, intervention: Intervention) -> Past:
        """Return the past of a round, given its intervention, which also contains those of earlier slices."""
        # The only soft value is the index of the slice.
        index = int(intervention.soft[0])
        earlier = {f"{name}_{before}" for before in range(index) for name in self.dynamics.manipulable}
        implemented = {name: pair for name, pair in intervention.hard.items() if name in earlier}
        return Past(index * self.dynamics.trials, implemented)

    def find_optimum(self) -> Optimum:
        """Search for the best sequence slice by slice, from the myopic one and from good random ones."""
        starts = [self.myopic_sequence(), *self._good_sequences()]
        best = max(map(self._exchange, starts), key=self._search_value)
        check = DynamicOracle(self.dynamics, seed=self._seed + 1)
        situations = self._in_each_slice(self.past_of(best).implemented)
        estimates = [check.mean_of(situation, tolerance=0.0) for situation in situations]
        value, error = (float(np.mean(numbers)) for numbers in zip(*estimates, strict=True))
        codec = self.dynamics.codec
        descriptions = [
            f"slice {index}: {codec.to_string(codec.to_record(action))}" for index, action in enumerate(best)
        ]
        return Optimum(value, "; ".join(descriptions), error, *self._random_value())

    def myopic_sequence(self) -> list[Action]:
        """Return the best action of each slice after those before it."""
        sequence: list[Action] = []
        for _ in range(self.dynamics.slices.count):
            sequence.append(self.best_after(self.past_of(sequence)).action)
        return sequence

    def value_of(self, sequence: Sequence[Action]) -> float:
        """Return the mean over slices of E[Y_t] if these actions are implemented, one in each slice."""
        situations = self._in_each_slice(self.past_of(sequence).implemented)
        return float(np.mean([self.mean_of(situation, tolerance=0.0).value for situation in situations]))

    def _search_value(self, sequence: Sequence[Action]) -> float:
        return float(self._mean_over_slices(self.past_of(sequence).implemented))

    def _in_each_slice(self, hard: Any) -> list[Intervention]:
        return [Intervention((float(index),), hard) for index in range(self.dynamics.slices.count)]

    def _mean_over_slices(self, hard: Any) -> np.ndarray:
        return np.mean([self._mean(situation) for situation in self._in_each_slice(hard)], axis=0)

    def _mean(self, intervention: Intervention) -> np.ndarray:
        return self._estimate(intervention, SEARCH_POINTS).value

    def _search_slice(self, means: Callable[[Intervention], np.ndarray]) -> SliceOptimum:
        """Return the best action of a slice, where ``means`` gives the values of a batch of actions."""
        candidates = []
        for region in self.dynamics.regions():

            def value(points: np.ndarray, region: Region = region) -> np.ndarray:
                return np.broadcast_to(means(self.dynamics.decode_batch(region.to_actions(points))), len(points))

            point = _zoom(value, region.dim, self._seed)
            candidates.append(SliceOptimum(self._action_at(region, point), float(value(point[None])[0])))
        best = max(candidate.value for candidate in candidates)
        # Prefer the first of nearly equal candidates, because smaller sets come first.
        return next(candidate for candidate in candidates if candidate.value >= best - GAIN * (1.0 + abs(best)))

    def _random_sequences(self, count: int) -> tuple[list[Any], Any]:
        """Return random actions of each slice, batches of ``count``, and the variables that they set together."""
        batches = [self._random_actions(count, self._seed + index) for index in range(self.dynamics.slices.count)]
        hard: dict[str, Any] = {}
        for index, batch in enumerate(batches):
            past = Past(index * self.dynamics.trials, {})
            hard |= self.dynamics.in_round(self.dynamics.decode_batch(batch), past).hard
        return batches, hard

    def _good_sequences(self) -> list[list[Action]]:
        batches, hard = self._random_sequences(SAMPLED_SEQUENCES)
        best = np.argsort(-np.broadcast_to(self._mean_over_slices(hard), SAMPLED_SEQUENCES))[:STARTS]
        return [[{key: values[i] for key, values in batch.items()} for batch in batches] for i in best]

    def _exchange(self, sequence: list[Action]) -> list[Action]:
        """Exchange one action at a time for the best in its slice, until the value no longer grows."""
        sequence, value = list(sequence), self._search_value(sequence)
        while True:
            old_value = value
            tolerance = GAIN * (1.0 + abs(value))
            for index in range(len(sequence)):
                optimum = self._search_slice(partial(self._value_with, sequence, index))
                is_smaller = self._size(optimum.action) < self._size(sequence[index])
                if optimum.value > value + tolerance or (is_smaller and optimum.value >= value - tolerance):
                    sequence[index], value = optimum
            if value <= old_value + tolerance:
                return sequence

    def _size(self, action: Action) -> int:
        """Return the number of variables that an action sets."""
        return len(self.dynamics.codec.sets[self.dynamics.codec.choice_index(action)])

    def _value_with(self, sequence: list[Action], index: int, batch: Intervention) -> np.ndarray:
        changed = self.dynamics.in_round(batch, Past(index * self.dynamics.trials, {})).hard
        names = {f"{name}_{index}" for name in self.dynamics.manipulable}
        others = {name: pair for name, pair in self.past_of(sequence).implemented.items() if name not in names}
        return self._mean_over_slices({**others, **changed})

    def _random_value(self) -> tuple[float, float]:
        """Return the mean and standard error, over random sequences, of the mean over slices."""
        situations = self._in_each_slice(self._random_sequences(SEQUENCES)[1])
        values = np.mean([self._with_drawn_noise(situation, SEQUENCES) for situation in situations], axis=0)
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(SEQUENCES))

    def _with_drawn_noise(self, batch: Intervention, count: int) -> np.ndarray:
        noise = self.scm.draw_noise(np.random.default_rng(self._seed), (count, NOISE_DRAWS))
        return np.broadcast_to(self._with_noise(batch, noise), count)


def _zoom(function: Callable[[np.ndarray], np.ndarray], dim: int, seed: int) -> np.ndarray:
    """Maximise over a unit box of few dimensions: quasi-random points, then smaller and smaller steps from the best."""
    if dim == 0:
        return np.zeros(0)
    # Imported here, because it is slow to import.
    from scipy.stats import qmc

    rng = np.random.default_rng(seed)
    corners = np.array(list(islice(product((0.0, 1.0), repeat=dim), FIRST_POINTS)))
    points = np.concatenate([qmc.Sobol(dim, rng=rng).random(FIRST_POINTS), corners])
    values = function(points)
    radius = RADIUS
    for _ in range(GENERATIONS):
        order = np.argsort(-values)[:SURVIVORS]
        points, values = points[order], values[order]
        steps = rng.normal(0.0, radius, (len(points), CHILDREN, dim))
        children = np.clip(points[:, None] + steps, 0.0, 1.0).reshape(-1, dim)
        points, values = np.concatenate([points, children]), np.concatenate([values, function(children)])
        radius *= SHRINKING
    return round_if_continuous(function, points[np.argmax(values)])[0]
