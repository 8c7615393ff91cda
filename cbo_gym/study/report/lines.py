"""Beliefs along lines through the action space: one coordinate varies, the others have their best values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.actions import Domains, Interval, Kind
from cbo_gym.actions.codec import BoxCodec, CellCodec, ChoiceCodec, PurchaseCodec
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
        held: Values of the other coordinates, in words.
        points: Native values of the coordinate, ascending.
        band: Expected rewards there.
        at: Native value of the coordinate in the action that is best by belief.
        measured: Native values and rewards of the rounds played with this set.
        domain: Domain of the coordinate.
    """

    title: str
    axis: str
    held: str
    points: np.ndarray
    band: Band
    at: float
    measured: list[tuple[float, float]]
    domain: Interval = (0.0, 1.0)

    @property
    def best(self) -> str:
        """Value of the coordinate in the action that is best by belief, in words."""
        return number(self.domain.label(self.at) if isinstance(self.domain, Kind) else self.at)


def lines_of(snapshot: Snapshot) -> list[Line]:
    """Return a line for each parameter, or for each set or scope that is shown; empty without beliefs.

    The line of a set is along the variable with the largest effect.
    """
    codec = snapshot.study.interface.codec
    if isinstance(codec, ChoiceCodec) and not isinstance(codec, PurchaseCodec):
        return list(_lines_of_sets(snapshot, codec))
    return list(_lines_of_parameters(snapshot, codec))


def sets_to_show(snapshot: Snapshot) -> list[int]:
    """Return the sets or scopes to show: the :data:`MAX_LINES` that were tried most."""
    codec: Any = snapshot.study.interface.codec
    tried = Counter(int(known.action[codec.key]) for known in snapshot.rounds)
    return sorted(sorted(range(len(codec.sets)), key=lambda index: -tried[index])[:MAX_LINES])


def _lines_of_sets(snapshot: Snapshot, codec: ChoiceCodec) -> Iterator[Line]:
    for index in sets_to_show(snapshot):
        set_rounds = [known for known in snapshot.rounds if int(known.action[codec.key]) == index]
        columns = [column for column, name in enumerate(codec.domains.names) if name in codec.sets[index]]

        def action(point: np.ndarray, index: int = index, columns: list[int] = columns) -> Action:
            values = codec.domains.unset.copy()
            values[columns] = point
            return {codec.key: np.int64(index), "values": values}

        title = snapshot.choice_name(index)
        if not columns:
            band = snapshot.rewards([action(np.empty(0))])
            if band is not None:
                yield Line(title, "", "", np.empty(0), band, np.nan, [(0.0, known.reward) for known in set_rounds])
            continue
        played = [np.asarray(known.action["values"])[columns].clip(0.0, 1.0) for known in set_rounds]
        domains = Domains([codec.domains.intervals[column] for column in columns])

        def inside(point: np.ndarray, columns: list[int] = columns, action: ToAction = action) -> np.ndarray:
            allowed: Any = codec.to_action(codec.to_point(action(point)))
            return np.asarray(allowed["values"])[columns]

        best = _best_point(snapshot, action, domains, played, inside)
        if best is not None:
            steepest = max(range(len(columns)), key=lambda index: _spread(snapshot, action, best, index, domains))
            yield _line(snapshot, title, action, best, steepest, columns, set_rounds)


def _lines_of_parameters(snapshot: Snapshot, codec: Any) -> Iterator[Line]:
    if not isinstance(codec, CellCodec | BoxCodec | PurchaseCodec):
        return
    whole = snapshot.agent.recommend()
    recommended = np.asarray(whole["values"] if isinstance(whole, dict) else whole, dtype=float)
    # The recommendation may be a past trial outside the bounds or the limits.
    best, half = recommended.clip(0.0, 1.0), 0.0
    if isinstance(codec, CellCodec):
        best, half = recommended.mean(axis=0), (recommended[1] - recommended[0]) / 2
    elif isinstance(codec, BoxCodec):
        best = round_digits(codec, codec.to_action(best))

    def action(point: np.ndarray) -> Action:
        if isinstance(whole, dict):
            return {**whole, "values": point}
        middle = np.clip(point, half, 1 - half)
        return np.stack([middle - half, middle + half]) if isinstance(codec, CellCodec) else point

    if snapshot.rewards([action(best)]) is None:
        return
    columns = list(range(len(best)))
    if len(columns) > MAX_LINES:
        columns.sort(key=lambda column: -_spread(snapshot, action, best, column, codec.domains))
    for column in sorted(columns[:MAX_LINES]):
        yield _line(snapshot, codec.domains.names[column], action, best, column, range(len(best)), snapshot.rounds)


def _best_point(
    snapshot: Snapshot,
    action: ToAction,
    domains: Domains,
    played: list[np.ndarray],
    inside: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray | None:
    """Return the best of random and played points, improved along each coordinate; None without beliefs.

    ``inside`` returns the nearest point within the limits.
    """
    dim = len(domains)
    drawn = domains.from_uniform(np.random.default_rng(0).random((CANDIDATES, dim)))
    points = [inside(point) for point in (*drawn, *map(domains.round, played))]
    band = snapshot.rewards([action(point) for point in points])
    if band is None:
        return None
    best = points[snapshot.best(band)].copy()
    for index in range(dim):
        points_along, band = _along(snapshot, action, best, index, POINTS, domains)
        best = inside(points_along[snapshot.best(band)])
    return best


def _along(
    snapshot: Snapshot, action: ToAction, best: np.ndarray, index: int, count: int, domains: Domains
) -> tuple[np.ndarray, Band]:
    """Return about ``count`` points on the line through ``best``, ``best`` included, ``n x dim``, and the beliefs."""
    if domains.categories(index):
        count = len(domains.categories(index))
    spaced = np.linspace(0.0, 1.0, count)
    if (levels := domains.levels[index]) is not None:
        spaced = np.round(spaced * (levels - 1)) / (levels - 1)
    steps = np.unique(np.append(spaced, best[index]))
    actions = np.repeat(best[None], len(steps), axis=0)
    actions[:, index] = steps
    band = snapshot.rewards([action(point) for point in actions])
    assert band is not None
    return actions, band


def _spread(snapshot: Snapshot, action: ToAction, best: np.ndarray, index: int, domains: Domains) -> float:
    return float(np.ptp(_along(snapshot, action, best, index, COARSE, domains)[1].mean))


def _line(
    snapshot: Snapshot,
    title: str,
    action: ToAction,
    best: np.ndarray,
    index: int,
    columns: Sequence[int],
    rounds: Sequence[KnownRound],
) -> Line:
    """Return the line along ``best[index]``, which is the coordinate ``columns[index]`` of the action."""
    domains, varied = snapshot.study.interface.codec.domains, columns[index]
    values, band = _along(
        snapshot, action, best, index, POINTS, Domains([domains.intervals[column] for column in columns])
    )
    native = [float(domains.scales[column].to_native(value)) for column, value in zip(columns, best, strict=True)]
    shown = domains.labels({domains.names[column]: value for column, value in zip(columns, native, strict=True)})
    held = [f"{name} = {number(value)}" for name, value in shown.items() if name != domains.names[varied]]
    scale = domains.scales[varied]
    return Line(
        title,
        snapshot.with_unit(domains.names[varied]),
        ", ".join(held),
        np.array([float(scale.to_native(step)) for step in values[:, index]]),
        band,
        native[index],
        [(float(scale.to_native(_coordinate(known.action, varied))), known.reward) for known in rounds],
        domains.intervals[varied],
    )


def _coordinate(action: Any, column: int) -> float:
    """Return one coordinate of an action in the unit box, or of the middle of a cell."""
    if isinstance(action, dict):
        return float(action["values"][column])
    return float(np.asarray(action)[..., column].mean())
