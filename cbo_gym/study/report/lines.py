"""Predictions of the agent along lines through the action space, on which one coordinate varies.

The other coordinates have their best values, or those of the recommendation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.actions import Domains, Interval, TypedDomain
from cbo_gym.actions.codec import ArmCodec, BoxCodec, CellCodec
from cbo_gym.study.digits import round_digits
from cbo_gym.study.expectation import Band
from cbo_gym.study.report.snapshot import KnownRound, Snapshot, number
from cbo_gym.task import Action

# Number of points of a line that is drawn, and of one that only measures the effect of a coordinate.
POINTS, POINTS_FOR_EFFECT = 31, 3
# Number of random points in the search for the best action of a set.
RANDOM_POINTS = 128
MAX_LINES = 12


class Line(NamedTuple):
    """Predictions along one coordinate.

    Attributes:
        title: name of the set, of the scope (a set with the contexts that it depends on), or of the parameter.
        axis: name and unit of the coordinate; empty for a set without variables.
        others: values of the other coordinates, in words.
        points: native values of the coordinate, ascending, shape ``(n,)``.
        band: expected rewards at the points.
        at: native value of the coordinate in the action with the best prediction.
        measured: native value of the coordinate and reward of each round, for a set those that set it.
        domain: domain of the coordinate.
    """

    title: str
    axis: str
    others: str
    points: np.ndarray
    band: Band
    at: float
    measured: list[tuple[float, float]]
    domain: Interval = (0.0, 1.0)

    @property
    def best(self) -> str:
        """The value ``at`` in words."""
        return number(self.domain.label(self.at) if isinstance(self.domain, TypedDomain) else self.at)


def lines_of(snapshot: Snapshot) -> list[Line]:
    """Return a line for each parameter, or for each set or scope that is shown; empty without predictions.

    The line of a set is along the variable with the largest effect.
    """
    codec = snapshot.study.interface.codec
    if codec.separate_choices:
        lines = (_line_of_set(snapshot, codec, index) for index in sets_to_show(snapshot))
        return [line for line in lines if line is not None]
    return list(_lines_of_parameters(snapshot, codec))


def sets_to_show(snapshot: Snapshot) -> list[int]:
    """Return the sets or scopes to show: the :data:`MAX_LINES` that were tried most."""
    codec: Any = snapshot.study.interface.codec
    counts = Counter(int(played.action[codec.key]) for played in snapshot.rounds)
    most_tried = sorted(range(len(codec.sets)), key=lambda index: -counts[index])[:MAX_LINES]
    return sorted(most_tried)


def _line_of_set(snapshot: Snapshot, codec: Any, index: int) -> Line | None:
    """Return the line of a set or scope; None without predictions."""
    rounds = [played for played in snapshot.rounds if int(played.action[codec.key]) == index]
    columns = [column for column, name in enumerate(codec.domains.names) if name in codec.sets[index]]

    def action(point: np.ndarray) -> Action:
        values = codec.domains.unset.copy()
        values[columns] = point
        return {codec.key: np.int64(index), "values": values}

    def inside(point: np.ndarray) -> np.ndarray:
        allowed: Any = codec.to_action(codec.to_point(action(point)))
        return np.asarray(allowed["values"])[columns]

    title, box = snapshot.choice_name(index), _Box(snapshot, action, columns)
    if not columns:
        band = snapshot.rewards([action(np.empty(0))])
        measured = [(0.0, played.reward) for played in rounds]
        return None if band is None else Line(title, "", "", np.empty(0), band, np.nan, measured)
    played_points = [np.asarray(played.action["values"])[columns].clip(0.0, 1.0) for played in rounds]
    best = box.best_point(played_points, inside)
    if best is None:
        return None
    position = max(range(len(columns)), key=lambda position: box.effect(best, position))
    return box.line(title, best, position, rounds)


def _lines_of_parameters(snapshot: Snapshot, codec: Any) -> Iterator[Line]:
    if isinstance(codec, ArmCodec):
        return
    recommended = snapshot.agent.recommend()
    has_choice = isinstance(recommended, dict)
    values = np.asarray(recommended["values"] if has_choice else recommended, dtype=float)
    # The recommendation may be a past trial outside the bounds or the limits.
    best, half_width = values.clip(0.0, 1.0), 0.0
    if isinstance(codec, CellCodec):
        best, half_width = values.mean(axis=0), (values[1] - values[0]) / 2
    elif isinstance(codec, BoxCodec):
        best = round_digits(codec, codec.to_action(best))

    def action(point: np.ndarray) -> Action:
        if has_choice:
            return {**recommended, "values": point}
        if not isinstance(codec, CellCodec):
            return point
        middle = np.clip(point, half_width, 1 - half_width)
        return np.stack([middle - half_width, middle + half_width])

    if snapshot.rewards([action(best)]) is None:
        return
    columns = list(range(len(best)))
    box = _Box(snapshot, action, columns)
    if len(columns) > MAX_LINES:
        columns = sorted(columns, key=lambda column: -box.effect(best, column))
    for column in sorted(columns[:MAX_LINES]):
        yield box.line(codec.domains.names[column], best, column, snapshot.rounds)


class _Box(NamedTuple):
    """The unit box of some coordinates of a study's actions. Arguments ``index`` are positions in ``columns``.

    Attributes:
        snapshot: the study.
        action: function from a point of the box to the action.
        columns: the coordinates, as positions in the domains of the codec.
    """

    snapshot: Snapshot
    action: Callable[[np.ndarray], Action]
    columns: Sequence[int]

    @property
    def domains(self) -> Domains:
        intervals = self.snapshot.study.interface.codec.domains.intervals
        return Domains([intervals[column] for column in self.columns])

    def best_point(self, played: Sequence[np.ndarray], inside: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
        """Return the best of random and played points, improved along each coordinate; None without predictions.

        ``inside`` returns the nearest point within the limits.
        """
        domains = self.domains
        random = domains.from_uniform(np.random.default_rng(0).random((RANDOM_POINTS, len(domains))))
        points = [inside(point) for point in (*random, *map(domains.round, played))]
        band = self.snapshot.rewards([self.action(point) for point in points])
        if band is None:
            return None
        best = points[self.snapshot.best(band)].copy()
        for index in range(len(domains)):
            points_along, band = self.along(best, index, POINTS)
            best = inside(points_along[self.snapshot.best(band)])
        return best

    def along(self, best: np.ndarray, index: int, count: int) -> tuple[np.ndarray, Band]:
        """Return about ``count`` points on the line through ``best``, ``best`` among them, and the predictions."""
        domains = self.domains
        if domains.categories(index):
            count = len(domains.categories(index))
        spaced = np.linspace(0.0, 1.0, count)
        if (levels := domains.levels[index]) is not None:
            spaced = np.round(spaced * (levels - 1)) / (levels - 1)
        steps = np.unique(np.append(spaced, best[index]))
        points = np.repeat(best[None], len(steps), axis=0)
        points[:, index] = steps
        band = self.snapshot.rewards([self.action(point) for point in points])
        assert band is not None
        return points, band

    def effect(self, best: np.ndarray, index: int) -> float:
        """Return the range of the expected reward along a coordinate."""
        return float(np.ptp(self.along(best, index, POINTS_FOR_EFFECT)[1].mean))

    def line(self, title: str, best: np.ndarray, index: int, rounds: Sequence[KnownRound]) -> Line:
        """Return the line through ``best`` along a coordinate of the box."""
        domains, varied_column = self.snapshot.study.interface.codec.domains, self.columns[index]
        points, band = self.along(best, index, POINTS)
        natives = {
            domains.names[column]: float(domains.scales[column].to_native(value))
            for column, value in zip(self.columns, best, strict=True)
        }
        name, scale = domains.names[varied_column], domains.scales[varied_column]
        others = [f"{other} = {number(value)}" for other, value in domains.labels(natives).items() if other != name]
        return Line(
            title=title,
            axis=self.snapshot.with_unit(name),
            others=", ".join(others),
            points=np.array([float(scale.to_native(step)) for step in points[:, index]]),
            band=band,
            at=natives[name],
            measured=[
                (float(scale.to_native(_coordinate(played.action, varied_column))), played.reward) for played in rounds
            ],
            domain=domains.intervals[varied_column],
        )


def _coordinate(action: Any, column: int) -> float:
    """Return one coordinate of an action in the unit box, or of the middle of a cell."""
    if isinstance(action, dict):
        return float(action["values"][column])
    return float(np.asarray(action)[..., column].mean())
