"""The oracle of dynamic mode: the best sequence of interventions, and the myopic best given what was implemented."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, islice, product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium.vector.utils import batch_space, iterate

from cbo_gym.feedback.dynamic import DynamicFeedback, Past
from cbo_gym.oracle.plain import SEARCH_POINTS, Estimate, Optimum, Oracle, Scores, tidied
from cbo_gym.scm import Intervention
from cbo_gym.task import Action, Observation

SEQUENCES = 2**12  # random ones, for what random play earns
TRIED, STARTS = 2**14, 4  # random ones, and how many of the best of them a search for the best sequence starts from
RANDOM_PLAYS = 2**10  # random actions of a slice, for what they earn in it
RANDOM_DRAWS = 8  # of the noise that each of them meets
# Of the search in a slice, whose sets have few variables: quasi-random points, then generations around the best ones.
FIRST_TRIED = 2**10
SURVIVORS, CHILDREN = 8, 16
RADIUS, SHRINKING, GENERATIONS = 0.1, 0.6, 24
GAIN = 1e-9  # of the value, below which exchanging an action of a sequence is no improvement

Means = Callable[[np.ndarray], np.ndarray]  # points (n, dim) -> values (n,)


class Found(NamedTuple):
    """The best action of a slice after a past, with its expected reward."""

    action: Action
    value: float


class DynamicOracle(Oracle):
    """E[Y_t | action, what was implemented] and two kinds of optimum.

    * :attr:`optimum` is of sequences: its value is the greatest mean over slices of the expected reward of what is
      implemented there. A sacrifice in one slice may pay in later ones.
    * The best in a round is myopic: the greatest E[Y_t | action, past] over the actions of its slice, given what was
      implemented before. Regret is counted from it, so that what an earlier slice has spoilt is not counted again.

    A recommendation is judged as an action of the slice of the round that was played last.

    Args:
        feedback: the problem, played in dynamic mode.
        seed: of the quasi-Monte Carlo points and the search.
        recorded: the optimum, where it has been searched for already.
    """

    feedback: DynamicFeedback
    best_changes: ClassVar[bool] = True

    def __init__(self, feedback: DynamicFeedback, seed: int = 0, recorded: Any = None) -> None:
        super().__init__(feedback, seed, recorded)
        self._best_after: dict[object, Found] = {}

    def score(self, played: list[Action], recommended: list[Action], seen: list[Observation]) -> Scores:
        pasts = self._pasts(played)
        rows: dict[str, list[np.ndarray]] = {name: [] for name in ("of_played", "of_recommended", "best", "random")}
        for place, rounds in groupby(range(len(played)), key=self.feedback.slice_of):
            members = list(rounds)
            past = pasts[place]
            rows["of_played"].append(np.stack(self.expected_after([played[i] for i in members], past)))
            rows["of_recommended"].append(np.stack(self.expected_after([recommended[i] for i in members], past)))
            rows["best"].append(np.full(len(members), self.best_after(past).value))
            rows["random"].append(np.full(len(members), self.random_after(past)))
        of_played, of_recommended = (
            Estimate(*np.concatenate(rows[name], axis=1)) for name in ("of_played", "of_recommended")
        )
        best = np.concatenate(rows["best"])
        return Scores(of_played, of_recommended, best, best, at_random=np.concatenate(rows["random"]))

    def expected_after(self, actions: list[Action], past: Past) -> Estimate:
        """E[Y_t | action, past] of each action in a slice, shape ``(len(actions),)``."""
        batch = self.feedback.situate(self.feedback.decode_batch(self._stacked(actions)), past)
        return Estimate(*(np.broadcast_to(part, len(actions)) for part in self.mean_of(batch)))

    def past_of(self, implemented: Sequence[Action]) -> Past:
        """The past that the rounds of a slice depend on, once these actions were implemented in the slices before."""
        past = self.feedback.start()
        for action in implemented:
            done = self.feedback.situate(self.feedback.decode(action), past)
            past = Past(past.rounds + self.feedback.trials, done.hard)
        return past

    def _pasts(self, played: list[Action]) -> list[Past]:
        last = self.feedback.slice_of(len(played) - 1) if played else 0
        ends = [(place + 1) * self.feedback.trials - 1 for place in range(last)]
        return [self.past_of([played[end] for end in ends[:place]]) for place in range(last + 1)]

    def best_after(self, past: Past) -> Found:
        """The myopic best of the slice that comes after a past."""
        place = self.feedback.slice_of(past.rounds)
        implemented = sorted((name, bool(mask), float(value)) for name, (mask, value) in past.implemented.items())
        key = (place, tuple(implemented))
        if key not in self._best_after:
            self._best_after[key] = self._search_slice(lambda batch: self._mean(self.feedback.situate(batch, past)))
        return self._best_after[key]

    def random_after(self, past: Past) -> float:
        """The mean of E[Y_t | action, past] over random actions of the slice that comes after a past."""
        batch = self.feedback.situate(self.feedback.decode_batch(self._random_actions(RANDOM_PLAYS, 0)), past)
        return float(self._met_once(batch, RANDOM_PLAYS).mean())

    def best_in_round(self, intervention: Intervention, seen: Observation) -> np.ndarray:
        shape = intervention.batch_shape
        places = range(shape[0]) if shape else [0]
        whole = intervention.broadcast(shape or (1,))
        return np.array([self.best_after(self._past_in(whole.at(i))).value for i in places]).reshape(shape)

    def _past_in(self, intervention: Intervention) -> Past:
        place = int(intervention.soft[0])
        earlier = {f"{name}_{before}" for before in range(place) for name in self.feedback.manipulable}
        implemented = {name: pair for name, pair in intervention.hard.items() if name in earlier}
        return Past(place * self.feedback.trials, implemented)

    def find_optimum(self) -> Optimum:
        """Search for the best sequence: from the myopic one and from good random ones on, slice by slice."""
        starts = [self.myopic_sequence(), *self._good_sequences()]
        best = max(map(self._exchange, starts), key=self._value_of)
        check = DynamicOracle(self.feedback, seed=self._seed + 1)
        parts = [check.mean_of(one, tolerance=0.0) for one in self._in_each_slice(self._hard_of(best))]
        value, error = (float(np.mean(part)) for part in zip(*parts, strict=True))
        return Optimum(value, self._in_words(best), error, *self._random_value())

    def myopic_sequence(self) -> list[Action]:
        """The best action of each slice after those before it."""
        sequence: list[Action] = []
        for _ in range(self.feedback.slices.count):
            sequence.append(self.best_after(self.past_of(sequence)).action)
        return sequence

    def value_of(self, sequence: Sequence[Action]) -> float:
        """The mean over slices of E[Y_t] where these actions are implemented, one in each slice."""
        parts = [self.mean_of(one, tolerance=0.0).value for one in self._in_each_slice(self._hard_of(sequence))]
        return float(np.mean(parts))

    def _value_of(self, sequence: Sequence[Action]) -> float:
        return float(self._mean_over_slices(self._hard_of(sequence)))

    def _hard_of(self, sequence: Sequence[Action]) -> Any:
        return self.past_of(sequence).implemented

    def _all_done(self, batches: list[Any]) -> dict[str, Any]:
        """Return what batches of actions set, the first of them in the first slice and so on."""
        hard: dict[str, Any] = {}
        for place, batch in enumerate(batches):
            past = Past(place * self.feedback.trials, {})
            hard |= self.feedback.situate(self.feedback.decode_batch(batch), past).hard
        return hard

    def _in_each_slice(self, hard: Any) -> list[Intervention]:
        return [Intervention((float(place),), hard) for place in range(self.feedback.slices.count)]

    def _mean_over_slices(self, hard: Any) -> np.ndarray:
        return np.mean([self._mean(one) for one in self._in_each_slice(hard)], axis=0)

    def _mean(self, intervention: Intervention) -> np.ndarray:
        """Means as a search takes them: exact, or over fixed noise."""
        exact = self._exactly(intervention)
        return self._quasi_monte_carlo(intervention, SEARCH_POINTS).value if exact is None else exact

    def _search_slice(self, means: Callable[[Intervention], np.ndarray]) -> Found:
        """The best action of a slice by what ``means`` makes of batches of them."""
        found = []
        for region in self.feedback.regions():
            to_actions = region.to_actions

            def value(points: np.ndarray, to_actions: Any = to_actions) -> np.ndarray:
                return np.broadcast_to(means(self.feedback.decode_batch(to_actions(points))), len(points))

            point = _zoom(value, region.dim, self._seed)
            one = batch_space(self.feedback.action_space, 1)
            action = next(iter(iterate(one, to_actions(point[None]))))
            found.append(Found(action, float(value(point[None])[0])))
        enough = max(one.value for one in found)
        enough -= GAIN * (1.0 + abs(enough))
        return next(one for one in found if one.value >= enough)  # smaller sets come first

    def _good_sequences(self) -> list[list[Action]]:
        """The best of many random sequences."""
        count, slices = TRIED, self.feedback.slices.count
        batches = [self._random_actions(count, self._seed + place) for place in range(slices)]
        values = np.broadcast_to(self._mean_over_slices(self._all_done(batches)), count)
        best = np.argsort(-values)[:STARTS]
        return [[{key: part[i] for key, part in batch.items()} for batch in batches] for i in best]

    def _exchange(self, sequence: list[Action]) -> list[Action]:
        """The sequence after exchanging one action at a time for the best in its place, until none gains."""
        sequence, value = list(sequence), self._value_of(sequence)
        while True:
            before = value
            enough = GAIN * (1.0 + abs(value))
            for place in range(len(sequence)):
                found = self._search_slice(lambda batch, place=place: self._with(sequence, place, batch))  # type: ignore[misc]
                if found.value > value + enough or (
                    found.value >= value - enough and self._is_simpler(found.action, sequence[place])
                ):
                    sequence[place], value = found
            if value <= before + enough:
                return sequence

    def _is_simpler(self, one: Action, other: Action) -> bool:
        size = [len(self.feedback.codec.sets[self.feedback.codec.chosen(action)]) for action in (one, other)]
        return size[0] < size[1]

    def _with(self, sequence: list[Action], place: int, batch: Intervention) -> np.ndarray:
        own = self.feedback.situate(batch, Past(place * self.feedback.trials, {})).hard
        names = {f"{name}_{place}" for name in self.feedback.manipulable}
        others = {name: pair for name, pair in self._hard_of(sequence).items() if name not in names}
        return self._mean_over_slices({**others, **own})

    def _in_words(self, sequence: list[Action]) -> str:
        codec = self.feedback.codec
        return "; ".join(f"slice {place}: {codec.to_text(codec.to_record(a))}" for place, a in enumerate(sequence))

    def _random_actions(self, count: int, seed: int) -> Any:
        space = batch_space(self.feedback.action_space, count)
        space.seed(seed)
        return space.sample()

    def _random_value(self, count: int = SEQUENCES) -> tuple[float, float]:
        """Mean and standard error, over random sequences, of the mean over slices."""
        batches = [self._random_actions(count, self._seed + place) for place in range(self.feedback.slices.count)]
        parts = self._in_each_slice(self._all_done(batches))
        values = np.mean([self._met_once(one, count) for one in parts], axis=0)
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(count))

    def _met_once(self, batch: Intervention, count: int) -> np.ndarray:
        """Rewards of ``count`` random actions, each met by a few noise draws of its own."""
        exact = self._exactly(batch)
        if exact is not None:
            return np.broadcast_to(exact, count)
        noise = self.scm.draw_noise(np.random.default_rng(self._seed), (count, RANDOM_DRAWS))
        return np.broadcast_to(self._rewards(batch.expand(), noise), (count, RANDOM_DRAWS)).mean(axis=1)


def _zoom(function: Means, dim: int, seed: int) -> np.ndarray:
    """A maximiser over the unit box of few dimensions: quasi-random points, then ever smaller steps from the best."""
    if dim == 0:
        return np.zeros(0)
    from scipy.stats import qmc  # late: slow to import, and needed only here

    rng = np.random.default_rng(seed)
    corners = np.array(list(islice(product((0.0, 1.0), repeat=dim), FIRST_TRIED)))
    points = np.concatenate([qmc.Sobol(dim, rng=rng).random(FIRST_TRIED), corners])
    values = function(points)
    radius = RADIUS
    for _ in range(GENERATIONS):
        order = np.argsort(-values)[:SURVIVORS]
        points, values = points[order], values[order]
        steps = rng.normal(0.0, radius, (len(points), CHILDREN, dim))
        children = np.clip(points[:, None] + steps, 0.0, 1.0).reshape(-1, dim)
        points, values = np.concatenate([points, children]), np.concatenate([values, function(children)])
        radius *= SHRINKING
    return tidied(function, points[np.argmax(values)])[0]
