"""Beliefs along lines through the action space: one coordinate varies, the others have their best values."""

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

# Points of a line, and of a line that only measures the effect of the coordinate.
POINTS = 31
COARSE = 3
# Random points of a set in the search for its best action.
CANDIDATES = 128
MAX_LINES = 12
# From a point of the unit box to the action.
ToAction = Callable[[np.ndarray], Action]


class Line(NamedTuple):
    """Beliefs along one coordinate.

    Attributes:
        title: Name of the set, scope or parameter.
        axis: Name and unit of the coordinate; empty for a set without variables.
        others: Values of the other coordinates, in words.
        points: Native values of the coordinate, ascending.
        band: Expected rewards there.
        at: Native value of the coordinate in the action that is best by belief.
        measured: Native values and rewards of the rounds played with this set.
        domain: Domain of the coordinate.
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
        """Value of the coordinate in the action that is best by belief, in words."""
        return number(self.domain.label(self.at) if isinstance(self.domain, TypedDomain) else self.at)


def lines_of(snapshot: Snapshot) -> list[Line]:
    """Return a line for each parameter, or for each set or scope that is shown; empty without beliefs.

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
    tried = Counter(int(known.action[codec.key]) for known in snapshot.rounds)
    return sorted(sorted(range(len(codec.sets)), key=lambda index: -tried[index])[:MAX_LINES])


def _line_of_set(snapshot: Snapshot, codec: Any, index: int) -> Line | None:
    rounds = [known for known in snapshot.rounds if int(known.action[codec.key]) == index]
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
        measured = [(0.0, known.reward) for known in rounds]
        return None if band is None else Line(title, "", "", np.empty(0), band, np.nan, measured)
    played = [np.asarray(known.action["values"])[columns].clip(0.0, 1.0) for known in rounds]
    best = box.best_point(played, inside)
    if best is None:
        return None
    return box.line(title, best, max(range(len(columns)), key=lambda column: box.spread(best, column)), rounds)


def _lines_of_parameters(snapshot: Snapshot, codec: Any) -> Iterator[Line]:
    if isinstance(codec, ArmCodec):
        return
    action_of_agent = snapshot.agent.recommend()
    has_choice = isinstance(action_of_agent, dict)
    recommended = np.asarray(action_of_agent["values"] if has_choice else action_of_agent, dtype=float)
    # The recommendation may be a past trial outside the bounds or the limits.
    best, half = recommended.clip(0.0, 1.0), 0.0
    if isinstance(codec, CellCodec):
        best, half = recommended.mean(axis=0), (recommended[1] - recommended[0]) / 2
    elif isinstance(codec, BoxCodec):
        best = round_digits(codec, codec.to_action(best))

    def action(point: np.ndarray) -> Action:
        if has_choice:
            return {**action_of_agent, "values": point}
        middle = np.clip(point, half, 1 - half)
        return np.stack([middle - half, middle + half]) if isinstance(codec, CellCodec) else point

    if snapshot.rewards([action(best)]) is None:
        return
    columns = list(range(len(best)))
    box = _Box(snapshot, action, columns)
    if len(columns) > MAX_LINES:
        columns = sorted(columns, key=lambda column: -box.spread(best, column))
    for column in sorted(columns[:MAX_LINES]):
        yield box.line(codec.domains.names[column], best, column, snapshot.rounds)


class _Box(NamedTuple):
    """Some coordinates of the actions of a study, as a unit box.

    Attributes:
        snapshot: the study.
        action: from a point of the box to the action.
        columns: the coordinates.
    """

    snapshot: Snapshot
    action: ToAction
    columns: Sequence[int]

    @property
    def domains(self) -> Domains:
        intervals = self.snapshot.study.interface.codec.domains.intervals
        return Domains([intervals[column] for column in self.columns])

    def best_point(self, played: Sequence[np.ndarray], inside: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
        """Return the best of random and played points, improved along each coordinate; None without beliefs.

        ``inside`` returns the nearest point within the limits.
        """
        domains = self.domains
        random = domains.from_uniform(np.random.default_rng(0).random((CANDIDATES, len(domains))))
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
        """Return about ``count`` points on the line through ``best``, which is one of them, and the beliefs."""
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

    def spread(self, best: np.ndarray, index: int) -> float:
        """Return the effect of a coordinate on the expected reward."""
        return float(np.ptp(self.along(best, index, COARSE)[1].mean))

    def line(self, title: str, best: np.ndarray, index: int, rounds: Sequence[KnownRound]) -> Line:
        """Return the line through ``best`` along a coordinate of the box."""
        domains, varied = self.snapshot.study.interface.codec.domains, self.columns[index]
        points, band = self.along(best, index, POINTS)
        natives = {
            domains.names[column]: float(domains.scales[column].to_native(value))
            for column, value in zip(self.columns, best, strict=True)
        }
        name, scale = domains.names[varied], domains.scales[varied]
        others = [f"{other} = {number(value)}" for other, value in domains.labels(natives).items() if other != name]
        return Line(
            title,
            self.snapshot.with_unit(name),
            ", ".join(others),
            np.array([float(scale.to_native(step)) for step in points[:, index]]),
            band,
            natives[name],
            [(float(scale.to_native(_coordinate(known.action, varied))), known.reward) for known in rounds],
            domains.intervals[varied],
        )


def _coordinate(action: Any, column: int) -> float:
    """Return one coordinate of an action in the unit box, or of the middle of a cell."""
    if isinstance(action, dict):
        return float(action["values"][column])
    return float(np.asarray(action)[..., column].mean())
