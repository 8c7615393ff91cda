"""Beliefs along lines through the action space: one coordinate moves, the others stay where they are best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.actions.codec import UNSET, BoxCodec, CellCodec, ChoiceCodec
from cbo_gym.study.expectation import Band
from cbo_gym.study.report.snapshot import KnownRound, Snapshot, number
from cbo_gym.task import Action

# Points of a line, and of one that only measures how much depends on the coordinate.
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
        at: Native value of the coordinate in the best believed action.
        seen: Native values and rewards of the rounds played with this set.
    """

    title: str
    axis: str
    held: str
    points: np.ndarray
    band: Band
    at: float
    seen: list[tuple[float, float]]


def lines_of(shot: Snapshot) -> list[Line]:
    """One line for each parameter, or for each set or scope that is shown; empty if nothing is believed.

    Of a set it is the line along the variable on which most depends.
    """
    codec = shot.study.interface.codec
    return list(_of_sets(shot, codec) if isinstance(codec, ChoiceCodec) else _of_parameters(shot, codec))


def shown_sets(shot: Snapshot) -> list[int]:
    """The sets or scopes that are shown: at most :data:`MAX_LINES`, those that were tried most."""
    codec: Any = shot.study.interface.codec
    tried = Counter(int(one.action[codec.key]) for one in shot.rounds)
    return sorted(sorted(range(len(codec.sets)), key=lambda index: -tried[index])[:MAX_LINES])


def _of_sets(shot: Snapshot, codec: ChoiceCodec) -> Iterator[Line]:
    for index in shown_sets(shot):
        own = [one for one in shot.rounds if int(one.action[codec.key]) == index]
        places = [place for place, name in enumerate(codec.domains.names) if name in codec.sets[index]]

        def action(point: np.ndarray, index: int = index, places: list[int] = places) -> Action:
            values = np.full(len(codec.domains), UNSET)
            values[places] = point
            return {codec.key: np.int64(index), "values": values}

        title = shot.choice_name(index)
        if not places:
            band = shot.rewards([action(np.empty(0))])
            if band is not None:
                yield Line(title, "", "", np.empty(0), band, np.nan, [(0.0, one.reward) for one in own])
            continue
        played = [np.asarray(one.action["values"])[places].clip(0.0, 1.0) for one in own]
        best = _best_point(shot, action, len(places), played)
        if best is not None:
            steepest = max(range(len(places)), key=lambda place: _spread(shot, action, best, place))
            yield _line(shot, title, action, best, steepest, places, own)


def _of_parameters(shot: Snapshot, codec: Any) -> Iterator[Line]:
    if not isinstance(codec, CellCodec | BoxCodec):
        return
    recommended = np.asarray(shot.agent.recommend(), dtype=float)
    best, half = recommended.clip(0.0, 1.0), 0.0
    if isinstance(codec, CellCodec):
        best, half = recommended.mean(axis=0), (recommended[1] - recommended[0]) / 2

    def action(point: np.ndarray) -> Action:
        middle = np.clip(point, half, 1 - half)
        return np.stack([middle - half, middle + half]) if isinstance(codec, CellCodec) else point

    if shot.rewards([action(best)]) is None:
        return
    places = list(range(len(best)))
    if len(places) > MAX_LINES:
        places.sort(key=lambda place: -_spread(shot, action, best, place))
    for place in sorted(places[:MAX_LINES]):
        yield _line(shot, codec.domains.names[place], action, best, place, range(len(best)), shot.rounds)


def _best_point(shot: Snapshot, action: ToAction, dim: int, played: list[np.ndarray]) -> np.ndarray | None:
    """The best of random points and those played, moved along each coordinate in turn; None without beliefs."""
    points = [*np.random.default_rng(0).random((CANDIDATES, dim)), *played]
    band = shot.rewards([action(point) for point in points])
    if band is None:
        return None
    best = points[shot.best(band)].copy()
    for place in range(dim):
        along, moved = _along(shot, action, best, place, POINTS)
        best = along[shot.best(moved)]
    return best


def _along(shot: Snapshot, action: ToAction, best: np.ndarray, place: int, count: int) -> tuple[np.ndarray, Band]:
    """Points on the line through one, the point itself among them, of shape ``(about count, dim)``; the beliefs."""
    steps = np.unique(np.append(np.linspace(0.0, 1.0, count), best[place]))
    along = np.repeat(best[None], len(steps), axis=0)
    along[:, place] = steps
    band = shot.rewards([action(point) for point in along])
    assert band is not None
    return along, band


def _spread(shot: Snapshot, action: ToAction, best: np.ndarray, place: int) -> float:
    return float(np.ptp(_along(shot, action, best, place, COARSE)[1].mean))


def _line(
    shot: Snapshot,
    title: str,
    action: ToAction,
    best: np.ndarray,
    place: int,
    places: Sequence[int],
    rounds: Sequence[KnownRound],
) -> Line:
    """The line along ``best[place]``, which is the coordinate ``places[place]`` of the action."""
    domains, own = shot.study.interface.codec.domains, places[place]
    along, band = _along(shot, action, best, place, POINTS)
    native = [float(domains.scales[index].to_native(value)) for index, value in zip(places, best, strict=True)]
    held = [
        f"{domains.names[index]} = {number(value)}" for index, value in zip(places, native, strict=True) if index != own
    ]
    scale = domains.scales[own]
    return Line(
        title,
        shot.with_unit(domains.names[own]),
        ", ".join(held),
        np.array([float(scale.to_native(step)) for step in along[:, place]]),
        band,
        native[place],
        [(float(scale.to_native(_coordinate(one.action, own))), one.reward) for one in rounds],
    )


def _coordinate(action: Any, place: int) -> float:
    """One coordinate of an action in the unit box: of a cell its middle."""
    if isinstance(action, dict):
        return float(action["values"][place])
    return float(np.asarray(action)[..., place].mean())
